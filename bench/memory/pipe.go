// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"io"
	"net"
	"os"
	"time"
)

// pipe returns two ends of a connection that lies in memory. A write never
// waits, as the peers of a handshake never write much more than a flight ahead;
// net.Pipe would have each write wait for its reader.
func pipe() (client, server net.Conn) {
	toServer, toClient := make(chan []byte, flight), make(chan []byte, flight)
	return &end{in: toClient, out: toServer}, &end{in: toServer, out: toClient}
}

// flight is more writes than a handshake makes without an answer. One more
// would wait.
const flight = 64

// end is one end of a pipe. One goroutine reads from it and one writes.
type end struct {
	in   <-chan []byte
	out  chan<- []byte
	rest []byte // received and not read yet
}

func (e *end) Read(b []byte) (int, error) {
	if len(e.rest) == 0 {
		next, ok := <-e.in
		if !ok {
			return 0, io.EOF
		}
		e.rest = next
	}
	n := copy(b, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func (e *end) Write(b []byte) (int, error) {
	e.out <- append([]byte(nil), b...)
	return len(b), nil
}

// Close ends the other end's reading. It is called once.
func (e *end) Close() error {
	close(e.out)
	return nil
}

func (e *end) LocalAddr() net.Addr  { return addr{} }
func (e *end) RemoteAddr() net.Addr { return addr{} }

// Nothing here can hang but by a fault, so that deadlines are not kept.
func (e *end) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (e *end) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (e *end) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

type addr struct{}

func (addr) Network() string { return "memory" }
func (addr) String() string  { return "memory" }
