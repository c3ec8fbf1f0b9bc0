// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/tlsd/tlsd/framework/plugin/proto"
)

// lanesName names the variable that tells a child of its lanes: the first
// descriptor and their number, as in "4:8".
const lanesName = "TLSD_KEYMANAGER_LANES"

// inheritLanes takes over the lanes that this process was given, if any.
func inheritLanes() ([]net.Conn, error) {
	first, number, ok := strings.Cut(os.Getenv(lanesName), ":")
	if !ok {
		return nil, nil
	}
	fd, err := strconv.Atoi(first)
	n, err2 := strconv.Atoi(number)
	if err != nil || err2 != nil || fd <= lifeLineFD || n < 0 || n > maxLanes {
		return nil, fmt.Errorf("%s=%q is none", lanesName, os.Getenv(lanesName))
	}
	var conns []net.Conn
	for i := range n {
		syscall.CloseOnExec(fd + i)
		f := os.NewFile(uintptr(fd+i), "lane")
		conn, err := net.FileConn(f)
		if err != nil {
			return nil, fmt.Errorf("lane at descriptor %d: %w", fd+i, err)
		}
		_ = f.Close()
		conns = append(conns, conn)
	}
	return conns, nil
}

// serveLane answers the requests on a lane until its other end is closed.
func (s *server) serveLane(conn net.Conn) {
	defer conn.Close()
	var buf [maxOnLane]byte
	for {
		n, err := conn.Read(buf[:])
		if err != nil || n == 0 {
			return
		}
		b, err := proto.MarshalOptions{}.MarshalAppend(buf[:0], s.onLane(buf[:n]))
		if err != nil {
			return
		}
		if _, err := conn.Write(b); err != nil {
			return
		}
	}
}

func (s *server) onLane(b []byte) *pb.SignResponse {
	req := new(pb.SignRequest)
	err := proto.Unmarshal(b, req)
	var resp *pb.SignResponse
	if err == nil {
		resp, err = s.Sign(context.Background(), req)
	}
	if err != nil {
		st, _ := status.FromError(err)
		text := st.Message()
		// A letter cut in two would be no text, which the wire doesn't carry.
		text = strings.ToValidUTF8(text[:min(len(text), maxErrorText)], "")
		return &pb.SignResponse{Code: uint32(st.Code()), Error: text}
	}
	return resp
}
