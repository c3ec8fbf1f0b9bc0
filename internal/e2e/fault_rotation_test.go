// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// Keystores that change under a running tlsd, in the ways of the field. All the
// while a client makes full handshakes: none may fail, and the certificates may
// come in no other order than they were put there.

const rotationPassword = "changeit"

// rotation is a tlsd whose keystore changes, and what its client was served.
type rotation struct {
	*testing.T
	tier   string
	root   *testca.Cert
	dir    string
	client *tls.Config
	d      *daemon

	mu   sync.Mutex
	seen []string // common names of the leaves, each where it is not the one before
}

// onEachFollower plays a case with each tier that sees changes by itself.
func onEachFollower(t *testing.T, play func(r *rotation)) {
	for _, tier := range []string{"pkixcached", "pkix"} {
		t.Run(tier, func(t *testing.T) {
			t.Parallel()
			play(newRotation(t, tier))
		})
	}
}

func newRotation(t *testing.T, tier string) *rotation {
	root := rootOf(t, testca.P256)
	r := &rotation{T: t, tier: tier, root: root, dir: t.TempDir()}
	r.client = &tls.Config{RootCAs: root.Pool(), ServerName: "w.test"}
	writeFile(t, r.path("pass"), []byte(rotationPassword))
	return r
}

func (r *rotation) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rotation) leaf(name string) *testca.Cert {
	return issue(r.T, r.root, testca.Spec{Name: name})
}

// store returns a keystore of one entry whose alias and common name is name.
func (r *rotation) store(name string) []byte {
	return r.storeOf(testca.StoreEntry{Alias: name, Cert: r.leaf(name)})
}

func (r *rotation) storeOf(entries ...testca.StoreEntry) []byte {
	return testca.PKCS12{}.Encode(r.T, rotationPassword, entries...)
}

// pem returns a leaf and its key in one file of a length that all have.
func (r *rotation) pem(name string) []byte {
	c := r.leaf(name)
	b := append(c.CertPEM(), c.KeyPEM()...)
	return append(b, strings.Repeat("\n", 4096-len(b))...)
}

// start runs tlsd on a keystore, and the client until the test ends.
func (r *rotation) start(keystore string, args ...string) {
	r.Helper()
	config := writeFile(r.T, r.path("tlsd.yaml"), []byte("reload_poll: 1s\n"))
	r.d = start(r.T, append([]string{"--config", config, "--keymanager", r.tier, "--keystore", keystore,
		"--keystore-password-file", r.path("pass")}, args...)...)
	ctx, cancel := context.WithCancel(context.Background())
	var asking sync.WaitGroup
	asking.Go(func() {
		for ctx.Err() == nil {
			r.ask()
			time.Sleep(5 * time.Millisecond)
		}
	})
	r.Cleanup(func() { cancel(); asking.Wait() })
}

// ask makes one full handshake, which verifies the chain and the signature by
// its leaf's key.
func (r *rotation) ask() {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", r.d.addr, r.client)
	if err != nil {
		r.Errorf("handshake while %q is served: %v", r.served(), err)
		return
	}
	defer conn.Close()
	name := conn.ConnectionState().PeerCertificates[0].Subject.CommonName
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) == 0 || r.seen[len(r.seen)-1] != name {
		r.seen = append(r.seen, name)
	}
}

func (r *rotation) served() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// until waits until exactly these were served, one after the other.
func (r *rotation) until(names ...string) {
	r.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if slices.Equal(r.served(), names) {
			return
		}
	}
	r.Fatalf("served were %q, want %q\n%s", r.served(), names, r.d.log)
}

