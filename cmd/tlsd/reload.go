// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/filewatch"
	"github.com/tlsd/tlsd/logging"
)

const (
	// reloadPause is the least time between the reloads that signals ask for.
	reloadPause = time.Second
	// settled is how long a configuration file must stay as it is before it
	// counts: half of one may be a good one too.
	settled = time.Second
)

// reloader makes the configuration anew from all that tlsd was started with.
type reloader struct {
	in     config.Input
	levels *logging.Logger
	keep   func(levels map[string]string) // is told of those that change

	piped bool // the configuration came by what can't be read again

	mu   sync.Mutex // held during a reload, and guards what follows
	eff  *config.Effective
	file [sha256.Size]byte // the content of the configuration file that was last read
	owed error             // why the last reload failed, if what it was to bring is still to come
}

// newReloader returns one of eff, which was loaded of a file with that content.
func newReloader(in config.Input, eff *config.Effective, file [sha256.Size]byte, levels *logging.Logger) *reloader {
	return &reloader{in: in, levels: levels, piped: isNoFile(eff.File), eff: eff, file: file}
}

// isNoFile says that something is at path that isn't a regular file.
func isNoFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular()
}

// digestOf identifies the content of a file; zero: there is none to be read again.
// What is behind the most that a configuration may be doesn't count: such a file is
// refused whatever is in it, and may have any size.
func digestOf(path string) (sum [sha256.Size]byte) {
	if path == "" || isNoFile(path) {
		return sum
	}
	f, err := os.Open(path)
	if err != nil {
		return sum
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, config.MaxFile+1)); err != nil {
		return sum
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// load makes the configuration anew. A pipe in the place of the file would be
// waited for, by this reload and by all after it.
func (r *reloader) load() (*config.Effective, error) {
	if isNoFile(r.eff.File) {
		return nil, fmt.Errorf("read configuration file %q: is no regular file any more: put one in its place", r.eff.File)
	}
	eff, err := config.Load(r.in)
	if err == nil && eff.Blank && !r.eff.Blank {
		return nil, fmt.Errorf("configuration file %q: says nothing, where what is in use says something: it may be half written; restart tlsd to have the defaults", r.eff.File)
	}
	return eff, err
}

// reload has server be what the configuration says now, and returns the keys that
// have changed. On error all stays as it is. What comes of a pipe or of a question
// is not asked for again.
func (r *reloader) reload(ctx context.Context, server *framework.Server, log *zap.Logger) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.piped {
		return nil, r.owe(server.Reload(ctx), 0)
	}
	r.file = digestOf(r.eff.File)
	eff, err := r.load()
	if err != nil {
		if told := r.eff.Observer.Reloaded; told != nil { // of the rest the server tells
			told("config", err)
		}
		return nil, r.owe(err, 0)
	}
	carryOver(r.eff, eff)
	changed, restart := config.Changed(r.eff, eff)
	if err := r.owe(server.Apply(ctx, eff.Config), len(changed)); err != nil {
		return nil, err
	}
	levels := logging.ChangedLevels(r.eff.LogLevels, eff.LogLevels)
	r.keep(levels)
	if err := r.levels.SetLevels(levels); err != nil {
		return changed, err
	}
	if len(changed) > 0 {
		logNotes(log, eff.Notes)
	}
	if len(restart) > 0 {
		log.Named("config").Warn("changed settings that take a restart", zap.Strings("keys", restart))
	}
	r.eff = eff
	return changed, nil
}

// read says whether the content of the configuration file is that which was last
// read, whatever came of it.
func (r *reloader) read(content [sha256.Size]byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.file == content
}

// owe notes, with mu held, how a reload went that was to change so many settings, and
// returns err. Keystores alone are no debt: the key process looks after them itself.
func (r *reloader) owe(err error, settings int) error {
	r.owed = err
	if settings == 0 && errors.As(err, new(*framework.KeystoresError)) {
		r.owed = nil
	}
	return err
}

