// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
)

// Explain returns the tier's verdicts, or ErrUnsupported where it has none.
func (s *service) Explain(ctx context.Context, h *keymanager.Hello) (verdicts []keymanager.Verdict, err error) {
	defer s.recovered("explain", &err)
	e, ok := s.km.(keymanager.Explainer)
	if !ok {
		return nil, fmt.Errorf("explain: %w", ErrUnsupported)
	}
	if h.Role != keymanager.RoleServer && h.Role != keymanager.RoleClient {
		return nil, fmt.Errorf("explain for role %q: neither server nor client", h.Role)
	}
	return e.Explain(ctx, h)
}

// explain is Select where verdicts are asked for.
func (s *server) explain(ctx context.Context, v *service, h *keymanager.Hello) (*pb.SelectResponse, error) {
	generation := v.feed.newest()
	verdicts, err := v.Explain(ctx, h)
	if errors.Is(err, keymanager.ErrNoCredential) { // which would say that explain was not understood
		err = fmt.Errorf("explain: the tier returned an error in place of verdicts: %v", err)
	}
	if err != nil {
		return nil, toStatus(err)
	}
	resp := &pb.SelectResponse{Generation: generation, NewestGeneration: v.feed.newest()}
	for _, v := range verdicts {
		resp.Candidates = append(resp.Candidates, verdictToProto(v))
	}
	return resp, nil
}

// Explain returns the verdicts of the tier, or ErrUnsupported where it has none.
func (l *Local) Explain(ctx context.Context, h *keymanager.Hello) ([]keymanager.Verdict, error) {
	if err := l.live(); err != nil {
		return nil, err
	}
	return l.service.Explain(ctx, h)
}

// Explain has the key process judge its entries for hello, or returns
// ErrUnsupported where it can't.
func (c *caller) Explain(ctx context.Context, hello *keymanager.Hello) ([]keymanager.Verdict, error) {
	req := helloToProto(hello)
	req.Alpn, req.Issuers = slices.Clone(req.Alpn), slices.Clone(req.Issuers)
	req.Explain = true
	return call(ctx, c, func(waiting *wait, l *link) ([]keymanager.Verdict, error) {
		resp, err := gated(ctx, waiting, l, l.selects, func(ctx context.Context) (*pb.SelectResponse, error) {
			return l.api.Select(ctx, req, large())
		})
		verdicts, err := verdictsFromProto(resp, err)
		if err == nil {
			c.newest.raise(max(resp.GetNewestGeneration(), resp.GetGeneration()), "explanation")
		}
		return verdicts, err
	})
}

// verdictsFromProto returns what a Select that was to explain answered. A
// credential, or that there is none, is the answer of one that did not notice.
func verdictsFromProto(resp *pb.SelectResponse, err error) ([]keymanager.Verdict, error) {
	if errors.Is(err, keymanager.ErrNoCredential) || len(resp.GetChain()) > 0 {
		return nil, fmt.Errorf("explain: %w", ErrUnsupported)
	}
	if err != nil {
		return nil, err
	}
	verdicts := make([]keymanager.Verdict, 0, len(resp.GetCandidates()))
	for _, m := range resp.GetCandidates() {
		verdicts = append(verdicts, verdictFromProto(m))
	}
	return verdicts, nil
}

func verdictToProto(v keymanager.Verdict) *pb.Candidate {
	return &pb.Candidate{
		Builder: int32(v.Builder),
		Alias:   text(v.Alias),
		Out:     v.Out,
		Class:   text(v.Class),
		Match:   text(v.Match),
		Scheme:  uint32(v.Scheme),
		Rule:    text(v.Rule),
		Reason:  text(v.Reason),
	}
}

func verdictFromProto(m *pb.Candidate) keymanager.Verdict {
	return keymanager.Verdict{
		Builder: int(m.GetBuilder()),
		Alias:   m.GetAlias(),
		Out:     m.GetOut(),
		Class:   clean(m.GetClass(), maxExcerpt),
		Match:   clean(m.GetMatch(), maxExcerpt),
		Scheme:  tls.SignatureScheme(m.GetScheme()),
		Rule:    clean(m.GetRule(), maxExcerpt),
		Reason:  clean(m.GetReason(), maxErrorText),
	}
}
