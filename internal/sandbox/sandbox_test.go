// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// restrictedMarker makes this program one that restricts itself by the rules in
// it and then does, line by line, what its standard input asks for.
const restrictedMarker = "SANDBOX_TEST_RULES"

func TestMain(m *testing.M) {
	if rules, ok := os.LookupEnv(restrictedMarker); ok {
		os.Exit(restricted(rules))
	}
	os.Exit(m.Run())
}

func restricted(rules string) int {
	var r Rules
	if err := json.Unmarshal([]byte(rules), &r); err != nil {
		fmt.Println(err)
		return 1
	}
	s := Restrict(r)
	fmt.Println(strings.ReplaceAll(s.InForce+s.Missing, " ", "_"))
	var verb, path string
	for {
		if n, err := fmt.Scanln(&verb, &path); n != 2 {
			fmt.Fprintln(os.Stderr, err)
			return 0
		}
		fmt.Println(attempt(verb, path) == nil)
	}
}

func attempt(verb, path string) error {
	switch verb {
	case "read":
		_, err := os.ReadFile(path)
		return err
	case "list":
		_, err := os.ReadDir(path)
		return err
	case "write":
		return os.WriteFile(path, nil, 0o600)
	case "remove":
		return os.Remove(path)
	case "run":
		return exec.Command(path).Run()
	case "connect":
		c, err := net.Dial("tcp", path)
		if err == nil {
			c.Close()
		}
		return err
	case "spread": // a file read on many threads at once
		failed := make(chan error)
		for range 20 {
			go func() { _, err := os.ReadFile(path); failed <- err }()
		}
		for range 20 {
			if err := <-failed; err == nil {
				return nil
			}
		}
		return os.ErrPermission
	}
	return os.ErrInvalid
}

// box is a process that has restricted itself.
type box struct {
	t   *testing.T
	in  *os.File
	out *os.File
}

// needLandlock skips where the kernel has none: nothing can be in force there.
func needLandlock(t *testing.T) {
	t.Helper()
	if ABI() == 0 {
		t.Skip("NOT CHECKED: this kernel has no Landlock")
	}
}

func startBox(t *testing.T, r Rules, files ...*os.File) *box {
	t.Helper()
	needLandlock(t)
	rules, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), restrictedMarker+"="+string(rules))
	cmd.Stdin, cmd.Stdout, cmd.ExtraFiles = theirIn, theirOut, files
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
		out.Close()
	})
	b := &box{t, in, out}
	if got, want := b.line(), fmt.Sprintf("abi_%d", ABI()); got != want {
		t.Fatalf("in force: %q, want %q", got, want)
	}
	return b
}

func (b *box) line() string {
	b.t.Helper()
	var line string
	if _, err := fmt.Fscanln(b.out, &line); err != nil && line == "" {
		b.t.Fatal(err)
	}
	return line
}

