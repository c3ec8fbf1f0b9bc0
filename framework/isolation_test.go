// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/internal/testca"
)

// Isolation is what a key process of this machine could report.
func (f *fake) Isolation(context.Context) ([]plugin.Finding, error) {
	return []plugin.Finding{
		{Name: "users", OK: true, Value: "front a, key process b"},
		{Name: "landlock", Value: "no: too old", Remedy: "take a newer kernel"},
	}, nil
}

func TestIsolationIsWrittenDownOnce(t *testing.T) {
	k, logs := (&fake{}).keys(t)
	k.self = []plugin.Finding{{Name: "front_landlock", OK: true, Value: "abi 9"}}
	if err := k.isolate(t.Context(), &Config{}, k.log); err != nil {
		t.Errorf("what is only reported fails: %v", err)
	}
	lines := logs.FilterMessage("isolation").All()
	if len(lines) != 1 || lines[0].Level != zap.InfoLevel {
		t.Fatalf("lines: %v", lines)
	}
	fields := lines[0].ContextMap()
	for name, want := range map[string]string{"users": "front a, key process b", "landlock": "no: too old", "front_landlock": "abi 9"} {
		if fields[name] != want {
			t.Errorf("%s is %q, want %q", name, fields[name], want)
		}
	}
}

func TestRequiredIsolationNamesEachNo(t *testing.T) {
	k, _ := (&fake{}).keys(t)
	k.self = []plugin.Finding{{Name: "front_landlock", Value: "no", Remedy: "that too"}}
	err := k.isolate(t.Context(), &Config{Isolation: IsolationRequire}, zap.NewNop())
	if err == nil {
		t.Fatal("accepted")
	}
	want := "isolation is required, but landlock: no: too old; take a newer kernel\n" +
		"isolation is required, but front_landlock: no; that too"
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

// A child of the same user can be nothing but less than what is required.
func TestRequiredIsolationStopsTheStart(t *testing.T) {
	c := testca.SelfSigned(t, testca.Spec{Name: "a.test", DNS: []string{"a.test"}})
	cfg := Config{KeyManager: "pkix", Tiers: testTiers(), Keystores: []keymanager.Source{storeOf(t, c)}, Isolation: IsolationRequire}
	for _, inProcess := range []bool{false, true} {
		cfg.InProcess = inProcess
		k, err := Open(t.Context(), cfg)
		if err == nil {
			k.Close()
			t.Fatal("opened")
		}
		want := "users:"
		if inProcess {
			want = "process: keys are in the process"
		}
		if !strings.Contains(err.Error(), "isolation is required, but "+want) || errors.Is(err, plugin.ErrRunDir) {
			t.Errorf("in process: %v: %v", inProcess, err)
		}
	}
	cfg.Isolation = "full"
	if _, err := Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "write report or require") {
		t.Errorf("a value that is none: %v", err)
	}
}
