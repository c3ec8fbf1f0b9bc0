// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/plugins/pkixcached"
)

// scrape returns what Prometheus gets.
func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains("\n"+text, "\n"+line+"\n") {
			t.Errorf("no line %q in\n%s", line, onlyOurs(text))
		}
	}
}

func onlyOurs(text string) string {
	var ours []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "tlsd_") {
			ours = append(ours, line)
		}
	}
	return strings.Join(ours, "")
}

// observeAll has each function of an Observer called at least once.
func observeAll(o framework.Observer) {
	const l = "0.0.0.0:443"
	o.Opened(l)
	o.Opened(l)
	o.Dropped(l, "connections")
	o.Selection(false, nil)
	o.Selection(true, nil)
	o.Selection(true, keymanager.ErrNoCredential)
	o.Selection(false, errors.New("gone"))
	o.Signature(framework.SignatureEvent{Alias: "web", Duration: 2 * time.Millisecond})
	o.Signature(framework.SignatureEvent{Alias: "web", Duration: time.Millisecond, Err: fmt.Errorf("sign: %w", keymanager.ErrNotHandshake)})
	o.Signature(framework.SignatureEvent{Builder: 1, Alias: "web", Err: errors.New("gone")})
	o.Handshake(framework.HandshakeEvent{Listener: l, Result: "ok", Duration: 3 * time.Millisecond, State: &tls.ConnectionState{DidResume: true}})
	o.Handshake(framework.HandshakeEvent{Listener: l, Result: "failed", Reason: "timeout", Duration: 10 * time.Second})
	o.Closed(framework.ConnectionEvent{Listener: l, In: 100, Out: 2000, Result: "closed"})
	o.Reloaded("keystores", nil)
	o.Reloaded("trust", errors.New("no such file"))
}

func TestEventsAreCounted(t *testing.T) {
	m := New("v1.2.3")
	observeAll(m.Observer())
	wantLines(t, scrape(t, m),
		`tlsd_handshakes_total{listener="0.0.0.0:443",reason="",result="ok"} 1`,
		`tlsd_handshakes_total{listener="0.0.0.0:443",reason="timeout",result="failed"} 1`,
		`tlsd_handshakes_resumed_total{listener="0.0.0.0:443"} 1`,
		`tlsd_handshake_duration_seconds_bucket{listener="0.0.0.0:443",result="ok",le="0.005"} 1`,
		`tlsd_handshake_duration_seconds_sum{listener="0.0.0.0:443",result="failed"} 10`,
		`tlsd_selections_total{result="ok",source="cache"} 1`,
		`tlsd_selections_total{result="none",source="cache"} 1`,
		`tlsd_selections_total{result="ok",source="key_process"} 1`,
		`tlsd_selections_total{result="error",source="key_process"} 1`,
		`tlsd_signatures_total{alias="web",builder_index="0",result="ok"} 1`,
		`tlsd_signatures_total{alias="web",builder_index="0",result="refused"} 1`,
		`tlsd_signatures_total{alias="web",builder_index="1",result="error"} 1`,
		`tlsd_signature_seconds_total{alias="web",builder_index="0"} 0.003`,
		`tlsd_signature_duration_seconds_count 3`,
		`tlsd_connections_total{listener="0.0.0.0:443"} 2`,
		`tlsd_connections_open{listener="0.0.0.0:443"} 1`,
		`tlsd_connections_closed_total{listener="0.0.0.0:443",result="closed"} 1`,
		`tlsd_connections_dropped_total{limit="connections",listener="0.0.0.0:443"} 1`,
		`tlsd_received_bytes_total{listener="0.0.0.0:443"} 100`,
		`tlsd_sent_bytes_total{listener="0.0.0.0:443"} 2000`,
		`tlsd_reloads_total{result="ok",what="keystores"} 1`,
		`tlsd_reloads_total{result="error",what="trust"} 1`,
		`tlsd_reload_successful{what="keystores"} 1`,
		`tlsd_reload_successful{what="trust"} 0`,
		`tlsd_ready 0`,
	)
}

