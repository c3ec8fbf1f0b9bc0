// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/internal/testca"
)

// testBinary is this very program, which is a plugin by its TestMain.
func testBinary(t *testing.T) (path, sum string) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.Sum256(b)
	return path, hex.EncodeToString(h[:])
}

func writeProgram(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatIsNoPluginIsRefusedWithItsReason(t *testing.T) {
	dir := t.TempDir()
	script := func(body string) string { return writeProgram(t, "#!/bin/sh\n"+body+"\n", 0o755) }
	_, sum := testBinary(t)
	tests := []struct {
		name string
		cmd  Command
		want string // regular expression, of what follows the path
	}{
		{"missing", Command{Path: filepath.Join(dir, "missing")}, `: no such file or directory`},
		{"directory", Command{Path: dir}, `: is a directory, not an executable file`},
		{"not-executable", Command{Path: writeProgram(t, "x", 0o644)}, `: is not executable \(mode 0644\); run chmod \+x on it`},
		{"world-writable", Command{Path: writeProgram(t, "x", 0o757)}, `: everybody may write to it \(mode 0757\)`},
		{"world-writable-with-checksum", Command{Path: writeProgram(t, "x", 0o757), SHA256: sum}, `: everybody may write to it \(mode 0757\)`},
		{"directory-of-everybody", Command{Path: exposed(t, 0o777)}, `: everybody may put another in its place: directory ".*open" has mode 0777`},
		{"group-writable", Command{Path: writeProgram(t, "x", 0o775)}, `: its group may write to it \(mode 0775\); run chmod g-w on it`},
		{"wrong-checksum", Command{Path: script("exit 0"), SHA256: sum}, `: wrong SHA-256: expected ` + sum + `, found [0-9a-f]{64}`},
		{"no-checksum-at-all", Command{Path: script("exit 0"), SHA256: "abc"}, `: SHA-256 "abc": want 64 hexadecimal digits`},
		{"wrong-architecture", Command{Path: writeProgram(t, foreignELF(), 0o755)}, `: wrong architecture: built for \w+, this machine runs \w+`},
		{"text", Command{Path: writeProgram(t, "hello", 0o755)}, `: neither a program for this machine nor a script that begins with #!`},
		{"no-interpreter", Command{Path: writeProgram(t, "#!/nowhere/sh\n", 0o755)}, `: the interpreter or dynamic loader that it names is missing`},
		{"prints", Command{Path: script(`printf 'hello \033[2J\nworld\n'; sleep 600`)}, ` is no key manager plugin: Unrecognized remote plugin message: the first line that it printed is "hello .*2J".*plugin.Main`},
		{"prints-much", Command{Path: script(`head -c 100000 /dev/zero | tr '\0' x; sleep 600`)}, ` is no key manager plugin: Unrecognized remote plugin message: the first line that it printed is "x{200}…"`},
		{"complains", Command{Path: script(`echo "unknown flag" >&2; exit 3`)}, ` ended with exit status 3 after it wrote "unknown flag" before it was ready`},
		{"ends", Command{Path: script(`exit 0`)}, ` ended with exit status 0 before it was ready`},
		{"crashes", Command{Path: script(`kill -SEGV $$`)}, ` ended with signal: segmentation fault`},
		{"closes-stdout", Command{Path: script(`exec >&-; sleep 600`)}, ` did not get ready in time.*: context deadline exceeded`},
		{"sleeps", Command{Path: script(`sleep 600`)}, ` did not get ready in time.*plugin.Main.*: context deadline exceeded`},
		{"other-version", Command{Path: script(`echo '1|7|unix|/x|grpc|cert'; sleep 600`)}, ` speaks version "7" of the contract, this program version 1`},
		{"other-protocol", Command{Path: script(`echo '1|1|tcp|127.0.0.1:1|netrpc|cert'; sleep 600`)}, ` offers netrpc over tcp, but only grpc over unix sockets will do`},
		{"no-certificate", Command{Path: script(`echo '1|1|unix|/x|grpc|'; sleep 600`)}, ` offers no certificate for mutual TLS`},
		{"half-a-handshake", Command{Path: script(`printf '1|1|un'`)}, ` is no key manager plugin: Unrecognized remote plugin message: the first line that it printed is "1\|1\|un"`},
		{"other-tier", Command{}, `this executable, run again as key process, ended with exit status 2 after it wrote "no key manager`},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if strings.Contains(tc.want, "in time") {
				ctx, cancel = context.WithTimeout(ctx, time.Second)
			}
			defer cancel()
			run := shortTempDir(t)
			tc.cmd.Tier = "elsewhere"
			_, err := Start(ctx, tc.cmd, Spec{}, HostOptions{RunDir: run})
			if err == nil {
				t.Fatal("accepted")
			}
			want := `^key manager "elsewhere": ` + tc.want
			if tc.cmd.Path != "" {
				want = `^key manager "elsewhere": plugin "` + regexp.QuoteMeta(tc.cmd.Path) + `"` + tc.want
			}
			if !regexp.MustCompile(want).MatchString(err.Error()) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
			if left, _ := os.ReadDir(run); len(left) > 0 {
				t.Errorf("left in the run directory: %v", left)
			}
		})
	}
}

