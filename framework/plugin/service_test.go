// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/internal/testca"
)

// openAs opens a service over km, with its logs.
func openAs(t *testing.T, km keymanager.KeyManager) (*service, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	tier := keymanager.Tier{Name: "x", Open: func(context.Context, keymanager.Env) (keymanager.KeyManager, error) { return km, nil }}
	s, err := openService(t.Context(), tier, keymanager.Env{FirstGeneration: 10, Log: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	return s, logs
}

// fixed is a key manager that always has the same answer.
type fixed struct{ answer *keymanager.Credential }

func (f *fixed) Select(context.Context, *keymanager.Hello) (*keymanager.Credential, error) {
	return f.answer, nil
}

// counting numbers its views itself.
type counting struct {
	fixed
	generation atomic.Uint64
	reload     func(*counting) error
}

func (c *counting) Generation() uint64           { return c.generation.Load() }
func (c *counting) Reload(context.Context) error { return c.reload(c) }

func TestTierThatCountsIsBelieved(t *testing.T) {
	partly := errors.New("one of two keystores")
	tests := []struct {
		name    string
		reload  func(*counting) error
		want    uint64
		changed bool
		err     error
	}{
		{"nothing-changed", func(*counting) error { return nil }, 12, false, nil},
		{"changed", func(c *counting) error { c.generation.Add(1); return nil }, 13, true, nil},
		{"changed-in-part", func(c *counting) error { c.generation.Add(1); return partly }, 13, true, partly},
		{"failed", func(*counting) error { return partly }, 12, false, partly},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			km := &counting{reload: tt.reload}
			km.generation.Store(12)
			s, _ := openAs(t, km)
			defer s.close()
			generation, changed, err := s.reload(t.Context())
			if generation != tt.want || changed != tt.changed || !errors.Is(err, tt.err) {
				t.Errorf("reload: %d, %v, %v; want %d, %v, %v", generation, changed, err, tt.want, tt.changed, tt.err)
			}
			if s.feed.newest() != tt.want {
				t.Errorf("newest is %d, want %d", s.feed.newest(), tt.want)
			}
		})
	}
}

