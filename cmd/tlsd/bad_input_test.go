// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Each mistake ends tlsd with its exit status and one message, which names the
// file and says what to do.
func TestBadInput(t *testing.T) {
	f := newFixtures(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	own := []string{"--keystore", "server.p12", "--keystore-password-file", "pass"}
	tests := []struct {
		name   string
		file   string // tlsd.yaml
		args   []string
		status int
		want   string // the whole of standard error, as a regular expression
	}{
		{"wrong_password", "", []string{"--keystore", "server.p12", "--keystore-password-file", "wrong.pass"}, 2,
			`open keystore "DIR/server.p12": wrong password, or the file was changed after it was written: check --keystore-password-file \(password_file\)`},
		{"no_password", "", []string{"--keystore", "server.p12"}, 2,
			`open keystore "DIR/server.p12": needs a password: give one with --keystore-password-file \(password_file\).*`},
		{"no_password_file", "", []string{"--keystore", "server.p12", "--keystore-password-file", "nope"}, 2,
			`open keystore "DIR/server.p12": read password file "DIR/nope": no such file or directory`},
		{"keystore_as_password_file", "", []string{"--keystore", "server.p12", "--keystore-password-file", "."}, 2,
			`open keystore "DIR/server.p12": read password file "DIR": is a directory`},
		{"missing", "", []string{"--keystore", "nope.p12"}, 2, `open keystore "DIR/nope.p12": no such file or directory`},
		{"empty", "", []string{"--keystore", "empty.p12"}, 2, `open keystore "DIR/empty.p12": is empty`},
		{"truncated", "", []string{"--keystore", "truncated.p12", "--keystore-password-file", "pass"}, 2,
			`open keystore "DIR/truncated.p12": damaged: .*`},
		{"pem_as_pkcs12", "", []string{"--keystore", "tls.crt", "--keystore-type", "pkcs12"}, 2,
			`open keystore "DIR/tls.crt": not pkcs12 but pem; leave the type at auto \(--keystore-type, type\)`},
		{"directory", "", []string{"--keystore", "."}, 2, `open keystore "DIR": is a directory, not a file`},
		{"key_of_other_certificate", "", []string{"--keystore", "tls.crt,other.key"}, 2,
			`open keystore "DIR/tls.crt,DIR/other.key": key "1": the key does not match its certificate \(subject "CN=web"\).*`},
		{"no_key_entry", "", []string{"--keystore", "trusted.p12", "--keystore-password-file", "pass"}, 2,
			`open keystore "DIR/trusted.p12": no key entry: .*`},
		{"certificate_without_key", "", []string{"--keystore", "tls.crt"}, 2,
			`open keystore "DIR/tls.crt": no key entry: .*; certificate and key in two files are given as one: --keystore CERT,KEY`},
		{"key_without_certificate", "", []string{"--keystore", "tls.key"}, 2,
			`open keystore "DIR/tls.key": no usable key entry: "1": no certificate; certificate and key .*--keystore CERT,KEY`},
		{"unknown_alias", "", append([]string{"--alias", "nope"}, own...), 2,
			`.*no entry with alias "nope"; there are: "web", "api"`},
		{"unknown_tier", "", []string{"--keymanager", "pkics"}, 2,
			`keymanager \(flag --keymanager\): there is no key manager "pkics"; did you mean "pkix"\? \(there are: .*\)`},
		{"unknown_flag", "", []string{"--keystor", "a"}, 2, `unknown flag: --keystor; did you mean --keystore\? \(tlsd --help lists the flags\)`},
		{"unknown_key", "keystores: []\nlistner: []\n", nil, 2, `configuration file "tlsd.yaml": line 2: listner: unknown key; did you mean "listeners"\?`},
		{"two_unknown_keys", "a: 1\nb: 2\n", nil, 2,
			`configuration file "tlsd.yaml": line 1: a: unknown key.*` + "\n" + `tlsd: configuration file "tlsd.yaml": line 2: b: unknown key.*`},
		{"unknown_value", "listeners: [{client_auth: need, client_ca: ca.pem}]\n", []string{"--demo"}, 2,
			`listeners\[0\].client_auth \(tlsd.yaml:1\): "need" is neither none, optional nor require`},
		{"password_in_file", "keystores: [{path: server.p12, password: S3cr3t-4711}]\n", nil, 2,
			`configuration file "tlsd.yaml": line 1: keystores\[0\].password: unknown key; .*password_file, or set TLSD_KEYSTORE_PASSWORD`},
		{"no_keystore_in_file", "log: {level: info}\n", nil, 2, `no keystore: set keystores in "tlsd.yaml", or give --keystore PATH, or try --demo`},
		{"backend", "", append([]string{"--backend", "localhost:8080"}, own...), 2,
			`.*backend "localhost:8080": .*http://HOST.*`},
		{"trust_store", "", append([]string{"--client-auth", "require", "--client-ca", "tls.key"}, own...), 2,
			`listener "127.0.0.1:8443": read trust store "DIR/tls.key": no trusted certificate.*`},
		{"trust_store_password", "", append([]string{"--client-auth", "require", "--client-ca", "trusted.p12", "--client-ca-password-file", "wrong.pass"}, own...), 2,
			`listener "127.0.0.1:8443": read trust store "DIR/trusted.p12": wrong password, or the file was changed after it was written: check --client-ca-password-file \(client_ca_password_file\)`},
		{"trust_store_without_password", "", append([]string{"--client-auth", "require", "--client-ca", "trusted.p12"}, own...), 2,
			`listener "127.0.0.1:8443": read trust store "DIR/trusted.p12": needs a password: give one with --client-ca-password-file .*`},
		{"trust_store_missing", "", append([]string{"--client-auth", "require", "--client-ca", "nope.pem"}, own...), 2,
			`listener "127.0.0.1:8443": read trust store "DIR/nope.pem": no such file or directory`},
		{"address_in_use", "", append([]string{"--listen", taken.Addr().String()}, own...), 1,
			`listen on "127.0.0.1:\d+": address already in use: end what uses it, or choose another with --listen ADDR`},
		{"address_of_other_machine", "", append([]string{"--listen", "192.0.2.1:8443"}, own...), 1,
			`listen on "192.0.2.1:8443": bind: cannot assign requested address: choose another with --listen ADDR`},
		{"run_dir", "run_dir: nope/nope\n", own, 1, `.*DIR/nope/nope.*run_dir.*`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(f.dir)); err != nil {
				t.Fatal(err)
			}
			args := append([]string{"--log-level", "off"}, tt.args...)
			if tt.file != "" {
				if err := os.WriteFile(filepath.Join(dir, "tlsd.yaml"), []byte(tt.file), 0o600); err != nil {
					t.Fatal(err)
				}
				args = append(args, "--config", "tlsd.yaml")
			}
			got, status := tlsdIn(t, dir, nil, args...)
			want := strings.ReplaceAll(`tlsd: (key manager "pkixcached": )?`+tt.want, "DIR", regexp.QuoteMeta(dir))
			if status != tt.status || !regexp.MustCompile(`^`+want+`\n$`).MatchString(got) {
				t.Errorf("status %d, want %d\ngot  %s\nwant %s", status, tt.status, got, want)
			}
			if strings.Contains(got, "S3cr3t") {
				t.Error("the message shows a password")
			}
		})
	}
}