// refused waits for the line that says why new content is not in use, and checks
// that what was served still is and that there is no second line.
func (r *rotation) refused(why ...string) {
	r.Helper()
	const line = "keystore reload failed"
	r.d.awaitLog(line)
	before := r.served()
	r.ask()
	if !slices.Equal(r.served(), before) {
		r.Errorf("served were %q, and after a failed reload %q", before, r.served())
	}
	text := r.d.log.String()
	if n := strings.Count(text, line); n != 1 {
		r.Errorf("%d lines about one failed reload:\n%s", n, text)
	}
	at := strings.Index(text, line)
	for _, w := range append(why, `"level":"error"`) {
		start, end := strings.LastIndexByte(text[:at], '\n')+1, at+strings.IndexByte(text[at:]+"\n", '\n')
		if !strings.Contains(text[start:end], w) {
			r.Errorf("no %q in %s", w, text[start:end])
		}
	}
}

// replace puts content in a file's place by a rename.
func (r *rotation) replace(path string, content []byte) {
	r.Helper()
	writeFile(r.T, path+".new", content)
	r.must(os.Rename(path+".new", path))
}

func (r *rotation) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// TestFaultKeystoreReplaced is case R02: by rename, by an editor, in place.
func TestFaultKeystoreReplaced(t *testing.T) {
	onEachFollower(t, func(r *rotation) {
		ks := writeFile(r.T, r.path("ks.p12"), r.store("old"))
		r.start(ks)
		r.until("old")
		r.replace(ks, r.store("renamed"))
		r.until("old", "renamed")
		r.must(os.Rename(ks, ks+"~"))
		writeFile(r.T, ks, r.store("edited"))
		r.must(os.Remove(ks + "~"))
		r.until("old", "renamed", "edited")
		writeFile(r.T, ks, r.store("written"))
		r.until("old", "renamed", "edited", "written")
	})
}

// TestFaultKubernetesSecret is case R01: the links of a mounted Secret, swapped
// three times.
func TestFaultKubernetesSecret(t *testing.T) {
	onEachFollower(t, func(r *rotation) {
		swap := func(n int) string {
			name, c := fmt.Sprint("gen", n), r.leaf(fmt.Sprint("gen", n))
			r.must(os.Mkdir(r.path(".."+name), 0o700))
			testca.WritePEM(r.T, r.path(".."+name+"/tls.crt"), r.path(".."+name+"/tls.key"), c)
			r.must(os.Symlink(".."+name, r.path("..data_tmp")))
			r.must(os.Rename(r.path("..data_tmp"), r.path("..data")))
			r.must(os.RemoveAll(r.path(fmt.Sprint("..gen", n-1))))
			return name
		}
		served := []string{swap(0)}
		for _, f := range []string{"tls.crt", "tls.key"} {
			r.must(os.Symlink("..data/"+f, r.path(f)))
		}
		r.start(r.path("tls.crt") + "," + r.path("tls.key"))
		r.until(served...)
		for n := range 3 {
			served = append(served, swap(n+1))
			r.until(served...)
		}
	})
}

// TestFaultPairInTwoSteps is case R05: the old pair is served until the new one
// is whole, in either order.
func TestFaultPairInTwoSteps(t *testing.T) {
	for _, order := range []string{"certificate_first", "key_first"} {
		t.Run(order, func(t *testing.T) {
			onEachFollower(t, func(r *rotation) {
				cert, key, next := r.path("tls.crt"), r.path("tls.key"), r.leaf("new")
				testca.WritePEM(r.T, cert, key, r.leaf("old"))
				r.start(cert + "," + key)
				r.until("old")
				steps := []func(){
					func() { r.replace(cert, next.CertPEM()) },
					func() { r.replace(key, next.KeyPEM()) },
				}
				if order == "key_first" {
					slices.Reverse(steps)
				}
				steps[0]()
				r.refused(cert, key, "does not match")
				steps[1]()
				r.until("old", "new")
			})
		})
	}
}

