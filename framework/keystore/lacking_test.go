// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
)

// negative is c with a negative serial number, which breaks its signature too.
func negative(t *testing.T, c *testca.Cert) []byte {
	t.Helper()
	serial := c.Cert.SerialNumber.Bytes()
	der := bytes.Replace(c.DER, serial, append([]byte{serial[0] | 0x80}, serial[1:]...), 1)
	if _, err := x509.ParseCertificate(der); err == nil {
		t.Fatal("crypto/x509 parses it after all")
	}
	return der
}

var serialNumber = big.NewInt(0x1122334455667788)

// TestNegativeSerial: the certificate is skipped as what is of no use here, and
// what it is the only one for says why there is nothing.
func TestNegativeSerial(t *testing.T) {
	t.Parallel()
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	good := testca.StoreEntry{Alias: "good", Cert: root.Issue(t, testca.Spec{Name: "good"})}
	odd := testca.StoreEntry{Alias: "odd", Cert: root.Issue(t, testca.Spec{Name: "odd", Serial: serialNumber})}
	odd.Chain = [][]byte{negative(t, odd.Cert)}
	for name, entries := range map[string][]testca.StoreEntry{"first": {odd, good}, "second": {good, odd}, "alone": {odd}} {
		path := filepath.Join(t.TempDir(), name+".p12")
		testca.WritePKCS12(t, path, storePassword, entries...)
		s := mustProve(t, keymanager.Source{Paths: []string{path}, Store: value(storePassword)})
		if e := s.Find("odd"); !errors.Is(e.Err, ErrSerial) || e.Broken || e.Usable {
			t.Errorf("%s: usable %v, broken %v, %v", name, e.Usable, e.Broken, e.Err)
		}
		err := s.judge(true)
		if alone := name == "alone"; alone != (err != nil) || alone && !strings.Contains(err.Error(), `"odd": the certificate has a negative serial number`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNegativeSerialInATrustStore: the others count, and it is said which one
// does not.
func TestNegativeSerialInATrustStore(t *testing.T) {
	t.Parallel()
	good := testca.NewRoot(t, testca.Spec{Name: "good"})
	odd := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: negative(t, testca.NewRoot(t, testca.Spec{Name: "odd", Serial: serialNumber}))})
	for _, tt := range []struct {
		name  string
		files [][]byte
		want  string
	}{
		{"first", [][]byte{odd, good.CertPEM()}, `number 1, "CN=odd": the certificate has a negative serial number`},
		{"second", [][]byte{good.CertPEM(), odd}, `number 2, "CN=odd": the certificate has a negative serial number`},
		{"alone", [][]byte{odd}, ""},
	} {
		path := filepath.Join(t.TempDir(), tt.name)
		writeFile(t, path, string(slices.Concat(tt.files...)))
		certs, warnings, err := Trusted(t.Context(), path, "", keymanager.PasswordRef{}, Limits{})
		if tt.want == "" {
			if !errors.Is(err, ErrNoTrusted) || !errors.Is(err, ErrSerial) {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err != nil || len(certs) != 1 || certs[0].Subject.CommonName != "good" || len(warnings) != 1 || !strings.Contains(warnings[0], tt.want) {
			t.Errorf("%s: %d certificates, warnings %q, %v", tt.name, len(certs), warnings, err)
		}
	}
}

// TestMissingIntermediate is warned of where it shows: a leaf comes alone, beside
// a root that did not issue it.
func TestMissingIntermediate(t *testing.T) {
	t.Parallel()
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	inter := root.Issue(t, testca.Spec{Name: "inter", IsCA: true})
	leaf, direct := inter.Issue(t, testca.Spec{Name: "leaf"}), root.Issue(t, testca.Spec{Name: "direct"})
	self := testca.SelfSigned(t, testca.Spec{Name: "self"})
	of := func(c *testca.Cert, chain ...[]byte) testca.StoreEntry {
		return testca.StoreEntry{Alias: "a", Cert: c, Chain: chain}
	}
	trusted := testca.StoreEntry{Alias: "ca", Cert: root, Trusted: true}
	for name, tt := range map[string]struct {
		entries []testca.StoreEntry
		lines   int
	}{
		"root_in_the_file":   {[]testca.StoreEntry{of(leaf, leaf.DER, root.DER)}, 1},
		"root_as_trusted":    {[]testca.StoreEntry{of(leaf, leaf.DER), trusted}, 1},
		"complete":           {[]testca.StoreEntry{of(leaf, leaf.DER, inter.DER), trusted}, 0},
		"issued_by_the_root": {[]testca.StoreEntry{of(direct, direct.DER, root.DER)}, 0},
		"nothing_else":       {[]testca.StoreEntry{of(leaf, leaf.DER)}, 0},
		"beside_a_server":    {[]testca.StoreEntry{of(leaf, leaf.DER), {Alias: "b", Cert: testca.NewRoot(t, testca.Spec{Name: "server"})}}, 0},
		"self_signed":        {[]testca.StoreEntry{of(self, self.DER), trusted}, 0},
	} {
		path := filepath.Join(t.TempDir(), name+".p12")
		testca.WritePKCS12(t, path, storePassword, tt.entries...)
		s := mustProve(t, keymanager.Source{Paths: []string{path}, Store: value(storePassword)})
		core, logs := observer.New(zapcore.WarnLevel)
		logStore(zap.New(core), 0, 1, s)
		if tt.lines > 0 && logs.Len() != tt.lines {
			t.Errorf("%s: more is said than that: %v", name, logs.All())
		}
		said := logs.FilterMessage(msgIncomplete).All()
		if len(said) != tt.lines {
			t.Errorf("%s: %d lines, want %d", name, len(said), tt.lines)
			continue
		}
		for _, e := range said {
			fields := e.ContextMap()
			if reason, _ := fields[logging.FieldReason].(string); fields[logging.FieldAlias] != "a" || !strings.Contains(reason, `"CN=inter" is not in the keystore`) {
				t.Errorf("%s: %v", name, fields)
			}
		}
	}
}
