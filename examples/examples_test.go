// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// build compiles a plugin of this module and returns its path.
func build(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if out, err := exec.Command("go", "build", "-o", path, "./"+name).CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, out)
	}
	return path
}

// open starts a plugin as tlsd does.
func open(t *testing.T, plugin framework.Plugin, keystores ...keymanager.Source) (*framework.Keys, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	keys, err := framework.Open(ctx, framework.Config{Plugins: []framework.Plugin{plugin}, Keystores: keystores})
	if err == nil {
		t.Cleanup(func() { keys.Close() })
	}
	return keys, err
}

// handshake connects by a version with a server name, trusting root, and
// returns the leaf that was served.
func handshake(t *testing.T, keys *framework.Keys, root *testca.Cert, version uint16, name string) string {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	server := tls.Server(a, keys.TLSConfig())
	go server.Handshake()
	client := tls.Client(b, &tls.Config{RootCAs: root.Pool(), ServerName: name, MaxVersion: version})
	if err := client.Handshake(); err != nil {
		t.Fatalf("handshake with %s by %s: %v", name, tls.VersionName(version), err)
	}
	return client.ConnectionState().PeerCertificates[0].Subject.CommonName
}

var versions = []uint16{tls.VersionTLS12, tls.VersionTLS13}

func TestPemfileServesItsPair(t *testing.T) {
	exe := build(t, "pemfile")
	for _, kt := range []testca.KeyType{testca.RSA2048, testca.P256, testca.Ed25519} {
		t.Run(string(kt), func(t *testing.T) {
			dir := t.TempDir()
			root := testca.NewRoot(t, testca.Spec{Name: "root"})
			testca.WritePEM(t, dir+"/tls.crt", dir+"/tls.key", root.Issue(t, testca.Spec{Name: "a", DNS: []string{"a.example"}, Key: kt}))
			keys, err := open(t, framework.Plugin{Name: "pemfile", Path: exe}, keymanager.Source{Paths: []string{dir + "/tls.crt", dir + "/tls.key"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range versions {
				if got := handshake(t, keys, root, v, "a.example"); got != "a" {
					t.Errorf("served %q, want a", got)
				}
			}
		})
	}
}

func TestKeydirChoosesByName(t *testing.T) {
	dir := t.TempDir()
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	for _, name := range []string{"a", "b"} {
		leaf := root.Issue(t, testca.Spec{Name: name, DNS: []string{name + ".example"}})
		testca.WritePEM(t, dir+"/"+name+".crt", dir+"/"+name+".key", leaf)
	}
	settings, err := json.Marshal(map[string]string{"dir": dir})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := open(t, framework.Plugin{Name: "keydir", Path: build(t, "keydir"), Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		for _, name := range []string{"a", "b"} {
			if got := handshake(t, keys, root, v, name+".example"); got != name {
				t.Errorf("served %q for %s.example", got, name)
			}
		}
	}
}

func TestMistakesAreTold(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	tests := []struct {
		name      string
		keystores []keymanager.Source
		want      string
	}{
		{"pemfile", nil, "--keystore CERT,KEY"},
		{"pemfile", []keymanager.Source{{Paths: []string{none, none}}}, none},
		{"keydir", nil, "--plugin-setting keydir.dir=DIR"},
	}
	for _, tt := range tests {
		_, err := open(t, framework.Plugin{Name: tt.name, Path: build(t, tt.name)}, tt.keystores...)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one that says %q", tt.name, err, tt.want)
		}
	}
}

func TestRunByHandSaysWhatItIs(t *testing.T) {
	for _, name := range []string{"pemfile", "keydir"} {
		cmd := exec.Command(build(t, name))
		cmd.Env = os.Environ()
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.Contains(string(out), name) {
			t.Errorf("%s: %v, %q; want exit status 2 and its name", name, err, out)
		}
	}
}