// TestFaultUselessKeystore is case R06 and what a reload may do to an entry by
// case N06: valid files that nothing can be served from, or not what was.
func TestFaultUselessKeystore(t *testing.T) {
	for name, tt := range map[string]struct {
		content func(r *rotation) []byte
		why     string
	}{
		"truststore": {func(r *rotation) []byte {
			return r.storeOf(testca.StoreEntry{Alias: "ca", Cert: r.root, Trusted: true})
		}, "no key entry"},
		"key_of_another": {func(r *rotation) []byte { return r.storeOf(r.stray("old")) }, "does not match"},
		"one_is_spoilt": {func(r *rotation) []byte {
			return r.storeOf(r.stray("old"), testca.StoreEntry{Alias: "b", Cert: r.leaf("b")})
		}, "does not match"},
		"rsassa_pss_alone": {(*rotation).pssStore, "RSASSA-PSS"},
		"half_written":     {func(r *rotation) []byte { b := r.store("torn"); return b[:len(b)/2] }, "breaks off"},
		"other_password": {func(r *rotation) []byte {
			return testca.PKCS12{}.Encode(r.T, "another", testca.StoreEntry{Alias: "a", Cert: r.leaf("a")})
		}, "wrong password"},
	} {
		t.Run(name, func(t *testing.T) {
			onEachFollower(t, func(r *rotation) {
				bad := tt.content(r)
				ks := writeFile(r.T, r.path("ks.p12"), r.store("old"))
				r.start(ks)
				r.until("old")
				writeFile(r.T, ks, bad)
				r.refused(ks, tt.why)
				writeFile(r.T, ks, r.store("new"))
				r.until("old", "new")
			})
		})
	}
}

// stray is an entry whose key is not its certificate's.
func (r *rotation) stray(alias string) testca.StoreEntry {
	return testca.StoreEntry{Alias: alias, Cert: r.leaf(alias), Key: testca.NewKey(r.T, testca.P256)}
}

func (r *rotation) pssStore() []byte {
	openssl := testca.Tool(r.T, "openssl")
	mustCommand(r.T, openssl, "req", "-x509", "-newkey", "rsa-pss", "-pkeyopt", "rsa_keygen_bits:2048", "-nodes", "-subj", "/CN=w.test",
		"-keyout", r.path("pss.key"), "-out", r.path("pss.crt"))
	mustCommand(r.T, openssl, "pkcs12", "-export", "-inkey", r.path("pss.key"), "-in", r.path("pss.crt"), "-name", "pss",
		"-passout", "pass:"+rotationPassword, "-out", r.path("pss.p12"))
	b, err := os.ReadFile(r.path("pss.p12"))
	r.must(err)
	return b
}

// TestFaultKeystoreAway is case R07, for the file and for its directory.
func TestFaultKeystoreAway(t *testing.T) {
	onEachFollower(t, func(r *rotation) {
		dir := r.path("dir")
		ks := filepath.Join(dir, "ks.p12")
		r.must(os.Mkdir(dir, 0o700))
		writeFile(r.T, ks, r.store("old"))
		r.start(ks)
		r.until("old")
		r.must(os.RemoveAll(dir))
		r.refused(ks, "no such file")
		r.must(os.Mkdir(dir, 0o700))
		writeFile(r.T, ks, r.store("new"))
		r.until("old", "new")
		r.must(os.Remove(ks))
		writeFile(r.T, ks, r.store("newer"))
		r.until("old", "new", "newer")
	})
}

// TestFaultSameSizeSameTime is case R08: as rsync --times leaves it.
func TestFaultSameSizeSameTime(t *testing.T) {
	onEachFollower(t, func(r *rotation) {
		ks := writeFile(r.T, r.path("ks.pem"), r.pem("old"))
		info, err := os.Stat(ks)
		r.must(err)
		r.start(ks)
		r.until("old")
		writeFile(r.T, ks+".new", r.pem("new"))
		r.must(os.Chtimes(ks+".new", info.ModTime(), info.ModTime()))
		r.must(os.Rename(ks+".new", ks))
		r.until("old", "new")
	})
}

