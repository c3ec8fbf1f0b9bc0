// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

func critical(oid ...int) []pkix.Extension {
	return []pkix.Extension{{Id: oid, Critical: true, Value: asn1.NullBytes}}
}

// ruled returns what a file of lists says of clients of cas.
func ruled(raw []byte, expired CRLExpired, cas ...*testca.Cert) (*revocation, error) {
	lists, err := parseCRLs(raw)
	if err != nil {
		return nil, err
	}
	var certs []*x509.Certificate
	for _, ca := range cas {
		certs = append(certs, ca.Cert)
	}
	return newRevocation("clients.crl", lists, certs, expired)
}

// What would be obeyed by half is refused, and the error says what to do.
func TestListsThatAreRefused(t *testing.T) {
	t.Parallel()
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	namesake := testca.NewRoot(t, testca.Spec{Name: "ca"})
	stranger := testca.NewRoot(t, testca.Spec{Name: "stranger"})
	mute := testca.NewRoot(t, testca.Spec{Name: "mute", KeyUsage: x509.KeyUsageCertSign})
	speaking := testca.NewRoot(t, testca.Spec{Name: "mute", Signer: mute.Key})
	good := ca.CRL(t, testca.CRL{})
	inPEM := testca.CRLPEM(good, good)
	for name, tt := range map[string]struct {
		raw  []byte
		want string
	}{
		"empty":           {nil, "no revocation list"},
		"certificate":     {ca.CertPEM(), "no revocation list"},
		"cut-off":         {inPEM[:len(inPEM)-40], "damaged or cut off"},
		"damaged-block":   {bytes.Replace(inPEM, []byte("MI"), []byte("M!"), 1), "damaged or cut off"},
		"no-list":         {testca.CRLPEM([]byte("rubbish")), "list 1: x509: malformed"},
		"two-in-DER":      {append(bytes.Clone(good), good...), "only PEM can hold several"},
		"stranger":        {stranger.CRL(t, testca.CRL{}), "none of the client CAs"},
		"namesake":        {namesake.CRL(t, testca.CRL{}), "did not sign it"},
		"may-not-sign":    {speaking.CRL(t, testca.CRL{}), "without cRLSign"},
		"delta":           {ca.CRL(t, testca.CRL{Extensions: critical(2, 5, 29, 27)}), "delta list"},
		"part":            {ca.CRL(t, testca.CRL{Extensions: critical(2, 5, 29, 28)}), "issuing distribution point"},
		"indirect":        {ca.CRL(t, testca.CRL{Serials: []*big.Int{big.NewInt(1)}, EntryExtensions: critical(2, 5, 29, 29)}), "indirect list"},
		"unknown":         {ca.CRL(t, testca.CRL{Extensions: critical(1, 2, 3)}), "critical extension 1.2.3"},
		"one-of-several":  {testca.CRLPEM(good, stranger.CRL(t, testca.CRL{})), "list 2, of \"CN=stranger\""},
		"changed-content": {changed(t, ca.CRL(t, testca.CRL{Serials: []*big.Int{big.NewInt(0x1234567)}})), "did not sign it"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ruled(tt.raw, "", ca, mute)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// changed revokes another serial number than was signed for.
func changed(t *testing.T, der []byte) []byte {
	t.Helper()
	other := bytes.Replace(der, []byte{0x01, 0x23, 0x45, 0x67}, []byte{0x01, 0x23, 0x45, 0x68}, 1)
	if bytes.Equal(der, other) {
		t.Fatal("the serial number isn't there")
	}
	return other
}

// openssl makes lists of version 1 unless it is told otherwise.
func TestListOfVersion1(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	testca.WritePEM(t, filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"), ca)
	for name, content := range map[string]string{
		"index.txt": "",
		"ca.cnf":    "[ca]\ndefault_ca = d\n[d]\ndatabase = " + dir + "/index.txt\ndefault_md = sha256\ndefault_crl_days = 1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "ca.crl")
	if text, err := tell(t, "ca", "-gencrl", "-config", filepath.Join(dir, "ca.cnf"), "-cert", filepath.Join(dir, "ca.crt"),
		"-keyfile", filepath.Join(dir, "ca.key"), "-out", out); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ruled(raw, "", ca); err == nil || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("%v", err)
	}
}

func TestRevocation(t *testing.T) {
	t.Parallel()
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	middle := root.Issue(t, testca.Spec{Name: "middle", IsCA: true})
	leaf, other := middle.Issue(t, testca.Spec{Name: "leaf"}), middle.Issue(t, testca.Spec{Name: "other"})
	chain := func(certs ...*testca.Cert) (chain []*x509.Certificate) {
		for _, c := range certs {
			chain = append(chain, c.Cert)
		}
		return chain
	}
	past := testca.CRL{ThisUpdate: time.Now().Add(-2 * time.Hour), NextUpdate: time.Now().Add(-time.Hour)}
	stale := past
	stale.Revoked = []*testca.Cert{leaf}
	for name, tt := range map[string]struct {
		raw     []byte
		expired CRLExpired
		chains  [][]*x509.Certificate
		want    string // reason; empty: let in
	}{
		"no-certificate":   {middle.CRL(t, testca.CRL{}), "", nil, ""},
		"good":             {middle.CRL(t, testca.CRL{Revoked: []*testca.Cert{other}}), "", [][]*x509.Certificate{chain(leaf, middle, root)}, ""},
		"leaf":             {middle.CRL(t, testca.CRL{Revoked: []*testca.Cert{other, leaf}}), "", [][]*x509.Certificate{chain(leaf, middle, root)}, ReasonRevoked},
		"middle":           {root.CRL(t, testca.CRL{Revoked: []*testca.Cert{middle}}), "", [][]*x509.Certificate{chain(leaf, middle, root)}, ReasonRevoked},
		"middle-as-anchor": {root.CRL(t, testca.CRL{Revoked: []*testca.Cert{middle}}), "", [][]*x509.Certificate{chain(leaf, middle), chain(leaf, middle, root)}, ReasonRevoked},
		"one-chain-good":   {root.CRL(t, testca.CRL{Revoked: []*testca.Cert{middle}}), "", [][]*x509.Certificate{chain(leaf, middle, root), chain(leaf, root)}, ""},
		"serial-of-other":  {root.CRL(t, testca.CRL{Revoked: []*testca.Cert{leaf}}), "", [][]*x509.Certificate{chain(leaf, middle, root)}, ""},
		"expired":          {middle.CRL(t, past), "", [][]*x509.Certificate{chain(leaf, middle, root)}, ReasonCRLExpired},
		"expired-of-other": {root.CRL(t, past), CRLExpiredRefuse, [][]*x509.Certificate{chain(leaf, middle, root)}, ReasonCRLExpired},
		"expired-warn":     {middle.CRL(t, past), CRLExpiredWarn, [][]*x509.Certificate{chain(leaf, middle, root)}, ""},
		"stale-warn":       {middle.CRL(t, stale), CRLExpiredWarn, [][]*x509.Certificate{chain(leaf, middle, root)}, ReasonRevoked},
		"stale-refuse":     {middle.CRL(t, stale), CRLExpiredRefuse, [][]*x509.Certificate{chain(leaf, middle, root)}, ReasonRevoked},
		"latest-counts":    {testca.CRLPEM(middle.CRL(t, testca.CRL{}), middle.CRL(t, stale)), "", [][]*x509.Certificate{chain(leaf, middle, root)}, ""},
		"of-two-issuers":   {testca.CRLPEM(root.CRL(t, testca.CRL{}), middle.CRL(t, testca.CRL{Revoked: []*testca.Cert{leaf}})), "", [][]*x509.Certificate{chain(leaf, middle, root)}, ReasonRevoked},
		"byte-order-mark":  {append([]byte("\xef\xbb\xbf"), testca.CRLPEM(middle.CRL(t, testca.CRL{Revoked: []*testca.Cert{leaf}}))...), "", [][]*x509.Certificate{chain(leaf, middle, root)}, ReasonRevoked},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ruled(tt.raw, tt.expired, root, middle)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if refused := (*refusedClient)(nil); errors.As(r.check(tt.chains), &refused) {
				got = refused.reason
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// A list that says the same again leaves sessions as they are.
func TestDigestOfLists(t *testing.T) {
	t.Parallel()
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	sum := func(s testca.CRL) [32]byte {
		r, err := ruled(ca.CRL(t, s), "", ca)
		if err != nil {
			t.Fatal(err)
		}
		return r.digest
	}
	one, two := big.NewInt(1), big.NewInt(2)
	first := sum(testca.CRL{Number: 1, Serials: []*big.Int{one, two}})
	if again := sum(testca.CRL{Number: 2, Serials: []*big.Int{two, one}, NextUpdate: time.Now().Add(time.Minute)}); again != first {
		t.Error("the same serial numbers have another digest")
	}
	if other := sum(testca.CRL{Serials: []*big.Int{one, big.NewInt(3)}}); other == first {
		t.Error("other serial numbers have the same digest")
	}
}

// A list of 100,000 costs a few megabytes, and a look into it no more than one
// of ten.
func TestListOfManyEntries(t *testing.T) {
	ca := testca.NewRoot(t, testca.Spec{Name: "ca"})
	const n = 100_000
	serials := make([]*big.Int, n)
	base := new(big.Int).Lsh(big.NewInt(1), 120)
	for i := range serials {
		serials[i] = new(big.Int).Add(base, big.NewInt(int64(i)*7))
	}
	raw := testca.CRLPEM(ca.CRL(t, testca.CRL{Serials: serials}))
	began := time.Now()
	before := heap()
	r, err := ruled(raw, "", ca)
	if err != nil {
		t.Fatal(err)
	}
	grown := int64(heap()) - int64(before)
	t.Logf("%d entries, %d KiB of PEM: %d KiB kept, read in %v", n, len(raw)>>10, grown>>10, time.Since(began))
	if grown > 16<<20 {
		t.Errorf("a list of %d entries keeps %d KiB", n, grown>>10)
	}
	list := r.lists[issuerKeyOf(ca.Cert)]
	for _, tt := range []struct {
		serial *big.Int
		want   bool
	}{{serials[0], true}, {serials[n-1], true}, {new(big.Int).Add(base, big.NewInt(1)), false}} {
		if _, got := list.serials[string(tt.serial.Bytes())]; got != tt.want {
			t.Errorf("%x is revoked: %v", tt.serial, got)
		}
	}
	runtime.KeepAlive(raw)
}

// What is no file of lists is told by one short cause, and a file that is too large
// not read for it, since it is looked at again with every poll.
func TestFileOfNoLists(t *testing.T) {
	dir := t.TempDir()
	huge := filepath.Join(dir, "huge")
	if err := errors.Join(os.WriteFile(huge, nil, 0o600), os.Truncate(huge, 1<<40)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		huge:                          "it has more than 64 MiB",
		dir:                           "it is not a file",
		filepath.Join(dir, "gone"):    "no such file or directory",
		filepath.Join(huge, "no-dir"): "not a directory",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readCRLFile(path)
		runtime.ReadMemStats(&after)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, not %s", path, err, want)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 8<<20 {
			t.Errorf("%s: %d bytes taken", path, taken)
		}
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkRevocationCheck(b *testing.B) {
	ca := testca.NewRoot(b, testca.Spec{Name: "ca"})
	leaf := ca.Issue(b, testca.Spec{Name: "leaf"})
	r, err := ruled(ca.CRL(b, testca.CRL{Serials: []*big.Int{big.NewInt(1)}}), "", ca)
	if err != nil {
		b.Fatal(err)
	}
	chains := [][]*x509.Certificate{{leaf.Cert, ca.Cert}}
	for b.Loop() {
		if err := r.check(chains); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzParseCRLs(f *testing.F) {
	ca := testca.NewRoot(f, testca.Spec{Name: "ca"})
	der := ca.CRL(f, testca.CRL{Serials: []*big.Int{big.NewInt(1)}})
	f.Add(der)
	f.Add(testca.CRLPEM(der, der))
	f.Add(pem.EncodeToMemory(&pem.Block{Type: pemCRL}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		lists, err := parseCRLs(raw)
		if (err == nil) == (len(lists) == 0) {
			t.Errorf("%d lists, %v", len(lists), err)
		}
	})
}
