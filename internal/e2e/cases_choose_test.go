// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/x509"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// Cases of the field, each with what real clients get.

func rootOf(t *testing.T, kt testca.KeyType) *testca.Cert {
	t.Helper()
	return testca.NewRoot(t, testca.Spec{Name: "root " + string(kt), Key: kt})
}

// issue makes a certificate for w.test, unless s says another name.
func issue(t *testing.T, ca *testca.Cert, s testca.Spec) *testca.Cert {
	t.Helper()
	if s.DNS == nil {
		s.DNS = []string{"w.test"}
	}
	return ca.Issue(t, s)
}

func expired(s testca.Spec) testca.Spec {
	s.NotBefore, s.NotAfter = time.Now().Add(-72*time.Hour), time.Now().Add(-24*time.Hour)
	return s
}

// TestRSAAndECDSAForOneName: who gets which, by who signed them, whatever the
// order in the store.
func TestRSAAndECDSAForOneName(t *testing.T) {
	for _, tt := range []struct {
		name string
		ca   testca.KeyType
		want map[string]string
	}{
		{"rsa-ca", testca.RSA2048, map[string]string{"rsa-schemes-1.3": "rsa", "rsa-suites-1.2": "rsa", "ec-schemes-1.3": "alert 40", "ec-suites-1.2": "ec", "no-pss-1.2": "rsa", "no-pss-1.3": "alert 40", "default": "ec"}},
		{"p256-ca", testca.P256, map[string]string{"rsa-schemes-1.3": "alert 40", "rsa-suites-1.2": "rsa", "ec-schemes-1.3": "ec", "ec-suites-1.2": "ec", "no-pss-1.2": "alert 40", "no-pss-1.3": "alert 40", "default": "ec"}},
	} {
		ca := rootOf(t, tt.ca)
		both := []*testca.Cert{issue(t, ca, testca.Spec{Name: "rsa", Key: testca.RSA2048}), issue(t, ca, testca.Spec{Name: "ec"})}
		for order, certs := range map[string][]*testca.Cert{"rsa-first": both, "ec-first": reversed(both)} {
			t.Run(tt.name+"/"+order, func(t *testing.T) {
				checking(t, storeWith(t, certs...), nil, func(t *testing.T, d *daemon) {
					for name, args := range map[string][]string{
						"default": anyClient, "rsa-schemes-1.3": rsaSchemes13, "rsa-suites-1.2": rsaSuites12,
						"ec-schemes-1.3": ecSchemes13, "ec-suites-1.2": ecSuites12,
						"no-pss-1.2": noPSS12, "no-pss-1.3": noPSS13,
					} {
						ask{name, "w.test", args, tt.want[name]}.of(t, d)
					}
					ask{"sha1-only", "w.test", sha1Only, "alert 40"}.of(t, d)
				})
			})
		}
	}
}

// TestKeyThatBrowsersDoNotTake: Ed25519 and P-521, beside RSA and alone.
func TestKeyThatBrowsersDoNotTake(t *testing.T) {
	ca := rootOf(t, testca.RSA2048)
	rsa := issue(t, ca, testca.Spec{Name: "rsa", Key: testca.RSA2048})
	for _, tt := range []struct {
		kt     testca.KeyType
		takes  []string
		others [][]string
	}{
		{testca.Ed25519, []string{"-sigalgs", "ed25519:RSA-PSS+SHA256:RSA+SHA256"}, [][]string{browser12, browser13}},
		{testca.P521, []string{"-tls1_3", "-sigalgs", "ECDSA+SHA512:RSA-PSS+SHA256:RSA+SHA256"}, [][]string{noP521, browser13}},
	} {
		odd := issue(t, ca, testca.Spec{Name: "odd", Key: tt.kt})
		t.Run(string(tt.kt)+"/beside-rsa", func(t *testing.T) {
			checking(t, storeWith(t, odd, rsa), nil, func(t *testing.T, d *daemon) {
				ask{"takes-it", "w.test", tt.takes, "odd"}.of(t, d)
				for _, args := range tt.others {
					ask{"other" + args[0], "w.test", args, "rsa"}.of(t, d)
				}
			})
		})
		t.Run(string(tt.kt)+"/alone", func(t *testing.T) {
			checking(t, storeWith(t, odd), []string{"--debug", "keymanager"}, func(t *testing.T, d *daemon) {
				ask{"takes-it", "w.test", tt.takes, "odd"}.of(t, d)
				for _, args := range tt.others {
					ask{"other" + args[0], "w.test", args, "alert 40"}.of(t, d)
				}
				d.awaitLog(`"msg":"no credential"`)
				if strings.Contains(d.log.String(), "goroutine ") {
					t.Errorf("a stack trace in the log:\n%s", d.log)
				}
			})
		})
	}
}

