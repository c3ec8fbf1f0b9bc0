// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"fmt"
)

// What Ready answers, besides that the key process is down.
var (
	ErrStarting = errors.New("starting: connections are not yet accepted")
	ErrEnding   = errors.New("ending: send connections elsewhere")
)

// Ready returns nil where new connections are served, and otherwise why they
// should go elsewhere: before Run accepts them, from the moment when it was told
// to end, and while the key process is down. It answers from memory.
func (s *Server) Ready() error {
	select {
	case <-s.serves:
	default:
		return ErrStarting
	}
	select {
	case <-s.ends:
		return ErrEnding
	case <-s.ctx.Done():
		return ErrEnding
	default:
	}
	keys := s.Keys()
	status := keys.manager.Status()
	switch {
	case status.Up:
		return nil
	case status.Err == nil:
		return fmt.Errorf("key manager %q is down", keys.tier)
	}
	return fmt.Errorf("key manager %q is down: %w", keys.tier, status.Err)
}
