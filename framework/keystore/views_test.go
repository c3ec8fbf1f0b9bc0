// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"context"

	"crypto/sha256"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
)

const storePassword = "changeit"

// shop is a keystore file that tests write over.
type shop struct {
	t    testing.TB
	root *testca.Cert
	path string
}

func newShop(t testing.TB) *shop {
	return &shop{t: t, root: testca.NewRoot(t, testca.Spec{Name: "root"}), path: filepath.Join(t.TempDir(), "server.p12")}
}

func (s *shop) entry(alias string) testca.StoreEntry {
	return testca.StoreEntry{Alias: alias, Cert: s.root.Issue(s.t, testca.Spec{Name: alias, DNS: []string{alias + ".example"}})}
}

// stray is an entry whose key is not its certificate's.
func (s *shop) stray(alias string) testca.StoreEntry {
	e := s.entry(alias)
	e.Key = testca.NewKey(s.t, testca.P256)
	return e
}

func (s *shop) write(entries ...testca.StoreEntry) {
	testca.WritePKCS12(s.t, s.path, storePassword, entries...)
}

func (s *shop) source() keymanager.Source {
	return keymanager.Source{Paths: []string{s.path}, Store: value(storePassword)}
}

func env(sources ...keymanager.Source) keymanager.Env {
	return keymanager.Env{Builders: sources, FirstGeneration: 7}
}

// open opens views whose T is the list of usable aliases.
func openNames(t testing.TB, e keymanager.Env, opt ViewOptions) (*Views[[]string], error) {
	t.Helper()
	return OpenViews(t.Context(), e, opt, func(v *View) ([]string, error) { return usableAliases(v), nil })
}

