// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// tiers are the key managers that are built in.
var tiers = []string{"sunx509", "pkix", "pkixcached"}

// keyTypes are what TLS servers have, with the CA that signs it: every client
// here is to verify the chain.
var keyTypes = []testca.KeyType{testca.RSA2048, testca.P256, testca.P384, testca.P521, testca.Ed25519}

// store is a keystore with one entry per name on disk, and the CA beside it.
type store struct {
	path, password, ca string
	root               *testca.Cert
}

// newStore writes a PKCS#12 file with an entry for each spec, alias = name.
func newStore(t *testing.T, specs ...testca.Spec) store {
	t.Helper()
	dir := t.TempDir()
	root := testca.NewRoot(t, testca.Spec{Name: "e2e root"})
	intermediate := root.Issue(t, testca.Spec{Name: "e2e intermediate", IsCA: true})
	var entries []testca.StoreEntry
	for _, s := range specs {
		entries = append(entries, testca.StoreEntry{Alias: s.Name, Cert: intermediate.Issue(t, s)})
	}
	s := store{path: filepath.Join(dir, "server.p12"), root: root}
	testca.WritePKCS12(t, s.path, "changeit", entries...)
	s.password = writeFile(t, filepath.Join(dir, "pass"), []byte("changeit\n"))
	s.ca = writeFile(t, filepath.Join(dir, "ca.pem"), root.CertPEM())
	return s
}

func (s store) args() []string {
	return []string{"--keystore", s.path, "--keystore-password-file", s.password}
}

func nameOf(kt testca.KeyType) string { return strings.ToLower(string(kt)) + ".test" }

// TestEveryPeerReachesEveryKeyType is the main job under each tier: an entry
// per key type in one keystore, chosen by SNI, for each real client.
func TestEveryPeerReachesEveryKeyType(t *testing.T) {
	var specs []testca.Spec
	for _, kt := range keyTypes {
		specs = append(specs, testca.Spec{Name: nameOf(kt), DNS: []string{nameOf(kt)}, Key: kt})
	}
	s := newStore(t, specs...)
	for _, tier := range tiers[1:] { // sunx509 doesn't look at names
		t.Run(tier, func(t *testing.T) {
			d := start(t, append(s.args(), "--keymanager", tier)...)
			t.Run("go", func(t *testing.T) { goClient(t, d, s) })
			t.Run("openssl", func(t *testing.T) { opensslClient(t, d, s) })
			t.Run("curl", func(t *testing.T) { curlClient(t, d, s) })
			t.Run("java", func(t *testing.T) { javaClients(t, d, s) })
		})
	}
}

// TestSunX509ReachesEveryKeyType has a keystore of one entry for each type,
// since sunx509 serves the first that fits the peer.
func TestSunX509ReachesEveryKeyType(t *testing.T) {
	for _, kt := range keyTypes {
		t.Run(string(kt), func(t *testing.T) {
			s := newStore(t, testca.Spec{Name: nameOf(kt), DNS: []string{nameOf(kt)}, Key: kt})
			d := start(t, append(s.args(), "--keymanager", "sunx509")...)
			for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
				checkGo(t, d, s, kt, version)
			}
		})
	}
}

func goClient(t *testing.T, d *daemon, s store) {
	for _, kt := range keyTypes {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			checkGo(t, d, s, kt, version)
		}
	}
}

func checkGo(t *testing.T, d *daemon, s store, kt testca.KeyType, version uint16) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: s.root.Pool(), ServerName: nameOf(kt), MinVersion: version, MaxVersion: version}}
	c, err := dialer.DialContext(ctx, "tcp", d.addr)
	if err != nil {
		t.Errorf("%s, %s: %v", kt, tls.VersionName(version), err)
		return
	}
	defer c.Close()
	leaf := c.(*tls.Conn).ConnectionState().PeerCertificates[0]
	if leaf.Subject.CommonName != nameOf(kt) {
		t.Errorf("%s: served %q", kt, leaf.Subject.CommonName)
	}
}

func opensslClient(t *testing.T, d *daemon, s store) {
	openssl := testca.Tool(t, "openssl")
	for _, kt := range keyTypes {
		for _, version := range []string{"-tls1_2", "-tls1_3"} {
			out, err := command(t, openssl, "s_client", "-connect", d.addr, "-servername", nameOf(kt), version,
				"-CAfile", s.ca, "-verify_return_error", "-brief")
			if err != nil || !strings.Contains(out, "CN = "+nameOf(kt)) && !strings.Contains(out, "CN="+nameOf(kt)) {
				t.Errorf("%s %s: %v\n%s", kt, version, err, out)
			}
		}
	}
}

func curlClient(t *testing.T, d *daemon, s store) {
	curl := testca.Tool(t, "curl")
	_, port, _ := net.SplitHostPort(d.addr)
	for _, kt := range keyTypes {
		for _, version := range []string{"--http1.1", "--http2"} {
			out, err := command(t, curl, "-sS", version, "--cacert", s.ca, "--resolve", nameOf(kt)+":"+port+":127.0.0.1",
				"-w", "\nstatus %{http_code} version %{http_version}\n", "https://"+nameOf(kt)+":"+port+"/")
			want := "status 200 version " + map[string]string{"--http1.1": "1.1", "--http2": "2"}[version]
			if err != nil || !strings.Contains(out, want) || !strings.Contains(out, nameOf(kt)) {
				t.Errorf("%s %s: %v, want %q in\n%s", kt, version, err, want, out)
			}
		}
	}
}

func javaClients(t *testing.T, d *daemon, s store) {
	for _, jdk := range testca.Keytools(t) {
		t.Run(jdk.Name(), func(t *testing.T) {
			host, port, _ := net.SplitHostPort(d.addr)
			var ask strings.Builder
			var want []string
			for _, kt := range keyTypes {
				for _, version := range []string{"TLSv1.2", "TLSv1.3"} {
					fmt.Fprintf(&ask, "%s %s %s %s\n", host, port, nameOf(kt), version)
					want = append(want, version+" .*CN="+nameOf(kt)+" HTTP/1.1 200 OK")
				}
			}
			got := runJava(t, jdk, ask.String(), s.ca)
			if len(got) != len(want) {
				t.Fatalf("%d answers for %d questions:\n%s", len(got), len(want), strings.Join(got, "\n"))
			}
			for i, w := range want {
				version, rest, _ := strings.Cut(w, " .*")
				if !strings.HasPrefix(got[i], version) || !strings.HasSuffix(got[i], rest) {
					t.Errorf("got %q, want %q", got[i], w)
				}
			}
		})
	}
}

// runJava asks the questions with the JDK's TLS client and returns the answers.
func runJava(t *testing.T, jdk testca.JDK, questions, ca string, properties ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	args := append(properties, filepath.Join("testdata", "TLSClient.java"), ca)
	cmd := exec.CommandContext(ctx, jdk.Java(), args...)
	cmd.Stdin = strings.NewReader(questions)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("java: %v\n%s%s", err, out, errs.String())
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
