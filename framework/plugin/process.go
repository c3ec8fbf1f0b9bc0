// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/tlsd/tlsd/internal/lockdir"
	"github.com/tlsd/tlsd/logging"
)

const (
	startTimeout = 10 * time.Second // until a process answers Describe
	stopGrace    = 3 * time.Second  // for a process to end by itself
	killGrace    = 3 * time.Second  // for the kernel to end it
	maxSmall     = 1 << 20          // bytes of an answer to Select or Sign
	maxLarge     = 64 << 20         // bytes of any other answer
)

// launch is what each start of one key process has in common.
type launch struct {
	cmd   Command
	exe   *executable
	files *descriptors
	bases runBases
	patience
	log *zap.Logger
}

// process is one running key process, configured or not, and the link to it.
type process struct {
	*link  // nil until it is connected
	child  *child
	dir    *lockdir.Dir // for its socket; nil: its connection is inherited
	hangUp func()       // ends the connection, which asks the process to end; may block
	log    *zap.Logger
}

// start starts a key process and asks it what it is. On error nothing is left.
func (l *launch) start(ctx context.Context) (*process, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := l.exe.verify(); err != nil {
		return nil, err
	}
	dir, noDir := makeRunDir(l.bases)
	if noDir != nil && !l.bases.anyway {
		return nil, noDir
	}
	if noDir != nil {
		l.log.Named("plugin").Info("key process gets no socket with a name", zap.String(logging.FieldTier, l.cmd.Tier), zap.NamedError("reason", noDir))
	}
	p := &process{child: newChild(ctx, l.exe, l.command(dir), newOutput(l.log, l.cmd.Tier)), dir: dir, hangUp: func() {}, log: l.log}
	p.child.inherits = dir == nil
	if err := l.connect(ctx, p); err != nil {
		if ctx.Err() != nil {
			err = p.child.late()
		}
		p.abandon()
		if noDir != nil {
			err = fmt.Errorf("%w; this was tried since there is %w", err, noDir)
		}
		return nil, err
	}
	return p, nil
}

// command returns the command line, environment and descriptors of a start with
// the run directory dir, or none. What go-plugin wants in the environment comes
// later.
func (l *launch) command(dir *lockdir.Dir) *exec.Cmd {
	cmd := &exec.Cmd{
		Path:       l.exe.path,
		Args:       append([]string{"tlsd-keymanager-" + l.cmd.Tier}, l.cmd.Args...),
		Env:        childEnv(os.Getenv, l.cmd.Tier, dir),
		ExtraFiles: l.files.extraFiles(make([]*os.File, firstFreeFD(l.exe)-3)...),
	}
	if l.exe.file != nil {
		cmd.Path = pinnedPath(executableFD, l.exe.path)
		cmd.ExtraFiles[executableFD-3] = l.exe.file
	}
	return cmd
}

// executableFD is the descriptor of an external executable in the child, which
// an interpreter opens where the executable is a script.
const executableFD = lifeLineFD + 1

// firstFreeFD is the lowest descriptor that is free for files of the Spec.
func firstFreeFD(exe *executable) int {
	if exe.file == nil {
		return lifeLineFD + 1
	}
	return executableFD + 1
}

// childEnv is all that a key process gets of our environment: secrets must not
// be there, and what is not needed may hold some.
func childEnv(getenv func(string) string, tier string, dir *lockdir.Dir) []string {
	env := []string{childMarker + "=" + tier}
	if dir != nil {
		env = append(env, "TMPDIR="+dir.Path)
	} else {
		env = append(env, inheritEnv()...)
	}
	// GODEBUG, since FIPS mode must hold in both processes, and what the operator
	// says of memory and CPUs.
	for _, name := range []string{"PATH", "LANG", "TZ", "HOME", "GODEBUG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS"} {
		if v := getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func (p *process) clientConfig() *goplugin.ClientConfig {
	return &goplugin.ClientConfig{
		HandshakeConfig:  handshake(),
		VersionedPlugins: map[int]goplugin.PluginSet{ContractVersion: {pluginName: connOnly{}}},
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     startTimeout,
		Logger:           pluginLogger(p.log),
		SyncStdout:       p.child.output.stream("stdout"),
		SyncStderr:       p.child.output.stream("stderr"),
		UnixSocketConfig: &goplugin.UnixSocketConfig{TempDir: p.dir.Path},
		GRPCDialOptions:  []grpc.DialOption{callOptions(), grpc.WithIdleTimeout(0)}, // its socket may be gone by then
		RunnerFunc:       p.runner,
	}
}

// callOptions bound what is sent and received.
func callOptions() grpc.DialOption {
	return grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxSmall), grpc.MaxCallSendMsgSize(maxLarge))
}