// owes returns why the last reload failed; nil: it didn't, or nothing is left to do.
func (r *reloader) owes() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owed
}

// poll is how often the configuration in use has files looked at.
func (r *reloader) poll() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.eff.Options.Poll
}

// carryOver gives next what no configuration says: the throw-away keystore of this
// process, a password that was typed, and who is told of what happens.
func carryOver(old, next *config.Effective) {
	next.Observer = old.Observer
	if next.Demo {
		next.Keystores = old.Keystores
	}
	for i, s := range next.Keystores {
		j := slices.IndexFunc(old.Keystores, func(o keymanager.Source) bool { return slices.Equal(o.Paths, s.Paths) })
		if j >= 0 && s.Store.IsZero() && old.Keystores[j].Store.File == "" {
			next.Keystores[i].Store = old.Keystores[j].Store
		}
	}
}

// askReload has all read anew. However often it is called during a reload, one
// more follows.
func (d *daemon) askReload() {
	select {
	case d.hups <- struct{}{}:
	default:
	}
}

// reloadOnDemand reloads, once at a time and with a pause after each, until ctx
// ends. What failed is tried again from time to time: its cause may go without a
// word, as when a file that the configuration names comes after it.
func (d *daemon) reloadOnDemand(ctx context.Context) {
	for {
		select {
		case <-d.hups:
			_ = d.reload(ctx) // it says so itself
		case <-time.After(d.reloader.poll()):
			if owed := d.reloader.owes(); owed != nil {
				d.reloadAgain(ctx, owed)
			}
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(reloadPause):
		case <-ctx.Done():
			return
		}
	}
}

// reload reads everything anew and logs how that went, once there is a server. If
// ctx ends it says nothing.
func (d *daemon) reload(ctx context.Context) error {
	select {
	case server := <-d.server:
		d.server <- server
		ended := d.manager.reloading()
		err := d.reloadOnce(ctx, server)
		ended(err)
		d.tellFailed(ctx, err)
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reloadAgain is reload after one that failed by owed, and says only what is new.
func (d *daemon) reloadAgain(ctx context.Context, owed error) {
	server := <-d.server
	d.server <- server
	switch err := d.reloadOnce(ctx, server); {
	case err == nil:
		d.manager.reloading()(nil)
	case err.Error() != owed.Error():
		d.tellFailed(ctx, err)
	}
}

// reloadOnce reads everything anew and logs what has changed.
func (d *daemon) reloadOnce(ctx context.Context, server *framework.Server) error {
	before := server.Keys().Generation()
	changed, err := d.reloader.reload(ctx, server, d.log)
	if err != nil {
		return err
	}
	now := server.Keys().Generation()
	d.log.Info("reloaded", zap.Bool("keystores_changed", now != before), zap.Uint64(logging.FieldGeneration, now),
		zap.Strings("settings_changed", changed))
	return nil
}

func (d *daemon) tellFailed(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		d.log.Log(levelOf(err), "reload failed: the old state stays in use", zap.Error(err))
	}
}

// levelOf is the level of a reload that failed: one line at error is enough, and of
// keystores the key process has written it.
func levelOf(err error) zapcore.Level {
	if errors.As(err, new(*framework.KeystoresError)) {
		return zap.WarnLevel
	}
	return zap.ErrorLevel
}

// watchConfig reloads when the configuration file has another content, until ctx
// ends. Events and poll say when to look.
func (d *daemon) watchConfig(ctx context.Context, eff *config.Effective) {
	if digestOf(eff.File) == [sha256.Size]byte{} {
		return // a pipe, or no file
	}
	w := filewatch.New(d.log)
	defer w.Close()
	var seen [sha256.Size]byte
	for {
		w.Follow([]string{eff.File})
		wait, content := d.reloader.poll(), digestOf(eff.File)
		switch {
		case content == [sha256.Size]byte{} || d.reloader.read(content):
		case content != seen:
			wait = settled
		default:
			d.askReload()
		}
		seen = content
		if !w.Wait(ctx, wait, nil) {
			return
		}
	}
}
