// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"fmt"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/logging"
)

// msgInert tells of an option that can't act, or in part only.
const msgInert = "option without effect"

// logVerdicts logs one handshake completely: every candidate, its verdict, the
// winner. With debug off it costs one comparison.
func (c *Chooser) logVerdicts(h *keymanager.Hello, now time.Time) {
	if c.log.Check(zapcore.DebugLevel, logging.MsgSelected) == nil {
		return
	}
	about := helloFields(h)
	verdicts := c.verdicts(h, now)
	for i, v := range verdicts {
		msg := logging.MsgRejected
		if i == 0 && !v.Out {
			msg = logging.MsgSelected
		}
		c.logVerdict(zapcore.DebugLevel, msg, v, about)
	}
	if len(verdicts) == 0 || verdicts[0].Out {
		e := logging.KeyEvent{Builder: -1, Alias: h.Alias, Generation: c.generation, Reason: "no entry fits the hello"}
		logging.LogKey(c.log, zapcore.DebugLevel, logging.MsgNoCredential, e, about...)
	}
}

func (c *Chooser) logVerdict(level zapcore.Level, msg string, v Verdict, about []zap.Field) {
	var more []zap.Field
	if v.Rule != RuleUnusable {
		more = append(more, zap.Stringer(logging.FieldClass, v.Class))
	}
	if v.Scheme != 0 {
		more = append(more, zap.Stringer(logging.FieldScheme, v.Scheme))
	}
	if v.Rule != "" {
		more = append(more, zap.String(logging.FieldRule, string(v.Rule)))
	}
	e := logging.KeyEvent{Builder: v.Builder, Alias: v.Alias, Generation: c.generation, Reason: v.Reason}
	logging.LogKey(c.log, level, msg, e, append(more, about...)...)
}

func helloFields(h *keymanager.Hello) []zap.Field {
	return []zap.Field{
		zap.String(logging.FieldServerName, h.ServerName),
		zap.String(logging.FieldListener, h.Listener),
		zap.String(logging.FieldConn, h.ConnID),
		zap.String(logging.FieldPeer, h.Peer),
	}
}

// warnLastResort tells once a day for each entry and class that something is
// served which peers should refuse. That a name is not carried is no news: strangers
// ask for any.
func (c *Chooser) warnLastResort(p *peer, o offer) {
	if o.class.rank() < Expired || o.warned[o.class].Swap(true) {
		return
	}
	rule, reason := p.shortfall(o)
	v := Verdict{
		Builder: o.Builder, Alias: o.Alias, Class: o.class, Rule: rule, Scheme: p.Schemes[p.preferred(p.usable(o.candidate))],
		Reason: fmt.Sprintf("served as a last resort, nothing better fits: %s; renew or replace it", reason),
	}
	c.logVerdict(zapcore.WarnLevel, logging.MsgSelected, v, helloFields(p.Hello))
}

// logUnusable tells of an entry that its keystore takes for usable and that is
// not; what a keystore itself finds, it has told of.
func (c *Chooser) logUnusable(cand *candidate) {
	if !cand.Usable {
		return
	}
	e := logging.KeyEvent{Builder: cand.Builder, Alias: cand.Alias, Generation: c.generation, Reason: cand.unusable.Error()}
	logging.LogKey(c.log, zapcore.ErrorLevel, logging.MsgNotUsable, e)
}
