// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/logging"
)

// HostOptions say how a key process is run.
type HostOptions struct {
	RunDir     string        // for sockets; empty: $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/tlsd, $TMPDIR, /tmp, the first that is writable; where none is, the connection is inherited
	PluginWait time.Duration // how long a call waits while there is no key process or too much to do; 0: 2 s
	Log        *zap.Logger   // the root logger; nil: none

	patience patience // with a process that hangs; zero: the usual
	bases    runBases // in place of the defaults
}

// Host runs a key manager in a child process and replaces the process when it
// ends. It is safe for concurrent use.
type Host struct {
	*caller
	launch launch
	spec   Spec // with the child's paths

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
	h.put(p.link)
	go func() {
		h.supervise(p)
		h.stopping.Wait()
		close(h.done)
	}()
	return h, nil
}

// newHost opens what all starts have in common.
func newHost(ctx context.Context, cmd Command, spec Spec, opt HostOptions) (*Host, error) {
	exe, err := openExecutable(cmd)
	if err != nil {
		return nil, err
	}
	there, files, err := openDescriptors(ctx, spec, firstFreeFD(exe))
	if err != nil {
		return nil, errors.Join(err, exe.close())
	}
	log, patience := opt.Log, opt.patience
	if log == nil {
		log = zap.NewNop()
	}
	if patience.misses == 0 {
		patience = usualPatience()
	}
	bases := opt.bases
	if len(bases.dirs) == 0 {
		bases = defaultRunBases(os.Getenv)
	}
	if opt.RunDir != "" {
		bases = runBases{dirs: []string{opt.RunDir}, ours: opt.RunDir}
	}
	h := &Host{
		caller: newCaller(cmd.Tier, opt.PluginWait, spec.LogLevels, log),
		launch: launch{cmd: cmd, exe: exe, files: files, bases: bases, patience: patience, log: log},
		spec:   there,
		done:   make(chan struct{}),
	}
	h.newest.raise(spec.After, "")
	h.files = files
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
		zap.Int("pid", p.pid), zap.Uint64(logging.FieldGeneration, resp.GetGeneration()))
	return p, nil
}

// configure has p open the keystores, within configureTimeout. Whether it is
// deadlocked or has much to decrypt, nobody can see: both are given that time, and
// remarked on.
func (h *Host) configure(ctx context.Context, p *process) (*pb.ConfigureResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, configureTimeout)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	defer time.AfterFunc(h.launch.opening, func() {
		h.log.Warn("key process is still opening its keystores", zap.String(logging.FieldTier, h.tier),
			zap.Int("pid", p.pid), zap.Duration("given_up_after", configureTimeout))
	}).Stop()
	spec := h.spec
	spec.LogLevels = h.currentLevels()
	resp, err := p.api.Configure(ctx, configureToProto(spec, h.newest.get()+1))
	switch {
	case err == nil && resp.GetGeneration() > maxGeneration:
		return nil, fmt.Errorf("%s begins with generation %d, which no key manager gets to", p.child.subject(), resp.GetGeneration())
	case err == nil:
		if d := resp.GetDescription(); d != nil {
			p.about = d
		}
		return resp, nil
	case p.gone():
		return nil, p.broken()
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not open its keystores in time: %w", p.child.subject(), ctx.Err())
	}
	return nil, p.cause(err)
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
