// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// watched is a running tlsd with both of its addresses for operators.
type watched struct {
	*daemon
	metrics, socket string
	store           store
	curl            string
}

func startWatched(t *testing.T, args ...string) *watched {
	t.Helper()
	w := &watched{
		metrics: freeAddr(t), socket: filepath.Join(t.TempDir(), "admin.sock"), curl: testca.Tool(t, "curl"),
		store: newStore(t, testca.Spec{Name: "web", DNS: []string{"web.test"}}),
	}
	args = append(append(w.store.args(), "--metrics", w.metrics, "--admin", "unix:"+w.socket), args...)
	w.daemon = start(t, args...)
	w.await(wanted{"/readyz", 200, "ready"})
	return w
}

// wanted is an answer that is waited for.
type wanted struct {
	path string
	code int
	text string // that it holds
}

// ask asks at the metrics address and returns status and text; 0: nobody
// answered.
func (w *watched) ask(path string) (int, string) {
	w.t.Helper()
	return w.curled("http://" + w.metrics + path)
}

// order asks at the admin socket.
func (w *watched) order(path string, args ...string) (int, string) {
	w.t.Helper()
	return w.curled(append(args, "--unix-socket", w.socket, "http://tlsd"+path)...)
}

func (w *watched) curled(args ...string) (int, string) {
	w.t.Helper()
	out, _ := command(w.t, w.curl, append([]string{"-s", "-m", "10", "-w", "\n%{http_code}"}, args...)...)
	n := strings.LastIndexByte(out, '\n')
	code, _ := strconv.Atoi(out[n+1:])
	return code, out[:max(n, 0)]
}

func (w *watched) await(want wanted) {
	w.t.Helper()
	code, text := 0, ""
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if code, text = w.ask(want.path); code == want.code && strings.Contains(text, want.text) {
			return
		}
	}
	w.t.Fatalf("%s: got %d %q, want %d %q\n%s", want.path, code, text, want.code, want.text, w.log)
}

// handshake makes a full handshake and returns what curl says.
func (w *watched) handshake() {
	w.t.Helper()
	port := w.addr[strings.LastIndexByte(w.addr, ':')+1:]
	mustCommand(w.t, w.curl, "-s", "--cacert", w.store.ca, "--resolve", "web.test:"+port+":127.0.0.1", "https://web.test:"+port+"/")
}

// metric returns the value of one line of /metrics.
func (w *watched) metric(series string) (float64, bool) {
	w.t.Helper()
	_, text := w.ask("/metrics")
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	v, err := strconv.ParseFloat(m[1], 64)
	return v, err == nil
}

func (w *watched) awaitMetric(series string, good func(float64) bool) {
	w.t.Helper()
	v, there := 0.0, false
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if v, there = w.metric(series); there && good(v) {
			return
		}
	}
	w.t.Fatalf("%s is %v (there: %v)\n%s", series, v, there, w.log)
}

func is(want float64) func(float64) bool { return func(v float64) bool { return v == want } }

func atLeast(want float64) func(float64) bool { return func(v float64) bool { return v >= want } }

