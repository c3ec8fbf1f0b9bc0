// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// settle is how long a watching command gets to attach itself to processes.
const settle = 500 * time.Millisecond

// Watched is a turn that a command watched.
type Watched struct {
	Name       string
	Front      int // process id
	Handshakes int
}

// FileName is the candidate's name as it may be part of a file's.
func (w Watched) FileName() string { return fileName(w.Name) }

func fileName(name string) string { return strings.NewReplacer("/", "-", " ", "-").Replace(name) }

// Watch gives each candidate one more turn, while a shell command runs: perf or
// strace, say. It finds the candidate in NAME, its process ids in FRONT and
// OTHERS (with commas), and is interrupted when the turn has ended. What it
// prints goes to out.
func (f *Field) Watch(ctx context.Context, w Way, turn time.Duration, command string, out io.Writer) (all []Watched, err error) {
	for _, r := range f.fit(w) {
		watcher := watcher(r, command, out)
		if err := watcher.Start(); err != nil {
			return nil, fmt.Errorf("watch %s: %w", r.Name, err)
		}
		time.Sleep(settle)
		result, err := f.load(f.job(r, w, turn), func() error { return ctx.Err() })
		_ = watcher.Process.Signal(os.Interrupt) // fails where it has ended
		_ = watcher.Wait()                       // says itself what is wrong
		if err != nil {
			return nil, err
		}
		all = append(all, Watched{Name: r.Name, Front: r.PIDs()[0], Handshakes: result.Handshakes})
	}
	return all, nil
}

// watcher is the command for one candidate. The shell becomes the command, so that
// this one is interrupted.
func watcher(r running, command string, out io.Writer) *exec.Cmd {
	var others []string
	for _, pid := range r.PIDs()[1:] {
		others = append(others, strconv.Itoa(pid))
	}
	cmd := exec.Command("sh", "-c", "exec "+command)
	cmd.Env = append(os.Environ(), "NAME="+fileName(r.Name),
		"FRONT="+strconv.Itoa(r.PIDs()[0]), "OTHERS="+strings.Join(others, ","))
	cmd.Stdout, cmd.Stderr = out, out
	cmd.WaitDelay = time.Second // for what it has started and left behind
	return cmd
}
