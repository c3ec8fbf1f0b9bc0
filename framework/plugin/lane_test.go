// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/internal/testca"
)

// laneOf returns a link with one lane and one slot, and the lane's other end.
func laneOf(t *testing.T) (*link, net.Conn) {
	t.Helper()
	ours, theirs, err := openLanes()
	if err != nil {
		t.Fatal(err)
	}
	closeAll(ours[1:])
	closeAll(theirs[1:])
	l := newLink(noGRPC{}, 0)
	l.about = &pb.DescribeResponse{Lanes: true}
	l.signs = &gate{slots: make(chan struct{}, 1)}
	if l.lanes, err = newLanes(ours[:1]); err != nil {
		t.Fatal(err)
	}
	peer, err := net.FileConn(theirs[0])
	if err != nil {
		t.Fatal(err)
	}
	_ = theirs[0].Close()
	t.Cleanup(func() {
		_ = peer.Close()
		l.end(ErrClosed)
		l.lanes.close()
	})
	return l, peer
}

// noGRPC is a key process that can't be reached by gRPC.
type noGRPC struct{}

var errByGRPC = errors.New("asked by gRPC")

func (noGRPC) Invoke(context.Context, string, any, any, ...grpc.CallOption) error {
	return errByGRPC
}

func (noGRPC) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errByGRPC
}

// answer has the peer read one request and send what is given.
func answer(t *testing.T, peer net.Conn, m *pb.SignResponse) {
	t.Helper()
	take(t, peer)
	say(t, peer, m)
}

func take(t *testing.T, peer net.Conn) {
	t.Helper()
	if _, err := peer.Read(make([]byte, maxOnLane)); err != nil {
		t.Fatal(err)
	}
}

func say(t *testing.T, peer net.Conn, m *pb.SignResponse) {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Write(b); err != nil {
		t.Fatal(err)
	}
}

type signed struct {
	resp *pb.SignResponse
	err  error
}

func sign(ctx context.Context, l *link, m *pb.SignRequest) <-chan signed {
	done := make(chan signed, 1)
	go func() {
		resp, err := l.sign(ctx, waitAsLongAs(ctx), m)
		done <- signed{resp, err}
	}()
	return done
}

func TestLaneCarriesAnswersAndErrors(t *testing.T) {
	l, peer := laneOf(t)
	for range 3 {
		done := sign(t.Context(), l, &pb.SignRequest{Message: []byte("m")})
		answer(t, peer, &pb.SignResponse{Signature: []byte("s"), NewestGeneration: 7})
		if got := <-done; got.err != nil || string(got.resp.GetSignature()) != "s" || got.resp.GetNewestGeneration() != 7 {
			t.Fatalf("got %v", got)
		}
		done = sign(t.Context(), l, &pb.SignRequest{KeyId: []byte{1}})
		answer(t, peer, &pb.SignResponse{Code: uint32(codes.FailedPrecondition), Error: "which key"})
		if got := <-done; !errors.Is(got.err, keymanager.ErrUnknownKey) || got.err.Error() != "which key" {
			t.Fatalf("got %v", got.err)
		}
	}
}

// A caller whose time is over goes; its slot stays taken until the key process
// has answered, and the answer is nobody else's.
func TestLateAnswerIsNobodysOnLane(t *testing.T) {
	for name, cancelled := range map[string]bool{"deadline": false, "cancelled": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, peer := laneOf(t)
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			first := sign(short, l, &pb.SignRequest{KeyId: []byte{1}})
			take(t, peer)
			if cancelled {
				cancel()
			}
			if got := <-first; !errors.Is(got.err, short.Err()) {
				t.Fatalf("got %v, want %v", got.err, short.Err())
			}
			brief, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			if got := <-sign(brief, l, &pb.SignRequest{KeyId: []byte{1}}); !errors.Is(got.err, ErrUnavailable) {
				t.Fatalf("a second call got %v while the first is worked on", got.err)
			}
			next := sign(t.Context(), l, &pb.SignRequest{KeyId: []byte{1}})
			say(t, peer, &pb.SignResponse{Signature: []byte("late")})
			answer(t, peer, &pb.SignResponse{Signature: []byte("own")})
			if got := <-next; got.err != nil || string(got.resp.GetSignature()) != "own" {
				t.Fatalf("got %v", got)
			}
		})
	}
}

func TestBrokenLaneIsUnavailable(t *testing.T) {
	l, peer := laneOf(t)
	done := sign(t.Context(), l, &pb.SignRequest{KeyId: []byte{1}})
	_ = peer.Close()
	if got := <-done; !errors.Is(got.err, ErrUnavailable) {
		t.Errorf("closed during the call: %v", got.err)
	}
	if got := <-sign(t.Context(), l, &pb.SignRequest{KeyId: []byte{1}}); !strings.Contains(got.err.Error(), errByGRPC.Error()) {
		t.Errorf("without a lane: %v, want gRPC to be asked", got.err)
	}
}

