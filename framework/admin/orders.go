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

// orderTimeout is what an order may take. A key process has two minutes to open
// its keystores.
const orderTimeout = 3 * time.Minute

func (a *Admin) reload(w http.ResponseWriter, r *http.Request) {
	if !a.obey(w, r, "reload", a.cfg.Reload, "; the old state stays in use") {
		return
	}
	text := "reloaded"
	if server := a.server.Load(); server != nil {
		text += fmt.Sprintf(", generation %d", (*server).Keys().Generation())
	}
	say(w, http.StatusOK, text)
}

func (a *Admin) rollTickets(w http.ResponseWriter, r *http.Request) {
	if a.obey(w, r, "roll tickets", a.cfg.RollTickets, "") {
		say(w, http.StatusOK, "rolled: no session is resumed that began before")
	}
}

// obey carries out an order and answers if it fails. Who asked may leave; the
// order is carried out.
func (a *Admin) obey(w http.ResponseWriter, r *http.Request, what string, order func(context.Context) error, consequence string) bool {
	a.log.Info("order", zap.String("what", what))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(orderTimeout + writeTimeout)) // where it can't be moved, it is there
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), orderTimeout)
	defer cancel()
	if err := order(ctx); err != nil {
		say(w, http.StatusInternalServerError, what+" failed: "+err.Error()+consequence)
		return false
	}
	return true
}
