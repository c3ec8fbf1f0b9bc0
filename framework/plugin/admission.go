// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/logging"
)

// peer is the process at the other end of a unix socket.
type peer struct {
	uid int
	pid int // 0: in another namespace
}

// admission is a listener that gives only connections of some users, and closes
// others before a byte of them is read.
type admission struct {
	*net.UnixListener
	users []int
	log   *zap.Logger

	mu   sync.Mutex // guards what follows
	last time.Time  // that a refusal was logged
	kept int        // refusals since that were not
}

// Accept waits for the next connection of one of the users.
func (a *admission) Accept() (net.Conn, error) {
	for {
		conn, err := a.AcceptUnix()
		if err != nil {
			return nil, err
		}
		p, err := peerOf(conn)
		if err == nil && slices.Contains(a.users, p.uid) {
			return conn, nil
		}
		_ = conn.Close()
		a.refused(p, err)
	}
}

// refused writes down who was refused, once a second at most.
func (a *admission) refused(p peer, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.last) < time.Second {
		a.kept++
		return
	}
	fields := []zap.Field{zap.Int("uid", p.uid), zap.Int("pid", p.pid),
		zap.String(logging.FieldReason, "not the user of a front: name it by --allow-user, if it is one"), zap.Int("others", a.kept)}
	if err != nil {
		fields = append(fields, zap.String(logging.FieldError, err.Error()))
	}
	a.log.Warn("connection refused", fields...)
	a.last, a.kept = time.Now(), 0
}

// describeUsers lists users for people.
func describeUsers(uids []int) string {
	var names []string
	for _, uid := range uids {
		names = append(names, describeUser(uid, userName(uid)))
	}
	return strings.Join(names, ", ")
}