func mustOpenNames(t testing.TB, e keymanager.Env, opt ViewOptions) *Views[[]string] {
	t.Helper()
	v, err := openNames(t, e, opt)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func usableAliases(v *View) []string {
	var names []string
	for _, e := range v.Entries {
		if e.Usable {
			names = append(names, e.Alias)
		}
	}
	return names
}

// handshake is a request that passes SignRequest.Check.
func handshake() *keymanager.SignRequest {
	msg := bytes.Repeat([]byte{' '}, 64)
	msg = append(msg, "TLS 1.3, server CertificateVerify\x00"...)
	hash := sha256.Sum256([]byte("transcript"))
	return &keymanager.SignRequest{Scheme: tls.ECDSAWithP256AndSHA256, Purpose: keymanager.ServerTLS13, Message: append(msg, hash[:]...)}
}

func sign(t testing.TB, k keymanager.Key) {
	t.Helper()
	req := handshake()
	sig, err := k.Sign(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(req.Message)
	if err := verifySignature(k.Public(), digest[:], sig); err != nil {
		t.Fatal(err)
	}
}

// TestViewKeysSign: keys sign, whether they are kept or decrypted each time.
func TestViewKeysSign(t *testing.T) {
	s := newShop(t)
	s.write(s.entry("a"), s.entry("b"))
	for _, keep := range []bool{true, false} {
		v := mustOpenNames(t, env(s.source()), ViewOptions{KeepKeys: keep})
		for _, e := range v.View().Entries {
			sign(t, e.Key)
			sign(t, e.Key)
		}
		if got := v.View().Generation; got != 7 {
			t.Errorf("first generation %d, want 7", got)
		}
	}
}

// TestOnDemandKeyKeepsNothingDecrypted: without KeepKeys an entry holds no key.
func TestOnDemandKeyKeepsNothingDecrypted(t *testing.T) {
	s := newShop(t)
	s.write(s.entry("a"))
	store := mustProve(t, s.source())
	e := store.Entries[0]
	if e.kept != nil {
		t.Error("a decrypted key is kept")
	}
	signer, err := e.Signer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	Wipe(signer)
	if err := trySignature(e); err != nil {
		t.Errorf("the next signer after a wiped one: %v", err)
	}
}

// TestSignRefusesBeforeItDecrypts: what is no handshake costs no derivation.
func TestSignRefusesBeforeItDecrypts(t *testing.T) {
	key := onDemand{entry: nil} // touching it would panic
	req := handshake()
	req.Message = append(req.Message, 0)
	if _, err := key.Sign(t.Context(), req); !errors.Is(err, keymanager.ErrNotHandshake) {
		t.Errorf("got %v, want ErrNotHandshake", err)
	}
}

// TestSignEndsWithItsContext: a derivation stops when the handshake does.
func TestSignEndsWithItsContext(t *testing.T) {
	s := newShop(t)
	testca.PKCS12{Iterations: 20_000}.Write(t, s.path, storePassword, s.entry("a"))
	v := mustOpenNames(t, env(s.source()), ViewOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.View().Entries[0].Key.Sign(ctx, handshake()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// TestReloadKeepsGenerationWhereNothingChanged covers rewriting the same bytes.
func TestReloadKeepsGenerationWhereNothingChanged(t *testing.T) {
	s := newShop(t)
	s.write(s.entry("a"))
	v := mustOpenNames(t, env(s.source()), ViewOptions{})
	before, replaced := v.View(), v.current.Load().replaced
	b, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := v.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if v.View() != before {
		t.Error("a new view of the same keystore")
	}
	select {
	case <-replaced:
		t.Error("a change is announced")
	default:
	}
}

// TestReloadTakesWhatIsNew: entries come, entries go, the old view stays whole.
func TestReloadTakesWhatIsNew(t *testing.T) {
	s := newShop(t)
	a := s.entry("a")
	s.write(a, s.entry("b"))
	v := mustOpenNames(t, env(s.source()), ViewOptions{})
	old, replaced := v.View(), v.current.Load().replaced
	s.write(a, s.entry("c"))
	if err := v.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "c"}, v.Current()); diff != "" {
		t.Error(diff)
	}
	if got := v.View(); got.Generation != 8 || got.Cause != "reload" {
		t.Errorf("generation %d, cause %q", got.Generation, got.Cause)
	}
	select {
	case <-replaced:
	default:
		t.Error("the change is not announced")
	}
	if diff := cmp.Diff([]string{"a", "b"}, usableAliases(old)); diff != "" {
		t.Errorf("the old view changed: %s", diff)
	}
	sign(t, old.Entries[1].Key)
}

// TestReloadErrorKeepsOldView is a table of readings that are refused.
func TestReloadErrorKeepsOldView(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(s *shop)
		want  string
	}{
		{"gone", func(s *shop) { os.Remove(s.path) }, "no such file"},
		{"directory", func(s *shop) { os.Remove(s.path); os.Mkdir(s.path, 0o700) }, "is a directory"},
		{"empty", func(s *shop) { os.WriteFile(s.path, nil, 0o600) }, "is empty"},
		{"torn", func(s *shop) {
			b, _ := os.ReadFile(s.path)
			os.WriteFile(s.path, b[:len(b)/2], 0o600)
		}, "breaks off"},
		{"other-password", func(s *shop) { testca.WritePKCS12(s.t, s.path, "another", s.entry("a")) }, "wrong password"},
		{"no-key", func(s *shop) {
			s.write(testca.StoreEntry{Alias: "ca", Cert: s.root, Trusted: true})
		}, "no key entry"},
		{"entry-broken", func(s *shop) { s.write(s.stray("a"), s.entry("b")) }, `key "a"`},
		{"demanded-alias-gone", func(s *shop) { s.write(s.entry("b")) }, `no entry with alias "A"; there are: "b"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newShop(t)
			s.write(s.entry("a"), s.entry("b"))
			core, logs := observer.New(zapcore.ErrorLevel)
			e := env(s.source())
			e.Options.Aliases = []string{"A"}
			e.Log = zap.New(core)
			v := mustOpenNames(t, e, ViewOptions{})
			before := v.View()
			tt.spoil(s)
			err := v.Reload(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), s.path) {
				t.Errorf("got error %v, want %q and the path", err, tt.want)
			}
			if v.View() != before {
				t.Error("the view was replaced")
			}
			sign(t, before.Entries[0].Key)
			if logs.FilterMessage(logging.MsgReloadFailed).Len() != 1 {
				t.Errorf("log: %v", logs.All())
			}
		})
	}
}

// TestReloadJudgesEachKeystoreAlone: one that is refused holds up no other.
func TestReloadJudgesEachKeystoreAlone(t *testing.T) {
	bad, good := newShop(t), newShop(t)
	bad.write(bad.entry("bad"))
	good.write(good.entry("old"))
	v := mustOpenNames(t, env(bad.source(), good.source()), ViewOptions{})
	bad.write(bad.stray("bad"))
	good.write(good.entry("new"))
	if err := v.Reload(t.Context()); err == nil || strings.Contains(err.Error(), good.path) {
		t.Errorf("got error %v, want one about %s alone", err, bad.path)
	}
	if diff := cmp.Diff([]string{"bad", "new"}, v.Current()); diff != "" {
		t.Error(diff)
	}
	if got := v.View().Entries[1].Builder; got != 1 {
		t.Errorf("builder %d of the second keystore", got)
	}
	bad.write(bad.entry("mended"))
	if err := v.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mended", "new"}, v.Current()); diff != "" {
		t.Error(diff)
	}
}

// TestReloadTriesBrokenEntriesAgain: the file is the same, its password isn't.
func TestReloadTriesBrokenEntriesAgain(t *testing.T) {
	s := newShop(t)
	b := s.entry("b")
	b.KeyPassword = "b's own"
	s.write(s.entry("a"), b)
	pass := filepath.Join(t.TempDir(), "b.pass")
	writeFile(t, pass, "wrong\n")
	src := s.source()
	src.Keys = []keymanager.KeyPassword{{Alias: "B", Password: keymanager.PasswordRef{File: pass}}}
	v := mustOpenNames(t, env(src), ViewOptions{})
	if diff := cmp.Diff([]string{"a"}, v.Current()); diff != "" {
		t.Fatal(diff)
	}
	writeFile(t, pass, "b's own\r\n")
	if err := v.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, v.Current()); diff != "" {
		t.Error(diff)
	}
}

// TestOldViewSignsAfterItsPasswordIsReplaced: rotation replaces keystore and
// password, and not at one instant; whoever holds the old view goes on.
func TestOldViewSignsAfterItsPasswordIsReplaced(t *testing.T) {
	s := newShop(t)
	s.write(s.entry("a"))
	pass := filepath.Join(t.TempDir(), "pass")
	writeFile(t, pass, storePassword)
	src := s.source()
	src.Store = keymanager.PasswordRef{File: pass}
	v := mustOpenNames(t, env(src), ViewOptions{})
	writeFile(t, pass, "the next one")
	sign(t, v.View().Entries[0].Key)
}

// TestDeriveErrorKeepsOldView: what cannot be derived is not published.
func TestDeriveErrorKeepsOldView(t *testing.T) {
	s := newShop(t)
	s.write(s.entry("a"))
	refuse := errors.New("not derived")
	v, err := OpenViews(t.Context(), env(s.source()), ViewOptions{}, func(v *View) (uint64, error) {
		if v.Generation > 7 {
			return 0, refuse
		}
		return v.Generation, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.write(s.entry("b"))
	if err := v.Reload(t.Context()); !errors.Is(err, refuse) {
		t.Errorf("got %v", err)
	}
	if v.Current() != 7 || v.View().Generation != 7 {
		t.Errorf("T %d and view %d, want 7", v.Current(), v.View().Generation)
	}
}

// TestDeriveErrorHoldsUpNoOther: a keystore without which nothing can be derived
// keeps itself old, and no other; what can be derived together only is.
func TestDeriveErrorHoldsUpNoOther(t *testing.T) {
	one, two, three := newShop(t), newShop(t), newShop(t)
	one.write(one.entry("main"))
	two.write(two.entry("b"))
	three.write(three.entry("x"))
	v, err := OpenViews(t.Context(), env(one.source(), two.source(), three.source()), ViewOptions{}, func(v *View) ([]string, error) {
		names := usableAliases(v)
		if !slices.Contains(names, "main") || slices.Contains(names, "bad") {
			return nil, errors.New("not derived")
		}
		return names, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	one.write(one.entry("a"))
	two.write(two.entry("c"))
	if err := v.Reload(t.Context()); err == nil {
		t.Error("no error about a lost alias")
	}
	if diff := cmp.Diff([]string{"main", "c", "x"}, v.Current()); diff != "" {
		t.Error(diff)
	}
	two.write(two.entry("main"))
	three.write(three.entry("bad"))
	if err := v.Reload(t.Context()); err == nil {
		t.Error("no error about a bad entry")
	}
	if diff := cmp.Diff([]string{"a", "main", "x"}, v.Current()); diff != "" || v.Generation() != 9 {
		t.Errorf("generation %d, want 9; %s", v.Generation(), diff)
	}
}

// TestBrokenEntry: strict views refuse it, others skip it and say so; alone it
// is an error everywhere.
func TestBrokenEntry(t *testing.T) {
	s := newShop(t)
	s.write(s.entry("good"), s.stray("stray"))
	core, logs := observer.New(zapcore.InfoLevel)
	e := env(s.source())
	e.Log = zap.New(core)
	_, err := openNames(t, e, ViewOptions{Strict: true})
	var mismatch *MismatchError
	if !errors.As(err, &mismatch) || !strings.Contains(err.Error(), `"stray"`) || !strings.Contains(err.Error(), s.path) {
		t.Errorf("strict: got %v, want a mismatch that names entry and file", err)
	}
	v := mustOpenNames(t, e, ViewOptions{})
	if diff := cmp.Diff([]string{"good"}, v.Current()); diff != "" {
		t.Error(diff)
	}
	skipped := logs.FilterMessage(logging.MsgNotUsable).All()
	if len(skipped) != 1 || skipped[0].Level != zapcore.ErrorLevel || skipped[0].ContextMap()[logging.FieldAlias] != "stray" {
		t.Errorf("log: %v", skipped)
	}
	if logs.FilterMessage(logging.MsgFoundKey).Len() != 1 {
		t.Errorf("log: %v", logs.All())
	}
	s.write(s.stray("stray"))
	if _, err := openNames(t, e, ViewOptions{}); !errors.As(err, &mismatch) {
		t.Errorf("alone: got %v", err)
	}
}

// TestEntryOfAnotherKind: what TLS cannot use is skipped with one warning, by
// strict views too, and is an error where there is nothing else.
func TestEntryOfAnotherKind(t *testing.T) {
	dir := t.TempDir()
	ed448 := filepath.Join(dir, "ed448.pem")
	runTool(t, testca.Tool(t, "openssl"), "genpkey", "-algorithm", "ed448", "-out", ed448)
	ca := testca.NewRoot(t, testca.Spec{Name: "root"})
	leaf := ca.Issue(t, testca.Spec{Name: "leaf"})
	both, alone := filepath.Join(dir, "both.pem"), ed448
	writeFile(t, both, string(leaf.CertPEM())+string(leaf.KeyPEM())+readFileString(t, ed448))
	core, logs := observer.New(zapcore.WarnLevel)
	e := env(keymanager.Source{Paths: []string{both}})
	e.Log = zap.New(core)
	v := mustOpenNames(t, e, ViewOptions{Strict: true, KeepKeys: true})
	if diff := cmp.Diff([]string{"1"}, v.Current()); diff != "" {
		t.Error(diff)
	}
	skipped := logs.FilterMessage(logging.MsgNotUsable).All()
	if len(skipped) != 1 || skipped[0].Level != zapcore.WarnLevel || !strings.Contains(skipped[0].ContextMap()[logging.FieldReason].(string), "Ed448") {
		t.Errorf("log: %v", skipped)
	}
	var none *NoKeyError
	if _, err := openNames(t, env(keymanager.Source{Paths: []string{alone}}), ViewOptions{}); !errors.As(err, &none) || !strings.Contains(err.Error(), "Ed448") {
		t.Errorf("alone: got %v", err)
	}
}

// TestUnknownAliasListsAliases at the opening, for demanded and default alike.
func TestUnknownAliasListsAliases(t *testing.T) {
	s := newShop(t)
	s.write(s.entry("one"), s.entry("two"), s.stray("three"))
	tests := []struct {
		name string
		opt  keymanager.Options
		want string
	}{
		{"demanded", keymanager.Options{Aliases: []string{"One", "four"}}, `no entry with alias "four"; there are: "one", "two"`},
		{"default", keymanager.Options{DefaultAlias: "five"}, `no entry with alias "five"; there are: "one", "two"`},
		{"broken", keymanager.Options{DefaultAlias: "three"}, `alias "three" is not usable: the key does not match`},
		{"present", keymanager.Options{Aliases: []string{"ONE"}, DefaultAlias: "Two"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := env(s.source())
			e.Options = tt.opt
			_, err := openNames(t, e, ViewOptions{})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestViewsAreSafeForConcurrentUse runs reloads under readers; see it with -race.
func TestViewsAreSafeForConcurrentUse(t *testing.T) {
	s := newShop(t)
	a, b := s.entry("a"), s.entry("b")
	s.write(a)
	v := mustOpenNames(t, env(s.source()), ViewOptions{})
	done := make(chan error, 1)
	go func() {
		var err error
		for i := range 20 {
			s.write([]testca.StoreEntry{a, b}[i%2])
			err = errors.Join(err, v.Reload(context.Background()))
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			if got := v.View().Generation; got != 7+20 {
				t.Errorf("generation %d after 20 changes", got)
			}
			return
		default:
			sign(t, v.View().Entries[0].Key)
		}
	}
}
