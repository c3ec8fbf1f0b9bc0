// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/logging"
)

// EndpointOptions say how a key process is reached that no front has started.
type EndpointOptions struct {
	Socket string          // path of the unix socket
	Users  []int           // whose processes are admitted, by number
	Trust  []TrustFile     // what fronts may ask for by Trust, by the same path
	Log    *logging.Logger // fronts may set its levels
}

// TrustFile is a trust store that an endpoint reads for its fronts.
type TrustFile struct {
	Path     string
	Type     string // as keymanager.Source.Type
	Password keymanager.PasswordRef
}

// EndpointServer is this process as a key process that fronts connect to.
type EndpointServer struct {
	log    *zap.Logger
	socket *admission
	server *server
	opened *service
}

// ServeEndpoint makes this process a key process for tier: it drops what it
// doesn't need (core dumps, being debugged by its own user, new privileges, and
// files and network where the tier says so), opens the keystores of spec, and
// listens. Serve answers. ctx bounds the opening. On error the socket is gone.
//
// Generations are numbered from the milliseconds between the machine's start and
// this one, so that they grow across restarts for as long as any front lives.
func ServeEndpoint(ctx context.Context, tier keymanager.Tier, spec Spec, opt EndpointOptions) (_ *EndpointServer, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("key manager %q: %w", tier.Name, err)
		}
	}()
	if len(opt.Users) == 0 {
		return nil, errors.New("no user is admitted: name the front's by --allow-user")
	}
	if i := slices.IndexFunc(opt.Users, standsForMany); i >= 0 {
		return nil, fmt.Errorf("user %d may be any user that has no number in this user namespace: run the front as one that has, and name that by --allow-user", opt.Users[i])
	}
	spec, err = mapPaths(opt.withFiles(spec), func(path string) (string, error) { return lasting(ctx, path) })
	if err != nil {
		return nil, err
	}
	log := opt.Log.Zap()
	confined := newConfinement(true)
	who := describeUsers(opt.Users) // while /etc/passwd can be read
	for _, err := range harden() {
		log.Warn("hardening failed", zap.Error(err))
	}
	socket, err := listenEndpoint(opt.Socket)
	if err != nil {
		return nil, err
	}
	s := &EndpointServer{
		log:    log.Named("plugin"),
		socket: &admission{UnixListener: socket, users: opt.Users, log: log.Named("plugin")},
		server: newEndpointServer(tier, confined, opt),
	}
	confined.restrict(tier, spec, filepath.Dir(opt.Socket))
	env := keymanager.Env{
		Builders: spec.Sources, Settings: spec.Settings, Options: spec.Options,
		FirstGeneration: uptime(),
	}
	if s.opened, err = openService(ctx, tier, withLog(env, tier.Name, log)); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	s.server.opened.Store(s.opened)
	s.log.Info("endpoint ready", zap.String(logging.FieldTier, tier.Name), zap.String("socket", opt.Socket), zap.String("users", who))
	return s, nil
}

// lasting returns path as it is good for fronts, which may be elsewhere, and for as
// long as this process lives: what a descriptor holds can be read again then.
func lasting(ctx context.Context, path string) (string, error) {
	if n, ok := descriptorNumber(path); ok {
		f, err := openDescriptor(ctx, n)
		if err == nil {
			err = f.Close() // n stays open
		}
		if err != nil {
			return "", fmt.Errorf("read %q: %w", path, err)
		}
	}
	return absolute(path)
}

// uptime is the milliseconds since the machine's start. The time of day could be
// set back between two starts: fronts would then take the second one's answers
// for old ones, and go on with what they know of the first.
func uptime() uint64 {
	var since unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &since) // which each Unix has
	return uint64(since.Nano()) / uint64(time.Millisecond)
}

func newEndpointServer(tier keymanager.Tier, confined *confinement, opt EndpointOptions) *server {
	s := &server{tier: tier, name: tier.Name, log: opt.Log, confined: confined, trust: map[string]TrustFile{}, least: opt.Log.Levels()}
	s.configured.Store(true) // by this process's own configuration
	for _, f := range opt.Trust {
		s.trust[f.Path] = f
	}
	return s
}

// withFiles returns spec with the files that Trust will read.
func (o *EndpointOptions) withFiles(spec Spec) Spec {
	spec.Files = slices.Clone(spec.Files)
	for _, f := range o.Trust {
		spec.Files = append(spec.Files, f.Path, f.Password.File)
	}
	return spec
}

// endpointGrace is how long calls under way have when an endpoint ends: as long
// as a front waits for any of them.
const endpointGrace = 5 * time.Second

// maxStreams bounds the calls that one front may have under way, on any one of its
// connections: as many as its gates let through, and some for Watch, Health and
// the like. What is more waits there.
func maxStreams() int { return 2*cap(newGate().slots) + 16 }

// Serve answers fronts until ctx ends. Then calls under way come to their end,
// for some seconds at most, and the socket is removed.
func (s *EndpointServer) Serve(ctx context.Context) error {
	g := grpc.NewServer(grpc.MaxRecvMsgSize(maxSmall), grpc.MaxConcurrentStreams(uint32(maxStreams())))
	pb.RegisterKeyManagerServer(g, s.server)
	ended := make(chan struct{})
	release := context.AfterFunc(ctx, func() {
		defer close(ended)
		s.stop(g)
	})
	err := g.Serve(s.socket)
	if !release() { // it has begun
		<-ended
	}
	s.opened.close()
	return err
}

// stop ends g gracefully. Streams of Watch, which go on for ever, are ended
// first.
func (s *EndpointServer) stop(g *grpc.Server) {
	timer := time.AfterFunc(endpointGrace, g.Stop)
	defer timer.Stop()
	s.opened.feed.setBroken(fmt.Errorf("%w: it is ending", ErrUnavailable))
	g.GracefulStop()
}

// Reload reads the keystores anew. On error the old state stays in use.
func (s *EndpointServer) Reload(ctx context.Context) (generation uint64, changed bool, err error) {
	return s.opened.reload(ctx)
}

// noLess returns levels as an endpoint takes them from a front: of the loggers
// that it has levels for and of the key manager's, each saying at least what least
// has it say. What a front does has to show in a log that isn't its own.
func noLess(levels, least map[string]string) map[string]string {
	taken := map[string]string{}
	for _, name := range append(slices.Sorted(maps.Keys(least)), logging.KeyManager) {
		level, ok := levels[name]
		if !ok {
			continue
		}
		own, ok := least[name]
		if !ok {
			own = least[""]
		}
		asked, err := logging.ParseLevel(level)
		bound, berr := logging.ParseLevel(own)
		if err == nil && berr == nil && asked > bound {
			level = own
		}
		taken[name] = level
	}
	return taken
}
