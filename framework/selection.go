// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/logging"
)

const (
	// maxAnswers bounds the answers that are kept of one generation.
	maxAnswers = 4096
	// maxVaries bounds the sets of fields that answers of one generation are
	// told apart by. A key manager has one for each role and version.
	maxVaries = 8
)

// answers are what the key manager of one generation answered and said to be
// good for other hellos too (keymanager.Reuse). They are of no use any more
// once another generation is heard of, and their number is bounded.
type answers struct {
	names atomic.Pointer[knownNames] // nil until they are known

	mu     sync.RWMutex
	varies []keymanager.Fields  // guarded by mu, as is kept
	kept   map[helloKey]*answer // full: one that is there makes room
}

// answer is one that was checked. It never changes.
type answer struct {
	cred  *keymanager.Credential
	cert  *tls.Certificate // without a private key
	state *keyState
}

// find returns an answer that holds for h at the time now.
func (a *answers) find(h *keymanager.Hello, now time.Time) *answer {
	names := a.names.Load()
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, vary := range a.varies {
		key, ok := keyOf(h, vary, names)
		if !ok {
			continue
		}
		if found := a.kept[key]; found != nil && found.holds(h, now) {
			return found
		}
	}
	return nil
}

// holds reports whether the answer may be given to h at the time now. That the
// key manager says so is not enough where the front can see otherwise.
func (a *answer) holds(h *keymanager.Hello, now time.Time) bool {
	r := &a.cred.Reuse
	return !now.Before(r.From) && now.Before(r.Until) && !a.state.bad.Load() && checkFits(h, a.cred, a.cert) == nil
}

// keep takes in the answer to h, if it may be given again.
func (a *answers) keep(h *keymanager.Hello, found *answer) {
	r := &found.cred.Reuse
	if !r.From.Before(r.Until) {
		return
	}
	key, ok := keyOf(h, r.Vary, a.names.Load())
	if !ok {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Contains(a.varies, r.Vary) {
		if len(a.varies) == maxVaries {
			return
		}
		a.varies = append(a.varies, r.Vary)
	}
	if a.kept == nil {
		a.kept = map[helloKey]*answer{}
	}
	if _, there := a.kept[key]; !there && len(a.kept) >= maxAnswers {
		for old := range a.kept { // a map's order is as good as chance
			delete(a.kept, old)
			break
		}
	}
	a.kept[key] = found
}

// answer returns the key manager's answer to h: one that it gave before, where
// it said that it may be given again, else a new one.
func (k *Keys) answer(hs *handshake, h *keymanager.Hello) (*answer, error) {
	if found := k.reusable(hs, h); found != nil {
		k.selected(true, nil)
		return found, nil
	}
	found, err := k.ask(hs, h)
	k.selected(false, err)
	return found, err
}

// reusable returns an answer that holds for h, or nil. Nothing is given again
// that may be out of date: once a newer generation was heard of, and while newer
// ones might not be. The exception is a client that may resume a session in TLS
// 1.2, where crypto/tls asks before it looks at the ticket: that goes on while
// there is no key process, and a full handshake still takes one to sign.
//
// With debug on, each choice is explained in the log, and so has to be made.
func (k *Keys) reusable(hs *handshake, h *keymanager.Hello) *answer {
	e := k.known.current.Load()
	if e == nil || k.Generation() > e.generation {
		return nil
	}
	if !k.manager.Status().Watched {
		if !hs.resumes {
			return nil
		}
	} else if k.log.Check(zap.DebugLevel, logging.MsgSelected) != nil {
		return nil
	}
	return e.answers.find(h, k.now())
}

// ask has the key manager choose, and keeps its answer where it may be given
// again.
func (k *Keys) ask(hs *handshake, h *keymanager.Hello) (*answer, error) {
	ctx, cancel := hs.bounded(k.timeout)
	defer cancel()
	cred, err := k.manager.Select(ctx, h)
	if err != nil {
		if !errors.Is(err, keymanager.ErrNoCredential) {
			k.report(&k.failures, msgSelectFailed, &keymanager.Credential{}, hs, "the key process did not answer", err)
		}
		return nil, err
	}
	cert, err := checkAnswer(h, cred)
	if err != nil {
		k.report(&k.lies, msgSelectFailed, cred, hs, "the key process gave a wrong answer", err)
		return nil, fmt.Errorf("alias %q is refused: the key process answered with %w", cred.Alias, err)
	}
	e := k.known.at(cred.Generation)
	found := &answer{cred: cred, cert: cert, state: e.state(keymanager.KeyIDOf(cert.Leaf))}
	if e.generation == cred.Generation {
		e.answers.keep(h, found)
	}
	return found, nil
}

// selected tells the observer of a selection.
func (k *Keys) selected(reused bool, err error) {
	if told := k.observer.Selection; told != nil {
		told(reused, err)
	}
}
