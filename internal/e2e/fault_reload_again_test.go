// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// A reload that failed is made up for when its cause has gone, without anybody
// asking, and its failure is said once.
func TestFaultReloadIsTriedAgain(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	r.configure(r.listener(r.addr), "reload_poll: 500ms")
	r.start()
	other := newStore(t, testca.Spec{Name: "other", DNS: []string{"w.test"}})
	content, err := os.ReadFile(other.path)
	if err != nil {
		t.Fatal(err)
	}
	r.s.path, r.s.password = filepath.Join(r.dir, "later.p12"), other.password
	r.configure(r.listener(r.addr), "reload_poll: 500ms")
	r.until("the configuration is refused", func() bool { return r.d.count(failedLine) == 1 })
	time.Sleep(2 * time.Second) // in which it is tried again
	r.put("later.p12", content)
	r.until("the keystore that came late is served", func() bool { return served(t, r.d, "w.test").Subject.CommonName == "other" })
	r.until("that is said", func() bool { return r.d.count(reloadedLine) == 1 })
	if n := r.d.count(`"level":"error"`); n != 1 || r.d.count(failedLine) != 1 {
		t.Errorf("%d lines at ERROR\n%s", n, r.d.log)
	}
}

// A keystore that is half written is no fault of the configuration.
func TestFaultHalfAKeystoreIsNoConfiguration(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	metrics := freeAddr(t)
	r.configure(r.listener(r.addr), "metrics: {listen: "+metrics+"}")
	r.start()
	r.hangUp(reloadedLine)
	good, err := os.ReadFile(r.s.path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, r.s.path, good[:len(good)/2])
	r.hangUp(failedLine)
	of := func(what, value string) func() bool {
		return func() bool {
			out, err := command(t, testca.Tool(t, "curl"), "-sS", "http://"+metrics+"/metrics")
			return err == nil && strings.Contains(out, "\ntlsd_reload_successful{what=\""+what+"\"} "+value+"\n")
		}
	}
	r.until("the keystores are bad", of("keystores", "0"))
	if !of("config", "1")() {
		t.Error("the configuration is said to have failed")
	}
	writeFile(t, r.s.path, good)
	r.until("the keystores are good", of("keystores", "1"))
}

// A file that says nothing, as while it is written, is not taken for a
// configuration, though flags say all that is needed.
func TestFaultConfigurationSaysNothing(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	text := "listeners:\n" + r.listener(r.addr)
	r.write(text)
	r.d = startWith(t, options{addr: r.addr, args: []string{
		"--keystore", r.s.path, "--keystore-password-file", r.s.password, "--config", filepath.Join(r.dir, "tlsd.yaml"),
	}})
	open := r.d.openLine(clientOf(r.s))
	for _, nothing := range []string{"", "# soon\n", "---\n"} {
		failed := r.d.count(failedLine)
		r.write(nothing)
		r.until("it is refused", func() bool { return r.d.count(failedLine) > failed })
		open.mustWork()
		if err := r.at(r.addr); err != nil {
			t.Errorf("after %q: %v", nothing, err)
		}
	}
	if r.d.count("no longer listening") > 0 || r.d.count("says nothing, where what is in use says something") == 0 {
		t.Errorf("%s", r.d.log)
	}
	r.write(text + "reload_poll: 1s\n")
	r.until("a good one is taken", func() bool { return r.d.count(reloadedLine) == 1 })
}