func TestMetricsOfARunningServer(t *testing.T) {
	t.Parallel()
	w := startWatched(t)
	for range 3 {
		w.handshake()
	}
	of := fmt.Sprintf(`listener="%s"`, w.addr)
	w.awaitMetric(`tlsd_handshakes_total{`+of+`,reason="",result="ok"}`, is(3))
	w.awaitMetric(`tlsd_handshake_duration_seconds_count{`+of+`,result="ok"}`, is(3))
	w.awaitMetric(`tlsd_signatures_total{alias="web",builder_index="0",result="ok"}`, is(3))
	w.awaitMetric(`tlsd_signature_seconds_total{alias="web",builder_index="0"}`, func(v float64) bool { return v > 0 && v < 10 })
	w.awaitMetric(`tlsd_selections_total{result="ok",source="key_process"}`, atLeast(1))
	w.awaitMetric(`tlsd_connections_total{`+of+`}`, atLeast(3))
	w.awaitMetric(`tlsd_connections_open{`+of+`}`, is(0))
	w.awaitMetric(`tlsd_received_bytes_total{`+of+`}`, atLeast(600))
	w.awaitMetric(`tlsd_sent_bytes_total{`+of+`}`, atLeast(1500))
	w.awaitMetric(`tlsd_keymanager_up{tier="pkixcached"}`, is(1))
	w.awaitMetric(`tlsd_keymanager_resident_memory_bytes`, atLeast(1<<20))
	w.awaitMetric(`tlsd_keystore_generation`, atLeast(1))
	ends := float64(time.Now().Add(89 * 24 * time.Hour).Unix()) // a leaf has 90 days
	w.awaitMetric(`tlsd_certificate_not_after_timestamp_seconds{alias="web",builder_index="0"}`, atLeast(ends))
	if _, err := command(t, w.curl, "-sk", "--ciphers", "AES128-SHA", "--tls-max", "1.2", "https://"+w.addr+"/"); err == nil {
		t.Error("a client without a suite in common was served")
	}
	w.awaitMetric(`tlsd_handshakes_total{`+of+`,reason="protocol",result="failed"}`, is(1))
	_, text := w.ask("/metrics")
	t.Run("promtool", func(t *testing.T) {
		promtool, err := exec.LookPath("promtool")
		if err != nil {
			t.Skip("NOT CHECKED: promtool is not installed")
		}
		if out, err := commandWithInput(t, text, promtool, "check", "metrics"); err != nil {
			t.Errorf("promtool: %v\n%s", err, out)
		}
	})
}

func TestDroppedConnectionsAreCounted(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "tlsd.yaml")
	writeFile(t, conf, []byte("limits: {connections: 1}\n"))
	w := startWatched(t, "--config", conf)
	for range 2 {
		c, err := net.Dial("tcp", w.addr)
		if err == nil { // else it was faster closed than opened
			defer c.Close()
		}
	}
	w.awaitMetric(fmt.Sprintf(`tlsd_connections_dropped_total{limit="connections",listener="%s"}`, w.addr), atLeast(1))
	w.awaitMetric(fmt.Sprintf(`tlsd_connections_open{listener="%s"}`, w.addr), is(1))
}

func TestAdminOfARunningServer(t *testing.T) {
	t.Parallel()
	w := startWatched(t)
	info, err := os.Stat(w.socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has mode %v, %v", info.Mode(), err)
	}
	if code, text := w.ask("/log"); code != 404 {
		t.Errorf("the metrics address shows /log: %d %s", code, text)
	}
	code, text := w.order("/keystores")
	var listing struct {
		Generation uint64 `json:"generation"`
		Entries    []struct {
			Alias  string   `json:"alias"`
			Names  []string `json:"names"`
			Usable bool     `json:"usable"`
		} `json:"entries"`
	}
	if err := json.Unmarshal([]byte(text), &listing); err != nil || code != 200 {
		t.Fatalf("%d %s: %v", code, text, err)
	}
	if e := listing.Entries; len(e) != 1 || e[0].Alias != "web" || !e[0].Usable || e[0].Names[0] != "web.test" || listing.Generation == 0 {
		t.Errorf("got %s", text)
	}
	if code, text := w.order("/reload", "-X", "POST"); code != 200 || !strings.HasPrefix(text, "reloaded, generation") {
		t.Errorf("reload: %d %s", code, text)
	}
	w.awaitMetric(`tlsd_reloads_total{result="ok",what="keystores"}`, atLeast(1))
	if code, text := w.order("/debug/pprof/"); code != 404 {
		t.Errorf("profiles without admin.pprof: %d %s", code, text)
	}
}

// Levels are changed in front and key process without a restart, and a key
// process that takes the place of another has them too.
func TestLogLevelsReachTheKeyProcess(t *testing.T) {
	t.Parallel()
	w := startWatched(t)
	w.handshake()
	if strings.Contains(w.log.String(), `"signed"`) {
		t.Fatalf("debug lines without having asked:\n%s", w.log)
	}
	if code, text := w.order("/log", "-X", "PUT", "-d", `{"keymanager": "debug", "server": "debug"}`); code != 200 || !strings.Contains(text, `"keymanager": "debug"`) {
		t.Fatalf("%d %s", code, text)
	}
	w.handshake()
	w.awaitLog(`"logger":"keymanager","msg":"signed"`) // said by the key process
	w.awaitLog(`"level":"debug"`)
	w.awaitLog(`"logger":"server"`)
	w.killKeyProcess()
	w.awaitMetric("tlsd_keymanager_restarts_total", is(1))
	w.await(wanted{"/readyz", 200, "ready"})
	const signed = `"msg":"signed"`
	before := w.count(signed)
	w.handshake()
	w.awaitLines(before+1, signed) // by the next key process
	if code, text := w.order("/log", "-X", "PUT", "-d", `{"keymanager": null, "server": null}`); code != 200 || strings.Contains(text, "debug") {
		t.Fatalf("%d %s", code, text)
	}
	w.handshake()
	if code, text := w.order("/log", "-X", "PUT", "-d", `{"keymanager": "debug"}`); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	w.handshake() // of which the line comes after any of the one before
	if n := len(w.awaitLines(before+2, signed)) - before; n != 2 {
		t.Errorf("%d signatures told of, one after that was turned off:\n%s", n, w.log)
	}
}

