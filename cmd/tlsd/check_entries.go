// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/plugin"
)

// entries judges what the key manager has.
func (r *checkReport) entries(ctx context.Context, keys *framework.Keys, eff *config.Effective) error {
	for i, s := range eff.Keystores {
		r.Keystores = append(r.Keystores, keystoreReport{Builder: i, Path: s.Name(), Entries: []entryReport{}})
	}
	list, err := keys.List(ctx)
	if errors.Is(err, plugin.ErrUnsupported) {
		r.Notes = append(r.Notes, fmt.Sprintf("key manager %q does not list its entries: no trial signature was made", keys.Tier()))
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the entries of key manager %q: %w", keys.Tier(), err)
	}
	never, err := neverServed(ctx, keys.Manager(), rolesOf(eff.Listeners))
	if err != nil {
		return fmt.Errorf("ask key manager %q what it would choose: %w", keys.Tier(), err)
	}
	for _, e := range list {
		k := r.keystore(e.Builder, keys.Tier())
		entry, problems, notes := judgeEntry(ctx, e, never[place{e.Builder, e.Alias}], eff.Options.ExpiryWarning)
		k.Entries = append(k.Entries, entry)
		at := fmt.Sprintf("keystore %q, alias %q: ", k.Path, e.Alias)
		for _, p := range problems {
			r.Problems = append(r.Problems, at+p)
		}
		for _, n := range notes {
			r.Notes = append(r.Notes, at+n)
		}
	}
	return nil
}

// keystore returns what is reported of a builder. A plugin may have keys from
// elsewhere, which are reported by its name.
func (r *checkReport) keystore(builder int, plugin string) *keystoreReport {
	i := slices.IndexFunc(r.Keystores, func(k keystoreReport) bool { return k.Builder == builder })
	if i < 0 {
		i = len(r.Keystores)
		r.Keystores = append(r.Keystores, keystoreReport{Builder: builder, Path: plugin, Entries: []entryReport{}})
	}
	return &r.Keystores[i]
}

// judgeEntry judges one entry; never says why no peer gets it, if none does. What is
// not a key is no problem: JVM users keep trusted certificates beside their keys.
func judgeEntry(ctx context.Context, e keymanager.Entry, never string, soon time.Duration) (out entryReport, problems, notes []string) {
	out = entryReport{Alias: e.Alias, Kind: e.Kind, Usable: e.Usable}
	chain := parsedChain(e.Chain)
	if len(chain) > 0 {
		leaf := chain[0]
		out.Key, out.Names = keyName(leaf), certNames(leaf)
		out.NotBefore, out.NotAfter = &leaf.NotBefore, &leaf.NotAfter
	}
	switch {
	case e.Kind != keymanager.KindKey:
		return out, nil, nil
	case !e.Usable || e.Key == nil || len(chain) == 0:
		problems = append(problems, "not usable: "+e.Reason)
	default:
		scheme, err := trial(ctx, e.Key, chain[0], e.Schemes)
		if err != nil {
			problems = append(problems, fmt.Sprintf("trial signature: %v", err))
		} else {
			out.Signed = scheme.String()
		}
		if never != "" {
			problems = append(problems, "never served: "+never)
		}
		wrong, noted := judgeChain(chain, time.Now(), soon)
		problems, notes = append(problems, wrong...), noted
	}
	out.Problem = strings.Join(problems, "; ")
	return out, problems, notes
}

// parsedChain returns a chain as far as it parses. An entry whose leaf doesn't is
// not usable, and its reason says so.
func parsedChain(ders [][]byte) (chain []*x509.Certificate) {
	for _, der := range ders {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			break
		}
		chain = append(chain, cert)
	}
	return chain
}

// place is what names an entry.
type place struct {
	builder int
	alias   string
}

// rolesOf returns what listeners need keys for, to serve clients last.
func rolesOf(listeners []framework.Listener) []keymanager.Role {
	for _, l := range listeners {
		if l.BackendTLS.ClientCertificate || slices.ContainsFunc(l.Hosts, func(h framework.Host) bool { return h.BackendTLS.ClientCertificate }) {
			return []keymanager.Role{keymanager.RoleClient, keymanager.RoleServer}
		}
	}
	return []keymanager.Role{keymanager.RoleServer}
}

// neverServed asks what becomes of peers that take everything, in each role, and
// returns why none of them gets an entry. Of a key manager that can't say it returns
// none.
func neverServed(ctx context.Context, manager plugin.Manager, roles []keymanager.Role) (map[place]string, error) {
	var never map[place]string
	for i, h := range easyHellos(roles) {
		verdicts, err := manager.Explain(ctx, h)
		if errors.Is(err, plugin.ErrUnsupported) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		out := map[place]string{}
		for _, v := range verdicts {
			at := place{v.Builder, v.Alias}
			if _, before := never[at]; v.Out && (before || i == 0) {
				out[at] = v.Reason
			}
		}
		never = out
	}
	return never, nil
}

// easyHellos are of peers that verify whatever there is, SHA-1 included.
func easyHellos(roles []keymanager.Role) (hellos []*keymanager.Hello) {
	for _, role := range roles {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			hellos = append(hellos, &keymanager.Hello{
				Role: role, Version: version, Auth: keymanager.AuthRSA | keymanager.AuthECDSA, Listener: "check",
				Schemes: append(keymanager.Schemes(), tls.ECDSAWithSHA1, tls.PKCS1WithSHA1),
				Groups:  []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521},
			})
		}
	}
	return hellos
}
