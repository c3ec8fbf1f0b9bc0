// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestAdviceConverts does to keys in PEM as the errors about them say.
func TestAdviceConverts(t *testing.T) {
	openssl := testca.Tool(t, "openssl")
	for _, scheme := range []string{"PBE-SHA1-RC4-128", "PBE-MD5-DES"} {
		t.Run(scheme, func(t *testing.T) {
			dir := t.TempDir()
			cert, plain, old, converted := filepath.Join(dir, "crt"), filepath.Join(dir, "plain"), filepath.Join(dir, "old"), filepath.Join(dir, "new")
			testca.WritePEM(t, cert, plain, testca.SelfSigned(t, testca.Spec{Name: "leaf"}))
			runTool(t, openssl, "pkcs8", "-provider", "legacy", "-provider", "default", "-topk8", "-v1", scheme, "-in", plain, "-out", old, "-passout", "pass:"+storePassword)
			source := func(key string) keymanager.Source {
				return keymanager.Source{Paths: []string{cert, key}, Store: value(storePassword)}
			}
			var unsupported *UnsupportedError
			if err := onlyKey(t, mustProve(t, source(old))).Err; !errors.As(err, &unsupported) {
				t.Fatalf("got %v, want an UnsupportedError", err)
			}
			command, ok := strings.CutPrefix(unsupported.Hint, "convert it: openssl ")
			if !ok {
				t.Fatalf("hint %q", unsupported.Hint)
			}
			args := strings.Fields(strings.NewReplacer("OLD", old, "NEW", converted).Replace(command))
			runTool(t, openssl, append(args, "-passin", "pass:"+storePassword, "-passout", "pass:"+storePassword)...)
			if e := onlyKey(t, mustProve(t, source(converted))); !e.Usable {
				t.Errorf("what is converted as %q says: %s", unsupported.Hint, e.Reason)
			}
		})
	}
}
