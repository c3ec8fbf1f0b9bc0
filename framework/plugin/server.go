// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/logging"
)

// server speaks the contract over gRPC for a service, which Configure opens.
type server struct {
	pb.UnimplementedKeyManagerServer

	tier keymanager.Tier
	name string // the tier's in the log: what the front calls it
	log  *logging.Logger

	lanes []net.Conn // inherited

	// beforeOpen is called before code of the tier runs, with what it will be
	// given; nil: nothing is.
	beforeOpen func(Spec)
	confined   *confinement // what Health reports; nil: nothing
	// trust has all that Trust reads, by path, with types and passwords that are
	// not the front's to say; nil: Trust reads what it is asked for.
	trust map[string]TrustFile
	// least has the levels of an endpoint's own configuration, which no front may
	// have it say less than; nil: the front may do as it likes.
	least map[string]string

	configured atomic.Bool             // Configure has been called
	opened     atomic.Pointer[service] // nil until it has succeeded
}

var _ pb.KeyManagerServer = (*server)(nil)

// service returns what answers, or an error that says that Configure comes
// first.
func (s *server) service() (*service, error) {
	if v := s.opened.Load(); v != nil {
		return v, nil
	}
	return nil, fmt.Errorf("%w: it is not configured", ErrUnavailable)
}

// Describe may be asked at any time, and says what is known by then.
func (s *server) Describe(_ context.Context, req *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	if !slices.Contains(req.GetContractVersions(), ContractVersion) {
		return nil, toStatus(fmt.Errorf("describe: the front speaks contract versions %v, this key manager %d", req.GetContractVersions(), ContractVersion))
	}
	return s.describe(s.opened.Load()), nil
}

// describe says what this key manager is. What the tier can do beyond the SDK's
// part is known when it is open; before that, v is nil.
func (s *server) describe(v *service) *pb.DescribeResponse {
	d := &pb.DescribeResponse{
		Name:            s.tier.Name,
		Version:         version(),
		ContractVersion: ContractVersion,
		Watches:         true,
		Trusts:          true,
		Lanes:           len(s.lanes) > 0,
	}
	if v != nil {
		_, d.Lists = v.km.(keymanager.Lister)
		_, d.Reloads = v.km.(keymanager.Reloader)
		_, d.Explains = v.km.(keymanager.Explainer)
	}
	return d
}

// Configure opens the tier. It is accepted once, whatever comes of it: other
// keystores or settings mean another process.
func (s *server) Configure(ctx context.Context, req *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	if !s.configured.CompareAndSwap(false, true) {
		return nil, toStatus(fmt.Errorf("configure: %w: it is configured already", ErrNotAllowed))
	}
	if err := s.log.SetLevels(req.GetLogLevels()); err != nil {
		return nil, toStatus(fmt.Errorf("configure: %w", err))
	}
	env := envFromProto(req)
	if s.beforeOpen != nil {
		s.beforeOpen(Spec{Sources: env.Builders, Files: req.GetFiles()})
	}
	v, err := openService(ctx, s.tier, withLog(env, s.name, s.log.Zap()))
	if err != nil {
		return nil, toStatus(err)
	}
	s.opened.Store(v)
	for _, conn := range s.lanes {
		go s.serveLane(conn)
	}
	return &pb.ConfigureResponse{Generation: v.feed.newest(), Description: s.describe(v)}, nil
}

func (s *server) Select(ctx context.Context, req *pb.SelectRequest) (*pb.SelectResponse, error) {
	v, err := s.service()
	if err != nil {
		return nil, toStatus(err)
	}
	ctx, cancel := within(ctx, req.GetTimeoutMillis())
	defer cancel()
	h := helloFromProto(req)
	if req.GetExplain() {
		return s.explain(ctx, v, h)
	}
	c, err := v.Select(ctx, h)
	if err != nil {
		return nil, toStatus(err)
	}
	return credentialToProto(c, v.feed.newest()), nil
}

func (s *server) Sign(ctx context.Context, req *pb.SignRequest) (*pb.SignResponse, error) {
	v, err := s.service()
	if err != nil {
		return nil, toStatus(err)
	}
	ctx, cancel := within(ctx, req.GetTimeoutMillis())
	defer cancel()
	what, id := signFromProto(req)
	sig, err := v.sign(ctx, keyRef{
		id: id, builder: int(req.GetBuilder()), alias: req.GetAlias(), generation: req.GetGeneration(),
	}, what)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.SignResponse{Signature: sig, NewestGeneration: v.feed.newest()}, nil
}

func (s *server) Watch(_ *pb.WatchRequest, stream grpc.ServerStreamingServer[pb.Change]) error {
	v, err := s.service()
	if err != nil {
		return toStatus(err)
	}
	return toStatus(v.feed.follow(stream.Context(), func(c keymanager.Change) error {
		return stream.Send(changeToProto(c))
	}))
}

func (s *server) List(ctx context.Context, _ *pb.ListRequest) (*pb.ListResponse, error) {
	v, err := s.service()
	if err != nil {
		return nil, toStatus(err)
	}
	entries, generation, err := v.list(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	resp := &pb.ListResponse{Generation: generation}
	for _, e := range entries {
		m, err := entryToProto(e)
		if err != nil {
			return nil, toStatus(err)
		}
		resp.Entries = append(resp.Entries, m)
	}
	return resp, nil
}

func (s *server) Trust(ctx context.Context, req *pb.TrustRequest) (*pb.TrustResponse, error) {
	v, err := s.service()
	if err != nil {
		return nil, toStatus(err)
	}
	f := TrustFile{Path: req.GetPath(), Type: req.GetType(), Password: passwordFromProto(req.GetPassword())}
	if s.trust != nil {
		var ok bool
		if f, ok = s.trust[f.Path]; !ok {
			return nil, toStatus(fmt.Errorf("%w: it is none of this endpoint's trust stores, which --client-ca of tlsd keymanager serve names", ErrNotAllowed))
		}
	}
	ders, warnings, err := v.trust(ctx, f.Path, f.Type, f.Password)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.TrustResponse{Certificates: ders, Warnings: warnings}, nil
}

func (s *server) Reload(ctx context.Context, _ *pb.ReloadRequest) (*pb.ReloadResponse, error) {
	v, err := s.service()
	if err != nil {
		return nil, toStatus(err)
	}
	generation, changed, err := v.reload(ctx)
	if err != nil {
		return nil, toStatus(err)
	}
	return &pb.ReloadResponse{Generation: generation, Changed: changed}, nil
}

func (s *server) SetLogLevel(_ context.Context, req *pb.SetLogLevelRequest) (*pb.SetLogLevelResponse, error) {
	levels := req.GetLevels()
	if s.least != nil {
		levels = noLess(levels, s.least)
	}
	if err := s.log.SetLevels(levels); err != nil {
		return nil, toStatus(err)
	}
	return &pb.SetLogLevelResponse{}, nil
}

// Health answers if the process does, before Configure too.
func (s *server) Health(context.Context, *pb.HealthRequest) (*pb.HealthResponse, error) {
	resp := &pb.HealthResponse{}
	if s.confined != nil {
		resp.Isolation = s.confined.report()
	}
	if v := s.opened.Load(); v != nil {
		resp.Generation = v.feed.newest()
	}
	return resp, nil
}

// servedPlugin is the server as go-plugin takes it.
type servedPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server
}

func (p *servedPlugin) GRPCServer(_ *goplugin.GRPCBroker, g *grpc.Server) error {
	pb.RegisterKeyManagerServer(g, p.server)
	return nil
}

func (*servedPlugin) GRPCClient(context.Context, *goplugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("this is the key process's side")
}