// TestECDSASchemesWithRSASuites: what a TLS 1.2 client can verify counts less
// than what it can agree on.
func TestECDSASchemesWithRSASuites(t *testing.T) {
	ca := rootOf(t, testca.RSA2048)
	ec := issue(t, ca, testca.Spec{Name: "ec"})
	client := append([]string{"-sigalgs", "ECDSA+SHA256:RSA-PSS+SHA256:RSA+SHA256"}, rsaSuites12...)
	checking(t, storeWith(t, ec, issue(t, ca, testca.Spec{Name: "rsa", Key: testca.RSA2048})), nil, func(t *testing.T, d *daemon) {
		ask{"beside-rsa", "w.test", client, "rsa"}.of(t, d)
	})
	checking(t, storeWith(t, ec), nil, func(t *testing.T, d *daemon) { ask{"alone", "w.test", client, "alert 40"}.of(t, d) })
}

// TestChainSignatures: an intermediate that the client can't verify rules its
// leaf out.
func TestChainSignatures(t *testing.T) {
	root := rootOf(t, testca.P256)
	strong := root.Issue(t, testca.Spec{Name: "P-384 intermediate", Key: testca.P384, IsCA: true})
	byP384, byP256 := issue(t, strong, testca.Spec{Name: "by-p384"}), issue(t, root, testca.Spec{Name: "by-p256"})
	checking(t, storeWith(t, byP384, byP256), nil, func(t *testing.T, d *daemon) {
		ask{"both", "w.test", anyClient, "by-p384"}.of(t, d)
		ask{"sha256-only", "w.test", ecSchemes13, "by-p256"}.of(t, d)
	})
	checking(t, storeWith(t, byP384), nil, func(t *testing.T, d *daemon) { ask{"alone", "w.test", ecSchemes13, "alert 40"}.of(t, d) })
}

// TestExactNameBeforeWildcard in both orders; the JDK takes the first.
func TestExactNameBeforeWildcard(t *testing.T) {
	ca := rootOf(t, testca.P256)
	const usage = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyAgreement // the JDK wants both
	wildcard := issue(t, ca, testca.Spec{Name: "wildcard", DNS: []string{"*.w.test"}, KeyUsage: usage})
	exact := issue(t, ca, testca.Spec{Name: "exact", DNS: []string{"a.w.test"}, KeyUsage: usage})
	late := issue(t, ca, expired(testca.Spec{Name: "expired", DNS: []string{"b.w.test"}, KeyUsage: usage}))
	all := []*testca.Cert{wildcard, exact, late}
	for order, certs := range map[string][]*testca.Cert{"wildcard-first": all, "exact-first": reversed(all)} {
		t.Run(order, func(t *testing.T) {
			s := storeWith(t, certs...)
			checking(t, s, nil, func(t *testing.T, d *daemon) {
				ask{"exact", "a.w.test", anyClient, "exact"}.of(t, d)
				ask{"case", "A.W.Test", anyClient, "exact"}.of(t, d)
				ask{"wildcard", "c.w.test", anyClient, "wildcard"}.of(t, d)
				ask{"expired-exact", "b.w.test", anyClient, "wildcard"}.of(t, d)
			})
			first := map[string]string{"wildcard-first": "wildcard", "exact-first": "exact"}[order]
			t.Run("jdk-compat", func(t *testing.T) {
				ask{"first", "a.w.test", anyClient, first}.of(t, configured(t, s, "jdk_compat: true"))
			})
		})
	}
}

// configured starts tlsd with a configuration file of the store and lines.
func configured(t *testing.T, s store, lines ...string) *daemon {
	t.Helper()
	text := "keystores: [{path: " + s.path + ", password_file: " + s.password + "}]\n" + strings.Join(lines, "\n") + "\n"
	return start(t, "--config", writeFile(t, filepath.Join(t.TempDir(), "tlsd.yaml"), []byte(text)))
}

// TestNamesOfDifferentKeyTypes: the name first, then what the client can use.
func TestNamesOfDifferentKeyTypes(t *testing.T) {
	ca := rootOf(t, testca.RSA2048)
	ec := issue(t, ca, testca.Spec{Name: "ec", DNS: []string{"e.test"}})
	rsa := issue(t, ca, testca.Spec{Name: "rsa", DNS: []string{"r.test"}, Key: testca.RSA2048})
	checking(t, storeWith(t, ec, rsa), nil, func(t *testing.T, d *daemon) {
		ask{"rsa-name", "r.test", anyClient, "rsa"}.of(t, d)
		ask{"ec-name", "e.test", anyClient, "ec"}.of(t, d)
		ask{"rsa-client-of-ec-name", "e.test", rsaSchemes13, "rsa"}.of(t, d)
		ask{"ec-client-of-rsa-name", "r.test", ecSuites12, "ec"}.of(t, d)
	})
}

