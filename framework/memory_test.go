// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestFrontNeverHoldsKeyOrPassword searches the memory of front and key process
// under handshakes. That the search finds what is there is shown by the key
// process of a tier that keeps its keys.
func TestFrontNeverHoldsKeyOrPassword(t *testing.T) {
	for tier, keeps := range map[string]bool{"sunx509": true, "pkix": false, "pkixcached": true} {
		t.Run(tier, func(t *testing.T) {
			root := testca.NewRoot(t, testca.Spec{Name: "root"})
			var secrets []secret
			var entries []testca.StoreEntry
			for _, kt := range []testca.KeyType{testca.RSA2048, testca.P256, testca.Ed25519} {
				name := strings.ToLower(string(kt)) + ".test"
				c := root.Issue(t, testca.Spec{DNS: []string{name}, Key: kt})
				entries = append(entries, testca.StoreEntry{Alias: name, Cert: c})
				secrets = append(secrets, secretsOf(name, c.Key)...)
			}
			password := "searched for " + root.Cert.SerialNumber.Text(36)
			src := writeStore(t, password, entries...)
			front, ready := startFront(t, frontSpec{Tier: tier, Path: src.Paths[0], Password: src.Store.File})
			for _, e := range entries {
				for range 10 {
					askFor(t, ready.Addr, e.Alias)
				}
			}
			if found := search(t, front.Pid, append(secrets, secret{"password", []byte(password)})); len(found) > 0 {
				t.Errorf("the front holds %v", found)
			}
			found := search(t, ready.KeyPID, secrets)
			for _, e := range entries {
				ofEntry := func(s string) bool { return strings.HasPrefix(s, e.Alias) }
				if keeps && !slices.ContainsFunc(found, ofEntry) {
					t.Errorf("the key process holds nothing of %s, so that the search shows nothing", e.Alias)
				}
			}
		})
	}
}

// askFor makes a connection with that SNI. Which certificate comes is not looked
// at: sunx509 doesn't look at names.
func askFor(t *testing.T, addr, name string) {
	t.Helper()
	c, err := tls.Dial("tcp", addr, &tls.Config{ServerName: name, InsecureSkipVerify: true})
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
func secretsOf(owner string, key crypto.Signer) []secret {
	var all []secret
	add := func(name string, big []byte) {
		little := slices.Clone(big)
		slices.Reverse(little)
		all = append(all, secret{owner + ": " + name, big}, secret{owner + ": " + name + ", little-endian", little})
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
		//lint:ignore SA1019 deprecated for making keys by hand; this looks for one
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
	var found []string
	var total int
	for _, r := range regions(t, pid) {
		total += r.read(mem, func(chunk []byte) {
			for _, s := range secrets {
				if bytes.Contains(chunk, s.bytes) && !slices.Contains(found, s.name) {
					found = append(found, s.name)
				}
			}
		})
	}
	if total < 1<<20 {
		t.Fatalf("only %d bytes of process %d could be read", total, pid)
	}
	return found
}

// region is a range of addresses with something in it.
type region struct{ from, to uint64 }

// regions returns what a process can read and has in memory.
func regions(t *testing.T, pid int) []region {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []region
	var now region
	var perms string
	var kept uint64 // kB
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &now.from, &now.to, &perms); n == 3 {
			continue
		}
		if n, _ := fmt.Sscanf(lines.Text(), "Rss: %d", &kept); n == 1 && kept > 0 && perms[0] == 'r' {
			all = append(all, now)
		}
	}
	return all
}

// read calls f with all of the region, in chunks that overlap by more than a
// secret is long, and returns how many bytes there were.
func (r region) read(mem io.ReaderAt, f func(chunk []byte)) (total int) {
	const size, overlap = 1 << 20, 4 << 10
	chunk := make([]byte, size)
	for at := r.from; at < r.to; at += size - overlap {
		n, err := mem.ReadAt(chunk[:min(size, r.to-at)], int64(at))
		f(chunk[:n])
		total += n
		if err != nil {
			break // the kernel's own, or gone
		}
	}
	return total
}
