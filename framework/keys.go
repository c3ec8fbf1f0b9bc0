// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/choose"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/logging"
)

const defaultSignTimeout = 5 * time.Second

// errForgotMain is returned by Open in a process that is a key process: its
// main went on past the place where plugin.Main should have taken over.
var errForgotMain = errors.New("this process was started as a key process: call plugin.Main first in main, and in TestMain of a test")

// Keys is a running key manager and the source of *tls.Config values whose
// private keys live in it. It is safe for concurrent use.
type Keys struct {
	manager plugin.Manager
	tier    string
	timeout time.Duration // of a Select or Sign whose handshake has no deadline
	log     *zap.Logger   // named keymanager, with the tier
	known   knownKeys
	levels  logLevels
	self    []plugin.Finding // what this process says of its own isolation
	now     func() time.Time

	observer Observer

	constraints *choose.Constraints // on connections; not nil

	failures, lies onceASecond // lines about calls that failed, and about wrong answers

	stop    context.CancelFunc // ends watch
	watched sync.WaitGroup
}

// Open starts the key manager that cfg names, and returns when its keystores
// are read. ctx bounds the opening only. The caller closes the Keys; on error
// nothing is left running.
//
// A program that passes Tiers and neither Executable nor InProcess is started
// once more as the key process, and so has to call plugin.Main with them as the
// first thing in main.
func Open(ctx context.Context, cfg Config) (*Keys, error) { return open(ctx, cfg, 0) }

// open opens a key manager whose generations are newer than after.
func open(ctx context.Context, cfg Config, after uint64) (*Keys, error) {
	if plugin.IsChild() {
		return nil, errForgotMain
	}
	if err := cfg.checkKeys(); err != nil {
		return nil, err
	}
	constraints, err := cfg.constraints()
	if err != nil {
		return nil, err
	}
	run, err := cfg.pick()
	if err != nil {
		return nil, err
	}
	log := cfg.logger()
	manager, err := run.start(ctx, &cfg, after, log)
	if err != nil {
		return nil, err // names the key manager
	}
	k := newKeys(manager, run.tierName(manager), &cfg)
	k.constraints = constraints
	k.announce(ctx, cfg.Keystores, log)
	if err := k.isolate(ctx, &cfg, log); err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

func newKeys(m plugin.Manager, tier string, cfg *Config) *Keys {
	ctx, stop := context.WithCancel(context.Background())
	k := &Keys{
		manager:  m,
		tier:     tier,
		timeout:  orDefault(cfg.SignTimeout, defaultSignTimeout),
		now:      time.Now,
		log:      cfg.logger().Named(logging.KeyManager).With(zap.String(logging.FieldTier, tier)),
		observer: cfg.Observer,
		self:     cfg.Self,
		stop:     stop,

		constraints: new(choose.Constraints),
	}
	k.levels.set(cfg.LogLevels)
	k.watched.Go(func() {
		// A key manager whose views never change by themselves has nothing
		// to watch; then generations are learnt from its answers.
		read := readings{told: cfg.Observer.Reloaded}
		_ = m.Watch(ctx, func(c keymanager.Change) {
			k.known.learn(&c)
			read.take(c)
		})
	})
	return k
}

// Tier returns the name of the running tier.
func (k *Keys) Tier() string { return k.tier }

// Manager returns the key manager itself, for commands that look into it.
// Closing it is left to Close.
func (k *Keys) Manager() plugin.Manager { return k.manager }

// List returns the entries of all keystores, builder by builder in store order.
func (k *Keys) List(ctx context.Context) ([]keymanager.Entry, error) { return k.manager.List(ctx) }

// Reload has the key process read the keystores anew. On error the old state
// stays in use.
func (k *Keys) Reload(ctx context.Context) error { return k.manager.Reload(ctx) }

// Generation returns the number of the newest view of the keystores that was
// heard of, and 0 where the key manager numbers none. A Reload that returned is
// heard of.
func (k *Keys) Generation() uint64 {
	if n, ok := k.manager.(keymanager.Numbered); ok {
		return n.Generation()
	}
	return 0
}

// Trust has the key process read a trust store and returns its certificates, at
// least one. Warnings are logged.
func (k *Keys) Trust(ctx context.Context, store TrustStore) ([]*x509.Certificate, error) {
	certs, warnings, err := k.readTrust(ctx, store)
	k.warnOfTrust(store, warnings)
	return certs, err
}

// readTrust is Trust for those who read the same again and again.
func (k *Keys) readTrust(ctx context.Context, store TrustStore) (certs []*x509.Certificate, warnings []string, err error) {
	ders, warnings, err := k.manager.Trust(ctx, store.Path, store.Type, store.Password)
	if err != nil {
		return nil, nil, fmt.Errorf("read trust store %q: %w", store.Path, err)
	}
	for i, der := range ders {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, warnings, fmt.Errorf("read trust store %q: certificate %d: %w", store.Path, i+1, err)
		}
		certs = append(certs, cert)
	}
	if len(certs) == 0 {
		return nil, warnings, fmt.Errorf("read trust store %q: no trusted certificate", store.Path)
	}
	return certs, warnings, nil
}

func (k *Keys) warnOfTrust(store TrustStore, warnings []string) {
	for _, w := range warnings {
		k.log.Warn("trust store", zap.String("path", store.Path), zap.String(logging.FieldReason, w))
	}
}

// Close ends the key manager. Handshakes under way fail; connections that are
// established go on.
func (k *Keys) Close() error {
	k.stop()
	err := k.manager.Close()
	k.watched.Wait()
	return err
}

// announce says what was started, once.
func (k *Keys) announce(ctx context.Context, stores []keymanager.Source, log *zap.Logger) {
	d := k.manager.Describe()
	isolation := "in a process of its own"
	if !d.Isolated {
		isolation = "not isolated: keys are in this process"
	}
	log.Info("key manager ready",
		zap.String(logging.FieldTier, k.tier), zap.String("version", d.Version),
		zap.Int("pid", d.PID), zap.String("isolation", isolation))
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	entries, err := k.manager.List(ctx)
	if err != nil {
		return // a plugin need not be able to list, and the start doesn't hang on it
	}
	for i, s := range stores {
		total, usable := 0, 0
		for _, e := range entries {
			if e.Builder != i {
				continue
			}
			total++
			if e.Usable {
				usable++
			}
		}
		log.Info("keystore ready", zap.Int(logging.FieldBuilder, i), zap.String(logging.FieldKeystore, s.Name()),
			zap.Int("entries", total), zap.Int("usable", usable))
	}
}
