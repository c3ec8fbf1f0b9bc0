// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/internal/testca"
)

// overWire returns m as the other side sees it.
func overWire[M proto.Message](t *testing.T, m M) M {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out := m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(b, out); err != nil {
		t.Fatal(err)
	}
	return out.(M)
}

func TestHelloSurvivesTheWire(t *testing.T) {
	h := &keymanager.Hello{
		Role: keymanager.RoleClient, Listener: "127.0.0.1:8443", Alias: "server", ServerName: "a.example",
		Version: tls.VersionTLS13, Auth: keymanager.AuthRSA | keymanager.AuthECDSA,
		Schemes: []tls.SignatureScheme{tls.Ed25519, tls.PSSWithSHA256}, Groups: []tls.CurveID{tls.X25519},
		ALPN: []string{"h2"}, Issuers: [][]byte{{1, 2}}, ChainsElsewhere: true, ConnID: "c1", Peer: "192.0.2.1:7",
	}
	if diff := cmp.Diff(h, helloFromProto(overWire(t, helloToProto(h)))); diff != "" {
		t.Error(diff)
	}
}

func TestHelloOfAStrangerIsMadeValid(t *testing.T) {
	h := &keymanager.Hello{ServerName: "a\xff.example", ALPN: []string{"h2", "\xca\xca", "http/1.1"}}
	got := helloFromProto(overWire(t, helloToProto(h)))
	want := &keymanager.Hello{ServerName: "a\uFFFD.example", ALPN: []string{"h2", "http/1.1"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if h.ALPN[1] != "\xca\xca" {
		t.Error("the caller's slice was changed")
	}
}

// Whatever bytes a configuration or a keystore has for names, no call fails of
// them.
func TestNamesThatAreNotUTF8(t *testing.T) {
	const bad, made = "a\xff", "a\uFFFD"
	hello := helloFromProto(overWire(t, helloToProto(&keymanager.Hello{Listener: bad, Alias: bad, Peer: bad})))
	sign, _ := signFromProto(overWire(t, signToProto(keymanager.KeyID{}, &keymanager.SignRequest{Listener: bad, Peer: bad})))
	options := optionsFromProto(overWire(t, optionsToProto(keymanager.Options{DefaultAlias: bad, Aliases: []string{bad}})))
	change := changeFromProto(overWire(t, changeToProto(keymanager.Change{Cause: bad, Names: []string{"b", bad}, WildcardParents: []string{bad}})))
	m, err := entryToProto(keymanager.Entry{Alias: bad, Reason: bad})
	if err != nil {
		t.Fatal(err)
	}
	entry := overWire(t, m)
	verdict := verdictFromProto(overWire(t, verdictToProto(keymanager.Verdict{Alias: bad, Class: bad, Match: bad, Rule: bad, Reason: bad})))
	got := []string{hello.Listener, hello.Alias, hello.Peer, sign.Listener, sign.Peer, options.DefaultAlias, options.Aliases[0], change.Cause, entry.GetAlias(), entry.GetReason(), verdict.Alias, verdict.Class, verdict.Match, verdict.Rule, verdict.Reason}
	for i, s := range got {
		if s != made {
			t.Errorf("name %d is %q, want %q", i, s, made)
		}
	}
	if len(change.Names) != 1 || len(change.WildcardParents) != 0 {
		t.Errorf("names %q, %q", change.Names, change.WildcardParents)
	}
}

func TestSpecSurvivesTheWire(t *testing.T) {
	secret, empty := keymanager.Secret("s3cret"), keymanager.Secret("")
	none := ""
	spec := Spec{
		Sources: []keymanager.Source{
			{
				Paths: []string{"/a.p12"}, Type: "pkcs12", Store: keymanager.PasswordRef{Value: &secret},
				Key:  keymanager.PasswordRef{Value: &empty},
				Keys: []keymanager.KeyPassword{{Alias: "x", Password: keymanager.PasswordRef{File: "/x.pass"}}},
			},
			{Paths: []string{"/tls.crt", "/tls.key"}},
		},
		Settings: json.RawMessage(`{"Slot":1}`),
		Options: keymanager.Options{
			Constraints: keymanager.Constraints{TLS: &none}, DefaultAlias: "d", Aliases: []string{"d", "e"},
			JDKCompat: true, ExpiryWarning: 21 * 24 * time.Hour, Poll: 1500 * time.Millisecond, Iterations: 7,
		},
	}
	got := envFromProto(overWire(t, configureToProto(spec, 9)))
	want := keymanager.Env{Builders: spec.Sources, Settings: spec.Settings, Options: spec.Options, FirstGeneration: 9}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReuseIsClampedToWhatNanosecondsHold(t *testing.T) {
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	tests := []struct {
		name       string
		in, expect time.Time
	}{
		{"today", year(2025), year(2025)},
		{"long-ago", year(1), time.Unix(-(math.MaxInt64/1_000_000_000 - 1), 0)},
		{"no-expiry", year(9999), time.Unix(math.MaxInt64/1_000_000_000-1, 0)},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			r := keymanager.Reuse{Vary: keymanager.FieldALPN, From: tc.in, Until: tc.in.Add(time.Second)}
			got := reuseFromProto(reuseToProto(r))
			if !got.From.Equal(tc.expect) || got.Vary != r.Vary {
				t.Errorf("got %v, want from %v", got, tc.expect)
			}
		})
	}
}

func TestErrorsKeepTheirMeaningOverTheWire(t *testing.T) {
	tests := []struct {
		name string
		err  error
		code codes.Code
		is   error
	}{
		{"no-credential", fmt.Errorf("select %q: %w", "a", keymanager.ErrNoCredential), codes.NotFound, keymanager.ErrNoCredential},
		{"unknown-key", keymanager.ErrUnknownKey, codes.FailedPrecondition, keymanager.ErrUnknownKey},
		{"refused", keymanager.ErrNotHandshake, codes.InvalidArgument, keymanager.ErrNotHandshake},
		{"busy", ErrBusy, codes.ResourceExhausted, ErrBusy},
		{"unavailable", ErrUnavailable, codes.Unavailable, ErrUnavailable},
		{"not-allowed", ErrNotAllowed, codes.PermissionDenied, ErrNotAllowed},
		{"unsupported", ErrUnsupported, codes.Unimplemented, ErrUnsupported},
		{"deadline", context.DeadlineExceeded, codes.DeadlineExceeded, context.DeadlineExceeded},
		{"failure", errors.New("disk is on fire"), codes.Unknown, nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			wire := toStatus(tc.err)
			if got := status.Code(wire); got != tc.code {
				t.Errorf("code %v, want %v", got, tc.code)
			}
			back := fromStatus(wire)
			if back.Error() != tc.err.Error() {
				t.Errorf("text %q, want %q", back, tc.err)
			}
			if tc.is != nil && !errors.Is(back, tc.is) {
				t.Errorf("%v lost its meaning", back)
			}
		})
	}
}

