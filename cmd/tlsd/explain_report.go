// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
)

// explainReport is what explain finds. Its JSON form is fixed.
type explainReport struct {
	Client     string            `json:"client"`
	ServerName string            `json:"server_name"`
	Listener   string            `json:"listener"`
	KeyManager string            `json:"key_manager"`
	Hello      *helloReport      `json:"hello"` // null: the handshake ends before the key manager is asked
	Selected   *entryID          `json:"selected"`
	Refused    string            `json:"refused,omitempty"` // why the handshake ends all the same
	Alert      uint8             `json:"alert,omitempty"`   // that the client gets
	Candidates []candidateReport `json:"candidates"`
	OtherTiers []tierReport      `json:"other_tiers"`
	Notes      []string          `json:"notes"`

	what      string // the client is, for people
	keystores []string
}

// helloReport is what the key manager was asked.
type helloReport struct {
	Version string   `json:"version"`
	Alias   string   `json:"alias,omitempty"` // that listener or host demand
	Auth    []string `json:"auth"`
	Schemes []string `json:"schemes"`
	Groups  []string `json:"groups"`
}

type entryID struct {
	Builder int    `json:"builder_index"`
	Alias   string `json:"alias"`
}

type candidateReport struct {
	entryID
	Verdict string `json:"verdict"` // selected, passed_over or out
	Class   string `json:"class,omitempty"`
	Match   string `json:"match,omitempty"`
	Scheme  string `json:"scheme,omitempty"`
	Rule    string `json:"rule,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

type tierReport struct {
	Tier     string   `json:"tier"`
	Same     bool     `json:"same"`
	Selected *entryID `json:"selected"`
	Refused  string   `json:"refused,omitempty"`
	Alert    uint8    `json:"alert,omitempty"`
	Error    string   `json:"error,omitempty"` // why it would not start
}

// serves says whether the client is shown a certificate.
func (r *explainReport) serves() bool { return r.Selected != nil && r.Alert == 0 && r.Refused == "" }

// answer takes in what the configured key manager says.
func (r *explainReport) answer(x *framework.Explanation) {
	r.Selected, r.Refused, r.Alert = outcome(x)
	if x.Hello == nil {
		return
	}
	r.Hello = newHelloReport(x.Hello)
	if x.Verdicts == nil {
		r.Notes = append(r.Notes, fmt.Sprintf("key manager %q does not explain its choices: its answer is all that is known", r.KeyManager))
	}
	for i, v := range x.Verdicts {
		r.Candidates = append(r.Candidates, newCandidateReport(v, i == 0))
	}
	winner, ok := keymanager.Winner(x.Verdicts)
	if x.Verdicts != nil && (ok != (r.Selected != nil) || ok && *r.Selected != entryID{winner.Builder, winner.Alias}) {
		r.Notes = append(r.Notes, "what is explained is not what was selected: the keystores changed in between, or the key manager is at fault")
	}
}

func outcome(x *framework.Explanation) (selected *entryID, refused string, alert uint8) {
	if x.Selected != nil {
		selected = &entryID{x.Selected.Builder, x.Selected.Alias}
	}
	if x.Refused != nil {
		refused = x.Refused.Error()
	}
	return selected, refused, x.Alert
}

// other compares what another tier says.
func (r *explainReport) other(tier string, x *framework.Explanation, err error) tierReport {
	t := tierReport{Tier: tier}
	if err != nil {
		t.Error = err.Error()
		return t
	}
	t.Selected, t.Refused, t.Alert = outcome(x)
	same := (t.Selected == nil) == (r.Selected == nil) && (t.Selected == nil || *t.Selected == *r.Selected)
	t.Same = same && t.Alert == r.Alert
	return t
}

func newHelloReport(h *keymanager.Hello) *helloReport {
	out := &helloReport{Version: tls.VersionName(h.Version), Alias: h.Alias, Auth: []string{}}
	if h.Auth&keymanager.AuthRSA != 0 {
		out.Auth = append(out.Auth, "RSA")
	}
	if h.Auth&keymanager.AuthECDSA != 0 {
		out.Auth = append(out.Auth, "ECDSA")
	}
	for _, s := range h.Schemes {
		out.Schemes = append(out.Schemes, s.String())
	}
	for _, g := range h.Groups {
		out.Groups = append(out.Groups, g.String())
	}
	return out
}

func newCandidateReport(v keymanager.Verdict, first bool) candidateReport {
	c := candidateReport{
		entryID: entryID{v.Builder, v.Alias}, Verdict: "passed_over",
		Class: v.Class, Match: v.Match, Rule: v.Rule, Reason: v.Reason,
	}
	if v.Scheme != 0 {
		c.Scheme = v.Scheme.String()
	}
	switch {
	case v.Out:
		c.Verdict = "out"
	case first:
		c.Verdict = "selected"
	}
	return c
}

func (r *explainReport) json(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// text prints the report for people.
func (r *explainReport) text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "client %s (%s), %s\n", r.Client, r.what, r.asks())
	fmt.Fprintf(&b, "listener %s, key manager %s\n", r.Listener, r.KeyManager)
	if len(r.Candidates) > 0 {
		fmt.Fprintln(&b)
		r.table(&b)
	}
	fmt.Fprintf(&b, "\n%s\n", r.verdict(r.Selected, r.Refused, r.Alert))
	for _, t := range r.OtherTiers {
		fmt.Fprintf(&b, "under %s: %s\n", t.Tier, r.compared(t))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// asks says what the client asks for.
func (r *explainReport) asks() string {
	s := "no server name"
	if r.ServerName != "" {
		s = fmt.Sprintf("server name %q", r.ServerName)
	}
	if r.Hello == nil {
		return s
	}
	s += ", " + r.Hello.Version
	if len(r.Hello.Auth) == 1 {
		s += " with suites for " + r.Hello.Auth[0]
	}
	if r.Hello.Alias != "" {
		s += fmt.Sprintf(", alias %q demanded", r.Hello.Alias)
	}
	return s
}

func (r *explainReport) table(b *strings.Builder) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "VERDICT\tALIAS\tKEYSTORE\tCLASS\tNAME\tSCHEME\tRULE\tREASON")
	for _, c := range r.Candidates {
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", strings.ReplaceAll(c.Verdict, "_", " "), printable(c.Alias), c.Builder,
			orDash(c.Class), orDash(c.Match), orDash(c.Scheme), orDash(c.Rule), orDash(c.Reason))
	}
	_ = t.Flush() // to memory
}

// verdict says what becomes of the client.
func (r *explainReport) verdict(e *entryID, refused string, alert uint8) string {
	ending := ""
	if alert != 0 {
		ending = fmt.Sprintf(": the client gets alert %d (%s)", alert, strings.TrimPrefix(tls.AlertError(alert).Error(), "tls: "))
	}
	switch {
	case refused != "" && e != nil:
		return fmt.Sprintf("refused, though %s is selected: %s%s", r.entry(e), refused, ending)
	case refused != "":
		return fmt.Sprintf("refused: %s%s", refused, ending)
	case e == nil:
		return "nothing is selected" + ending
	}
	return r.entry(e) + " is served"
}

func (r *explainReport) entry(e *entryID) string {
	where := fmt.Sprintf("keystore %d", e.Builder)
	if e.Builder >= 0 && e.Builder < len(r.keystores) {
		where += " (" + r.keystores[e.Builder] + ")"
	}
	return fmt.Sprintf("alias %q of %s", e.Alias, where)
}

func (r *explainReport) compared(t tierReport) string {
	switch {
	case t.Error != "":
		return "it would not start: " + strings.ReplaceAll(t.Error, "\n", "; ")
	case t.Same:
		return "the same"
	}
	return r.verdict(t.Selected, t.Refused, t.Alert)
}