// exposed is a script below a directory of that mode.
func exposed(t *testing.T, mode os.FileMode) string {
	t.Helper()
	program := writeProgram(t, "#!/bin/sh\nexit 0\n", 0o755)
	open := filepath.Join(t.TempDir(), "open")
	path := filepath.Join(open, "inner", "program")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Rename(program, path), os.Chmod(open, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// What others could put in a file's place is no matter where they can't, or
// where it would be noticed.
func TestDirectoriesAboveAPlugin(t *testing.T) {
	if err := checkParents(exposed(t, 0o777|os.ModeSticky)); err != nil {
		t.Errorf("sticky: %v", err)
	}
	path, sum := testBinary(t)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	place := exposed(t, 0o777)
	testca.WriteProgram(t, place, content, 0o755)
	h := startHost(t, "", func(s *hostSetup) { s.cmd.Path, s.cmd.SHA256 = place, sum })
	h.mustSign(t, mustSelect(t, h.Host).Key)
}

// A file that its group may write to can be another while it runs, a script above
// all, and so no checksum makes up for that.
func TestGroupWritablePluginIsRefused(t *testing.T) {
	path, _ := testBinary(t)
	content := "#!/bin/sh\nexec " + path + "\n"
	script := writeProgram(t, content, 0o775)
	sum := sha256.Sum256([]byte(content))
	_, err := Start(t.Context(), Command{Tier: "rowdy", Path: script, SHA256: hex.EncodeToString(sum[:])}, Spec{}, HostOptions{RunDir: shortTempDir(t)})
	if err == nil || !strings.Contains(err.Error(), "its group may write to it (mode 0775); run chmod g-w on it") {
		t.Errorf("got %v", err)
	}
}

// foreignELF is the header of an executable for a machine that this is not.
func foreignELF() string {
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_AARCH64), Version: uint32(elf.EV_CURRENT), Ehsize: 64}
	if runtime.GOARCH == "arm64" {
		h.Machine = uint16(elf.EM_X86_64)
	}
	copy(h.Ident[:], elf.ELFMAG+string([]byte{byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}))
	b, _ := binary.Append(nil, binary.LittleEndian, h)
	return string(b)
}

func TestExternalPluginIsPinnedByItsChecksum(t *testing.T) {
	path, sum := testBinary(t)
	h := startHost(t, "", func(s *hostSetup) { s.cmd.Path, s.cmd.SHA256 = path, strings.ToUpper(sum) })
	h.mustSign(t, mustSelect(t, h.Host).Key)
	if h.logged("without a checksum") {
		t.Error("warned of a missing checksum")
	}
}

func TestExternalPluginWithoutChecksumGivesTheOptionToCopy(t *testing.T) {
	path, sum := testBinary(t)
	h := startHost(t, "", func(s *hostSetup) { s.cmd.Path = path })
	h.mustSign(t, mustSelect(t, h.Host).Key)
	want := fmt.Sprintf("option:--plugin rowdy=%s@sha256:%s", path, sum)
	warnings := h.logs.FilterLevelExact(zap.WarnLevel).FilterMessageSnippet("without a checksum").All()
	if len(warnings) != 1 || !h.logged(want) {
		t.Errorf("%d warnings, want one with %q", len(warnings), want)
	}
}

func TestScriptIsAPlugin(t *testing.T) {
	path, _ := testBinary(t)
	script := writeProgram(t, "#!/bin/sh\nexec "+path+"\n", 0o755)
	h := startHost(t, "", func(s *hostSetup) { s.cmd.Path = script })
	h.mustSign(t, mustSelect(t, h.Host).Key)
}

func TestReplacedFileIsNotWhatRuns(t *testing.T) {
	path, _ := testBinary(t)
	script := writeProgram(t, "#!/bin/sh\nexec "+path+"\n", 0o755)
	h := startHost(t, "", func(s *hostSetup) { s.cmd.Path = script })
	other := writeProgram(t, "#!/bin/sh\nexit 7\n", 0o755)
	if err := os.Rename(other, script); err != nil {
		t.Fatal(err)
	}
	_ = killProcess(h.Describe().PID)
	h.mustSign(t, mustSelect(t, h.Host).Key)
	if h.logged("not started") {
		t.Error("the new file was run")
	}
}

func TestOverwrittenFileIsNotRunAgain(t *testing.T) {
	path, _ := testBinary(t)
	content := "#!/bin/sh\nexec " + path + "\n"
	script := writeProgram(t, content, 0o755)
	sum := sha256.Sum256([]byte(content))
	h := startHost(t, "", func(s *hostSetup) { s.cmd.Path, s.cmd.SHA256 = script, hex.EncodeToString(sum[:]) })
	testca.WriteProgram(t, script, []byte("#!/bin/sh\nexit 7\n"), 0o755)
	_ = killProcess(h.Describe().PID)
	eventually(t, "the refusal", func() bool { return h.logged("wrong SHA-256") })
}

func TestStartInAKeyProcessIsRefused(t *testing.T) {
	t.Setenv(childMarker, "rowdy")
	_, err := Start(t.Context(), Command{Tier: "rowdy"}, Spec{}, HostOptions{})
	if err == nil || !strings.Contains(err.Error(), "call plugin.Main first in main") {
		t.Errorf("start: %v", err)
	}
}

func TestArgumentsReachThePlugin(t *testing.T) {
	path, _ := testBinary(t)
	script := writeProgram(t, "#!/bin/sh\necho \"arguments $*\" >&2\nexec "+path+"\n", 0o755)
	core, logs := observer.New(zap.DebugLevel)
	src := startHost(t, "", func(s *hostSetup) {
		s.cmd.Path, s.cmd.Args = script, []string{"-a", "b c"}
		s.opt.Log = zap.New(core)
		s.spec.Settings = json.RawMessage(`{}`)
	})
	src.logs = logs
	eventually(t, "the arguments", func() bool { return src.logged("arguments -a b c") })
}
