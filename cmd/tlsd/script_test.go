// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/x509"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestMain is also the main of the processes that scripts start: tlsd by name,
// and tlsd's own children, which run this executable again.
func TestMain(m *testing.M) {
	plugin.Main(builtin...)
	testscript.Main(m, map[string]func(){"tlsd": main})
}

// Scripts are a manual that is run. See testdata/script, and setUp for the files
// that each finds in its directory.
func TestScripts(t *testing.T) {
	for _, tool := range []string{"curl", "go", "openssl", "sh"} {
		testca.Tool(t, tool)
	}
	f := newFixtures(t)
	removeScriptDirs(t)
	testscript.Run(t, testscript.Params{
		Dir:   filepath.Join("testdata", "script"),
		Setup: f.setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await":    await,
			"freeport": freePort,
			"signal":   sendSignal,
			"status":   exitsWith,
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// removeScriptDirs lets no directory of testscript.Run, which removes it with the
// last script, outlive a run of some scripts alone.
func removeScriptDirs(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s") // short, for the sockets in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("GOTMPDIR", dir)
}

// fixtures are files that every script starts with.
type fixtures struct {
	dir  string
	repo string
}

func newFixtures(t *testing.T) fixtures {
	t.Helper()
	repo, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	f := fixtures{dir: t.TempDir(), repo: repo}
	at := func(name string) string { return filepath.Join(f.dir, name) }
	local := []net.IP{net.IPv4(127, 0, 0, 1)}
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	web := root.Issue(t, testca.Spec{Name: "web", DNS: []string{"web.test"}, IPs: local})
	api := root.Issue(t, testca.Spec{Name: "api", DNS: []string{"api.test"}, Key: testca.RSA2048})
	expired := root.Issue(t, testca.Spec{Name: "expired", DNS: []string{"old.test"}, NotBefore: time.Now().AddDate(0, 0, -30), NotAfter: time.Now().AddDate(0, 0, -2)})
	client := root.Issue(t, testca.Spec{Name: "client", EKU: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})

	testca.WritePKCS12(t, at("server.p12"), "changeit", testca.StoreEntry{Alias: "web", Cert: web}, testca.StoreEntry{Alias: "api", Cert: api})
	testca.WritePKCS12(t, at("expired.p12"), "changeit", testca.StoreEntry{Alias: "web", Cert: web}, testca.StoreEntry{Alias: "old", Cert: expired})
	testca.WritePKCS12(t, at("odd.p12"), "changeit", testca.StoreEntry{Alias: "web", Cert: web}, testca.StoreEntry{Alias: "api", Cert: api, KeyPassword: "another"})
	testca.WritePKCS12(t, at("trusted.p12"), "changeit", testca.StoreEntry{Alias: "root", Cert: root, Trusted: true})
	testca.WritePEM(t, at("tls.crt"), at("tls.key"), web)
	testca.WritePEM(t, at("client.crt"), at("client.key"), client)
	testca.WritePEM(t, at("other.crt"), at("other.key"), api)
	store, err := os.ReadFile(at("server.p12"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"pass": []byte("changeit\n"), "wrong.pass": []byte("S3cr3t-4711\n"), "ca.pem": root.CertPEM(),
		"empty.p12": nil, "truncated.p12": store[:len(store)/2],
	} {
		if err := os.WriteFile(at(name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// setUp copies the files and lets go build find what it needs.
func (f fixtures) setUp(env *testscript.Env) error {
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			return err
		}
		env.Setenv(name, string(out[:len(out)-1]))
	}
	env.Setenv("CGO_ENABLED", "0")
	env.Setenv("REPO", f.repo)
	env.Setenv("TMPDIR", filepath.Join(env.WorkDir, "tmp"))
	env.Setenv("XDG_RUNTIME_DIR", "")
	env.Setenv("RUNTIME_DIRECTORY", "")
	return os.CopyFS(env.WorkDir, os.DirFS(f.dir))
}

// await waits until a file matches a regular expression: await FILE REGEXP.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await FILE REGEXP")
	}
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	var content []byte
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		content, _ = os.ReadFile(ts.MkAbs(args[0])) // not there yet
		if re.Match(content) {
			return
		}
	}
	ts.Fatalf("%s does not match %q:\n%s", args[0], args[1], content)
}

// freePort puts a port of 127.0.0.1 that nothing listens on into a variable.
func freePort(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport NAME")
	}
	_, port, err := net.SplitHostPort(testca.FreeAddr(ts))
	ts.Check(err)
	ts.Setenv(args[0], port)
}

// sendSignal sends a signal to the tlsd that was put into the background last:
// signal NAME.
func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]os.Signal{"HUP": syscall.SIGHUP, "INT": os.Interrupt, "TERM": syscall.SIGTERM, "KILL": os.Kill}
	if neg || len(args) != 1 || signals[args[0]] == nil {
		ts.Fatalf("usage: signal HUP|INT|TERM|KILL")
	}
	for _, cmd := range slices.Backward(ts.BackgroundCmds()) {
		if strings.Contains(strings.Join(cmd.Args, " "), "exec tlsd") {
			ts.Check(cmd.Process.Signal(signals[args[0]]))
			return
		}
	}
	ts.Fatalf("no tlsd in the background")
}

// exitsWith runs a program that ends with a status: status N PROGRAM ARG...
func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}
