// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// nowhere leaves no directory for a socket.
func nowhere(s *hostSetup) {
	s.opt.RunDir, s.opt.bases = "", runBases{dirs: []string{"/nowhere", "/proc"}, anyway: true}
}

// Without a directory for a socket all goes on over the life line.
func TestHostNeedsNoDirectory(t *testing.T) {
	t.Parallel()
	h := startHost(t, "environment", nowhere)
	cred := mustSelect(t, h.Host)
	h.mustSign(t, cred.Key)
	if err := h.SetLogLevels(t.Context(), map[string]string{"keymanager": "debug"}); err != nil {
		t.Error(err)
	}
	pid := h.Describe().PID
	_ = killProcess(pid)
	h.mustSign(t, cred.Key)
	if s := h.Status(); s.PID == pid || s.Restarts != 1 {
		t.Errorf("status is %+v, was process %d", s, pid)
	}
	if !h.logged(`key process gets no socket with a name map[reason:no usable run directory: stat /nowhere`) {
		t.Error("the log doesn't say what was tried")
	}
	eventually(t, "debug lines", func() bool { return h.logged("keymanager open at debug") })
	if h.logged(inheritMarker) || h.logged(cookieName) {
		t.Error("the environment of the tier has what was meant for the process alone")
	}
}

func TestInheritedConnectionThatHangsIsReplaced(t *testing.T) {
	t.Parallel()
	h := startHost(t, "", short, nowhere)
	cred := mustSelect(t, h.Host)
	stopProcess(t, h.Describe().PID)
	h.mustSign(t, cred.Key)
}

// A directory that is asked for is used or refused.
func TestRunDirThatIsConfiguredIsNotPassedOver(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), Command{Tier: "rowdy"}, Spec{Settings: json.RawMessage(`{}`)}, HostOptions{RunDir: "/nowhere/at/all"})
	if !errors.Is(err, ErrRunDir) || !strings.Contains(err.Error(), `/nowhere/at/all`) {
		t.Errorf("start: %v", err)
	}
}

// A plugin that knows only go-plugin fails with the directories that were tried.
func TestPluginThatCannotInheritIsToldOfTheDirectories(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "foreign")
	testca.WriteProgram(t, path, []byte("#!/bin/sh\necho This is a plugin. >&2\nexit 1\n"), 0o700)
	var s hostSetup
	nowhere(&s)
	_, err := Start(t.Context(), Command{Tier: "rowdy", Path: path}, Spec{}, s.opt)
	for _, want := range []string{"This is a plugin.", "no usable run directory", `/nowhere`, `/proc`, "run_dir"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("start says %v, not %q", err, want)
		}
	}
}

// A connection that gRPC was never asked to use ends with its link all the same.
func TestConnectionThatIsNeverUsedIsClosed(t *testing.T) {
	ours, theirs := net.Pipe()
	l, err := linkOver(ours, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.end(ErrClosed)
	_ = theirs.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("its other end read %v, want its end", err)
	}
}