func TestForeignStatusIsNoAnswerOfTheTier(t *testing.T) {
	kms := fmt.Errorf("ask the key service: %w", status.Error(codes.NotFound, "no such key"))
	if got := status.Code(toStatus(kms)); got != codes.Unknown {
		t.Errorf("code %v, want Unknown", got)
	}
}

func TestCredentialOfAnotherKeyIsRefused(t *testing.T) {
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	a, b := root.Issue(t, testca.Spec{Name: "a"}), root.Issue(t, testca.Spec{Name: "b"})
	idA, idB := keymanager.KeyIDOf(a.Cert), keymanager.KeyIDOf(b.Cert)
	right := &pb.SelectResponse{Alias: "a", Chain: a.Chain(), KeyId: idA[:]}
	if _, id, err := credentialFromProto(right, newLeafCache().parse); err != nil || id != idA {
		t.Errorf("the right one: %v, %v", id, err)
	}
	for name, m := range map[string]*pb.SelectResponse{
		"other-key":        {Alias: "a", Chain: a.Chain(), KeyId: idB[:]},
		"no-key":           {Alias: "a", Chain: a.Chain()},
		"negative-builder": {Alias: "a", Chain: a.Chain(), KeyId: idA[:], Builder: -1},
		"no-chain":         {Alias: "a"},
		"garbage":          {Alias: "a", Chain: [][]byte{{1}}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := credentialFromProto(m, newLeafCache().parse); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestEntryOfNoBuilderIsRefused(t *testing.T) {
	if _, _, _, err := entryFromProto(&pb.Entry{Alias: "a", Builder: -1}, newLeafCache().parse); err == nil {
		t.Error("accepted")
	}
}

func TestCleanShowsWhatDoesNotPrint(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "täglich", "täglich"},
		{"escape", "a\x1b[31mb", `a\x1b[31mb`},
		{"newline", "a\nb", `a\nb`},
		{"not-utf8", "a\xffb", "a\uFFFDb"},
		{"bidi", "a\u202eb", `a\u202eb`},
		{"long", "0123456789abc", "0123456789…"},
		{"cut-in-a-rune", "012345678ä", "012345678…"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := clean(tc.in, 10); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestErrorsKeepTheirLines(t *testing.T) {
	err := fromStatus(toStatus(errors.New("first \x1b[2J\nsecond")))
	if got, want := err.Error(), "first \\x1b[2J\nsecond"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestUnbelievableGenerationIsRefused keeps a key manager that lies from using
// up the numbers of its successors.
func TestUnbelievableGenerationIsRefused(t *testing.T) {
	if _, _, err := credentialFromProto(&pb.SelectResponse{Generation: maxBelieved + 1}, nil); err == nil || !strings.Contains(err.Error(), "generation") {
		t.Errorf("credential: %v", err)
	}
	var n newest
	n.init()
	n.raise(7, "true")
	for _, number := range []uint64{maxBelieved + 1, maxGeneration, maxGeneration + 1, ^uint64(0)} {
		n.raise(number, "lie")
	}
	if got := n.get(); got != 7 {
		t.Errorf("newest is %d", got)
	}
	if n.raise(maxBelieved, "the largest"); n.get() != maxBelieved || n.get()+1 > maxGeneration {
		t.Error("no number is left for a successor")
	}
}
