// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/tlsd/tlsd/framework/plugin/proto"
)

// link is the connection to one key process, whoever started that. It works
// until it is broken, and is never mended: another one takes its place.
type link struct {
	api     pb.KeyManagerClient
	about   *pb.DescribeResponse // what the key process is and, once it is configured, can do
	pid     int                  // of the key process; 0: not known
	socket  string               // path that the connection was made to; empty: none
	since   time.Time            // that the key process, or the connection, is there
	ctx     context.Context      // ends with the link; its cause says why
	end     context.CancelCauseFunc
	selects *gate
	signs   *gate
	lanes   *lanes // nil: there are none
	leaves  *leafCache
	watches atomic.Int32 // streams of Watch that have told of a generation
}

// newLink makes a link of a connection. Whoever makes it breaks it, at the
// latest when the key process is gone.
func newLink(conn grpc.ClientConnInterface, pid int) *link {
	ctx, end := context.WithCancelCause(context.Background())
	return &link{
		api: pb.NewKeyManagerClient(conn), pid: pid, since: time.Now(), ctx: ctx, end: end,
		selects: newGate(), signs: newGate(), leaves: newLeafCache(),
	}
}

// clientOver returns a client over conn and over nothing else: what gRPC does to
// connect again fails, since who answers has to be looked at each time. It sends
// nothing before the first call, and takes conn over by that; until then, and on
// error, conn is the caller's.
func clientOver(conn net.Conn) (*grpc.ClientConn, error) {
	var taken atomic.Bool
	return grpc.NewClient("passthrough:///connected",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if taken.Swap(true) {
				return nil, errors.New("the connection ended")
			}
			return conn, nil
		}),
		callOptions(), grpc.WithIdleTimeout(0))
}

// introduce asks the key process what it is, and refuses one that speaks another
// contract. subject is how the error begins.
func (l *link) introduce(ctx context.Context, subject string) error {
	about, err := l.api.Describe(ctx, &pb.DescribeRequest{ContractVersions: []uint32{ContractVersion}})
	if err != nil {
		return fmt.Errorf("%s does not say what it is: %w", subject, l.cause(err))
	}
	if v := about.GetContractVersion(); v != ContractVersion {
		return fmt.Errorf("%s speaks version %d of the contract, this program version %d", subject, v, ContractVersion)
	}
	l.about = about
	return nil
}

// watched reports whether a stream of Watch tells of newer generations.
func (l *link) watched() bool { return l.watches.Load() > 0 }

// gone reports whether the link is broken.
func (l *link) gone() bool { return l.ctx.Err() != nil }

// broken is the error of calls over a link that is broken.
func (l *link) broken() error { return fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(l.ctx)) }

// brokenGrace is how long a failed call waits to learn that the link is broken.
const brokenGrace = 500 * time.Millisecond

// cause says why a call failed: by the end of the link, if that is why.
func (l *link) cause(err error) error {
	err = fromStatus(err)
	if !errors.Is(err, ErrUnavailable) {
		return err
	}
	select {
	case <-l.ctx.Done():
		return l.broken()
	case <-time.After(brokenGrace):
		return err
	}
}
