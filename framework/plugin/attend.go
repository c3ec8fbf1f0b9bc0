// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"time"

	pb "github.com/tlsd/tlsd/framework/plugin/proto"
)

// patience says when a key process counts as hanging.
type patience struct {
	every   time.Duration // between looks at it
	within  time.Duration // that it has to answer one
	misses  int           // in a row, after which it is given up
	opening time.Duration // that it may take to open its keystores before that is remarked on
}

// usualPatience notices a process that hangs after about ten seconds. One that is
// only busy answers Health within three, whatever else it does: no gate is before
// it, and no tier behind it.
func usualPatience() patience {
	return patience{every: 2 * time.Second, within: 3 * time.Second, misses: 3, opening: 10 * time.Second}
}

// attend breaks the link when the key process hangs: when it has stopped
// answering, or works on calls without ending any, though their time is over. It
// returns when the link is broken.
func (l *link) attend(p patience) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	for misses := 0; misses < p.misses; {
		select {
		case <-l.ctx.Done():
			return
		case <-tick.C:
		}
		err := l.look(p.within)
		if err == nil {
			misses = 0
		} else if misses++; misses == p.misses {
			l.end(fmt.Errorf("it hangs and was given up: %w", err))
		}
	}
}

// look says what is wrong with the key process.
func (l *link) look(within time.Duration) error {
	stuck := []error{l.selects.stuck("Select"), l.signs.stuck("Sign")}
	ctx, cancel := context.WithTimeout(l.ctx, within)
	defer cancel()
	_, err := l.api.Health(ctx, &pb.HealthRequest{})
	err = fromStatus(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer to Health in %v", within)
	case errors.Is(err, ErrUnavailable):
		return fmt.Errorf("Health: %w", err)
	}
	return errors.Join(stuck...) // any other error is an answer
}
