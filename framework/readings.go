// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// causeReload is the cause of changes that somebody asked for, which whoever asked
// tells of.
const causeReload = "reload"

// readings tells of the keystores that a key process has read by itself. It is not
// for concurrent use.
type readings struct {
	told func(what string, err error) // an Observer's; nil: nobody listens
	last *keymanager.Change
}

// take takes in what Watch tells of. The first change is of the start, which is no
// reading anew.
func (r *readings) take(c keymanager.Change) {
	last := r.last
	r.last = &c
	if r.told == nil || c.Cause == causeReload {
		return
	}
	switch {
	case c.Failed != "" && (last == nil || c.Failed != last.Failed):
		r.told("keystores", errors.New(c.Failed))
	case c.Failed != "" || last == nil:
	case c.Generation != last.Generation || last.Failed != "":
		r.told("keystores", nil)
	}
}