// runner gives the child the rest of its environment. Its socket goes straight
// into our run directory: a directory made by go-plugin depends on the umask.
func (p *process) runner(_ hclog.Logger, spec *exec.Cmd, _ string) (runner.Runner, error) {
	p.child.cmd.Env = slices.Concat(p.child.cmd.Env, spec.Env, []string{goplugin.EnvUnixSocketDir + "=" + p.dir.Path})
	return p.child, nil
}

// connect starts the process and asks it what it is.
func (l *launch) connect(ctx context.Context, p *process) error {
	conn, err := p.dial(ctx)
	if err != nil {
		return err
	}
	p.link = newLink(conn, p.child.number())
	p.link.socket, p.link.lanes = p.child.socket(), p.child.lanes
	context.AfterFunc(p.link.ctx, p.child.kill)
	go p.attend(l.patience)
	go func() {
		<-p.child.exited
		p.link.end(fmt.Errorf("it ended with %s", p.child.status()))
	}()
	return p.introduce(ctx, p.child.subject())
}

// dial starts the process and connects to it. The process is killed if ctx ends
// first.
func (p *process) dial(ctx context.Context) (*grpc.ClientConn, error) {
	release := context.AfterFunc(ctx, p.child.kill)
	defer release()
	if p.dir == nil {
		return p.dialInherited(ctx)
	}
	return p.dialPlugin()
}

// dialPlugin has go-plugin start the process and connect to it. go-plugin knows
// no deadline once the process has printed its handshake.
func (p *process) dialPlugin() (*grpc.ClientConn, error) {
	plugin := goplugin.NewClient(p.clientConfig())
	p.hangUp = plugin.Kill
	client, err := plugin.Client()
	if err != nil {
		return nil, err
	}
	raw, err := client.Dispense(pluginName)
	if err != nil {
		return nil, err
	}
	return raw.(*grpc.ClientConn), nil
}

// status says how the process ended, or why it is given up.
func (p *process) status(why error) string {
	select {
	case <-p.child.exited:
		return p.child.status()
	default:
		return why.Error()
	}
}

// stop ends the process, by asking it first, and removes what it had. It takes
// stopGrace and killGrace at most; go-plugin's Kill alone has no bound.
func (p *process) stop() {
	killed := make(chan struct{})
	go func() {
		p.hangUp()
		close(killed)
	}()
	select {
	case <-killed:
	case <-time.After(stopGrace):
	}
	p.child.kill()
	if p.child.number() != 0 {
		select {
		case <-p.child.done:
		case <-time.After(killGrace):
			p.log.Error("key process can't be killed", zap.Int("pid", p.child.number()))
		}
	}
	select {
	case <-killed:
	case <-time.After(killGrace):
	}
	if p.dir == nil {
		return
	}
	if err := p.dir.Remove(); err != nil {
		p.log.Warn("run directory not removed", zap.Error(err))
	}
}

// abandon ends a process that never got ready, and so has nothing to finish.
func (p *process) abandon() {
	p.child.kill()
	p.stop()
}

// connOnly is the plugin as go-plugin wants it: no more than a connection.
type connOnly struct {
	goplugin.NetRPCUnsupportedPlugin
}

var _ goplugin.GRPCPlugin = connOnly{}

// GRPCClient returns the connection.
func (connOnly) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

// GRPCServer is the child's side and has no place here.
func (connOnly) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error { return errors.ErrUnsupported }