// TestFaultNoEvent is case R09: written through a mapping that stays, of which
// the file system tells nobody.
func TestFaultNoEvent(t *testing.T) {
	onEachFollower(t, func(r *rotation) {
		ks := writeFile(r.T, r.path("ks.pem"), r.pem("old"))
		f, err := os.OpenFile(ks, os.O_RDWR, 0)
		r.must(err)
		defer f.Close()
		m, err := syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		r.must(err)
		defer syscall.Munmap(m)
		r.start(ks)
		r.until("old")
		copy(m, r.pem("new"))
		r.until("old", "new")
	})
}

// TestFaultPasswordInAnotherMoment: the keystore has its next password before the
// password file has, or after it.
func TestFaultPasswordInAnotherMoment(t *testing.T) {
	onEachFollower(t, func(r *rotation) {
		ks := writeFile(r.T, r.path("ks.p12"), r.store("old"))
		r.start(ks)
		r.until("old")
		r.replace(ks, testca.PKCS12{}.Encode(r.T, "next", testca.StoreEntry{Alias: "new", Cert: r.leaf("new")}))
		r.refused(ks, "wrong password")
		r.replace(r.path("pass"), []byte("next\n"))
		r.until("old", "new")
		r.replace(r.path("pass"), []byte("last"))
		r.ask()
		r.replace(ks, testca.PKCS12{}.Encode(r.T, "last", testca.StoreEntry{Alias: "newer", Cert: r.leaf("newer")}))
		r.until("old", "new", "newer")
	})
}

// TestFaultAliasVanishes is the reload of case K11: a listener's alias stays what
// it was while the keystore has no other.
func TestFaultAliasVanishes(t *testing.T) {
	onEachFollower(t, func(r *rotation) {
		a, b := testca.StoreEntry{Alias: "a", Cert: r.leaf("a")}, testca.StoreEntry{Alias: "b", Cert: r.leaf("b")}
		ks := writeFile(r.T, r.path("ks.p12"), r.storeOf(a, b))
		r.start(ks, "--alias", "B")
		r.until("b")
		r.replace(ks, r.storeOf(a, testca.StoreEntry{Alias: "c", Cert: r.leaf("c")}))
		r.refused(ks, `no entry with alias \"B\"`)
		r.replace(ks, r.storeOf(a, testca.StoreEntry{Alias: "b", Cert: r.leaf("b2")}))
		r.until("b", "b2")
	})
}

// TestFaultRotationUnderLoad: as many handshakes as the machine gives, and a new
// key every half second. None fails, and none pairs the key of one generation
// with the chain of another, which each client would see by the signature.
func TestFaultRotationUnderLoad(t *testing.T) {
	const clients, rotations = 8, 8
	for _, tier := range []string{"pkixcached", "pkix"} {
		t.Run(tier, func(t *testing.T) { // not in parallel: it takes the machine
			r := newRotation(t, tier)
			next := make([][]byte, rotations)
			for i := range next {
				next[i] = r.store(fmt.Sprint("gen", i))
			}
			ks := writeFile(t, r.path("ks.p12"), r.store("first"))
			r.start(ks)
			ctx, stop := context.WithCancel(t.Context())
			var working sync.WaitGroup
			counts := make([]int, clients)
			for i := range clients {
				working.Go(func() {
					for ctx.Err() == nil {
						r.ask()
						counts[i]++
					}
				})
			}
			for _, content := range next {
				r.replace(ks, content)
				time.Sleep(500 * time.Millisecond)
			}
			last := fmt.Sprint("gen", rotations-1)
			for deadline := time.Now().Add(10 * time.Second); !strings.HasSuffix(strings.Join(r.served(), " "), last); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Errorf("%s is not served", last)
					break
				}
			}
			stop()
			working.Wait()
			sum := 0
			for _, n := range counts {
				sum += n
			}
			t.Logf("%d handshakes, %d certificates", sum, len(r.served()))
			if len(r.served()) < rotations/2 {
				t.Errorf("served were only %q", r.served())
			}
		})
	}
}