func TestIncompleteAnswersAreErrors(t *testing.T) {
	leaf := testca.NewRoot(t, testca.Spec{Name: "ca"}).Issue(t, testca.Spec{DNS: []string{"a.example"}})
	key := keymanager.FromSigner(leaf.Key)
	tests := []struct {
		name   string
		answer *keymanager.Credential
		want   string
	}{
		{"nothing", nil, "neither credential nor error"},
		{"no-key", &keymanager.Credential{Alias: "a", Chain: leaf.Chain()}, `credential "a" of builder 0 lacks key or chain`},
		{"no-chain", &keymanager.Credential{Alias: "a", Key: key}, "lacks key or chain"},
		{"bad-leaf", &keymanager.Credential{Alias: "a", Key: key, Chain: [][]byte{{1}}}, `leaf of credential "a"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := openAs(t, &fixed{tt.answer})
			defer s.close()
			if _, err := s.Select(t.Context(), serverHello("")); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %s", err, tt.want)
			}
		})
	}
}

func TestMissingAbilitiesAreUnsupported(t *testing.T) {
	s, logs := openAs(t, &fixed{})
	defer s.close()
	if _, _, err := s.reload(t.Context()); !errors.Is(err, ErrUnsupported) {
		t.Errorf("reload: %v", err)
	}
	if _, _, err := s.list(t.Context()); !errors.Is(err, ErrUnsupported) {
		t.Errorf("list: %v", err)
	}
	if _, err := s.Explain(t.Context(), serverHello("")); !errors.Is(err, ErrUnsupported) {
		t.Errorf("explain: %v", err)
	}
	if n := logs.Len(); n > 0 {
		t.Errorf("%d lines: %v", n, logs.All())
	}
}

// watching tells of generations when the test says so.
type watching struct {
	fixed
	changes chan keymanager.Change
	fail    chan error
}

func (w *watching) Watch(ctx context.Context, changed func(keymanager.Change)) error {
	for {
		select {
		case c := <-w.changes:
			changed(c)
		case err := <-w.fail:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// Nothing is kept while the tier doesn't watch, in this process too, and whoever
// follows goes on doing so when it does again.
func TestLocalSaysThatNobodyWatches(t *testing.T) {
	for name, end := range map[string]error{"with-an-error": errors.New("no more events"), "without": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				km := &watching{changes: make(chan keymanager.Change), fail: make(chan error)}
				s, _ := openAs(t, km)
				l := &Local{service: s, done: make(chan struct{})}
				var got atomic.Uint64
				watched := make(chan error)
				go func() {
					watched <- l.Watch(context.Background(), func(c keymanager.Change) { got.Store(c.Generation) })
				}()
				synctest.Wait()
				if !l.Status().Watched {
					t.Error("it isn't watched from the start")
				}
				km.fail <- end
				synctest.Wait()
				if l.Status().Watched {
					t.Error("it says that it is watched")
				}
				km.changes <- keymanager.Change{Generation: 12} // it is watched again
				time.Sleep(2 * rewatchPause)
				if got.Load() != 12 || !l.Status().Watched {
					t.Errorf("told of generation %d, watched: %v", got.Load(), l.Status().Watched)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				if err := <-watched; !errors.Is(err, ErrClosed) {
					t.Errorf("watch ended with %v", err)
				}
			})
		})
	}
}

// While nobody watches, kept answers may be out of date: those who keep some
// have to hear of it.
func TestFollowersHearThatNobodyWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		km := &watching{changes: make(chan keymanager.Change), fail: make(chan error)}
		s, logs := openAs(t, km)
		var got []uint64
		follow := func() chan error {
			done := make(chan error)
			go func() {
				done <- s.feed.follow(t.Context(), func(c keymanager.Change) error {
					got = append(got, c.Generation)
					return nil
				})
			}()
			synctest.Wait()
			return done
		}
		first := follow()
		km.changes <- keymanager.Change{Generation: 11}
		synctest.Wait()
		km.fail <- errors.New("no more events")
		if err := <-first; !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "no more events") {
			t.Errorf("following ended with %v", err)
		}
		if err := <-follow(); !errors.Is(err, ErrUnavailable) {
			t.Errorf("following while nobody watches ended with %v", err)
		}
		km.changes <- keymanager.Change{Generation: 12} // it is watched again
		synctest.Wait()
		last := follow()
		s.close()
		if err := <-last; !errors.Is(err, ErrClosed) {
			t.Errorf("following ended with %v", err)
		}
		if diff := cmp.Diff([]uint64{10, 11, 12}, got); diff != "" {
			t.Error(diff)
		}
		if n := logs.FilterMessage("watch ended").Len(); n != 1 {
			t.Errorf("%d lines, want 1", n)
		}
	})
}

// listing has keys that come and go without a new generation.
type listing struct {
	fixed
	entries []keymanager.Entry
	lists   int
}

func (l *listing) List(context.Context) ([]keymanager.Entry, error) {
	l.lists++
	return l.entries, nil
}

func TestUnknownKeyIsLookedForOnceMore(t *testing.T) {
	leaf := testca.NewRoot(t, testca.Spec{Name: "ca"}).Issue(t, testca.Spec{DNS: []string{"a.example"}})
	km := &listing{}
	s, logs := openAs(t, km)
	defer s.close()
	ref := keyRef{id: keymanager.KeyIDOf(leaf.Cert), alias: "a", builder: 1, generation: 9}
	before := km.lists
	if _, err := s.sign(t.Context(), ref, handshakeRequest()); !errors.Is(err, keymanager.ErrUnknownKey) {
		t.Errorf("error is %v", err)
	}
	if km.lists != before+1 {
		t.Errorf("%d lists, want one", km.lists-before)
	}
	km.entries = []keymanager.Entry{{Chain: leaf.Chain(), Key: keymanager.FromSigner(leaf.Key), Usable: true}}
	sig, err := s.sign(t.Context(), ref, handshakeRequest())
	if err != nil {
		t.Fatal(err)
	}
	verifyHandshake(t, leaf, sig)
	failed := logs.FilterMessage("sign failed").All()
	if len(failed) != 1 || failed[0].Level != zap.ErrorLevel {
		t.Fatalf("lines: %v", failed)
	}
	fields := failed[0].ContextMap()
	for k, want := range map[string]any{"builder_index": int64(1), "alias": "a", "generation": uint64(9), "reason": "key id unknown"} {
		if fields[k] != want {
			t.Errorf("field %s is %v, want %v", k, fields[k], want)
		}
	}
}

// careless signs whatever it is given.
type careless struct{ keymanager.Key }

func (careless) Sign(context.Context, *keymanager.SignRequest) ([]byte, error) {
	return []byte("signature"), nil
}

func TestCarelessTierIsGuarded(t *testing.T) {
	leaf := testca.NewRoot(t, testca.Spec{Name: "ca"}).Issue(t, testca.Spec{DNS: []string{"a.example"}})
	s, _ := openAs(t, &fixed{})
	defer s.close()
	tests := map[string]func(*keymanager.SignRequest){
		"digest":        func(r *keymanager.SignRequest) { r.Message = make([]byte, 32) },
		"other-curve":   func(r *keymanager.SignRequest) { r.Scheme = tls.ECDSAWithP384AndSHA384 },
		"other-type":    func(r *keymanager.SignRequest) { r.Scheme = tls.PSSWithSHA256 },
		"no-such":       func(r *keymanager.SignRequest) { r.Scheme = 0xffff },
		"other-purpose": func(r *keymanager.SignRequest) { r.Purpose = keymanager.ServerTLS12 },
	}
	ref := keyRef{key: careless{keymanager.FromSigner(leaf.Key)}}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			req := handshakeRequest()
			spoil(req)
			if _, err := s.sign(t.Context(), ref, req); !errors.Is(err, keymanager.ErrNotHandshake) {
				t.Errorf("error is %v", err)
			}
		})
	}
	if _, err := s.sign(t.Context(), ref, handshakeRequest()); err != nil {
		t.Errorf("a handshake is refused: %v", err)
	}
}

func TestTrustReadsWhatTheFrontMayNot(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	dir := t.TempDir()
	pemPath, p12Path := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.p12")
	if err := os.WriteFile(pemPath, ca.CertPEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	testca.WritePKCS12(t, p12Path, "changeit", testca.StoreEntry{Alias: "ca", Cert: ca, Trusted: true})
	src, _ := pairSource(t, ca, "a.example")
	api, _ := configured(t, testSettings{}, nil, src)
	password := keymanager.Secret("changeit")
	tests := map[string]keymanager.PasswordRef{pemPath: {}, p12Path: {Value: &password}}
	for path, pw := range tests {
		t.Run(filepath.Ext(path)[1:], func(t *testing.T) {
			resp, err := api.Trust(t.Context(), &pb.TrustRequest{Path: path, Password: passwordToProto(pw)})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([][]byte{ca.DER}, resp.GetCertificates()); diff != "" {
				t.Error(diff)
			}
		})
	}
	_, err := api.Trust(t.Context(), &pb.TrustRequest{Path: filepath.Join(dir, "missing.pem")})
	if err == nil || !strings.Contains(err.Error(), "no such file") { // whoever asks knows the path
		t.Errorf("error is %v", err)
	}
}
