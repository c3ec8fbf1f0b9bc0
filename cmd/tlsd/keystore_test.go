// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestKeystoreScriptsWithKeytool runs the scripts that need a JDK, once with
// each: $KEYTOOL is its keytool.
func TestKeystoreScriptsWithKeytool(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long: left out in short mode")
	}
	testca.Tool(t, "openssl")
	f := newFixtures(t)
	removeScriptDirs(t)
	for _, jdk := range testca.Keytools(t) {
		t.Run(jdk.Name(), func(t *testing.T) {
			testscript.Run(t, testscript.Params{
				Dir: filepath.Join("testdata", "script", "keytool"),
				Setup: func(env *testscript.Env) error {
					env.Setenv("KEYTOOL", jdk.Keytool())
					env.Setenv("LC_ALL", "C.UTF-8")
					return f.setUp(env)
				},
				Cmds:                map[string]func(*testscript.TestScript, bool, []string){"status": exitsWith},
				RequireExplicitExec: true,
				RequireUniqueNames:  true,
			})
		})
	}
}

// TestProgress: nothing in the first second, then a line now and then, which is
// gone at the end.
func TestProgress(t *testing.T) {
	var b bytes.Buffer
	now := time.Now()
	p := &progress{w: &b, now: func() time.Time { return now }, next: now.Add(progressAfter)}
	for i := range 20 {
		p.step(i, 20)
		now = now.Add(progressEvery / 2)
	}
	p.end()
	const line = "\rdecrypting keys to see that they are good: "
	if got, want := b.String(), line+"10 of 20"+line+"12 of 20"+line+"14 of 20"+line+"16 of 20"+line+"18 of 20\r\x1b[K"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNoProgressAwayFromTerminals: a log would fill with it.
func TestNoProgressAwayFromTerminals(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b)
	p.next = time.Time{}
	p.step(1, 2)
	p.end()
	if b.Len() > 0 {
		t.Errorf("wrote %q", b.String())
	}
}

// TestPrintable: what comes out of a file neither moves a terminal's cursor nor
// breaks a table.
func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"web": "web", "größe 鍵": "größe 鍵", "🔑": "🔑", "": "",
		"a\x1b[2Jb": `"a\x1b[2Jb"`, "a\tb": `"a\tb"`, "a\nb": `"a\nb"`, " a": `" a"`, "a  b": `"a  b"`, "\u202eabc": `"\u202eabc"`, "\xff": `"\xff"`,
	} {
		if got := printable(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}
