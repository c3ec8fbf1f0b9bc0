// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/logging"
)

func newCheck() *cobra.Command {
	asJSON, all := false, false
	cmd := withFlags(&cobra.Command{
		Use:   "check",
		Short: "Open everything as serving would, and sign once with each key",
		Long: `Check the configuration: print each value that was given and where, open the
keystores and trust stores through the key manager, and make one trial signature
with each key. No port is bound and no backend is asked. The verdict comes last,
with what it rests on.

Problems are: a key that tlsd can't serve with, or that is never served since the
algorithm constraints exclude it, and a certificate of its chain that is not valid
today or not signed by the next. The rest is noted. What isolation lacks is said,
and an error where the configuration requires it.

Exit status: 0 all is well; 1 tlsd would start but something is wrong; 2 it would
not start.`,
		Example: `  tlsd check --config /etc/tlsd/tlsd.yaml
  tlsd check --keystore server.p12 --keystore-password-file server.pass --json`,
		Args: cobra.NoArgs,
	}, func(cmd *cobra.Command, in config.Input) error {
		return check(cmd, in, asJSON, all)
	})
	cmd.Flags().BoolVar(&all, "all", false, "list the defaults too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, which has all values")
	return cmd
}

// checkReport is what check finds.
type checkReport struct {
	Settings    []config.Value   `json:"settings"`
	Notes       []string         `json:"notes"`
	KeyManager  string           `json:"key_manager,omitempty"`
	Isolated    bool             `json:"isolated"`
	Isolation   []isolationPart  `json:"isolation"`
	Keystores   []keystoreReport `json:"keystores"`
	TrustStores []trustReport    `json:"trust_stores"`
	Problems    []string         `json:"problems"`
	Error       string           `json:"error,omitempty"` // why it would not start
}

// isolationPart is one thing that keeps the key process apart, or doesn't.
type isolationPart struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Value  string `json:"value"`
	Remedy string `json:"remedy,omitempty"` // where not OK
}

type keystoreReport struct {
	Builder int           `json:"builder_index"`
	Path    string        `json:"path"`
	Entries []entryReport `json:"entries"`
}

type entryReport struct {
	Alias     string     `json:"alias"`
	Kind      string     `json:"kind"`
	Key       string     `json:"key,omitempty"`
	Names     []string   `json:"names,omitempty"`
	NotBefore *time.Time `json:"not_before,omitempty"`
	NotAfter  *time.Time `json:"not_after,omitempty"`
	Usable    bool       `json:"usable"`
	Signed    string     `json:"signed,omitempty"` // scheme of the trial signature
	Problem   string     `json:"problem,omitempty"`
}

type trustReport struct {
	Path         string `json:"path"`
	Certificates int    `json:"certificates"`
}

func check(cmd *cobra.Command, in config.Input, asJSON, all bool) error {
	r := &checkReport{Notes: []string{}, Isolation: []isolationPart{}, Keystores: []keystoreReport{}, TrustStores: []trustReport{}, Problems: []string{}}
	eff, err := config.Load(in)
	if err == nil {
		r.Settings, r.Notes = eff.Values, append(r.Notes, eff.Notes...)
		err = r.open(cmd.Context(), eff, cmd.ErrOrStderr())
	}
	if interrupted(err) {
		return err
	}
	if err != nil {
		r.Error = err.Error()
	}
	write := func(w io.Writer) error { return r.text(w, all) }
	if asJSON {
		write = r.json
	}
	if e := write(cmd.OutOrStdout()); e != nil {
		return e
	}
	switch {
	case err != nil:
		return &status{code: exitUsage} // the report says why
	case len(r.Problems) > 0:
		return &status{code: exitMachine}
	}
	return nil
}

// open starts the key manager as serving would and asks it for all it has. An
// error means that tlsd would not start.
func (r *checkReport) open(ctx context.Context, eff *config.Effective, prompt io.Writer) error {
	log, err := checkLog(eff)
	if err != nil {
		return err
	}
	said := &warnings{}
	eff.Log = said.beside(log, eff)
	_, remove, err := provideKeystore(ctx, eff)
	if err != nil {
		return err
	}
	defer remove()
	r.Notes = append(r.Notes, openFiles(eff)...)
	eff.Self = confine(eff)
	var keys *framework.Keys
	err = openAsking(ctx, eff, prompt, func() (err error) {
		keys, err = framework.Open(ctx, eff.Config)
		return err
	})
	if err == nil {
		err = errors.Join(r.ask(ctx, keys, eff), keys.Close()) // after which nothing more is said
	}
	r.Notes = append(r.Notes, said.notes()...)
	return err
}

// ask has the key manager tell all that serving would make use of.
func (r *checkReport) ask(ctx context.Context, keys *framework.Keys, eff *config.Effective) error {
	d := keys.Manager().Describe()
	r.KeyManager, r.Isolated = keys.Tier(), d.Isolated
	r.isolation(ctx, keys)
	if err := keys.Try(ctx, eff.Listeners); err != nil {
		return err
	}
	if err := r.trust(ctx, keys, eff.Listeners); err != nil {
		return err
	}
	return r.entries(ctx, keys, eff)
}

// isolation reports what is in force. Less than all is no problem unless the
// configuration requires it, and then the start fails.
func (r *checkReport) isolation(ctx context.Context, keys *framework.Keys) {
	findings, err := keys.Isolation(ctx)
	if err != nil {
		r.Notes = append(r.Notes, fmt.Sprintf("what isolates the key process is not known: %v", err))
	}
	for _, f := range findings {
		part := isolationPart{Name: f.Name, OK: f.OK, Value: f.Value}
		if !f.OK {
			part.Remedy = f.Remedy
		}
		r.Isolation = append(r.Isolation, part)
	}
}

// checkLog is quiet unless the log is asked for: the report says it all.
func checkLog(eff *config.Effective) (*zap.Logger, error) {
	if eff.LogLevelDefault && len(eff.Debug) == 0 {
		eff.LogLevels = map[string]string{"": "off"}
		return zap.NewNop(), nil
	}
	l, err := logging.New(logging.Config{Level: eff.LogLevel, Format: eff.LogFormat, Levels: eff.LogLevels})
	if err != nil {
		return nil, err
	}
	return l.Zap(), nil
}

// trust reports each trust store of listeners and hosts once.
func (r *checkReport) trust(ctx context.Context, keys *framework.Keys, listeners []framework.Listener) error {
	var stores []framework.TrustStore
	for _, l := range listeners {
		stores = append(stores, l.ClientCA, l.BackendTLS.CA)
		for _, h := range l.Hosts {
			stores = append(stores, h.ClientCA, h.BackendTLS.CA)
		}
	}
	for i, store := range stores {
		if store.Path == "" || slices.Contains(stores[:i], store) {
			continue
		}
		certs, err := keys.Trust(ctx, store)
		if err != nil {
			return err
		}
		r.TrustStores = append(r.TrustStores, trustReport{store.Path, len(certs)})
	}
	return nil
}