// follow has m follow a server that is never reached, over a keystore with the
// entries given.
func follow(t *testing.T, m *Metrics, store string) *framework.Server {
	t.Helper()
	password := keymanager.Secret("changeit")
	server, err := framework.NewServer(t.Context(), framework.Config{
		Tiers: []keymanager.Tier{pkixcached.Tier()}, InProcess: true,
		Keystores: []keymanager.Source{{Paths: []string{store}, Store: keymanager.PasswordRef{Value: &password}}},
		Listeners: []framework.Listener{{Listen: "127.0.0.1:0"}},
		Observer:  m.Observer(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	m.Follow(server)
	return server
}

// Of each entry the end of its certificate is told, for the generation in use;
// the counters of entries that are gone go with them.
func TestExpiryFollowsTheGeneration(t *testing.T) {
	store := filepath.Join(t.TempDir(), "server.p12")
	ends := time.Now().Add(48 * time.Hour).Truncate(time.Second)
	ca := testca.NewRoot(t, testca.Spec{Name: "root"})
	leaf := ca.Issue(t, testca.Spec{Name: "a", DNS: []string{"a.test"}, NotAfter: ends})
	testca.WritePKCS12(t, store, "changeit", testca.StoreEntry{Alias: "old", Cert: leaf})
	m := New("dev")
	server := follow(t, m, store)
	m.Observer().Signature(framework.SignatureEvent{Alias: "old"})
	wantLines(t, scrape(t, m),
		fmt.Sprintf(`tlsd_certificate_not_after_timestamp_seconds{alias="old",builder_index="0"} %v`, float64(ends.Unix())),
		`tlsd_keymanager_up{tier="pkixcached"} 1`,
		`tlsd_signatures_total{alias="old",builder_index="0",result="ok"} 1`)

	testca.WritePKCS12(t, store, "changeit", testca.StoreEntry{Alias: "new", Cert: leaf})
	if err := server.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := scrape(t, m)
	wantLines(t, text, fmt.Sprintf("tlsd_keystore_generation %d", server.Keys().Generation()),
		fmt.Sprintf(`tlsd_certificate_not_after_timestamp_seconds{alias="new",builder_index="0"} %v`, float64(ends.Unix())))
	if text := scrape(t, m); strings.Contains(text, `alias="old"`) {
		t.Errorf("an entry that is gone is still told of:\n%s", onlyOurs(text))
	}
}

// Aliases come from keystores and plugins, which may hold any number and any
// bytes.
func TestAliasesAreBounded(t *testing.T) {
	m := New("dev")
	o := m.Observer()
	for i := range maxAliases + 500 {
		o.Signature(framework.SignatureEvent{Alias: fmt.Sprintf("alias-%d", i)})
	}
	if n := testutil.CollectAndCount(m.signatures.seconds); n != maxAliases+1 {
		t.Errorf("%d entries are told apart, want %d and one for all others", n, maxAliases)
	}
	wantLines(t, scrape(t, m), `tlsd_signatures_total{alias="",builder_index="",result="ok"} 500`)
	m = New("dev")
	o = m.Observer()
	o.Signature(framework.SignatureEvent{Alias: "\xff\x1b[2J" + strings.Repeat("é", 300)})
	o.Opened("unix:/\xff")
	if text := scrape(t, m); strings.Contains(text, "\x1b") || !strings.Contains(text, "tlsd_signatures_total") {
		t.Errorf("a hostile alias: %s", onlyOurs(text))
	}
}

func TestNamesKeepToConventions(t *testing.T) {
	m := New("dev")
	observeAll(m.Observer())
	problems, err := testutil.GatherAndLint(m.registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	t.Run("promtool", func(t *testing.T) { promtool(t, scrape(t, m), "check", "metrics") })
}

// The page on monitoring has each metric in its table.
func TestPageNamesEachMetric(t *testing.T) {
	page, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(t.TempDir(), "server.p12")
	testca.WritePKCS12(t, store, "changeit", testca.StoreEntry{Alias: "a", Cert: testca.SelfSigned(t, testca.Spec{Name: "a.test", DNS: []string{"a.test"}})})
	m := New("dev")
	follow(t, m, store)
	observeAll(m.Observer())
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		name := f.GetName()
		if strings.HasPrefix(name, "tlsd_") && !strings.Contains(string(page), "| `"+name+"` ") {
			t.Errorf("docs/monitoring.md does not name %s", name)
		}
	}
}

// The sample alerts ask for metrics that there are, and promtool takes them.
func TestSampleAlerts(t *testing.T) {
	const sample = "../../configs/prometheus-alerts.yaml"
	raw, err := os.ReadFile(sample)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`tlsd_[a-z_]+`).FindAllString(string(raw), -1)
	if len(names) == 0 {
		t.Error("no alert asks for a metric")
	}
	for _, name := range names {
		if !strings.Contains(string(page), "| `"+name+"` ") {
			t.Errorf("%s asks for %s, which is not in docs/monitoring.md", sample, name)
		}
	}
	t.Run("promtool", func(t *testing.T) { promtool(t, "", "check", "rules", sample) })
}

// The alert of a reading that failed names the line that is written of each kind.
func TestSampleAlertNamesLogLines(t *testing.T) {
	alerts, err := os.ReadFile("../../configs/prometheus-alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for line, file := range map[string]string{
		"keystore reload failed":                               "../../logging/fields.go",
		"reload failed: the old state stays in use":            "../../cmd/tlsd/reload.go",
		"trust stores and revocation lists: those in use stay": "../watch.go",
	} {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if quoted := `"` + line + `"`; !strings.Contains(string(source), quoted) || !strings.Contains(string(alerts), quoted) {
			t.Errorf("%s: not in both %s and the alerts", quoted, file)
		}
	}
}

// promtool has it check something. It is a large package that CI doesn't install.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("NOT CHECKED: promtool is not installed")
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}
