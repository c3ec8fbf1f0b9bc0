// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/logging"
)

// rewatchPause is how long Watch leaves a process alone that ended the stream.
const rewatchPause = time.Second

// Watch calls changed with the present generation, again when its names become
// known, and with each newer one, one call at a time, across restarts of the key
// process, until ctx ends. It returns ErrClosed if the host is closed first.
func (h *Host) Watch(ctx context.Context, changed func(keymanager.Change)) error {
	var last keymanager.Change
	pass := func(c keymanager.Change) {
		h.newest.raise(c.Generation, c.Cause)
		if isNews(c, last) {
			last = c
			changed(c)
		}
	}
	for {
		p, err := h.ready(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		err = h.follow(ctx, p, pass)
		select {
		case <-ctx.Done():
		case <-p.child.exited:
		case <-time.After(rewatchPause):
			h.log.Warn("watch of the key process ended", zap.NamedError(logging.FieldError, err))
		}
	}
}

// follow passes p's changes on until its stream ends.
func (h *Host) follow(ctx context.Context, p *process, pass func(keymanager.Change)) error {
	if !p.about.GetWatches() {
		return h.followReplies(ctx, p, pass)
	}
	stream, err := p.api.Watch(ctx, &pb.WatchRequest{}, large())
	for err == nil {
		var m *pb.Change
		if m, err = stream.Recv(); err == nil {
			pass(changeFromProto(m))
		}
	}
	return fromStatus(err)
}

// followReplies tells of the generations that replies name, for a process that
// tells of none itself: each reload that changed something made one.
func (h *Host) followReplies(ctx context.Context, p *process, pass func(keymanager.Change)) error {
	for {
		number, cause, raised := h.newest.read()
		pass(keymanager.Change{Generation: number, Cause: cause})
		select {
		case <-raised:
		case <-p.child.exited:
			return errors.New("key process ended")
		case <-ctx.Done():
			return nil
		}
	}
}
