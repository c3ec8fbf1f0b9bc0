// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/logging"
)

// Reload has the keystores and the trust stores read anew, all or nothing: on
// error the old state stays in use. Connections and sessions go on, but where
// client certificates are asked for and others are trusted now: sessions begun
// before are not resumed, and HTTP connections end with their next request. Where
// the key manager is one that can't reload, the trust stores alone are read.
func (s *Server) Reload(ctx context.Context) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	now := s.now.Load()
	p, err := s.prepare(ctx, newState(now.cfg, now.keys))
	if err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	if err := s.reloadKeys(ctx, now.keys); err != nil {
		p.discard()
		return fmt.Errorf("reload: %w", err)
	}
	return s.take(p)
}

func (s *Server) reloadKeys(ctx context.Context, keys *Keys) error {
	err := keys.Reload(ctx)
	if errors.Is(err, plugin.ErrUnsupported) {
		s.log.Warn("this key manager can't reload: its keys stay as they are", zap.String(logging.FieldTier, keys.tier))
		return nil
	}
	return err
}
