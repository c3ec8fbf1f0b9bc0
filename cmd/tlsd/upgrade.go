// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/framework/plugin"
)

// upgradeTimeout is how long a new process may take until it serves.
const upgradeTimeout = 30 * time.Second

// upgrade has the executable that lies at tlsd's path now take this process's
// place, with its listening sockets, and ends this process once the other serves.
// Until then, and if it never does, this one goes on. One that is asked for
// during the start begins after it, and one that is asked for during another is
// that: to call it failed would tell a service manager that this process stays.
func (d *daemon) upgrade() {
	if !d.upgrading.TryLock() {
		d.log.Info("upgrade: one is under way already")
		return
	}
	defer d.upgrading.Unlock()
	select {
	case <-d.sockets.flip.Exit():
		d.log.Info("upgrade: too late, this process is ending")
		return
	case <-d.sockets.serving:
	}
	if d.refusal != nil {
		d.log.Error("upgrade refused: this process goes on", zap.Error(d.refusal))
		return
	}
	d.log.Info("upgrade: starting", zap.String("executable", os.Args[0]))
	if err := d.sockets.flip.Upgrade(); err != nil {
		d.log.Error("upgrade failed: this process goes on", zap.String("executable", os.Args[0]), zap.Error(explainUpgrade(err)))
		d.manager.stays() // the other may have said that it is the service
		return
	}
	d.log.Info("upgrade: another process serves now; this one ends with its connections")
	d.manager.handOver()
	d.sockets.leave()
	d.monitor.close() // what is asked for is told by the other now
	d.cancel(framework.ErrHandedOver)
}

// explainUpgrade says more where tableflip says little.
func explainUpgrade(err error) error {
	switch text := err.Error(); {
	case strings.Contains(text, "parent hasn't exited"):
		return errors.New("the process before this one still has connections, for drain.timeout at most: try again then")
	case strings.Contains(text, "timed out"):
		return fmt.Errorf("%w: it did not serve within %v and was killed", err, upgradeTimeout)
	case strings.Contains(text, "exited"):
		return fmt.Errorf("%w: what it wrote to this log says why", err)
	}
	return err
}

// takeOver tells whoever waits for it that server serves: the process whose place
// it takes, which ends then, and the service manager.
func (d *daemon) takeOver(ctx context.Context, server *framework.Server) {
	select {
	case <-server.Serving():
	case <-ctx.Done():
		return
	}
	if d.sockets.flip.HasParent() {
		d.monitor.start()
	}
	d.manager.ready(server.Addrs(), d.sockets.flip.HasParent())
	if err := d.sockets.flip.Ready(); err != nil {
		d.log.Error("upgrade: the process before this one is not told", zap.Error(err))
	}
	d.sockets.own()
}

// noUpgrade says why a process that is started like this one could not take its
// place; nil: it could. typed says that a password was asked for.
func noUpgrade(eff *config.Effective, typed bool) error {
	switch {
	case os.Getpid() == 1:
		return errors.New("tlsd is process 1 of its container, which would end with it: start another container")
	case eff.Demo:
		return errors.New("a throw-away keystore ends with its process, and clients trust the certificates of this one: restart tlsd, or give it --keystore PATH")
	case typed:
		return errors.New("the password was typed, and nobody is there to be asked again: restart tlsd, or give it --keystore-password-file PATH")
	case plugin.IsDescriptor(eff.File):
		return descriptorLost("--config", eff.File)
	}
	for _, v := range eff.Values {
		for path := range strings.SplitSeq(v.Value, ",") {
			if plugin.IsDescriptor(strings.TrimSpace(path)) {
				return descriptorLost(v.Key, path)
			}
		}
	}
	return nil
}

func descriptorLost(key, path string) error {
	return fmt.Errorf("%s is %q, a descriptor of this process, and another would not find there what was read: restart tlsd, or name a file", key, path)
}
