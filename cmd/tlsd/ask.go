// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/keystore"
)

// openAsking runs open, and where that fails for want of a password that nobody
// gave, asks for one on the terminal and runs it once more.
func openAsking(ctx context.Context, eff *config.Effective, prompt io.Writer, open func() error) error {
	err := open()
	if err == nil || !wantsPassword(err) || anyPassword(eff.Keystores) || !term.IsTerminal(int(os.Stdin.Fd())) {
		return err
	}
	password, askErr := ask(ctx, prompt, eff.Keystores)
	if errors.Is(askErr, errInterrupted) {
		return &status{code: exitSignal}
	}
	if askErr != nil || password == "" {
		return err
	}
	for i := range eff.Keystores {
		eff.Keystores[i].Store.Value = &password
	}
	return open()
}

// wantsPassword goes by the text: that the error had a type is lost on its way
// out of the key process.
func wantsPassword(err error) bool {
	missing := &keystore.PasswordError{Missing: true}
	return strings.Contains(err.Error(), missing.Error())
}

func anyPassword(sources []keymanager.Source) bool {
	for _, s := range sources {
		if !s.Store.IsZero() {
			return true
		}
	}
	return false
}

// ask asks for the password that sources have in common.
func ask(ctx context.Context, prompt io.Writer, sources []keymanager.Source) (keymanager.Secret, error) {
	var names []string
	for _, s := range sources {
		names = append(names, s.Name())
	}
	return readPassword(ctx, prompt, "password of "+strings.Join(names, ", "))
}

// errInterrupted is what becomes of a question that is answered by ^C.
var errInterrupted = errors.New("interrupted")

// interrupted reports whether a command ended at a question.
func interrupted(err error) bool {
	var s *status
	return errors.As(err, &s) && s.code == exitSignal
}

// readPassword reads a password without echo. It gives up when ctx ends or a
// signal comes, and leaves the terminal as it was and the cursor on a new line.
func readPassword(ctx context.Context, prompt io.Writer, question string) (keymanager.Secret, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	fd := int(os.Stdin.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(prompt, "%s: ", question)
	defer fmt.Fprintln(prompt)
	type answer struct {
		password []byte
		err      error
	}
	answers := make(chan answer, 1)
	go func() {
		b, err := term.ReadPassword(fd)
		answers <- answer{b, err}
	}()
	select {
	case a := <-answers:
		return keymanager.Secret(a.password), a.err
	case <-ctx.Done():
		return "", errors.Join(errInterrupted, term.Restore(fd, state))
	}
}