func (b *box) want(ok bool, verb, path string) {
	b.t.Helper()
	fmt.Fprintln(b.in, verb, path)
	if got := b.line() == "true"; got != ok {
		b.t.Errorf("%s %s: works: %v, want %v", verb, path, got, ok)
	}
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func symlink(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestNothingIsLeftButWhatIsKept(t *testing.T) {
	dir := t.TempDir()
	kept, other := write(t, filepath.Join(dir, "kept", "file"), ""), write(t, filepath.Join(dir, "other", "file"), "")
	single := write(t, filepath.Join(dir, "single"), "")
	run := filepath.Join(dir, "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	b := startBox(t, Rules{Read: []string{filepath.Dir(kept), filepath.Join(dir, "missing")}, Files: []string{single}, Write: []string{run}})

	b.want(true, "read", kept)
	b.want(true, "list", filepath.Dir(kept))
	b.want(true, "read", single)
	b.want(true, "write", filepath.Join(run, "new"))
	b.want(true, "remove", filepath.Join(run, "new"))

	b.want(false, "read", other)
	b.want(false, "list", dir)
	b.want(false, "write", kept)
	b.want(false, "remove", kept)
	b.want(false, "run", "/bin/true")
	b.want(false, "spread", other)
	if ABI() >= 4 {
		b.want(false, "connect", ln.Addr().String())
	}
}

func TestNetworkAndProgramsAreKeptWhereAsked(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	b := startBox(t, Rules{Outside: true, Execute: []string{"/"}, Write: []string{"/dev"}})
	b.want(true, "connect", ln.Addr().String())
	b.want(true, "run", "/bin/true")
	b.want(false, "list", t.TempDir())
}

// A rule on a descriptor's file outlives the file's name.
func TestDescriptorsCanBeOpenedAnew(t *testing.T) {
	f, err := os.Open(write(t, filepath.Join(t.TempDir(), "file"), "x"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	defer r.Close()
	b := startBox(t, Rules{Files: []string{"/proc/self/fd/3", "/proc/self/fd/4", "/proc/self/fd/99"}}, f, r)
	b.want(true, "read", "/proc/self/fd/3")
	b.want(true, "read", "/proc/self/fd/4")
	b.want(false, "read", "/etc/passwd")
}

// What becomes of keystores in the field, with rules that Above gave before.
func TestAboveOutlivesWhatHappensToFiles(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "keys", "server.p12"), "1")

	secret := filepath.Join(dir, "secret") // as Kubernetes mounts it
	write(t, filepath.Join(secret, "..1", "tls.crt"), "1")
	symlink(t, "..1", filepath.Join(secret, "..data"))
	symlink(t, "..data/tls.crt", filepath.Join(secret, "tls.crt"))
	linked := filepath.Join(secret, "tls.crt")

	live := filepath.Join(dir, "live", "site") // as certbot keeps it
	write(t, filepath.Join(dir, "archive", "site", "cert1.pem"), "1")
	if err := os.MkdirAll(live, 0o755); err != nil {
		t.Fatal(err)
	}
	symlink(t, "../../archive/site/cert1.pem", filepath.Join(live, "cert.pem"))
	cert := filepath.Join(live, "cert.pem")

	far := t.TempDir() // by a link to another place altogether
	write(t, filepath.Join(far, "real", "store.jks"), "1")
	symlink(t, filepath.Join(far, "real"), filepath.Join(dir, "there"))
	store := filepath.Join(dir, "there", "store.jks")

	b := startBox(t, Rules{Read: Above(file, linked, cert, store)})
	all := func() {
		t.Helper()
		for _, f := range []string{file, linked, cert, store} {
			b.want(true, "read", f)
		}
	}
	all()
	for n := 2; n <= 4; n++ {
		if err := os.Rename(write(t, file+".new", "2"), file); err != nil {
			t.Fatal(err)
		}
		version := fmt.Sprintf("..%d", n)
		write(t, filepath.Join(secret, version, "tls.crt"), "2")
		symlink(t, version, filepath.Join(secret, "..data"))
		os.RemoveAll(filepath.Join(secret, fmt.Sprintf("..%d", n-1)))
		next := fmt.Sprintf("cert%d.pem", n)
		write(t, filepath.Join(dir, "archive", "site", next), "2")
		symlink(t, "../../archive/site/"+next, cert)
		all()
	}
	for _, d := range []string{filepath.Join(dir, "keys"), filepath.Join(far, "real")} {
		if err := os.RemoveAll(d); err != nil {
			t.Fatal(err)
		}
	}
	b.want(false, "read", file)
	write(t, file, "3")
	write(t, filepath.Join(far, "real", "store.jks"), "3")
	all()
	b.want(false, "list", "/etc")
}

func TestAboveNamesWhatIsThere(t *testing.T) {
	real, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(real, "a", "b", "file"), "")
	for path, want := range map[string]string{
		filepath.Join(real, "a", "b", "file"):                filepath.Join(real, "a"),
		filepath.Join(real, "a", "b", "missing", "file"):     filepath.Join(real, "a", "b"),
		filepath.Join(real, "a", "no", "such", "dir", "f"):   filepath.Join(real, "a"),
		filepath.Join(string(filepath.Separator), "nothing"): string(filepath.Separator),
	} {
		if got := Above(path); !slices.Equal(got, []string{want}) {
			t.Errorf("Above(%q) = %q, want %q", path, got, want)
		}
	}
	t.Chdir(filepath.Join(real, "a", "b"))
	for path, want := range map[string]string{"file": filepath.Join(real, "a"), "../other": real, "../b/file": filepath.Join(real, "a")} {
		if got := Above(path); !slices.Equal(got, []string{want}) {
			t.Errorf("Above(%q) in %s/a/b = %q, want %q", path, real, got, want)
		}
	}
	if got := Above("", ""); len(got) > 0 {
		t.Errorf("Above nothing = %q", got)
	}
}

// A mounted file system can't be made anew below us, so nothing above it need
// be read.
func TestMountsStay(t *testing.T) {
	if !isMount("/proc") {
		t.Skip("NOT CHECKED: /proc is not mounted")
	}
	if got := Above("/proc/version"); !slices.Equal(got, []string{"/proc"}) {
		t.Errorf("Above(/proc/version) = %q", got)
	}
}
