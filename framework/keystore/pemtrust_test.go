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

// TestTrustSettingsOfOpenSSL: what openssl writes as TRUSTED CERTIFICATE is an
// anchor where it says that it is one for TLS, or says nothing.
func TestTrustSettingsOfOpenSSL(t *testing.T) {
	openssl := testca.Tool(t, "openssl")
	dir := t.TempDir()
	cert := filepath.Join(dir, "ca.crt")
	writeFile(t, cert, string(testca.NewRoot(t, testca.Spec{Name: "ca"}).CertPEM()))
	for _, tt := range []struct {
		name string
		args []string
		why  string // empty: trusted
	}{
		{"nothing-said", []string{"-setalias", "ca"}, ""},
		{"for-servers", []string{"-addtrust", "serverAuth"}, ""},
		{"for-any-use", []string{"-addtrust", "anyExtendedKeyUsage"}, ""},
		{"rejected-for-mail", []string{"-addreject", "emailProtection"}, ""},
		{"for-mail", []string{"-addtrust", "emailProtection"}, "other uses than TLS"},
		{"rejected-for-servers", []string{"-addreject", "serverAuth"}, "reject it for TLS"},
		{"rejected-for-clients", []string{"-addtrust", "serverAuth", "-addreject", "clientAuth"}, "reject it for TLS"},
		{"rejected-for-any-use", []string{"-addreject", "anyExtendedKeyUsage"}, "reject it for TLS"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(dir, tt.name)
			runTool(t, openssl, append([]string{"x509", "-trustout", "-in", cert, "-out", path}, tt.args...)...)
			certs, _, err := Trusted(t.Context(), path, "", keymanager.PasswordRef{}, Limits{})
			switch {
			case tt.why == "" && (err != nil || len(certs) != 1):
				t.Errorf("%d certificates, %v", len(certs), err)
			case tt.why != "" && (!errors.Is(err, ErrNoTrusted) || !strings.Contains(err.Error(), tt.why)):
				t.Errorf("%d certificates, error %v; want one with %q", len(certs), err, tt.why)
			}
		})
	}
}
