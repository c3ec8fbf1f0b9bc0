// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
)

// serveTest serves the test tier over gRPC, not configured yet.
func serveTest(t *testing.T) (pb.KeyManagerClient, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	log, err := logging.New(logging.Config{Output: zapSync{&out}})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{tier: testTier(), name: "nickname", log: log}
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	pb.RegisterKeyManagerServer(g, s)
	served := make(chan error)
	go func() { served <- g.Serve(listener) }()
	conn, err := grpc.NewClient("unix:"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		g.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if v := s.opened.Load(); v != nil {
			v.close()
		}
	})
	return pb.NewKeyManagerClient(conn), &out
}

type zapSync struct{ *bytes.Buffer }

func (zapSync) Sync() error { return nil }

// configured serves the test tier for the given builders.
func configured(t *testing.T, set testSettings, levels map[string]string, sources ...keymanager.Source) (pb.KeyManagerClient, *bytes.Buffer) {
	t.Helper()
	api, out := serveTest(t)
	settings, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	spec := Spec{Sources: sources, Settings: settings, LogLevels: levels}
	resp, err := api.Configure(t.Context(), configureToProto(spec, 100))
	if err != nil {
		t.Fatal(err)
	}
	if resp.GetGeneration() != 100 {
		t.Errorf("generation is %d, want the first that was given", resp.GetGeneration())
	}
	return api, out
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("code is %v (%v), want %v", got, err, want)
	}
}

func TestNothingIsAnsweredBeforeConfigure(t *testing.T) {
	api, _ := serveTest(t)
	_, err := api.Select(t.Context(), helloToProto(serverHello("")))
	wantCode(t, err, codes.Unavailable)
	_, err = api.Sign(t.Context(), signToProto(keymanager.KeyID{}, handshakeRequest()))
	wantCode(t, err, codes.Unavailable)
	_, err = api.List(t.Context(), &pb.ListRequest{})
	wantCode(t, err, codes.Unavailable)
	_, err = api.Reload(t.Context(), &pb.ReloadRequest{})
	wantCode(t, err, codes.Unavailable)
	_, err = api.Trust(t.Context(), &pb.TrustRequest{Path: "/etc/hosts"})
	wantCode(t, err, codes.Unavailable)
	stream, err := api.Watch(t.Context(), &pb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	wantCode(t, err, codes.Unavailable)
	if _, err := api.Health(t.Context(), &pb.HealthRequest{}); err != nil {
		t.Errorf("health: %v", err)
	}
}

func TestContractVersionIsAgreed(t *testing.T) {
	api, _ := serveTest(t)
	d, err := api.Describe(t.Context(), &pb.DescribeRequest{ContractVersions: []uint32{1, 2, 99}})
	if err != nil {
		t.Fatal(err)
	}
	if d.GetName() != "test" || d.GetContractVersion() != 1 || d.GetVersion() == "" {
		t.Errorf("described as %v", d)
	}
	_, err = api.Describe(t.Context(), &pb.DescribeRequest{ContractVersions: []uint32{2, 3}})
	if err == nil || !strings.Contains(err.Error(), "the front speaks contract versions [2 3], this key manager 1") {
		t.Errorf("error is %v", err)
	}
}

func TestConfigureIsAcceptedOnce(t *testing.T) {
	src, _ := pairSource(t, testca.NewRoot(t, testca.Spec{Name: "ca"}), "a.example")
	api, _ := configured(t, testSettings{}, nil, src)
	_, err := api.Configure(t.Context(), configureToProto(Spec{Sources: []keymanager.Source{src}}, 1))
	wantCode(t, err, codes.PermissionDenied)
	if _, err := api.Select(t.Context(), helloToProto(serverHello(""))); err != nil {
		t.Errorf("the first configuration is gone: %v", err)
	}
	d, err := api.Describe(t.Context(), &pb.DescribeRequest{ContractVersions: []uint32{1}})
	if err != nil || !d.GetLists() || !d.GetReloads() || !d.GetWatches() || !d.GetTrusts() {
		t.Errorf("described as %v (%v)", d, err)
	}
}

func TestFailedConfigureIsFinalToo(t *testing.T) {
	api, _ := serveTest(t)
	missing := keymanager.Source{Paths: []string{"/nowhere/cert.pem", "/nowhere/key.pem"}}
	_, err := api.Configure(t.Context(), configureToProto(Spec{Sources: []keymanager.Source{missing}}, 1))
	if err == nil || !strings.Contains(err.Error(), "/nowhere/cert.pem") {
		t.Errorf("error is %v", err)
	}
	_, err = api.Configure(t.Context(), configureToProto(Spec{}, 1))
	wantCode(t, err, codes.PermissionDenied)
}

// A front that is taken over can have handshakes signed and nothing else.
func TestSignRefusesWhatIsNoHandshake(t *testing.T) {
	src, leaf := pairSource(t, testca.NewRoot(t, testca.Spec{Name: "ca"}), "a.example")
	api, out := configured(t, testSettings{}, nil, src)
	id := keymanager.KeyIDOf(leaf.Cert)

	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "evil.example"}, DNSNames: []string{"evil.example"},
	}, leaf.Key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificateRequest(csr)
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256([]byte("document"))
	wide := sha512.Sum384([]byte("document"))
	server, client := certificateVerify("server"), certificateVerify("client")
	tests := map[string][]byte{
		"empty":               nil,
		"csr":                 parsed.RawTBSCertificateRequest,
		"jwt":                 []byte("eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJyb290In0"),
		"digest":              digest[:],
		"digest-384":          wide[:],
		"client-role":         client,
		"a-byte-too-many":     append(bytes.Clone(server), 0),
		"a-byte-too-few":      server[:len(server)-1],
		"a-space-too-few":     server[1:],
		"context-in-capitals": bytes.ToUpper(server),
	}
	for name, msg := range tests {
		t.Run(name, func(t *testing.T) {
			for purpose := range keymanager.ClientTLS12 + 2 {
				if purpose == keymanager.ClientTLS13 && name == "client-role" {
					continue // as what it is, it is a handshake
				}
				req := handshakeRequest()
				req.Message, req.Purpose = msg, purpose
				_, err := api.Sign(t.Context(), signToProto(id, req))
				wantCode(t, err, codes.InvalidArgument)
				if !errors.Is(fromStatus(err), keymanager.ErrNotHandshake) {
					t.Errorf("purpose %v: error is %v", purpose, err)
				}
			}
		})
	}
	if n := strings.Count(out.String(), `"msg":"sign failed"`); n != len(tests)*6-1 {
		t.Errorf("%d refusals in the log, want %d", n, len(tests)*6-1)
	}
	if bytes.Contains(out.Bytes(), []byte("eyJ")) || bytes.Contains(out.Bytes(), []byte("evil")) {
		t.Error("a message is in the log")
	}
}

