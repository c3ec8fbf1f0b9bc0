// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestNothingGiven runs tlsd without a single argument and does what it prints.
func TestNothingGiven(t *testing.T) {
	const addr = "127.0.0.1:8443"
	if l, err := net.Listen("tcp", addr); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	} else {
		l.Close()
	}
	testca.Tool(t, "curl")
	d := &daemon{t: t, addr: addr, log: &buffer{}, stdout: &buffer{}, exited: make(chan error, 1), tmp: t.TempDir()}
	d.cmd = exec.Command(bin("tlsd"))
	d.cmd.Env = append(os.Environ(), "TMPDIR="+d.tmp, "XDG_RUNTIME_DIR=", "RUNTIME_DIRECTORY=")
	d.cmd.Stdout, d.cmd.Stderr = d.stdout, d.log
	testca.StartGuarded(t, d.cmd)
	go func() { d.exited <- d.cmd.Wait() }()
	t.Cleanup(d.stop)
	d.awaitListening()
	line := d.awaitPrinted()
	if strings.Count(line, "\n") != 1 || !strings.HasPrefix(line, "curl --cacert ") {
		t.Fatalf("standard output is %q", line)
	}
	out := mustCommand(t, "sh", "-c", line)
	for _, want := range []string{"TLS 1.3", "pkixcached", "Generation"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestDebugKeymanagerExplainsAHandshake switches the logger on at the command
// line.
func TestDebugKeymanagerExplainsAHandshake(t *testing.T) {
	s := newStore(t, testca.Spec{Name: "a.test", DNS: []string{"a.test"}}, testca.Spec{Name: "b.test", DNS: []string{"b.test"}})
	for _, tier := range tiers {
		t.Run(tier, func(t *testing.T) {
			d := start(t, append(s.args(), "--keymanager", tier, "--debug", "keymanager")...)
			served(t, d, "b.test")
			for _, want := range []string{`"msg":"selected"`, `"msg":"candidate rejected"`, `"msg":"signed"`} {
				d.awaitLog(want)
			}
		})
	}
}

// TestFrontIsInFIPSMode offers what is not approved and nothing else.
func TestFrontIsInFIPSMode(t *testing.T) {
	openssl := testca.Tool(t, "openssl")
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	for mode, works := range map[string]bool{"off": true, "on": false} {
		d := startWith(t, options{env: []string{"GODEBUG=fips140=" + mode}, args: s.args()})
		out, err := command(t, openssl, "s_client", "-connect", d.addr, "-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256")
		if (err == nil) != works {
			t.Errorf("fips140=%s: ChaCha20 ended with %v\n%s", mode, err, out)
		}
	}
}

// TestSunX509ServesEveryPeer has one entry for each type, since sunx509 serves
// the first that fits the peer.
func TestSunX509ServesEveryPeer(t *testing.T) {
	openssl, curl := testca.Tool(t, "openssl"), testca.Tool(t, "curl")
	jdks := testca.Keytools(t)
	for _, kt := range keyTypes {
		t.Run(string(kt), func(t *testing.T) {
			s := newStore(t, testca.Spec{Name: nameOf(kt), DNS: []string{nameOf(kt)}, Key: kt})
			d := start(t, append(s.args(), "--keymanager", "sunx509")...)
			host, port, _ := net.SplitHostPort(d.addr)
			mustCommand(t, curl, "-sS", "--fail", "--cacert", s.ca, "--resolve", nameOf(kt)+":"+port+":127.0.0.1", "https://"+nameOf(kt)+":"+port+"/")
			for _, version := range []string{"-tls1_2", "-tls1_3"} {
				mustCommand(t, openssl, "s_client", "-connect", d.addr, "-servername", nameOf(kt), version, "-CAfile", s.ca, "-verify_return_error", "-brief")
			}
			for _, jdk := range jdks {
				answers := runJava(t, jdk, strings.Join([]string{host, port, nameOf(kt), "TLSv1.3"}, " ")+"\n", s.ca)
				if !strings.HasSuffix(answers[0], "200 OK") {
					t.Errorf("%s: %q", jdk.Name(), answers)
				}
			}
		})
	}
}

// TestMakeHelp lists what there is to do.
func TestMakeHelp(t *testing.T) {
	testca.Tool(t, "make")
	cmd := exec.Command("make", "help")
	cmd.Dir = "../.."
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("make test ")) {
		t.Errorf("%v\n%s", err, out)
	}
}
