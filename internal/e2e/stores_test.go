// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// served returns the leaf that a client without opinions is given for sni.
func served(t *testing.T, d *daemon, sni string) *x509.Certificate {
	t.Helper()
	c, err := tls.Dial("tcp", d.addr, &tls.Config{ServerName: sni, InsecureSkipVerify: true})
	if err != nil {
		t.Fatalf("handshake for %q: %v\n%s", sni, err, d.log)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0]
}

func checkServed(t *testing.T, d *daemon, sni, commonName string) {
	t.Helper()
	if got := served(t, d, sni).Subject.CommonName; got != commonName {
		t.Errorf("%q is served %q, want %q", sni, got, commonName)
	}
}

// TestKeytoolStores serves what each JDK's keytool makes with its defaults: two
// key entries in a PKCS#12 file, and the same as JKS.
func TestKeytoolStores(t *testing.T) {
	for _, jdk := range testca.Keytools(t) {
		for _, format := range []string{"PKCS12", "JKS"} {
			t.Run(jdk.Name()+"-"+format, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "server.keystore")
				for _, e := range [][]string{{"rsa", "RSA"}, {"ec", "EC"}} {
					mustCommand(t, jdk.Keytool(), "-genkeypair", "-alias", e[0], "-keyalg", e[1], "-keystore", path, "-storetype", format,
						"-storepass", "changeit", "-dname", "CN="+e[0]+".test", "-ext", "san=dns:"+e[0]+".test", "-validity", "30")
				}
				password := writeFile(t, filepath.Join(dir, "pass"), []byte("changeit"))
				for _, tier := range tiers {
					d := start(t, "--keymanager", tier, "--keystore", path, "--keystore-password-file", password)
					if tier == "sunx509" {
						served(t, d, "rsa.test")
						continue
					}
					checkServed(t, d, "rsa.test", "rsa.test")
					checkServed(t, d, "ec.test", "ec.test")
				}
			})
		}
	}
}

// TestOpenSSLStores serves what openssl makes, by its defaults and with
// -legacy, and the PEM pair that it was made of.
func TestOpenSSLStores(t *testing.T) {
	openssl := testca.Tool(t, "openssl")
	dir := t.TempDir()
	leaf := testca.NewRoot(t, testca.Spec{Name: "root"}).Issue(t, testca.Spec{Name: "o.test", DNS: []string{"o.test"}, Key: testca.RSA2048})
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	testca.WritePEM(t, cert, key, leaf)
	password := writeFile(t, filepath.Join(dir, "pass"), []byte("changeit\n"))
	stores := map[string][]string{"pem": {"--keystore", cert + "," + key}}
	for name, extra := range map[string][]string{"default": nil, "legacy": {"-legacy"}, "named": {"-name", "Server One"}, "nomac": {"-nomac"}} {
		path := filepath.Join(dir, name+".p12")
		mustCommand(t, openssl, append([]string{"pkcs12", "-export", "-in", cert, "-inkey", key, "-passout", "pass:changeit", "-out", path}, extra...)...)
		stores[name] = []string{"--keystore", path, "--keystore-password-file", password}
	}
	for name, args := range stores {
		for _, tier := range tiers {
			t.Run(name+"-"+tier, func(t *testing.T) {
				checkServed(t, start(t, append(args, "--keymanager", tier)...), "o.test", "o.test")
			})
		}
	}
}

// TestReloadBySIGHUP puts a renewed certificate in place and tells tlsd. A file
// that is no good changes nothing.
func TestReloadBySIGHUP(t *testing.T) {
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			s := newStore(t, testca.Spec{Name: "old", DNS: []string{"w.test"}})
			d := start(t, append(s.args(), "--keymanager", tier)...)
			checkServed(t, d, "w.test", "old")

			next := newStore(t, testca.Spec{Name: "new", DNS: []string{"w.test"}})
			if err := os.Rename(next.path, s.path); err != nil {
				t.Fatal(err)
			}
			d.cmd.Process.Signal(syscall.SIGHUP)
			awaitServed(t, d, "w.test", "new")

			writeFile(t, s.path, []byte("not a keystore"))
			d.cmd.Process.Signal(syscall.SIGHUP)
			d.awaitLog("keystore reload failed")
			checkServed(t, d, "w.test", "new")
		})
	}
}

func awaitServed(t *testing.T, d *daemon, sni, commonName string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if served(t, d, sni).Subject.CommonName == commonName {
			return
		}
	}
	t.Fatalf("%q is never served %q\n%s", sni, commonName, d.log)
}

// TestMainJobInFIPSMode runs the main job with Go's FIPS 140-3 module on, in
// front and key process.
func TestMainJobInFIPSMode(t *testing.T) {
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}, Key: testca.RSA2048})
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			d := startWith(t, options{env: []string{"GODEBUG=fips140=on"}, args: append(s.args(), "--keymanager", tier)})
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				c, err := tls.Dial("tcp", d.addr, &tls.Config{ServerName: "w.test", RootCAs: s.root.Pool(), MinVersion: version, MaxVersion: version})
				if err != nil {
					t.Fatalf("%s: %v\n%s", tls.VersionName(version), err, d.log)
				}
				c.Close()
			}
			for _, pid := range childrenOf(d.cmd.Process.Pid) {
				environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
				if err == nil && !strings.Contains(string(environ), "fips140=on") {
					t.Error("the key process is not in FIPS mode")
				}
			}
		})
	}
}

// TestManyHangupsAreFewReloads sends SIGHUP much faster than keystores can be
// read. tlsd goes on, and reads the last state.
func TestManyHangupsAreFewReloads(t *testing.T) {
	s := newStore(t, testca.Spec{Name: "old", DNS: []string{"w.test"}})
	d := start(t, s.args()...)
	next := newStore(t, testca.Spec{Name: "new", DNS: []string{"w.test"}})
	for i := range 200 {
		if i == 199 {
			if err := os.Rename(next.path, s.path); err != nil {
				t.Fatal(err)
			}
		}
		d.cmd.Process.Signal(syscall.SIGHUP)
	}
	awaitServed(t, d, "w.test", "new")
	if n := strings.Count(d.log.String(), `"msg":"reloaded"`); n >= 200 {
		t.Errorf("%d reloads for 200 signals", n)
	}
}
