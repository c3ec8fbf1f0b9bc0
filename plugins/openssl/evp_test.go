// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestOpenSSLVerifies has the openssl program verify what each scheme gives. Go
// does so in the suite, for each purpose.
func TestOpenSSLVerifies(t *testing.T) {
	openssl := testca.Tool(t, "openssl")
	for _, kt := range keyTypes {
		signer := testca.NewKey(t, kt)
		k := mustLoad(t, pkcs8(t, signer))
		for _, s := range keymanager.Schemes() {
			if !keymanager.SchemeFits(s, signer.Public(), tls.VersionTLS12) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", kt, s), func(t *testing.T) {
				dir := t.TempDir()
				msg := certificateVerify()
				sig, err := k.sign(s, msg)
				if err != nil {
					t.Fatal(err)
				}
				for name, content := range map[string][]byte{
					"msg": msg, "sig": sig, "pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki(t, signer.Public())}),
				} {
					if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
						t.Fatal(err)
					}
				}
				cmd := exec.CommandContext(t.Context(), openssl, append([]string{"pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", "pub", "-in", "msg", "-sigfile", "sig"}, options(s)...)...)
				cmd.Dir = dir
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			})
		}
	}
}

// options say to openssl pkeyutl what a scheme means.
func options(s tls.SignatureScheme) (args []string) {
	opts := keymanager.SignerOpts(s)
	if h := opts.HashFunc(); h != 0 {
		args = append(args, "-digest", strings.ReplaceAll(strings.ToLower(h.String()), "-", ""))
	}
	if _, ok := opts.(*rsa.PSSOptions); ok {
		args = append(args, "-pkeyopt", "rsa_padding_mode:pss", "-pkeyopt", "rsa_pss_saltlen:digest")
	}
	return args
}

// TestKeysInTheirOwnStructures: PKCS#1 and SEC 1 too, as PEM files have them.
func TestKeysInTheirOwnStructures(t *testing.T) {
	mustLoad(t, x509.MarshalPKCS1PrivateKey(testca.NewKey(t, testca.RSA2048).(*rsa.PrivateKey)))
	ec, err := x509.MarshalECPrivateKey(testca.NewKey(t, testca.P256).(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	mustLoad(t, ec)
}

// TestWrongKeysAreRefused: what is no key, is cut off anywhere, or has parts that
// don't belong together is an error and nothing else.
func TestWrongKeysAreRefused(t *testing.T) {
	good := pkcs8(t, testca.NewKey(t, testca.P256))
	for n := range good {
		if _, err := load(good[:n]); err == nil {
			t.Errorf("a key cut off after %d bytes is taken", n)
		}
	}
	one, two := testca.NewKey(t, testca.RSA2048).(*rsa.PrivateKey), testca.NewKey(t, testca.RSA2048).(*rsa.PrivateKey)
	ec, point := testca.NewKey(t, testca.P256).(*ecdsa.PrivateKey), testca.NewKey(t, testca.P256).(*ecdsa.PrivateKey)
	for name, der := range map[string][]byte{
		"empty":                nil,
		"zeros":                make([]byte, 64),
		"public key":           spki(t, one.Public()),
		"RSA parts of another": mixedRSA(t, one, two),
		"EC point of another":  mixedEC(t, ec, point),
	} {
		k, err := load(der)
		if err == nil {
			t.Errorf("%s: taken as %T", name, k.Public())
		} else {
			t.Logf("%s: %v", name, err)
		}
	}
}

// TestErrorOfOpenSSLIsAnError: it says why, in words of OpenSSL alone, and
// nothing of it is left for the next call on the thread.
func TestErrorOfOpenSSLIsAnError(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	k := mustLoad(t, pkcs8(t, testca.NewKey(t, testca.RSA1024)))
	for range 100 {
		if _, err := k.sign(tls.PSSWithSHA512, certificateVerify()); err == nil || !strings.HasPrefix(err.Error(), "sign: ") || strings.Contains(err.Error(), "no reason") {
			t.Fatalf("a salt that is too long for the key: %v", err)
		}
		if _, err := k.sign(tls.PSSWithSHA256, certificateVerify()); err != nil {
			t.Fatalf("after an error: %v", err)
		}
	}
	if _, err := mustLoad(t, pkcs8(t, testca.NewKey(t, testca.P256))).sign(tls.PSSWithSHA256, certificateVerify()); err == nil {
		t.Error("a P-256 key signs by RSA-PSS")
	}
}

// TestSignLooksBeforeItSigns: no request that isn't a handshake's, nor one that
// nobody waits for, comes as far as libcrypto.
func TestSignLooksBeforeItSigns(t *testing.T) {
	k := mustLoad(t, pkcs8(t, testca.NewKey(t, testca.P256)))
	k = &key{public: k.public} // touching the key would end the process
	req := &keymanager.SignRequest{Scheme: tls.ECDSAWithP256AndSHA256, Purpose: keymanager.ServerTLS13, Message: certificateVerify()}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Sign(ended, req); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end: %v", err)
	}
	req.Message = req.Message[1:]
	if _, err := k.Sign(t.Context(), req); !errors.Is(err, keymanager.ErrNotHandshake) {
		t.Errorf("no handshake: %v", err)
	}
	req.Message, req.Scheme = certificateVerify(), tls.PSSWithSHA256
	if _, err := k.Sign(t.Context(), req); !errors.Is(err, keymanager.ErrNotHandshake) {
		t.Errorf("another key's scheme: %v", err)
	}
}

// TestManySignAtOnce: with one key from many goroutines, while others come and
// go.
func TestManySignAtOnce(t *testing.T) {
	der := pkcs8(t, testca.NewKey(t, testca.RSA2048))
	shared := mustLoad(t, der)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 25 {
				k := shared
				if i%5 == 0 {
					other, err := load(der)
					if err != nil {
						t.Error(err)
						return
					}
					k = other.(*key)
					runtime.GC()
				}
				sig, err := k.sign(tls.PSSWithSHA256, certificateVerify())
				if err == nil {
					err = keymanager.Verify(k.public, tls.PSSWithSHA256, certificateVerify(), sig)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// TestKeysThatNobodyHasTakeNoMemory: thousands that come and go leave the process
// as large as it was.
func TestKeysThatNobodyHasTakeNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("what -short is for, the race detector, has memory of its own")
	}
	der := pkcs8(t, testca.NewKey(t, testca.RSA2048))
	loads := func(n int) {
		for i := range n {
			mustLoad(t, der)
			if i%200 == 0 {
				runtime.GC()
			}
		}
		runtime.GC()
	}
	loads(500)
	before := resident(t)
	loads(4000)
	const most = 8 << 20 // leaked, they would be over 20 MiB
	if after := resident(t); after > before+most {
		t.Errorf("%d kB before 4000 keys, %d kB after", before>>10, after>>10)
	}
}

// resident returns how much memory this process has, in bytes.
func resident(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int
	if _, err := fmt.Sscan(string(b), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