// killKeyProcess kills tlsd's children.
func (w *watched) killKeyProcess() {
	w.t.Helper()
	children := childrenOf(w.cmd.Process.Pid)
	if len(children) == 0 {
		w.t.Fatalf("no key process\n%s", w.log)
	}
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// A key process that can't come back makes the front not ready, and not dead.
func TestFaultReadyzWhileTheKeyProcessCrashes(t *testing.T) {
	t.Parallel()
	w := startWatched(t)
	away := w.store.path + ".away"
	if err := os.Rename(w.store.path, away); err != nil {
		t.Fatal(err)
	}
	w.killKeyProcess()
	w.await(wanted{"/readyz", 503, "not ready: key manager"})
	w.awaitMetric(`tlsd_keymanager_up{tier="pkixcached"}`, is(0))
	w.awaitMetric("tlsd_ready", is(0))
	if code, text := w.ask("/healthz"); code != 200 {
		t.Errorf("/healthz: %d %s", code, text)
	}
	if out, err := command(t, bin("tlsd"), "health", "--ready", "--metrics", w.metrics); err == nil || !strings.Contains(out, "not ready: key manager") {
		t.Errorf("tlsd health --ready: %v, %s", err, out)
	}
	if err := os.Rename(away, w.store.path); err != nil {
		t.Fatal(err)
	}
	w.await(wanted{"/readyz", 200, "ready"})
	w.awaitMetric("tlsd_keymanager_restarts_total", atLeast(1))
	w.handshake()
}

// From SIGTERM on /readyz says no, while connections are still accepted.
func TestReadyzDuringDrainDelay(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "tlsd.yaml")
	writeFile(t, conf, []byte("drain: {delay: 6s}\n"))
	w := startWatched(t, "--config", conf)
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	w.await(wanted{"/readyz", 503, "not ready: ending"})
	w.handshake()
	if code, _ := w.ask("/healthz"); code != 200 {
		t.Errorf("/healthz: %d", code)
	}
	w.ended = true
	select {
	case err := <-w.exited:
		if err != nil {
			t.Errorf("tlsd ended with %v\n%s", err, w.log)
		}
	case <-time.After(20 * time.Second):
		w.cmd.Process.Kill()
		t.Errorf("tlsd does not end\n%s", w.log)
	}
	if _, err := os.Stat(w.socket); err == nil {
		t.Error("the admin socket is left behind")
	}
}

// A keystore that can't be used is seen in the metrics, and the old one serves.
func TestFaultFailedReloadShowsInMetrics(t *testing.T) {
	t.Parallel()
	w := startWatched(t)
	good, err := os.ReadFile(w.store.path)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, w.store.path, []byte("no keystore"))
	w.awaitMetric(`tlsd_reload_successful{what="keystores"}`, is(0))
	w.awaitMetric(`tlsd_reloads_total{result="error",what="keystores"}`, atLeast(1))
	w.handshake()
	w.await(wanted{"/readyz", 200, "ready"})
	writeFile(t, w.store.path, good)
	w.awaitMetric(`tlsd_reload_successful{what="keystores"}`, is(1))
}

