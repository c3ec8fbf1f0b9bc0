// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/plugin/plugintest"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestTLSDServesByOpenSSL runs tlsd with the plugin and has OpenSSL's client
// verify what it is served: by RSA and ECDSA, in TLS 1.2 and 1.3, and after the
// keystore has changed.
func TestTLSDServesByOpenSSL(t *testing.T) {
	openssl := testca.Tool(t, "openssl")
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	write := func(keys map[string]testca.KeyType) {
		var entries []testca.StoreEntry
		for name, kt := range keys {
			entries = append(entries, testca.StoreEntry{Alias: name, Cert: root.Issue(t, testca.Spec{Name: name, DNS: []string{name}, Key: kt})})
		}
		testca.WritePKCS12(t, file("new.p12"), "changeit", entries...)
		must(t, os.Rename(file("new.p12"), file("server.p12")))
	}
	write(map[string]testca.KeyType{"rsa.test": testca.RSA2048, "ec.test": testca.P256})
	must(t, os.WriteFile(file("pass"), []byte("changeit"), 0o600))
	must(t, os.WriteFile(file("ca.pem"), root.CertPEM(), 0o600))
	addr := start(t, "--plugin", "openssl="+plugintest.Build(t, "."), "--keymanager", "openssl",
		"--keystore", file("server.p12"), "--keystore-password-file", file("pass"))

	connect := func(version, name string) string {
		out, _ := exec.CommandContext(t.Context(), openssl, "s_client", "-connect", addr, "-servername", name,
			"-verify_hostname", name, "-CAfile", file("ca.pem"), "-verify_return_error", version).CombinedOutput()
		return string(out)
	}
	for _, version := range []string{"-tls1_2", "-tls1_3"} {
		for name, signed := range map[string]string{"rsa.test": "RSA-PSS", "ec.test": "ECDSA"} {
			if out := connect(version, name); !strings.Contains(out, "Verify return code: 0 (ok)") || !strings.Contains(out, "Peer signature type: "+signed) {
				t.Errorf("%s by %s:\n%s", name, version, out)
			}
		}
	}

	write(map[string]testca.KeyType{"next.test": testca.RSA2048})
	await(t, func() bool { return strings.Contains(connect("-tls1_3", "next.test"), "Verify return code: 0 (ok)") })
}

// start builds tlsd, without cgo as it is, runs it and returns where it listens.
func start(t *testing.T, args ...string) (addr string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tlsd")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", path, "./cmd/tlsd")
	build.Dir = filepath.Join("..", "..", "..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build tlsd: %v\n%s", err, out)
	}
	addr = testca.FreeAddr(t)
	var log bytes.Buffer
	cmd := exec.Command(path, append(args, "--listen", addr)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	testca.StartGuarded(t, cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("tlsd: %v", err)
		}
		if t.Failed() {
			t.Log(log.String())
		}
	})
	await(t, func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
	return addr
}

func await(t *testing.T, ready func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ready(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("given up after 20 s")
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