// The refusal comes before the key is looked for.
func TestSignRefusesUnknownKey(t *testing.T) {
	src, _ := pairSource(t, testca.NewRoot(t, testca.Spec{Name: "ca"}), "a.example")
	api, _ := configured(t, testSettings{}, nil, src)
	_, err := api.Sign(t.Context(), signToProto(keymanager.KeyID{1}, handshakeRequest()))
	wantCode(t, err, codes.FailedPrecondition)
	if !errors.Is(fromStatus(err), keymanager.ErrUnknownKey) {
		t.Errorf("error is %v", err)
	}
	short := signToProto(keymanager.KeyID{}, handshakeRequest())
	short.KeyId = []byte("short")
	_, err = api.Sign(t.Context(), short)
	wantCode(t, err, codes.FailedPrecondition)
	bad := handshakeRequest()
	bad.Message = nil
	_, err = api.Sign(t.Context(), signToProto(keymanager.KeyID{1}, bad))
	wantCode(t, err, codes.InvalidArgument)
}

func TestKeySignsWithoutSelect(t *testing.T) {
	src, leaf := pairSource(t, testca.NewRoot(t, testca.Spec{Name: "ca"}), "a.example")
	api, _ := configured(t, testSettings{}, nil, src)
	resp, err := api.Sign(t.Context(), signToProto(keymanager.KeyIDOf(leaf.Cert), handshakeRequest()))
	if err != nil {
		t.Fatal(err)
	}
	verifyHandshake(t, leaf, resp.GetSignature())
	if resp.GetNewestGeneration() != 100 {
		t.Errorf("newest generation is %d", resp.GetNewestGeneration())
	}
}

// What List doesn't show is known once it was selected.
func TestSelectedKeySigns(t *testing.T) {
	src, leaf := pairSource(t, testca.NewRoot(t, testca.Spec{Name: "ca"}), "a.example")
	api, _ := configured(t, testSettings{Hide: true}, nil, src)
	id := keymanager.KeyIDOf(leaf.Cert)
	_, err := api.Sign(t.Context(), signToProto(id, handshakeRequest()))
	wantCode(t, err, codes.FailedPrecondition)
	selected, err := api.Select(t.Context(), helloToProto(serverHello("a.example")))
	if err != nil {
		t.Fatal(err)
	}
	c, got, err := credentialFromProto(selected, newLeafCache().parse)
	if err != nil || got != id || c.Generation != 100 || selected.GetNewestGeneration() != 100 {
		t.Errorf("selected %v, generation %d of %d (%v)", got, c.Generation, selected.GetNewestGeneration(), err)
	}
	resp, err := api.Sign(t.Context(), signToProto(id, handshakeRequest()))
	if err != nil {
		t.Fatal(err)
	}
	verifyHandshake(t, leaf, resp.GetSignature())
}

