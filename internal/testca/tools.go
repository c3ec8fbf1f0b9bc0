// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package testca

import (
	"bytes"
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
)

// Tool returns the path of a program that the test cannot do without. Where it
// is missing the test is skipped, or fails if the environment says CI=true.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, name)
	}
	return path
}

func missing(t testing.TB, name string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not installed; make deps installs it", name)
	}
	t.Skipf("%s is not installed", name)
}

// addrs is how many addresses this process has tried.
var addrs atomic.Uint32

// FreeAddr returns an address with a port that nobody listens at, no other call in
// this process returns, and the kernel gives to nobody who asks for any port: it
// stays free until a program that is given it listens there.
func FreeAddr(t interface{ Fatalf(string, ...any) }) string {
	const first, ephemeral, apart = 10000, 32768, 127 // 32768 is Linux's; others' are higher
	for range ephemeral - first {
		port := first + (uint32(os.Getpid())*apart+addrs.Add(1))%(ephemeral-first)
		addr := fmt.Sprint("127.0.0.1:", port)
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatalf("no port is free")
	return ""
}

// Root ends a test that takes what only root may do, where this process is not
// root's: it is skipped, or fails if the environment says CI=true.
func Root(t testing.TB, why string) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("needs root, %s; .ci/run is to be root's", why)
	}
	t.Skipf("needs root, %s", why)
}

// AsNobody runs the test again, as a user who is kept from files, where this one is
// root and isn't. It reports whether it has: then all is done. For top-level tests.
func AsNobody(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() != 0 {
		return false
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("", "nobody")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env, cmd.Dir = append(os.Environ(), "TMPDIR="+dir), dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("\n--- PASS: "+t.Name()+" ")) {
		t.Errorf("as user %d: %v\n%s", nobody, err, out)
	}
	return true
}

// JDK is an installed Java development kit.
type JDK struct {
	Version int // feature release: 17, 25
	Home    string
}

// Keytool returns the path of the JDK's keytool.
func (j JDK) Keytool() string { return filepath.Join(j.Home, "bin", "keytool") }

// Java returns the path of the JDK's launcher, which runs a source file too.
func (j JDK) Java() string { return filepath.Join(j.Home, "bin", "java") }

// Name is a subtest's name.
func (j JDK) Name() string { return "jdk" + strconv.Itoa(j.Version) }

// Keytools returns the JDKs present, in /usr/lib/jvm and on the PATH, one per
// feature release, oldest first. Where there is none the test is skipped, or
// fails if the environment says CI=true.
func Keytools(t testing.TB) []JDK {
	t.Helper()
	paths, _ := filepath.Glob("/usr/lib/jvm/*/bin/keytool")
	if p, err := exec.LookPath("keytool"); err == nil {
		paths = append(paths, p)
	}
	byVersion := map[int]JDK{}
	for _, p := range paths {
		if j, ok := jdkOf(p); ok {
			byVersion[j.Version] = j
		}
	}
	if len(byVersion) == 0 {
		missing(t, "keytool")
	}
	jdks := make([]JDK, 0, len(byVersion))
	for _, j := range byVersion {
		jdks = append(jdks, j)
	}
	slices.SortFunc(jdks, func(a, b JDK) int { return cmp.Compare(a.Version, b.Version) })
	return jdks
}

var javaVersion = regexp.MustCompile(`(?m)^JAVA_VERSION="(\d+)`)

// jdkOf reads the release file of the JDK that a keytool belongs to.
func jdkOf(keytool string) (JDK, bool) {
	real, err := filepath.EvalSymlinks(keytool)
	if err != nil {
		return JDK{}, false
	}
	home := filepath.Dir(filepath.Dir(real))
	release, err := os.ReadFile(filepath.Join(home, "release"))
	if err != nil {
		return JDK{}, false
	}
	m := javaVersion.FindSubmatch(release)
	if m == nil {
		return JDK{}, false
	}
	version, err := strconv.Atoi(string(m[1]))
	return JDK{Version: version, Home: home}, err == nil
}
