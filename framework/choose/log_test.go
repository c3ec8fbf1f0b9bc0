// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/tls"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
)

// line is a log line without the fields that are the same in all of them.
type line struct {
	Level   zapcore.Level
	Message string
	Alias   any
	Class   any
	Rule    any
	Reason  any
}

func lines(logs *observer.ObservedLogs) (out []line) {
	for _, e := range logs.TakeAll() {
		f := e.ContextMap()
		out = append(out, line{
			e.Level, e.Message, f[logging.FieldAlias], f[logging.FieldClass], f[logging.FieldRule], f[logging.FieldReason],
		})
	}
	return out
}

func TestDebugExplainsOneHandshakeCompletely(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	rsaCA := testca.NewRoot(t, testca.Spec{Name: "rsa", Key: testca.RSA2048})
	old := ca.Issue(t, testca.Spec{DNS: []string{"w.test"}, NotBefore: days(-9), NotAfter: days(-1)})
	core, logs := observer.New(zapcore.DebugLevel)
	c := mustNew(t, New, keymanager.Env{Log: zap.New(core)},
		entry("other", ca.Issue(t, testca.Spec{DNS: []string{"o.test"}})),
		entry("old", old),
		entry("ed", ca.Issue(t, testca.Spec{DNS: []string{"w.test"}, Key: testca.Ed25519})),
		entry("wild", ca.Issue(t, testca.Spec{DNS: []string{"*.test"}})),
		entry("rsa", rsaCA.Issue(t, testca.Spec{DNS: []string{"w.test"}, Key: testca.RSA2048})),
		entry("second", ca.Issue(t, testca.Spec{DNS: []string{"w.test"}})),
		entry("third", ca.Issue(t, testca.Spec{DNS: []string{"w.test"}})),
	)
	logs.TakeAll()
	h := modern("w.test")
	h.ConnID, h.Peer, h.Listener = "c1", "192.0.2.1:7", "0.0.0.0:443"
	if _, err := c.Select(h); err != nil {
		t.Fatal(err)
	}

	last := logs.All()[0].ContextMap()
	for field, want := range map[string]any{
		logging.FieldBuilder: int64(0), logging.FieldGeneration: uint64(7), logging.FieldServerName: "w.test",
		logging.FieldConn: "c1", logging.FieldPeer: "192.0.2.1:7", logging.FieldListener: "0.0.0.0:443",
		logging.FieldScheme: tls.ECDSAWithP256AndSHA256.String(),
	} {
		if last[field] != want {
			t.Errorf("field %s of the winner is %v, want %v", field, last[field], want)
		}
	}
	const d, rejected = zapcore.DebugLevel, logging.MsgRejected
	want := []line{
		{d, logging.MsgSelected, "second", "ok", nil, nil},
		{d, rejected, "third", "ok", "store_order", `"second" comes first`},
		{d, rejected, "rsa", "ok", "scheme_order", "the peer prefers ECDSAWithP256AndSHA256"},
		{d, rejected, "wild", "ok", "name", "a match that is exact comes before one that is wildcard"},
		{d, rejected, "other", "sni_mismatch", "name", `does not carry the name "w.test"`},
		{d, rejected, "old", "expired", "validity", "expired at " + old.Cert.NotAfter.Format("2006-01-02T15:04:05Z")},
		{d, rejected, "ed", "ok", "scheme", "the peer offers no signature scheme for Ed25519"},
	}
	if diff := cmp.Diff(want, lines(logs)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestNoCredentialIsLogged(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	c := mustNew(t, New, keymanager.Env{Log: zap.New(core)}, entry("a", testca.SelfSigned(t, testca.Spec{})))
	if got := pick(t, c, demand(modern(""), "b")); got != "" {
		t.Fatalf("chosen %q", got)
	}
	want := []line{
		{zapcore.DebugLevel, logging.MsgRejected, "a", "ok", "alias", `alias "b" is demanded`},
		{zapcore.DebugLevel, logging.MsgNoCredential, "b", nil, nil, "no entry fits the hello"},
	}
	if diff := cmp.Diff(want, lines(logs)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestLastResortIsWarnedOfOnceForEachEntryAndClass(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	old := testca.SelfSigned(t, testca.Spec{DNS: []string{"w.test"}, NotBefore: days(-9), NotAfter: days(-1)})
	c := mustNew(t, New, keymanager.Env{Log: zap.New(core)}, entry("old", old))
	logs.TakeAll()
	for range 3 {
		pick(t, c, modern("w.test"))
		pick(t, c, client())
	}
	got := lines(logs)
	classes := []any{}
	for _, l := range got {
		if l.Level != zapcore.WarnLevel || l.Message != logging.MsgSelected || l.Alias != "old" {
			t.Errorf("line %+v, want a warning that old is selected", l)
		}
		classes = append(classes, l.Class)
	}
	if want := []any{"expired", "wrong_usage"}; !slices.Equal(classes, want) {
		t.Errorf("warned of %v, want %v", classes, want)
	}
}

func TestMismatchOfTheNameIsNoWarning(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	c := mustNew(t, New, keymanager.Env{Log: zap.New(core)}, entry("a", testca.SelfSigned(t, testca.Spec{DNS: []string{"a.test"}})))
	pick(t, c, modern("b.test"))
	if logs.Len() != 0 {
		t.Errorf("log: %+v", logs.All())
	}
}

func TestEntriesThatNoHelloCanHaveAreToldOf(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	good, other := ca.Issue(t, testca.Spec{}), ca.Issue(t, testca.Spec{})
	foreign := entry("foreign", good)
	foreign.Key = keymanager.FromSigner(other.Key)
	short := entry("short", ca.Issue(t, testca.Spec{Key: testca.RSA2048}))
	told := keymanager.Entry{Alias: "told", Kind: keymanager.KindKey, Reason: "the keystore has told of it"}
	rules := "RSA keySize < 4096"
	core, logs := observer.New(zapcore.InfoLevel)
	mustNew(t, New, keymanager.Env{
		Log: zap.New(core), Options: keymanager.Options{Constraints: keymanager.Constraints{CertPath: &rules}},
	}, entry("good", good), foreign, short, told)

	got := lines(logs)
	if len(got) != 2 || got[0].Alias != "foreign" || got[0].Level != zapcore.ErrorLevel ||
		got[1].Alias != "short" || got[1].Level != zapcore.WarnLevel {
		t.Errorf("log: %+v", got)
	}
}

func TestOptionsWithoutEffectAreToldOfOnce(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	env := keymanager.Env{Log: zap.New(core), Options: keymanager.Options{DefaultAlias: "a", JDKCompat: true}}
	e := []keymanager.Entry{entry("a", testca.SelfSigned(t, testca.Spec{}))}
	for _, generation := range []uint64{1, 2} {
		if _, err := NewUnchecked(generation, e, env); err != nil {
			t.Fatal(err)
		}
	}
	if got := lines(logs); len(got) != 2 || got[0].Message != msgInert || got[1].Message != msgInert {
		t.Errorf("log: %+v", got)
	}
}
