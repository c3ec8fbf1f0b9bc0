// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/tlsd/tlsd/framework/plugin/proto"
)

// maxOnLane bounds a message on a lane, in bytes. A longer one, such as the
// handshake of a TLS 1.2 client may be, goes by gRPC.
const maxOnLane = 16 << 10

// lanes are pairs of sockets that a key process inherits, for nothing but
// signatures: a request is one write and one read on each side. By gRPC, with its
// goroutines, frames and AutoMTLS, an ECDSA signature costs twice as much.
// Nobody but the two processes has the descriptors, so that nobody is to be
// authenticated.
//
// A lane carries one request at a time. It takes a slot of the same gate as a
// call by gRPC, and where there are more slots than lanes the rest goes by gRPC.
type lanes struct {
	mu     sync.Mutex // guards what follows
	free   []*lane    // the last one was used last: its memory is near, here and there
	closed bool
}

// lane is the front's end of one pair.
type lane struct {
	conn net.Conn
	buf  [maxOnLane]byte
}

// newLanes takes files over, our ends of the pairs.
func newLanes(files []*os.File) (*lanes, error) {
	ls := new(lanes)
	for i, f := range files {
		conn, err := net.FileConn(f)
		if err != nil {
			ls.close()
			closeAll(files[i:])
			return nil, fmt.Errorf("lane: %w", err)
		}
		_ = f.Close()
		ls.free = append(ls.free, &lane{conn: conn})
	}
	return ls, nil
}

// openLanes gives the child lanes, and returns its ends, which are to be closed
// when it is started.
func (c *child) openLanes() ([]*os.File, error) {
	ours, theirs, err := openLanes()
	if err != nil {
		return nil, err
	}
	if c.lanes, err = newLanes(ours); err != nil {
		closeAll(theirs)
		return nil, err
	}
	if len(theirs) > 0 {
		c.cmd.Env = append(c.cmd.Env, fmt.Sprintf("%s=%d:%d", lanesName, 3+len(c.cmd.ExtraFiles), len(theirs)))
		c.cmd.ExtraFiles = append(c.cmd.ExtraFiles, theirs...)
	}
	return theirs, nil
}

// close closes the lanes that are free. Each of the others is closed by whoever
// uses it, who notices that the key process is gone, or gives it back.
func (ls *lanes) close() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.closed = true
	for _, l := range ls.free {
		_ = l.conn.Close()
	}
	ls.free = nil
}

// take returns a lane that is free, which give gives back, or nil.
func (ls *lanes) take() *lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	last := len(ls.free) - 1
	if last < 0 {
		return nil
	}
	l := ls.free[last]
	ls.free = ls.free[:last]
	return l
}

func (ls *lanes) give(l *lane) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.closed { // while it was in use
		_ = l.conn.Close()
		return
	}
	ls.free = append(ls.free, l)
}

// signOnLane has the key process sign over a free lane; used says whether there
// was one. It returns when ctx ends, but lane and slot of the gate are given
// back only when the key process has answered.
func (l *link) signOnLane(ctx context.Context, waiting *wait, m *pb.SignRequest) (resp *pb.SignResponse, used bool, err error) {
	if err := l.signs.enter(waiting, l.ctx.Done()); err != nil {
		return nil, true, err
	}
	on := l.lanes.take()
	if on == nil {
		l.signs.leave()
		return nil, false, nil
	}
	n, err := on.ask(ctx, m)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			n, err := on.conn.Read(on.buf[:])
			_, _ = l.answered(on, n, err)
		}()
		countLate(ctx, l.signs, ended)
		return nil, true, ctx.Err()
	}
	resp, err = l.answered(on, n, err)
	return resp, true, err
}

// ask sends m and reads the answer into the buffer. Where ctx ends first it
// fails with os.ErrDeadlineExceeded, and the answer is still to come.
func (l *lane) ask(ctx context.Context, m *pb.SignRequest) (int, error) {
	b, err := proto.MarshalOptions{}.MarshalAppend(l.buf[:0], m)
	if err != nil {
		return 0, err
	}
	if _, err := l.conn.Write(b); err != nil {
		return 0, err
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		_ = l.conn.SetReadDeadline(time.Unix(1, 0))
	})
	n, err := l.conn.Read(l.buf[:])
	if !stop() {
		<-ended
		_ = l.conn.SetReadDeadline(time.Time{})
	}
	return n, err
}

// answered takes n bytes for the answer on a lane and gives lane and slot back.
func (l *link) answered(on *lane, n int, err error) (*pb.SignResponse, error) {
	defer l.signs.leave()
	if err != nil || n == 0 { // to read nothing is the end of a SOCK_SEQPACKET
		_ = on.conn.Close()
		return nil, fmt.Errorf("%w: it ended during the call", ErrUnavailable)
	}
	resp := new(pb.SignResponse)
	err = proto.Unmarshal(on.buf[:n], resp)
	l.lanes.give(on)
	if err != nil {
		return nil, fmt.Errorf("sign: the key process's answer can't be read: %w", err)
	}
	if code := codes.Code(resp.GetCode()); code != codes.OK {
		return nil, status.Error(code, resp.GetError())
	}
	return resp, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
