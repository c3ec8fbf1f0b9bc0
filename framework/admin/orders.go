// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// reloadTimeout is what a reload may take. A key process has two minutes to open
// its keystores.
const reloadTimeout = 3 * time.Minute

// reload reads anew and says how it went. Who asked may leave: it is done all the
// same.
func (a *Admin) reload(w http.ResponseWriter, r *http.Request) {
	server := a.present(w)
	if server == nil {
		return
	}
	a.log.Info("order", zap.String("what", "reload"))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(reloadTimeout + writeTimeout)) // every connection has one
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), reloadTimeout)
	defer cancel()
	if err := a.cfg.Reload(ctx); err != nil {
		say(w, http.StatusInternalServerError, "reload failed: "+err.Error()+"; the old state stays in use")
		return
	}
	say(w, http.StatusOK, fmt.Sprintf("reloaded, generation %d", server.Keys().Generation()))
}

func (a *Admin) rollTickets(w http.ResponseWriter, _ *http.Request) {
	server := a.present(w)
	if server == nil {
		return
	}
	a.log.Info("order", zap.String("what", "roll tickets"))
	server.RollTickets()
	say(w, http.StatusOK, "rolled: tickets issued so far are worthless")
}
