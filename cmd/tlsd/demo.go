// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/lockdir"
)

// Files of a throw-away keystore's directory.
const (
	demoPrefix   = "tlsd-demo-"
	demoCA       = "ca.pem"
	demoKeystore = "keystore.p12"
	demoPassword = "keystore.pass"
)

// provideKeystore makes the throw-away keystore where eff asks for one. caFile
// is what a client verifies it by; remove takes it away again.
func provideKeystore(ctx context.Context, eff *config.Effective) (caFile string, remove func(), err error) {
	if !eff.Demo {
		return "", func() {}, nil
	}
	d, err := newDemo(ctx, demoNames(eff))
	if err != nil {
		return "", nil, err
	}
	eff.Keystores = []keymanager.Source{{
		Paths: []string{d.file(demoKeystore)},
		Type:  "pkcs12",
		Store: keymanager.PasswordRef{File: d.file(demoPassword)},
	}}
	return d.file(demoCA), d.remove, nil
}

// demo is the directory of a throw-away keystore.
type demo struct{ *lockdir.Dir }

func (d demo) file(name string) string { return filepath.Join(d.Path, name) }

func (d demo) remove() { _ = d.Remove() } // a later start removes what is left

// newDemo has a short-lived child make the keystore, so that this process never
// holds the key or the password: all it knows is where they lie.
func newDemo(ctx context.Context, names []string) (_ demo, err error) {
	d, err := newDemoDir()
	if err != nil {
		return demo{}, &status{exitMachine, fmt.Errorf("make a directory for the throw-away keystore: %w; give --keystore PATH, or set TMPDIR", err)}
	}
	defer func() {
		if err != nil {
			d.remove()
		}
	}()
	child := exec.CommandContext(ctx, "/proc/self/exe", append([]string{"demo-keystore", d.Path}, names...)...)
	if _, err := os.Stat(child.Path); err != nil { // not Linux
		if child.Path, err = os.Executable(); err != nil {
			return demo{}, err
		}
	}
	child.Args[0] = "tlsd" // whatever this process was called by
	child.Env = []string{}
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's SIGINT is for its parent
	if out, err := child.CombinedOutput(); err != nil {
		return demo{}, &status{exitMachine, fmt.Errorf("make a throw-away keystore in %q: %w: %s", d.Path, err, strings.TrimSpace(string(out)))}
	}
	return d, nil
}

// newDemoDir makes the directory in $TMPDIR or /tmp, after removing those that
// a killed tlsd left there.
func newDemoDir() (demo, error) {
	var errs []error
	for _, base := range []string{os.TempDir(), "/tmp"} {
		d, err := lockdir.Make(base, demoPrefix)
		if err == nil {
			return demo{d}, nil
		}
		errs = append(errs, err)
	}
	return demo{}, errors.Join(errs...)
}

// demoNames are the names and addresses that the certificate is for: this
// machine's, and what is listened on, as far as a certificate can hold them.
func demoNames(eff *config.Effective) []string {
	names := []string{"localhost", "127.0.0.1", "::1"}
	for _, l := range eff.Listeners {
		host, _, err := net.SplitHostPort(l.Listen)
		if ip, bad := netip.ParseAddr(host); err == nil && host != "" && (bad != nil || !ip.IsUnspecified()) {
			names = append(names, host)
		}
	}
	if host, err := os.Hostname(); err == nil {
		names = append(names, host)
	}
	return slices.DeleteFunc(names, func(name string) bool { return checkName(name) != nil })
}

// curlLine is a command that works as it stands, in any POSIX shell.
func curlLine(caFile string, addr net.Addr) string {
	caFile = shellWord(caFile)
	if addr.Network() == "unix" {
		return fmt.Sprintf("curl --cacert %s --unix-socket %s https://localhost/", caFile, shellWord(addr.String()))
	}
	where := addr.String()
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		where = fmt.Sprintf("localhost:%d", tcp.Port)
	}
	return fmt.Sprintf("curl --cacert %s %s", caFile, shellWord("https://"+where+"/"))
}

// shellWord quotes a word where a shell would take it for something else.
func shellWord(s string) string {
	if plainWord(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func plainWord(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/:._,@%+=-", r))
	})
}
