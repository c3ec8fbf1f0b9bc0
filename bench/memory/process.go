// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/tlsd/tlsd/bench/compare"
	"github.com/tlsd/tlsd/bench/fleet"
)

// Serve is the process that has turns: for each line from in, a number of
// milliseconds, it makes handshakes for that long and writes how many there
// were.
func Serve(in io.Reader, out io.Writer, handshake func() error) error {
	for {
		var turn int64
		switch _, err := fmt.Fscanln(in, &turn); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return fmt.Errorf("serve turns: %w", err)
		}
		n, end := 0, time.Now().Add(time.Duration(turn)*time.Millisecond)
		for ; time.Now().Before(end); n++ {
			if err := handshake(); err != nil {
				return err
			}
		}
		fmt.Fprintln(out, n)
	}
}

// Process has turns in a process of its own: one that does as Serve does with
// its standard streams. Its Sample's CPU is that of the whole process, compilers
// and collectors of garbage too, and its Rate is what one core would do that did
// nothing else.
type Process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr strings.Builder
}

// Start starts cmd. The caller closes the Process.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd}
	cmd.Stderr = &p.stderr
	var err error
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, cmd.Start()
}

// Turn makes handshakes for some time.
func (p *Process) Turn(_ context.Context, turn time.Duration) (compare.Sample, error) {
	before, err := fleet.CPUOf(p.cmd.Process.Pid)
	if err != nil {
		return compare.Sample{}, err
	}
	var n int64
	_, err = fmt.Fprintln(p.in, turn.Milliseconds())
	if err == nil {
		_, err = fmt.Fscanln(p.out, &n)
	}
	if err != nil || n == 0 {
		return compare.Sample{}, fmt.Errorf("%s made %d handshakes: %w: %s", p.cmd.Path, n, err, strings.TrimSpace(p.stderr.String()))
	}
	after, err := fleet.CPUOf(p.cmd.Process.Pid)
	if err != nil {
		return compare.Sample{}, err
	}
	each := (after - before) / time.Duration(n)
	return compare.Sample{CPU: each, Rate: float64(time.Second) / float64(each)}, nil
}

// Warm has turns that don't count until the process has used that much CPU time.
func (p *Process) Warm(ctx context.Context, enough time.Duration) error {
	for {
		if _, err := p.Turn(ctx, 200*time.Millisecond); err != nil {
			return err
		}
		used, err := fleet.CPUOf(p.cmd.Process.Pid)
		if err != nil || used >= enough {
			return err
		}
	}
}

// Close ends the process.
func (p *Process) Close() error {
	p.in.Close()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", p.cmd.Path, err, strings.TrimSpace(p.stderr.String()))
	}
	return nil
}
