// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/logging"
)

// defaultWait is how long a call waits for the key process, if nothing is said.
const defaultWait = 2 * time.Second

// HostOptions say how a key process is run.
type HostOptions struct {
	RunDir     string        // for sockets; empty: $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/tlsd, $TMPDIR, /tmp, the first that is writable
	PluginWait time.Duration // how long a call waits while there is no key process or too much to do; 0: 2 s
	Log        *zap.Logger   // the root logger; nil: none
}

// Host runs a key manager in a child process and replaces the process when it
// ends. It is safe for concurrent use.
type Host struct {
	launch launch
	spec   Spec // with the child's paths
	log    *zap.Logger
	wait   time.Duration
	about  *pb.DescribeResponse

	started time.Time

	slot   atomic.Pointer[slot]
	newest newest

	mu     sync.Mutex // guards levels
	levels map[string]string

	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	stopping sync.WaitGroup // processes on their way out
	done     chan struct{}
	close    func() error
}

var _ Manager = (*Host)(nil)

// Start starts cmd as key process, has it open the keystores of spec, and keeps
// one running until Close. ctx bounds the start, and so do 10 s until the process
// says what it is and 2 minutes for its keystores. The start fails if the very
// first process does; then nothing is left running. The error names the tier, and is
// ErrRunDir where it is not what was given that is wrong.
//
// In a process that is a key process itself, Start fails: its main doesn't call
// Main first.
func Start(ctx context.Context, cmd Command, spec Spec, opt HostOptions) (_ *Host, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("key manager %q: %w", cmd.Tier, err)
		}
	}()
	if tier, ok := os.LookupEnv(childMarker); ok {
		return nil, fmt.Errorf("this process was started to be the key process of %q, and its main opens key managers instead: call plugin.Main first in main", tier)
	}
	h, err := newHost(ctx, cmd, spec, opt)
	if err != nil {
		return nil, err
	}
	p, err := h.open(ctx)
	if err != nil {
		h.cancel()
		return nil, errors.Join(err, h.release())
	}
	h.about = p.about
	h.slot.Store(newSlot(p))
	go func() {
		h.supervise(p)
		h.stopping.Wait()
		close(h.done)
	}()
	return h, nil
}

// newHost opens what all starts have in common.
func newHost(ctx context.Context, cmd Command, spec Spec, opt HostOptions) (*Host, error) {
	h := &Host{started: time.Now(), log: opt.Log, wait: opt.PluginWait, levels: map[string]string{}, done: make(chan struct{})}
	maps.Copy(h.levels, spec.LogLevels)
	if h.log == nil {
		h.log = zap.NewNop()
	}
	if h.wait <= 0 {
		h.wait = defaultWait
	}
	exe, err := openExecutable(cmd)
	if err != nil {
		return nil, err
	}
	there, files, err := openDescriptors(ctx, spec, firstFreeFD(exe))
	if err != nil {
		return nil, errors.Join(err, exe.close())
	}
	h.spec = there
	h.launch = launch{cmd: cmd, exe: exe, files: files, runDir: opt.RunDir, log: h.log}
	h.log = h.log.Named("plugin")
	h.newest.init()
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.close = sync.OnceValue(h.end)
	h.warnUnchecked()
	return h, nil
}

// warnUnchecked says how an external executable is pinned.
func (h *Host) warnUnchecked() {
	exe := h.launch.exe
	if exe.file == nil || exe.sum != "" {
		return
	}
	sum, err := exe.digest()
	if err != nil {
		return // the start will say why
	}
	h.log.Warn("plugin is run without a checksum; to pin it, give the one that it has now",
		zap.String("option", fmt.Sprintf("--plugin %s=%s@sha256:%s", h.launch.cmd.Tier, exe.path, sum)))
}