func TestHealthCommand(t *testing.T) {
	t.Parallel()
	w := startWatched(t)
	port := w.metrics[strings.LastIndexByte(w.metrics, ':'):]
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"metrics", []string{"--metrics", w.metrics}, 0, "ok\n"},
		{"ready", []string{"--ready", "--metrics", w.metrics}, 0, "ready\n"},
		{"all_addresses", []string{"--ready", "--metrics", "0.0.0.0" + port}, 0, "ready\n"},
		{"no_host", []string{"--metrics", port}, 0, "ok\n"},
		{"admin", []string{"--ready", "--admin", "unix:" + w.socket}, 0, "ready\n"},
		{"nobody_there", []string{"--metrics", freeAddr(t)}, 1, "connection refused"},
		{"nothing_given", nil, 2, "give --metrics or --admin"},
		{"no_port", []string{"--metrics", "127.0.0.1:0"}, 2, "was chosen when tlsd started"},
		{"wrong_flag", []string{"--metrics", "here"}, 2, "is no address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), bin("tlsd"), append([]string{"health"}, tt.args...)...)
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.Contains(string(out), tt.want) {
				t.Errorf("got %d %s, want %d %s", code, out, tt.code, tt.want)
			}
		})
	}
}

// An address in use ends the start before there is a key process, with the flag
// that gives another.
func TestMonitorAddressInUse(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	for _, flag := range []string{"--metrics", "--admin"} {
		cmd := exec.CommandContext(t.Context(), bin("tlsd"), "--listen", freeAddr(t), flag, ln.Addr().String())
		cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), "address already in use") || !strings.Contains(string(out), flag+" ADDR") {
			t.Errorf("%s: got %d %s", flag, code, out)
		}
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	conf := filepath.Join(t.TempDir(), "tlsd.yaml")
	writeFile(t, conf, []byte("admin: {pprof: true}\n"))
	w := startWatched(t, "--config", conf)
	if code, text := w.order("/debug/pprof/goroutine?debug=1"); code != 200 || !strings.Contains(text, "goroutine profile") {
		t.Errorf("got %d %.200s", code, text)
	}
	if code, _ := w.order("/debug/pprof/profile?seconds=1", "-o", os.DevNull); code != 200 {
		t.Errorf("processor profile: %d", code)
	}
	if code, _ := w.ask("/debug/pprof/"); code != 404 {
		t.Errorf("the metrics address has profiles: %d", code)
	}
}

// Tickets that were rolled are not taken any more: the next handshake is a full
// one, and the one after it resumes again.
func TestTicketsAreRolled(t *testing.T) {
	t.Parallel()
	w := startWatched(t)
	client := &tls.Config{RootCAs: w.store.root.Pool(), ServerName: "web.test", ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	for i, want := range []bool{false, true, false, true} {
		if i == 2 {
			if code, text := w.order("/tickets/roll", "-X", "POST"); code != 200 || !strings.HasPrefix(text, "rolled") {
				t.Fatalf("%d %s", code, text)
			}
		}
		if got := w.visit(client); got != want {
			t.Errorf("handshake %d: resumed %v, want %v", i+1, got, want)
		}
	}
	w.awaitMetric(fmt.Sprintf(`tlsd_handshakes_resumed_total{listener="%s"}`, w.addr), is(2))
}

// visit reads the built-in page and says whether the session was resumed.
func (w *watched) visit(client *tls.Config) bool {
	w.t.Helper()
	c, err := tls.Dial("tcp", w.addr, client)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprint(c, "GET / HTTP/1.0\r\n\r\n")
	_, _ = io.Copy(io.Discard, c) // the ticket comes before the page
	return c.ConnectionState().DidResume
}

// A configuration file that can't be taken is seen in the metrics, and told to
// whoever asked for a reload; the old one is in force.
func TestFaultFailedConfigurationShowsInMetrics(t *testing.T) {
	t.Parallel()
	conf := writeFile(t, filepath.Join(t.TempDir(), "tlsd.yaml"), []byte("plugin_wait: 2s\n"))
	w := startWatched(t, "--config", conf)
	writeFile(t, conf, []byte("plugin_wait: soon\n"))
	w.awaitMetric(`tlsd_reload_successful{what="config"}`, is(0))
	if code, text := w.order("/reload", "-X", "POST"); code != 500 || !strings.Contains(text, `plugin_wait: "soon" is no duration`) || !strings.Contains(text, "the old state stays in use") {
		t.Errorf("got %d %s", code, text)
	}
	w.await(wanted{"/readyz", 200, "ready"})
	w.handshake()
	writeFile(t, conf, []byte("plugin_wait: 3s\n"))
	w.awaitMetric(`tlsd_reload_successful{what="config"}`, is(1))
}