func TestGarbageOnLaneIsAnError(t *testing.T) {
	l, peer := laneOf(t)
	done := sign(t.Context(), l, &pb.SignRequest{KeyId: []byte{1}})
	if _, err := peer.Read(make([]byte, maxOnLane)); err != nil {
		t.Fatal(err)
	}
	if _, err := peer.Write([]byte{0xff, 1, 2}); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.err == nil || errors.Is(got.err, ErrUnavailable) {
		t.Errorf("got %v, want an error that is no reason to try again", got.err)
	}
}

// An error of any length goes over a lane, which goes on.
func TestLongErrorGoesOverALane(t *testing.T) {
	_, leaf := pairSource(t, testca.NewRoot(t, testca.Spec{Name: "ca"}), "a.example")
	id := keymanager.KeyIDOf(leaf.Cert)
	v, _ := openAs(t, &fixed{})
	defer v.close()
	long := "x" + strings.Repeat("é", maxErrorText) // its bound lies within a letter
	v.keys.put(id, failingKey{keymanager.FromSigner(leaf.Key), errors.New(long)}, 10)
	s := new(server)
	s.opened.Store(v)
	req, err := proto.Marshal(signToProto(id, handshakeRequest()))
	if err != nil {
		t.Fatal(err)
	}
	resp := s.onLane(req)
	if b, err := proto.Marshal(resp); err != nil || len(b) > maxOnLane {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if !strings.HasPrefix(long, resp.GetError()) || len(resp.GetError()) < maxErrorText-1 {
		t.Errorf("error of %d bytes: %.20q…", len(resp.GetError()), resp.GetError())
	}
}

type failingKey struct {
	keymanager.Key
	err error
}

func (k failingKey) Sign(context.Context, *keymanager.SignRequest) ([]byte, error) { return nil, k.err }

// A lane that was in use while the others were closed is closed when it is given
// back.
func TestLaneGivenBackLateIsClosed(t *testing.T) {
	l, peer := laneOf(t)
	on := l.lanes.take()
	l.lanes.close()
	l.lanes.give(on)
	if l.lanes.take() != nil {
		t.Error("it is still there to be taken")
	}
	_ = peer.SetReadDeadline(time.Now().Add(10 * time.Second))
	if n, err := peer.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("its other end read %d bytes, %v; want its end", n, err)
	}
}

// What a lane doesn't carry goes by gRPC.
func TestLongMessageGoesByGRPC(t *testing.T) {
	l, _ := laneOf(t)
	long := &pb.SignRequest{Message: make([]byte, maxOnLane)}
	if got := <-sign(t.Context(), l, long); !strings.Contains(got.err.Error(), errByGRPC.Error()) {
		t.Errorf("got %v", got.err)
	}
	l.about = &pb.DescribeResponse{}
	if got := <-sign(t.Context(), l, &pb.SignRequest{KeyId: []byte{1}}); !strings.Contains(got.err.Error(), errByGRPC.Error()) {
		t.Errorf("not announced: %v", got.err)
	}
}

// A real key process signs on its lanes and on nothing else, and more calls than
// there are lanes all come back.
func TestKeyProcessSignsOnLanes(t *testing.T) {
	h := startHost(t, "")
	cred := mustSelect(t, h.Host)
	h.slot.Load().link.api = pb.NewKeyManagerClient(noGRPC{})
	done := make(chan error)
	const calls = 200
	for range calls {
		go func() {
			_, err := cred.Key.Sign(t.Context(), handshakeRequest())
			done <- err
		}()
	}
	for range calls {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	bad := handshakeRequest()
	bad.Message = append(bad.Message, 'x')
	if _, err := cred.Key.Sign(t.Context(), bad); !errors.Is(err, keymanager.ErrNotHandshake) {
		t.Errorf("a byte too many: %v", err)
	}
}

// What a tier starts doesn't get the lanes, by which it could sign.
func TestLanesAreNotHandedOn(t *testing.T) {
	h := startHost(t, "descriptors")
	cred := mustSelect(t, h.Host)
	h.mustSign(t, cred.Key)
	eventually(t, "what the tier's child has", func() bool { return h.logged("descriptors: ") })
	if h.logged("socket:") {
		t.Error("the tier's child has a socket")
	}
}

func TestInheritLanesRefusesWhatIsNone(t *testing.T) {
	for _, v := range []string{"a:1", "4:-1", "4:x", "3:1", "0:1", "4:100000", "999:1"} {
		t.Setenv(lanesName, v)
		if conns, err := inheritLanes(); err == nil {
			t.Errorf("%q gave %d lanes", v, len(conns))
		}
	}
	_ = os.Unsetenv(lanesName)
	if conns, err := inheritLanes(); err != nil || len(conns) != 0 {
		t.Errorf("without any: %d, %v", len(conns), err)
	}
}