// open starts a process and has it open the keystores, as a generation newer
// than all that were seen. On error nothing of it is left.
func (h *Host) open(ctx context.Context) (*process, error) {
	p, err := h.launch.start(ctx)
	if err != nil {
		return nil, err
	}
	resp, err := h.configure(ctx, p)
	if err != nil {
		p.abandon()
		return nil, h.spelled(err)
	}
	h.newest.raise(resp.GetGeneration(), "key process started")
	h.log.Info("key process started", zap.String(logging.FieldTier, h.launch.cmd.Tier), zap.String("version", clean(p.about.GetVersion(), maxExcerpt)),
		zap.Int("pid", p.child.number()), zap.Uint64(logging.FieldGeneration, resp.GetGeneration()))
	return p, nil
}

// configure has p open the keystores, within configureTimeout.
func (h *Host) configure(ctx context.Context, p *process) (*pb.ConfigureResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, configureTimeout)
	defer cancel()
	spec := h.spec
	spec.LogLevels = h.currentLevels()
	resp, err := p.api.Configure(ctx, configureToProto(spec, h.newest.get()+1))
	switch {
	case err == nil && resp.GetGeneration() > maxGeneration:
		return nil, fmt.Errorf("%s begins with generation %d, which no key manager gets to", p.child.subject(), resp.GetGeneration())
	case err == nil:
		return resp, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not open its keystores in time: %w", p.child.subject(), ctx.Err())
	}
	return nil, p.cause(err)
}

// spelled returns err with the paths as the user gave them.
func (h *Host) spelled(err error) error {
	if err == nil {
		return nil
	}
	text := h.launch.files.rename(err.Error())
	if text == err.Error() {
		return err
	}
	return &remoteError{text: text, meaning: err}
}

// Describe says what is running.
func (h *Host) Describe() Description {
	d := Description{
		Name:     clean(h.about.GetName(), maxExcerpt),
		Version:  clean(h.about.GetVersion(), maxExcerpt),
		Contract: int(h.about.GetContractVersion()),
		Isolated: true,
	}
	if p := h.slot.Load().process; p != nil {
		d.PID = p.child.number()
	}
	return d
}

// Status says how the key process is doing.
func (h *Host) Status() Status {
	s := Status{Since: h.started}
	if p := h.slot.Load().process; p != nil && !p.gone() {
		s.Up, s.Since, s.PID = true, p.since, p.child.number()
	}
	return s
}

// Done is closed after Close.
func (h *Host) Done() <-chan struct{} { return h.done }

// Err returns nil: a key process that is lost is replaced for as long as it takes.
func (h *Host) Err() error { return nil }

// Close ends the key process and waits until nothing of it is left, for some
// seconds at most. Calls under way fail with ErrClosed or ErrUnavailable.
func (h *Host) Close() error { return h.close() }

func (h *Host) end() error {
	h.cancel()
	<-h.done
	return h.release()
}

func (h *Host) release() error {
	return errors.Join(h.launch.files.close(), h.launch.exe.close())
}

// SetLogLevels sets the levels of the key process's loggers, now and after each
// restart. Where there is no process at the moment, the next one starts with
// them. A level that is none is an error and changes nothing.
func (h *Host) SetLogLevels(ctx context.Context, levels map[string]string) error {
	for name, level := range levels {
		if _, err := logging.ParseLevel(level); err != nil {
			return fmt.Errorf("logger %q: %w", name, err)
		}
	}
	h.mu.Lock()
	maps.Copy(h.levels, levels)
	h.mu.Unlock()
	p := h.slot.Load().process
	if p == nil {
		return nil
	}
	_, err := p.api.SetLogLevel(ctx, &pb.SetLogLevelRequest{Levels: levels})
	if p.gone() {
		return nil
	}
	return fromStatus(err)
}

func (h *Host) currentLevels() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.levels)
}

// catchUp tells p of levels that were set while it started.
func (h *Host) catchUp(p *process) {
	ctx, cancel := context.WithTimeout(p.ctx, h.wait)
	defer cancel()
	_, _ = p.api.SetLogLevel(ctx, &pb.SetLogLevelRequest{Levels: h.currentLevels()})
}
