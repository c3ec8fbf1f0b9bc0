// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestSidecar runs tlsd by the configuration in the Kubernetes sample, on a
// directory as kubelet makes it, before a service that listens where the sample's
// does, and asks what the probes ask.
func TestSidecar(t *testing.T) {
	s := newStore(t, testca.Spec{Name: "w.test", DNS: []string{"w.test"}})
	app := listenOn(t, "tcp", "127.0.0.1:0")
	serveHTTP(t, app, nil, http.HandlerFunc(echoRequest))
	volume := kubeletVolume(t, map[string]string{"keystore.p12": s.path, "password": s.password})
	addr, metrics := freeAddr(t), freeAddr(t)
	config := sampleConfig(t, "sidecar.yaml",
		"/keystore/", volume+"/", `":8443"`, `"`+addr+`"`, "127.0.0.1:8080", app.Addr().String(), `":9100"`, `"`+metrics+`"`, "delay: 5s", "delay: 100ms")
	d := &daemon{addr: addr}
	l := startLineage(t, config)
	l.awaitLog(`"logger":"server","msg":"listening"`, 1)

	if out := get(t, d, s); !strings.Contains(out, "X-Forwarded-Proto: https") {
		t.Errorf("the service answers\n%s", out)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		resp, err := http.Get("http://" + metrics + path)
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s: %s", path, resp.Status, body)
		}
		resp.Body.Close()
	}
}

// sampleConfig returns tlsd.yaml of the ConfigMap in a sample, with each old
// replaced by the new that follows it.
func sampleConfig(t *testing.T, name string, oldNew ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../../deploy/kubernetes", name))
	if err != nil {
		t.Fatal(err)
	}
	for dec := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var document struct {
			Kind string
			Data map[string]string
		}
		if err := dec.Decode(&document); err != nil {
			t.Fatalf("%s: no ConfigMap with tlsd.yaml: %v", name, err)
		}
		config, ok := document.Data["tlsd.yaml"]
		if document.Kind != "ConfigMap" || !ok {
			continue
		}
		for i := 0; i < len(oldNew); i += 2 {
			if !strings.Contains(config, oldNew[i]) {
				t.Fatalf("%s: no %s in\n%s", name, oldNew[i], config)
			}
			config = strings.ReplaceAll(config, oldNew[i], oldNew[i+1])
		}
		return config
	}
}

// kubeletVolume lays files out as kubelet does: links by way of ..data, which is
// swapped as one.
func kubeletVolume(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, from := range files {
		copyFile(t, from, filepath.Join(dir, "..2026_01", name))
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..2026_01", filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	return dir
}
