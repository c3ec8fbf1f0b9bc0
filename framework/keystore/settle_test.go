// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
)

// TestBadContent: the reading in use stays, one line says why, however often
// something happens in the directory, and the next good content is taken.
func TestBadContent(t *testing.T) {
	for _, tt := range []struct {
		name  string
		spoil func(s *shop)
		want  string
	}{
		{"half_written", func(s *shop) {
			b := s.encode(s.entry("b"))
			writeFile(s.t, s.path, string(b[:len(b)/2]))
		}, "breaks off"},
		{"empty", func(s *shop) { writeFile(s.t, s.path, "") }, "is empty"},
		{"wrong_password", func(s *shop) { testca.WritePKCS12(s.t, s.path, "another", s.entry("b")) }, "wrong password"},
		{"no_usable_entry", func(s *shop) { s.write(testca.StoreEntry{Alias: "ca", Cert: s.root, Trusted: true}) }, "no key entry"},
		{"key_of_another", func(s *shop) { s.write(s.stray("a")) }, "does not match"},
		{"gone", func(s *shop) { must(s.t, os.Remove(s.path)) }, "no such file"},
		{"alias_gone", func(s *shop) { s.write(s.entry("b")) }, `no entry with alias "a"; there are: "b"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.write(s.entry("a"))
			f := followWith(t, keymanager.Options{Poll: never, Aliases: []string{"a"}}, s.source())
			before := f.View()
			tt.spoil(s)
			f.fails()
			for range 3 { // no reason to say it again
				f.looked()
			}
			if n := f.complaints(); n != 1 || f.View() != before {
				t.Errorf("%d complaints, view replaced: %v", n, f.View() != before)
			}
			if got := f.last.Load(); !strings.Contains(got.Failed, tt.want) || !strings.Contains(got.Failed, s.path) || got.Generation != 7 {
				t.Errorf("told of %+v, want %q and the path", got, tt.want)
			}
			sign(t, before.Entries[0].Key)
			s.write(s.entry("a"), s.entry("c"))
			f.serves("a", "c")
			if got := f.last.Load(); got.Failed != "" || f.complaints() != 1 {
				t.Errorf("told of %+v, %d complaints", got, f.complaints())
			}
		})
	}
}

// TestEachBadContentIsSaidOnce: another mistake is another line.
func TestEachBadContentIsSaidOnce(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	good := s.encode(s.entry("a"))
	writeFile(t, s.path, string(good))
	f := follow(t, never, s.source())
	writeFile(t, s.path, "not a keystore")
	f.fails()
	first := f.last.Load().Failed
	testca.WritePKCS12(t, s.path, "another", s.entry("a"))
	until(t, "the other mistake", func() bool { return f.last.Load().Failed != first })
	if n := f.complaints(); n != 2 {
		t.Errorf("%d complaints about two mistakes", n)
	}
	writeFile(t, s.path, string(good)) // what is in use
	until(t, "no mistake", func() bool { return f.last.Load().Failed == "" })
	if g := f.Generation(); g != 7 {
		t.Errorf("generation %d, want 7: nothing new is in use", g)
	}
	if n := f.logs.FilterMessage(msgAsBefore).Len(); n != 1 {
		t.Errorf("said %d times that all is as before", n)
	}
}

// TestMendedSoonIsNoError: a file that is written in pieces is complained about
// only where it stays in pieces, which it does for long where the machine is busy.
func TestMendedSoonIsNoError(t *testing.T) {
	t.Parallel()
	for range 5 {
		s := newShop(t)
		s.write(s.entry("a"))
		f := follow(t, never, s.source())
		b := s.encode(s.entry("b"))
		writeFile(t, s.path, string(b[:len(b)/2]))
		f.looked()
		soon := f.last.Load().Failed == ""
		writeFile(t, s.path, string(b))
		f.serves("b")
		if soon {
			return
		}
	}
	t.Error("complained about each of 5 at the first look")
}

// pair is a PEM pair and another to come in its place.
type pair struct {
	t         testing.TB
	cert, key string
	a, b      *testca.Cert
}

func newPair(t testing.TB) *pair {
	dir := t.TempDir()
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	p := &pair{t: t, cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
	p.a, p.b = root.Issue(t, testca.Spec{Name: "a"}), root.Issue(t, testca.Spec{Name: "b"})
	testca.WritePEM(t, p.cert, p.key, p.a)
	return p
}

func (p *pair) source() keymanager.Source { return keymanager.Source{Paths: []string{p.cert, p.key}} }

// padded returns certificate and key as PEM of a length that all have.
func padded(c *testca.Cert) string {
	b := slices.Concat(c.ChainPEM(), c.KeyPEM())
	return string(append(b, bytes.Repeat([]byte("\n"), 8<<10-len(b))...))
}

// TestPairInTwoSteps: certificate or key first, the old pair is served until the
// other has come too; a key and a certificate never meet that don't belong
// together.
func TestPairInTwoSteps(t *testing.T) {
	for _, order := range []string{"certificate_first", "key_first"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			f := follow(t, never, p.source())
			steps := []func(){
				func() { replaceFile(t, p.cert, p.b.ChainPEM()) },
				func() { replaceFile(t, p.key, p.b.KeyPEM()) },
			}
			if order == "key_first" {
				slices.Reverse(steps)
			}
			steps[0]()
			f.fails()
			if failed := f.last.Load().Failed; !strings.Contains(failed, p.cert) || !strings.Contains(failed, p.key) {
				t.Errorf("failed: %s", failed)
			}
			if got := f.View(); got.Generation != 7 || !bytes.Equal(got.Entries[0].Chain[0], p.a.DER) {
				t.Errorf("generation %d between the steps", got.Generation)
			}
			sign(t, f.View().Entries[0].Key)
			steps[1]()
			until(t, "the new pair", func() bool { return f.Generation() == 8 })
			if !bytes.Equal(f.View().Entries[0].Chain[0], p.b.DER) {
				t.Error("another certificate than the new pair's")
			}
			sign(t, f.View().Entries[0].Key)
			if n := f.complaints(); n != 1 {
				t.Errorf("%d complaints", n)
			}
		})
	}
}

// TestPasswordAndKeystoreInTwoSteps: the password before the keystore, or after
// it; both settle.
func TestPasswordAndKeystoreInTwoSteps(t *testing.T) {
	for _, order := range []string{"keystore_first", "password_first"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.write(s.entry("a"))
			pass := filepath.Join(t.TempDir(), "pass")
			writeFile(t, pass, storePassword+"\n")
			src := s.source()
			src.Store = keymanager.PasswordRef{File: pass}
			f := follow(t, never, src)
			steps := []func(){
				func() { replaceFile(t, s.path, testca.PKCS12{}.Encode(t, "the next one", s.entry("b"))) },
				func() { replaceFile(t, pass, []byte("the next one\n")) },
			}
			if order == "password_first" {
				slices.Reverse(steps)
			}
			steps[0]()
			f.fails()
			sign(t, f.View().Entries[0].Key)
			if g := f.Generation(); g != 7 {
				t.Errorf("generation %d between the steps", g)
			}
			steps[1]()
			f.serves("b")
			if n := f.complaints(); n != 1 {
				t.Errorf("%d complaints", n)
			}
		})
	}
}

// TestKeyPasswordFileIsWatched: an entry that wanted nothing but its password is
// tried again when that changes.
func TestKeyPasswordFileIsWatched(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	b := s.entry("b")
	b.KeyPassword = "b's own"
	s.write(s.entry("a"), b)
	pass := filepath.Join(t.TempDir(), "b.pass")
	writeFile(t, pass, "wrong")
	src := s.source()
	src.Keys = []keymanager.KeyPassword{{Alias: "b", Password: keymanager.PasswordRef{File: pass}}}
	f := follow(t, never, src)
	f.serves("a")
	writeFile(t, pass, "b's own")
	f.serves("a", "b")
}

// TestOthersGoOn: a keystore that is refused holds up no other.
func TestOthersGoOn(t *testing.T) {
	t.Parallel()
	bad, good := newShop(t), newShop(t)
	bad.write(bad.entry("bad"))
	good.write(good.entry("old"))
	f := follow(t, never, bad.source(), good.source())
	writeFile(t, bad.path, "no keystore")
	f.fails()
	good.write(good.entry("new"))
	f.serves("bad", "new")
	if failed := f.last.Load().Failed; !strings.Contains(failed, bad.path) || strings.Contains(failed, good.path) || f.complaints() != 1 {
		t.Errorf("failed %q, %d complaints", failed, f.complaints())
	}
}

// TestRefusedTogetherIsTriedTogether: what is refused is tried again when
// anything changes.
func TestRefusedTogetherIsTriedTogether(t *testing.T) {
	t.Parallel()
	one, two := newShop(t), newShop(t)
	one.write(one.entry("main"))
	two.write(two.entry("b"))
	f := followWith(t, keymanager.Options{Poll: never, Aliases: []string{"main"}}, one.source(), two.source())
	one.write(one.entry("a"))
	f.fails()
	one.write(one.entry("a"), one.entry("main"))
	two.write(two.entry("c"))
	f.serves("a", "main", "c")
}

// TestWarningsComeWithEachView: what an operator should know of a keystore is
// said of the new one as it was of the first.
func TestWarningsComeWithEachView(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	inter := s.root.Issue(t, testca.Spec{Name: "intermediate", IsCA: true})
	lonely := func(alias string) testca.StoreEntry {
		c := inter.Issue(t, testca.Spec{Name: alias})
		return testca.StoreEntry{Alias: alias, Cert: c, Chain: [][]byte{c.DER}}
	}
	s.write(lonely("a"))
	f := follow(t, never, s.source())
	warned := func() (n int) {
		for _, e := range f.logs.FilterMessage(logging.MsgFoundKey).All() {
			if reason, _ := e.ContextMap()[logging.FieldReason].(string); strings.Contains(reason, "is not in the keystore") {
				n++
			}
		}
		return n
	}
	if warned() != 1 {
		t.Fatalf("warned %d times at start", warned())
	}
	s.write(lonely("b"))
	until(t, "the warning", func() bool { return warned() == 2 })
}

// TestUnreadableIsTriedAgain when its mode changes, which is an event as well.
func TestUnreadableIsTriedAgain(t *testing.T) {
	t.Parallel()
	if testca.AsNobody(t) { // root reads everything
		return
	}
	s := newShop(t)
	s.write(s.entry("a"))
	f := follow(t, never, s.source())
	writeFile(t, s.path+".tmp", string(s.encode(s.entry("b"))))
	must(t, os.Chmod(s.path+".tmp", 0))
	must(t, os.Rename(s.path+".tmp", s.path))
	f.fails()
	must(t, os.Chmod(s.path, 0o600))
	f.serves("b")
}

// TestFailureIsToldToLateWatchers: what is wrong now is part of what Watch
// begins with.
func TestFailureIsToldToLateWatchers(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.write(s.entry("a"))
	f := follow(t, never, s.source())
	writeFile(t, s.path, "no keystore")
	f.fails()
	f.last.Store(nil)
	f.watch()
	until(t, "the failure", func() bool { c := f.last.Load(); return c != nil && c.Failed != "" })
	if f.complaints() != 1 {
		t.Errorf("%d complaints", f.complaints())
	}
}
