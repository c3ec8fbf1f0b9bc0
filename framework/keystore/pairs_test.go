// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestPairAmongSeveralChangesAsOne: a keystore of two pairs, one of which is
// renewed file by file, in either order. Between the two the old pair serves.
func TestPairAmongSeveralChangesAsOne(t *testing.T) {
	for name, keyFirst := range map[string]bool{"key_first": true, "certificate_first": false} {
		t.Run(name, func(t *testing.T) {
			s, dir := newShop(t), t.TempDir()
			var paths []string
			for _, name := range []string{"a", "b"} {
				cert, key := filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
				testca.WritePEM(t, cert, key, s.entry(name).Cert)
				paths = append(paths, cert, key)
			}
			v := mustOpenNames(t, env(keymanager.Source{Paths: paths}), ViewOptions{})
			before := v.View()
			next := s.entry("a").Cert
			steps := []func(){
				func() { put(t, paths[1], next.KeyPEM()) },
				func() { put(t, paths[0], next.ChainPEM()) },
			}
			if !keyFirst {
				steps[0], steps[1] = steps[1], steps[0]
			}
			steps[0]()
			if err := v.Reload(t.Context()); err == nil || v.View() != before {
				t.Errorf("half a pair was taken: %v, error %v", v.Current(), err)
			}
			steps[1]()
			if err := v.Reload(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(2, len(v.Current())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestFileThatLiesAboutItsSize is one that says that it has content and gives none,
// as a file does that is emptied while it is read.
func TestFileThatLiesAboutItsSize(t *testing.T) {
	const path = "/sys/class/net/lo/ifalias"
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		t.Skipf("NOT CHECKED: no such file here: %v", err)
	}
	_, err := Open(t.Context(), keymanager.Source{Paths: []string{path}}, Limits{})
	if err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("got %v", err)
	}
}

// TestCertificatesThatClaimEachOther: of names that go in a circle, many with each,
// none signed by another. To read them takes no time that grows with their number's
// square; here it would be minutes.
func TestCertificatesThatClaimEachOther(t *testing.T) {
	names := []string{"A", "B"}
	var pem strings.Builder
	stranger := testca.NewKey(t, testca.P256)
	leaf := testca.NewRoot(t, testca.Spec{Name: names[1], Signer: stranger}).Issue(t, testca.Spec{Name: "leaf"})
	pem.Write(leaf.KeyPEM())
	pem.Write(leaf.ChainPEM())
	for i := range 400 {
		of := testca.NewRoot(t, testca.Spec{Name: names[i%2]})
		pem.Write(of.Issue(t, testca.Spec{Name: names[(i+1)%2], IsCA: true}).ChainPEM())
	}
	path := filepath.Join(t.TempDir(), "strange.pem")
	put(t, path, []byte(pem.String()))
	began := time.Now()
	s, err := Open(t.Context(), keymanager.Source{Paths: []string{path}}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.Entries[0].Chain); n > maxChain {
		t.Errorf("a chain of %d certificates", n)
	}
	t.Logf("read in %v", time.Since(began))
}

// TestPlainKeysOfASafeCountEach: to get at each takes the safe's iterations again.
func TestPlainKeysOfASafeCountEach(t *testing.T) {
	work := newBudget(Limits{Iterations: 10})
	r := &reader{Store: &Store{}, work: work}
	in := &safe{scheme: &scheme{iterations: 10}}
	for range fileIterations + 1 {
		if _, err := r.plainKey(nil, in); err != nil {
			t.Fatal(err)
		}
	}
	var limit *LimitError
	if err := work.sum(); !errors.As(err, &limit) {
		t.Errorf("got %v", err)
	}
}