// TestStrictServerNames, and the default.
func TestStrictServerNames(t *testing.T) {
	s := storeWith(t, issue(t, rootOf(t, testca.P256), testca.Spec{Name: "w"}))
	for _, v := range []string{"-tls1_2", "-tls1_3"} {
		strict, lax := configured(t, s, "listeners: [{unknown_sni: reject}]"), configured(t, s)
		ask{"known" + v, "w.test", []string{v}, "w"}.of(t, strict)
		ask{"unknown" + v, "nobody.test", []string{v}, "alert 112"}.of(t, strict)
		ask{"none" + v, "", []string{v}, "alert 112"}.of(t, strict)
		ask{"unknown-by-default" + v, "nobody.test", []string{v}, "w"}.of(t, lax)
		ask{"none-by-default" + v, "", []string{v}, "w"}.of(t, lax)
	}
}

// TestCommonNameOnly counts where there is no name of the proper kind.
func TestCommonNameOnly(t *testing.T) {
	ca := rootOf(t, testca.P256)
	first := issue(t, ca, testca.Spec{Name: "first"})
	plain := ca.Issue(t, testca.Spec{Name: "cn.test"})
	beside := issue(t, ca, testca.Spec{Name: "beside.test", DNS: []string{"other.test"}})
	checking(t, storeWith(t, first, plain, beside), nil, func(t *testing.T, d *daemon) {
		ask{"common-name", "cn.test", anyClient, "cn.test"}.of(t, d)
		ask{"beside-a-san", "beside.test", anyClient, "first"}.of(t, d)
		ask{"the-san", "other.test", anyClient, "beside.test"}.of(t, d)
	})
}

// TestAliasWithDotsAndDigits under every tier, by flag and in the log.
func TestAliasWithDotsAndDigits(t *testing.T) {
	const alias = "1.0.www.Example.test"
	ca := rootOf(t, testca.P256)
	s := storeWith(t, issue(t, ca, testca.Spec{Name: "other"}), issue(t, ca, testca.Spec{Name: alias, DNS: []string{"x.test"}}))
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			d := start(t, append(s.args(), "--keymanager", tier, "--alias", strings.ToUpper(alias), "--debug", "keymanager")...)
			ask{"demanded", "w.test", anyClient, alias}.of(t, d)
			d.awaitLog(`"alias":"` + alias + `"`)
		})
	}
}

// TestCertificateOfAClient is served only where nothing else is there.
func TestCertificateOfAClient(t *testing.T) {
	ca := rootOf(t, testca.P256)
	client := issue(t, ca, testca.Spec{Name: "client", EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	for name, good := range map[string]testca.Spec{
		"server":         {},
		"any":            {EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}},
		"none":           {NoEKU: true},
		"expired-server": expired(testca.Spec{}),
	} {
		good.Name = "good"
		t.Run(name, func(t *testing.T) {
			s := storeWith(t, client, issue(t, ca, good))
			checking(t, s, nil, func(t *testing.T, d *daemon) { ask{"both", "w.test", anyClient, "good"}.of(t, d) })
		})
	}
	t.Run("alone", func(t *testing.T) {
		checking(t, storeWith(t, client), nil, func(t *testing.T, d *daemon) { ask{"alone", "w.test", anyClient, "client"}.of(t, d) })
	})
	t.Run("sunx509", func(t *testing.T) {
		s := storeWith(t, client, issue(t, ca, testca.Spec{Name: "good"}))
		ask{"both", "w.test", anyClient, "client"}.of(t, start(t, append(s.args(), "--keymanager", "sunx509")...))
	})
}

// TestKeyUsage: digitalSignature is enough for EC, keyEncipherment for RSA.
func TestKeyUsage(t *testing.T) {
	ca := rootOf(t, testca.RSA2048)
	const full = x509.KeyUsageDigitalSignature | x509.KeyUsageKeyAgreement | x509.KeyUsageKeyEncipherment
	for _, tt := range []struct {
		name  string
		key   testca.KeyType
		usage x509.KeyUsage
	}{
		{"ec-digital-signature", testca.P256, x509.KeyUsageDigitalSignature},
		{"rsa-key-encipherment", testca.RSA2048, x509.KeyUsageKeyEncipherment},
	} {
		t.Run(tt.name, func(t *testing.T) {
			late := issue(t, ca, expired(testca.Spec{Name: "expired", Key: tt.key, KeyUsage: full}))
			valid := issue(t, ca, testca.Spec{Name: "valid", Key: tt.key, KeyUsage: tt.usage})
			checking(t, storeWith(t, late, valid), nil, func(t *testing.T, d *daemon) { ask{"both", "w.test", anyClient, "valid"}.of(t, d) })
		})
	}
}
