// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin/runner"
)

// pipeGrace is how long the output of a child that has ended is still read:
// a grandchild may hold the pipes for ever.
const pipeGrace = 500 * time.Millisecond

// child is one process, in a process group of its own, with nothing on its
// standard input and a life line that ends when we do. It is go-plugin's runner,
// in place of its own one, which waits for the end of the pipes before it
// notices the end of the process, hands down our standard input, and can be
// made to panic by what the process writes.
type child struct {
	exe    *executable
	cmd    *exec.Cmd
	output *output
	ctx    context.Context // bounds the start

	inherits bool // the life line is its connection too

	life   *os.File      // our end of the life line
	lanes  *lanes        // our ends
	first  string        // first line of standard output, with which go-plugin's protocol begins
	exited chan struct{} // closed when the process has ended; state is set then
	done   chan struct{} // closed when nothing of it is left
	state  error         // nil: exit status 0

	mu     sync.Mutex // guards what follows
	pid    int        // 0: not started
	reaped bool       // pid may be another process's by now
}

var _ runner.Runner = (*child)(nil)

// newChild prepares a process; Start starts it.
func newChild(ctx context.Context, exe *executable, cmd *exec.Cmd, out *output) *child {
	cmd.SysProcAttr = childAttr()
	return &child{ctx: ctx, exe: exe, cmd: cmd, output: out, exited: make(chan struct{}), done: make(chan struct{})}
}

// Start starts the process and waits for the first line that it prints, which
// must be go-plugin's handshake. On error nothing is left running.
func (c *child) Start(context.Context) error {
	pipes, err := c.openPipes()
	if err != nil {
		return err
	}
	lanes, err := c.openLanes()
	if err != nil {
		closePipes(pipes)
		return err
	}
	defer closeAll(lanes)
	life, stdout, stderr := pipes[0], pipes[1], pipes[2]
	c.life = life.w
	c.cmd.ExtraFiles[lifeLineFD-3], c.cmd.Stdout, c.cmd.Stderr = life.r, stdout.w, stderr.w
	started := make(chan error)
	go c.run(started)
	if err := <-started; err != nil {
		closePipes(pipes)
		c.lanes.close()
		return c.exe.explain(err)
	}
	for _, theirs := range []*os.File{life.r, stdout.w, stderr.w} {
		_ = theirs.Close()
	}
	lines := make(chan string, 1)
	go c.drain(stdout.r, stderr.r, lines)
	c.first, err = c.handshake(lines)
	if err != nil {
		c.kill()
		<-c.done
	}
	return err
}

type pipe struct{ r, w *os.File }

// openPipes opens the life line, standard output and standard error.
func (c *child) openPipes() ([]pipe, error) {
	open := []func() (pipe, error){openPipe, openPipe, openPipe}
	if c.inherits {
		open[0] = openPair
	}
	var pipes []pipe
	for _, f := range open {
		p, err := f()
		if err != nil {
			closePipes(pipes)
			return nil, err
		}
		pipes = append(pipes, p)
	}
	return pipes, nil
}

func openPipe() (p pipe, err error) {
	p.r, p.w, err = os.Pipe()
	return p, err
}

func closePipes(pipes []pipe) {
	for _, p := range pipes {
		_ = p.r.Close()
		_ = p.w.Close()
	}
}

// run starts the process and reaps it, on one thread that lives as long as the
// process does: the kernel kills the process when that thread ends (PDEATHSIG).
// The thread gives up new privileges, which the process inherits, and so is
// never unlocked for other work.
func (c *child) run(started chan<- error) {
	runtime.LockOSThread()
	noNewPrivilegesForThread()
	err := c.cmd.Start()
	if err == nil {
		c.mu.Lock()
		c.pid = c.cmd.Process.Pid
		c.mu.Unlock()
	}
	started <- err
	if err != nil {
		return
	}
	c.reap(awaitExit)
	close(c.exited)
}

// reap waits for the process to end, and kills what is left of its group. await
// waits for the end and leaves the numbers of process and group taken, or reports
// false where a system has no such wait.
func (c *child) reap(await func(pid int) bool) {
	if await(c.pid) {
		c.kill()
		c.noteReaped()
		c.state = c.cmd.Wait()
		return
	}
	c.state = c.cmd.Wait()
	c.noteReaped()
	_ = syscall.Kill(-c.pid, syscall.SIGKILL) // nobody else's, unless all numbers have been used meanwhile
}

func (c *child) noteReaped() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reaped = true
}

// drain reads what the process writes, as long as it writes. The first line of
// standard output goes to lines, everything else is logged.
func (c *child) drain(stdout, stderr *os.File, lines chan<- string) {
	var reading sync.WaitGroup
	reading.Go(func() { c.drainStdout(stdout, lines) })
	reading.Go(func() { drainTo(c.output.stream("stderr"), stderr) })
	read := make(chan struct{})
	go func() {
		reading.Wait()
		close(read)
	}()

	<-c.exited
	select {
	case <-read:
	case <-time.After(pipeGrace):
	}
	_ = stdout.Close() // ends the reading
	_ = stderr.Close()
	<-read
	_ = c.life.Close()
	c.lanes.close()
	c.output.end()
	close(c.done)
}

func drainTo(w *lineWriter, r io.Reader) {
	_, _ = io.Copy(w, r)
	w.flush()
}

// kill ends the process, wherever it went, and what else is in its group. It does
// nothing before the start and after the end.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pid != 0 && !c.reaped {
		_ = syscall.Kill(-c.pid, syscall.SIGKILL)
		_ = syscall.Kill(c.pid, syscall.SIGKILL) // it may have left its group
	}
}

// number returns the process id, 0 if there never was a process.
func (c *child) number() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pid
}

// status says how the process ended.
func (c *child) status() string {
	if c.state == nil {
		return "exit status 0"
	}
	return c.state.Error()
}

// Wait waits for the end of the process, not of what it left behind.
func (c *child) Wait(context.Context) error {
	<-c.exited
	return c.state
}

// Kill ends the process at once.
func (c *child) Kill(context.Context) error {
	c.kill()
	return nil
}

// Stdout gives go-plugin the line with the handshake and nothing else.
func (c *child) Stdout() io.ReadCloser {
	return io.NopCloser(strings.NewReader(c.first + "\n"))
}

// Stderr gives go-plugin nothing: its parser panics at {"@message":1}.
func (c *child) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name returns the path of the program.
func (c *child) Name() string { return c.exe.path }

// ID returns the process id, in the form that go-plugin wants.
func (c *child) ID() string { return strconv.Itoa(c.number()) }

// Diagnose has nothing to add to what Start says.
func (c *child) Diagnose(context.Context) string { return "" }

// PluginToHost translates nothing: both see the same file system.
func (c *child) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin translates nothing.
func (c *child) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
