// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// frontEnv makes the test binary be a front: it holds the path of a frontSpec.
// It is a process of its own since the test, which makes the key, has it in
// memory.
const frontEnv = "FRAMEWORK_TEST_FRONT"

// frontSpec is what the front of the memory test serves.
type frontSpec struct {
	Tier     string
	Paths    []string
	Password string // file
}

// frontReady is what the front prints when it serves.
type frontReady struct {
	Addr   string
	KeyPID int
}

// runFront serves until it is asked to end.
func runFront(specPath string) error {
	b, err := os.ReadFile(specPath)
	if err != nil {
		return err
	}
	var spec frontSpec
	if err := json.Unmarshal(b, &spec); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := NewServer(ctx, Config{
		KeyManager: spec.Tier, Tiers: testTiers(),
		Keystores: []keymanager.Source{{Paths: spec.Paths, Store: keymanager.PasswordRef{File: spec.Password}}},
		Listeners: []Listener{{Listen: "127.0.0.1:0"}},
	})
	if err != nil {
		return err
	}
	ready := frontReady{s.Addrs()[0].String(), s.Keys().Manager().Describe().PID}
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return err
	}
	return s.Run(ctx)
}

// startFront starts a front and returns it, and what it says of itself.
func startFront(t *testing.T, spec frontSpec) (*os.Process, frontReady) {
	t.Helper()
	b, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "front.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), frontEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("front: %v", err)
		}
	})
	var ready frontReady
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		t.Fatalf("front: %v", err)
	}
	return cmd.Process, ready
}

// TestFrontNeverHoldsKeyOrPassword searches the memory of front and key process
// under handshakes. That the search finds what is there is shown by the key
// process of a tier that keeps its keys.
func TestFrontNeverHoldsKeyOrPassword(t *testing.T) {
	for _, tier := range memoryTiers() {
		for _, kt := range []testca.KeyType{testca.RSA2048, testca.P256, testca.Ed25519} {
			t.Run(tier.name+"/"+string(kt), func(t *testing.T) {
				root := testca.NewRoot(t, testca.Spec{Name: "root"})
				leaf := root.Issue(t, testca.Spec{Name: "a.test", DNS: []string{"a.test"}, Key: kt})
				password := "searched-for-" + rootSerial(root)
				spec := tier.store(t, leaf, password)
				front, ready := startFront(t, spec)
				for range 20 {
					handshakeWith(t, ready.Addr, root)
				}
				secrets := secretsOf(leaf.Key)
				inFront := search(t, front.Pid, append(secrets, secret{"password", []byte(password)}))
				if len(inFront) > 0 {
					t.Errorf("the front holds %v", inFront)
				}
				inKeys := search(t, ready.KeyPID, secrets)
				if tier.keeps && len(inKeys) == 0 {
					t.Error("the key process holds nothing, so that the search shows nothing")
				}
			})
		}
	}
}

// memoryTier is a tier whose processes are searched.
type memoryTier struct {
	name  string
	keeps bool // decrypted keys between handshakes
	store func(t *testing.T, leaf *testca.Cert, password string) frontSpec
}

func memoryTiers() []memoryTier {
	return []memoryTier{{tierPEM, true, func(t *testing.T, leaf *testca.Cert, _ string) frontSpec {
		dir := t.TempDir()
		spec := frontSpec{Tier: tierPEM, Paths: []string{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}}
		testca.WritePEM(t, spec.Paths[0], spec.Paths[1], leaf)
		return spec
	}}}
}

func rootSerial(c *testca.Cert) string { return c.Cert.SerialNumber.Text(36) }

func handshakeWith(t *testing.T, addr string, root *testca.Cert) {
	t.Helper()
	c, err := tls.Dial("tcp", addr, clientOf(root, "a.test"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "GET / HTTP/1.0\r\n\r\n")
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Error(err)
	}
}

// secret is a sequence of bytes that is searched for.
type secret struct {
	name  string
	bytes []byte
}

// secretsOf returns what gives a key away, as big-endian numbers and as
// little-endian ones, which is how Go's arithmetic keeps them.
func secretsOf(key crypto.Signer) []secret {
	var all []secret
	add := func(name string, big []byte) {
		little := slices.Clone(big)
		slices.Reverse(little)
		all = append(all, secret{name, big}, secret{name + " (little-endian)", little})
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		add("d", k.D.Bytes())
		for i, p := range k.Primes {
			add(fmt.Sprintf("prime %d", i+1), p.Bytes())
		}
		add("d mod p-1", k.Precomputed.Dp.Bytes())
		add("d mod q-1", k.Precomputed.Dq.Bytes())
		add("q^-1 mod p", k.Precomputed.Qinv.Bytes())
	case *ecdsa.PrivateKey:
		add("d", k.D.FillBytes(make([]byte, (k.Curve.Params().BitSize+7)/8)))
	case ed25519.PrivateKey:
		add("seed", k.Seed())
	}
	return all
}

// search returns the names of the secrets that are in the memory of a process.
func search(t *testing.T, pid int, secrets []secret) []string {
	t.Helper()
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		// A key process is not dumpable, so that only root may.
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	defer mem.Close()
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	var found []string
	var total int64
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		var from, to uint64
		var perms string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &perms); err != nil {
			t.Fatal(err)
		}
		if perms[0] != 'r' || strings.Contains(lines.Text(), "[v") { // vvar and vsyscall are the kernel's
			continue
		}
		region := make([]byte, to-from)
		n, _ := mem.ReadAt(region, int64(from)) // what isn't there any more holds nothing
		total += int64(n)
		for _, s := range secrets {
			if bytes.Contains(region[:n], s.bytes) && !slices.Contains(found, s.name) {
				found = append(found, s.name)
			}
		}
	}
	if total < 1<<20 {
		t.Fatalf("only %d bytes of process %d could be read", total, pid)
	}
	return found
}
