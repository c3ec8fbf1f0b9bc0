// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"testing"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
)

// TestLogLevelsOutliveTheKeyProcess that they were set in: the one that a reload
// starts in its place has them too, but for those that the reload changes.
func TestLogLevelsOutliveTheKeyProcess(t *testing.T) {
	t.Parallel()
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	core, logs := observerCore()
	config := func(level string) Config {
		return Config{
			KeyManager: "pkix", Tiers: testTiers(), Log: zap.New(core), LogLevels: map[string]string{"": level},
			Keystores: []keymanager.Source{storeOf(t, root.Issue(t, testca.Spec{Name: "a.test", DNS: []string{"a.test"}}))},
			Listeners: []Listener{{Listen: "127.0.0.1:0"}},
		}
	}
	s, err := NewServer(t.Context(), config("error"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	said := func() bool { return logs.FilterMessage("found key").Len() > 0 }
	if said() {
		t.Fatal("the key process logs at info though its level is error")
	}
	if err := s.Keys().SetLogLevels(t.Context(), map[string]string{logging.KeyManager: "info"}); err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"error", "warn"} {
		first := s.Keys()
		if err := s.Apply(t.Context(), config(level)); err != nil {
			t.Fatal(err)
		}
		if s.Keys() == first {
			t.Fatal("the key process is the old one")
		}
		soon(t, "a line that says which key was found", said)
		logs.TakeAll()
	}
	off := config("warn")
	off.LogLevels[logging.KeyManager] = "off"
	if err := s.Apply(t.Context(), off); err != nil {
		t.Fatal(err)
	}
	if got := s.Keys().levels.all()[logging.KeyManager]; got != "off" {
		t.Errorf("the level is %q, and off is configured", got)
	}
}
