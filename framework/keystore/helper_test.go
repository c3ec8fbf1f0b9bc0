// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// verifySignature checks a signature over a SHA-256 digest (Ed25519: over the
// bytes themselves).
func verifySignature(public crypto.PublicKey, digest, sig []byte) error {
	ok := false
	switch k := public.(type) {
	case *rsa.PublicKey:
		ok = rsa.VerifyPKCS1v15(k, crypto.SHA256, digest, sig) == nil
	case *ecdsa.PublicKey:
		ok = ecdsa.VerifyASN1(k, digest, sig)
	case ed25519.PublicKey:
		ok = ed25519.Verify(k, digest, sig)
	default:
		return fmt.Errorf("public key of type %T", public)
	}
	if !ok {
		return errors.New("the signature does not verify with the leaf")
	}
	return nil
}

func writeFile(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFileString(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// runTool runs a program that must succeed and returns what it printed.
func runTool(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), args[0], err, out)
	}
	return string(out)
}

// mustProve opens and proves a keystore.
func mustProve(t testing.TB, src keymanager.Source) *Store {
	t.Helper()
	s, err := Open(t.Context(), src, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Prove(t.Context(), ProveOptions{}); err != nil {
		t.Fatal(err)
	}
	return s
}
