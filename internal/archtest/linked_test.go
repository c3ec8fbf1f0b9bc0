// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"strings"
	"testing"
)

// A program that imports framework alone gets no command line, no configuration
// files and no metrics library.
func TestFrameworkLinksNoCommandLine(t *testing.T) {
	linked := deps(t, "./framework")
	if !linked[module+"/framework/plugin"] {
		t.Fatal("framework doesn't link its own plugin host: is go list telling all?")
	}
	for path := range linked {
		if below(path, viper, cobra, "github.com/spf13/pflag", "github.com/prometheus") || below(path, module+"/plugins", module+"/framework/config") {
			t.Errorf("framework links %q", path)
		}
	}
}

// A tier's own executable holds that tier and neither another nor the daemon.
func TestTierExecutableLinksOneTier(t *testing.T) {
	for _, name := range tiers {
		for path := range deps(t, "./plugins/"+name+"/cmd/tlsd-keymanager-"+name) {
			if below(path, module+"/plugins") && !below(path, module+"/plugins/"+name) || below(path, viper, cobra) {
				t.Errorf("tlsd-keymanager-%s links %q", name, path)
			}
		}
	}
}

var tiers = []string{"sunx509", "pkix", "pkixcached"}

func TestNoSunX509(t *testing.T)    { testLeftOut(t, "sunx509") }
func TestNoPKIX(t *testing.T)       { testLeftOut(t, "pkix") }
func TestNoPKIXCached(t *testing.T) { testLeftOut(t, "pkixcached") }
func TestOnlySunX509(t *testing.T)  { testLeftOut(t, "pkix", "pkixcached") }
func TestOnlyPKIX(t *testing.T)     { testLeftOut(t, "sunx509", "pkixcached") }
func TestOnlyCached(t *testing.T)   { testLeftOut(t, "sunx509", "pkix") }
func TestNoTier(t *testing.T)       { testLeftOut(t, tiers...) }
func TestAllTiers(t *testing.T)     { testLeftOut(t) }

// testLeftOut checks that tlsd built without some tiers links the others only.
func testLeftOut(t *testing.T, without ...string) {
	t.Helper()
	want := map[string]bool{}
	for _, name := range tiers {
		want[name] = true
	}
	var tags []string
	for _, name := range without {
		tags = append(tags, "no_"+name)
		want[name] = false
	}
	linked := deps(t, "./cmd/tlsd", tags...)
	for _, name := range tiers {
		if got := linked[module+"/plugins/"+name]; got != want[name] {
			t.Errorf("tags %q: tier %s linked: %v, want %v", strings.Join(tags, ","), name, got, want[name])
		}
	}
}