// A file that may not be read, for a user who is not root.
func TestUnreadableKeystore(t *testing.T) {
	f := newFixtures(t)
	dir, err := os.MkdirTemp("", "tlsd-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(os.Chmod(dir, 0o755), os.CopyFS(dir, os.DirFS(f.dir)), os.Chmod(filepath.Join(dir, "server.p12"), 0)); err != nil {
		t.Fatal(err)
	}
	var user *syscall.Credential
	if os.Geteuid() == 0 {
		user = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	got, status := tlsdIn(t, dir, user, "--keystore", "server.p12", "--log-level", "off")
	want := regexp.MustCompile(`open keystore ".*/server.p12": permission denied`)
	if status != 2 || !want.MatchString(got) {
		t.Errorf("status %d, got %s", status, got)
	}
}

// tlsdIn runs this executable as tlsd in a directory, and returns standard error
// and the exit status. As another user it runs a copy that this one can reach.
func tlsdIn(t *testing.T, dir string, user *syscall.Credential, args ...string) (stderr string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if user != nil {
		copied := filepath.Join(dir, "tlsd")
		raw, err := os.ReadFile(self)
		if err = errors.Join(err, os.WriteFile(copied, raw, 0o755)); err != nil {
			t.Fatal(err)
		}
		self = copied
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Args[0], cmd.Dir = "tlsd", dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: user}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR="}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if out.Len() > 0 {
		t.Errorf("standard output has %q", out.String())
	}
	return errs.String(), cmd.ProcessState.ExitCode()
}
