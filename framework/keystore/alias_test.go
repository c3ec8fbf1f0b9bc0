// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"crypto/x509"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestSetAlias: the named store opens with its MAC checked, here, in keytool and
// in openssl. keytool sees a name that it can print.
func TestSetAlias(t *testing.T) {
	openssl, jdks := testca.Tool(t, "openssl"), testca.Keytools(t)
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	for _, tt := range []struct{ name, alias string }{
		{"ascii", "web"},
		{"non-ascii", "größe-鍵"},
		{"outside-bmp", "🔑"},
		{"long", strings.Repeat("a", 1000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			leaf := root.Issue(t, testca.Spec{Name: "leaf", Key: testca.RSA2048})
			plain, err := pkcs12.Modern2023.Encode(leaf.Key, leaf.Cert, []*x509.Certificate{root.Cert}, storePassword)
			if err != nil {
				t.Fatal(err)
			}
			before := string(plain)
			named, err := SetAlias(t.Context(), plain, tt.alias, storePassword)
			if err != nil {
				t.Fatal(err)
			}
			if string(plain) != before {
				t.Error("its argument was changed")
			}
			path := filepath.Join(t.TempDir(), "store")
			writeFile(t, path, string(named))
			s := mustProve(t, keymanager.Source{Paths: []string{path}, Store: value(storePassword)})
			if e := onlyKey(t, s); e.Alias != tt.alias || !e.Usable || len(e.Chain) != 2 {
				t.Errorf("alias %q, %s, chain of %d", e.Alias, e.Reason, len(e.Chain))
			}
			if compared, err := samePKCS12(s, named, storePassword); err != nil || !compared {
				t.Errorf("go-pkcs12: compared %v, %v", compared, err)
			}
			for _, jdk := range jdks {
				list := keytoolList(t, jdk, path, "pkcs12")
				if len(list) != 1 || len(list[0].Chain) != 2 || tt.name == "ascii" && list[0].Alias != tt.alias {
					t.Errorf("%s lists %v", jdk.Name(), list)
				}
			}
			runTool(t, openssl, "pkcs12", "-in", path, "-passin", "pass:"+storePassword, "-noout")
		})
	}
}

func TestSetAliasRefuses(t *testing.T) {
	leaf := testca.SelfSigned(t, testca.Spec{Name: "leaf"})
	plain, err := pkcs12.Modern2023.Encode(leaf.Key, leaf.Cert, nil, storePassword)
	if err != nil {
		t.Fatal(err)
	}
	var wrong *PasswordError
	if _, err := SetAlias(t.Context(), plain, "a", "another"); !errors.As(err, &wrong) {
		t.Errorf("wrong password: %v", err)
	}
	if _, err := SetAlias(t.Context(), plain[:len(plain)/2], "a", storePassword); err == nil {
		t.Error("half a store is named")
	}
}