func TestKeySelectedBeforeReloadSigns(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	src, old := pairSource(t, ca, "a.example")
	api, _ := configured(t, testSettings{}, nil, src)
	stream, err := api.Watch(t.Context(), &pb.WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	first, err := stream.Recv()
	if err != nil || first.GetGeneration() != 100 {
		t.Fatalf("watch begins with %v (%v)", first, err)
	}
	renewed := ca.Issue(t, testca.Spec{Name: "a.example", DNS: []string{"a.example"}})
	testca.WritePEM(t, src.Paths[0], src.Paths[1], renewed)
	resp, err := api.Reload(t.Context(), &pb.ReloadRequest{})
	if err != nil || resp.GetGeneration() != 101 || !resp.GetChanged() {
		t.Fatalf("reload: %v (%v)", resp, err)
	}
	next, err := stream.Recv()
	if err != nil || next.GetGeneration() != 101 || next.GetCause() != "reload" {
		t.Errorf("watch goes on with %v (%v)", next, err)
	}
	for _, leaf := range []*testca.Cert{old, renewed} {
		signed, err := api.Sign(t.Context(), signToProto(keymanager.KeyIDOf(leaf.Cert), handshakeRequest()))
		if err != nil {
			t.Fatal(err)
		}
		verifyHandshake(t, leaf, signed.GetSignature())
	}
}

func TestFailedReloadKeepsOldState(t *testing.T) {
	src, leaf := pairSource(t, testca.NewRoot(t, testca.Spec{Name: "ca"}), "a.example")
	api, _ := configured(t, testSettings{}, nil, src)
	if err := os.WriteFile(src.Paths[0], []byte("half a"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := api.Reload(t.Context(), &pb.ReloadRequest{})
	wantCode(t, err, codes.Unknown)
	selected, err := api.Select(t.Context(), helloToProto(serverHello("")))
	if err != nil || selected.GetGeneration() != 100 || !bytes.Equal(selected.GetChain()[0], leaf.DER) {
		t.Errorf("after the failure: generation %d (%v)", selected.GetGeneration(), err)
	}
}

func TestListOverTheWire(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	a, leafA := pairSource(t, ca, "a.example")
	b, leafB := pairSource(t, ca, "b.example")
	api, _ := configured(t, testSettings{}, nil, a, b)
	resp, err := api.List(t.Context(), &pb.ListRequest{})
	if err != nil || resp.GetGeneration() != 100 {
		t.Fatalf("list of generation %d (%v)", resp.GetGeneration(), err)
	}
	var got []keymanager.KeyID
	for _, m := range resp.GetEntries() {
		e, _, id, err := entryFromProto(m, newLeafCache().parse)
		if err != nil || !e.Usable {
			t.Errorf("entry %v: %v", e, err)
		}
		got = append(got, id)
	}
	if diff := cmp.Diff([]keymanager.KeyID{keymanager.KeyIDOf(leafA.Cert), keymanager.KeyIDOf(leafB.Cert)}, got); diff != "" {
		t.Error(diff)
	}
}

func TestLevelsAreSetOverTheWire(t *testing.T) {
	src, leaf := pairSource(t, testca.NewRoot(t, testca.Spec{Name: "ca"}), "a.example")
	api, out := configured(t, testSettings{}, map[string]string{"keymanager": "debug"}, src)
	if !strings.Contains(out.String(), `"logger":"keymanager","msg":"open at debug","tier":"nickname"`) {
		t.Errorf("Configure's levels came too late: %s", out)
	}
	set := func(level string) {
		t.Helper()
		if _, err := api.SetLogLevel(t.Context(), &pb.SetLogLevelRequest{Levels: map[string]string{"keymanager": level}}); err != nil {
			t.Fatal(err)
		}
	}
	for level, want := range map[string]int{"info": 0, "debug": 1} {
		set(level)
		out.Reset()
		if _, err := api.Sign(t.Context(), signToProto(keymanager.KeyIDOf(leaf.Cert), handshakeRequest())); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(out.String(), `"msg":"signed"`); got != want {
			t.Errorf("at %s: %d lines, want %d", level, got, want)
		}
	}
	_, err := api.SetLogLevel(t.Context(), &pb.SetLogLevelRequest{Levels: map[string]string{"": "loud"}})
	if err == nil || !strings.Contains(err.Error(), "known are debug") {
		t.Errorf("error is %v", err)
	}
}

func TestTierThatPanicsGoesOnServing(t *testing.T) {
	src, _ := pairSource(t, testca.NewRoot(t, testca.Spec{Name: "ca"}), "a.example")
	api, _ := configured(t, testSettings{Panic: "select"}, nil, src)
	for range 2 {
		_, err := api.Select(t.Context(), helloToProto(serverHello("")))
		wantCode(t, err, codes.Unknown)
	}
	if _, err := api.List(t.Context(), &pb.ListRequest{}); err != nil {
		t.Error(err)
	}
}
