// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
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
// process, until ctx ends. It returns ErrClosed if the key manager is closed
// first. Watched says whether it hears of changes at the moment.
func (c *caller) Watch(ctx context.Context, changed func(keymanager.Change)) error {
	var last keymanager.Change
	pass := func(change keymanager.Change) {
		if change.Generation > maxBelieved {
			return
		}
		c.newest.raise(change.Generation, change.Cause)
		if isNews(change, last) {
			last = change
			changed(change)
		}
	}
	for {
		l, err := c.find(ctx, true)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		err = c.follow(ctx, l, pass)
		select {
		case <-ctx.Done():
		case <-l.ctx.Done():
		case <-time.After(rewatchPause):
			c.log.Warn("watch of the key process ended", zap.NamedError(logging.FieldError, err))
		}
	}
}

// follow passes l's changes on until its stream ends.
func (c *caller) follow(ctx context.Context, l *link, pass func(keymanager.Change)) error {
	if !l.about.GetWatches() {
		return c.followReplies(ctx, l, pass)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	stream, err := l.api.Watch(ctx, &pb.WatchRequest{}, large())
	if err != nil {
		return fromStatus(err)
	}
	m, err := stream.Recv()
	if err != nil {
		return fromStatus(err)
	}
	pass(changeFromProto(m)) // before watched: what is kept may be out of date
	l.watches.Add(1)
	defer l.watches.Add(-1)
	for {
		if m, err = stream.Recv(); err != nil {
			return fromStatus(err)
		}
		pass(changeFromProto(m))
	}
}

// followReplies tells of the generations that replies name, for a process that
// tells of none itself: each reload that changed something made one.
func (c *caller) followReplies(ctx context.Context, l *link, pass func(keymanager.Change)) error {
	for {
		number, cause, raised := c.newest.read()
		pass(keymanager.Change{Generation: number, Cause: cause})
		select {
		case <-raised:
		case <-l.ctx.Done():
			return context.Cause(l.ctx)
		case <-ctx.Done():
			return nil
		}
	}
}
