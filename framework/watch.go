// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/internal/filewatch"
)

// defaultPoll is how often content is compared, beside file events.
const defaultPoll = 10 * time.Second

// watch takes in what becomes of trust stores and revocation lists until the
// Server ends. Events say when to look; content decides. Trust stores are read by
// the key process, whether this process could read them or not.
func (s *Server) watch() {
	w := filewatch.New(s.log)
	defer w.Close()
	var (
		trouble complaint
		expiry  = reminders{}
	)
	for {
		now := s.now.Load()
		w.Follow(now.cfg.contentFiles())
		again := trouble.of(s, s.refresh(s.ctx))
		expiry.remind(s.log, s.now.Load().content, time.Now())
		if !w.Wait(s.ctx, orDefault(again, orDefault(now.cfg.Options.Poll, defaultPoll)), now.over) {
			return
		}
	}
}

// contentFiles lists the files whose content routes are made from.
func (c *Config) contentFiles() []string {
	files := c.trustFiles()
	for i := range c.Listeners {
		for _, site := range c.Listeners[i].sites() {
			if path := site.crl(); path != "" {
				files = append(files, path)
			}
		}
	}
	return files
}

// refresh makes new routes if trust stores or revocation lists say something else
// than those in use do. On error these stay; but where nothing is wrong but that
// there is no key process to read trust stores, lists are taken with those in use:
// who is revoked is not to be let in for that.
func (s *Server) refresh(ctx context.Context) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	now := s.now.Load()
	next := newState(now.cfg, now.keys)
	next.content = newContent(now.keys)
	next.content.known = now.content
	unread := next.content.readTrust(ctx, now.cfg.Listeners)
	switch {
	case errors.Is(unread, plugin.ErrUnavailable):
		next.content.stores = maps.Clone(now.content.stores)
	case unread != nil:
		return unread
	}
	if err := next.content.readLists(now.cfg.Listeners); err != nil {
		return err
	}
	trust, crls := now.content.differs(next.content)
	if !trust && !crls {
		if s.amiss.Load() && unread == nil { // they are again what they were
			s.toldContent(next.content, nil)
		}
		return unread
	}
	next.content.known = nil // that it doesn't keep all that ever was
	p, err := s.prepare(ctx, next)
	if err != nil {
		return err
	}
	if err := s.take(p); err != nil {
		return err
	}
	if unread != nil {
		s.told(reloadedCRL, nil)
	} else {
		s.toldContent(next.content, nil)
	}
	s.log.Info("taken in what has changed", zap.Bool("trust_stores", trust), zap.Bool("revocation_lists", crls))
	return unread
}

// patience is how long content that can't be used lies there before it is
// complained about: half-written files mend themselves.
const patience = time.Second

// complaint is what was last wrong, so that it is said once.
type complaint struct {
	text string
	said bool
}

// of notes how a refresh ended, and returns when to try again; 0: when there is
// reason to.
func (c *complaint) of(s *Server, err error) (again time.Duration) {
	switch {
	case err == nil:
		*c = complaint{}
	case errors.Is(err, context.Canceled), errors.Is(err, errEnding), errors.Is(err, plugin.ErrUnavailable), errors.Is(err, plugin.ErrClosed):
		// Nothing is wrong with the content.
	case err.Error() != c.text:
		*c = complaint{text: err.Error()}
		return patience
	case !c.said:
		c.said = true
		s.toldContent(nil, err)
		s.amiss.Store(true)
		s.log.Error("trust stores and revocation lists: those in use stay", zap.Error(err))
	}
	return 0
}

// reminders are when it was last said of a revocation list that it ends soon, or
// has ended, and of client CAs that there is none of theirs.
type reminders map[reminder]time.Time

type reminder struct {
	list    *crl // nil: of client CAs without
	expired bool
	bare    string // the file and those CAs
}

// ahead is how long before a revocation list goes out of date that is warned of,
// and how often.
const ahead = 24 * time.Hour

// remind warns of each list in use that needs a successor, daily, and of client CAs
// that have no list once, since that may be meant.
func (r reminders) remind(log *zap.Logger, c *content, now time.Time) {
	kept := reminders{}
	due := func(what reminder) bool {
		last, was := r[what]
		_, said := kept[what]
		again := !said && (!was || what.list != nil && now.Sub(last) >= ahead)
		switch {
		case again:
			kept[what] = now
		case !said:
			kept[what] = last
		}
		return again
	}
	for from, said := range c.said {
		for _, list := range said.lists {
			ends := !list.nextUpdate.IsZero() && !now.Before(list.nextUpdate.Add(-ahead))
			if expired := list.expired(now); ends && due(reminder{list: list, expired: expired}) {
				list.remind(log, said.warns, expired)
			}
		}
		if len(said.bare) > 0 && due(reminder{bare: fmt.Sprintf("%q %q", from.path, said.bare)}) {
			log.Warn("client CAs without a revocation list revoke nobody: add theirs to the file, unless that is meant",
				zap.String("path", from.path), zap.Strings("client_cas", said.bare))
		}
	}
	clear(r)
	maps.Copy(r, kept)
}

func (l *crl) remind(log *zap.Logger, warns, expired bool) {
	fields := []zap.Field{zap.String("path", l.file), zap.String("issuer", l.issuer), zap.Time("next_update", l.nextUpdate)}
	switch {
	case !expired:
		log.Warn("revocation list goes out of date within a day", fields...)
	case warns:
		log.Warn("revocation list is out of date, and counts as before", fields...)
	default:
		log.Error("revocation list is out of date: clients of its issuer are refused", fields...)
	}
}
