// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// corpusDir is the collection of real keystores beside the repository.
const corpusDir = "../../../shared/corpus"

// corpusRow is one row of the collection's index.
type corpusRow struct {
	file, expect, reason, format string
	password                     string
	keyPasswords                 []string
	keys, servable, certs        int
	detail                       []corpusKey
	trusted                      []string
}

// corpusKey is what a row says of one key.
type corpusKey struct {
	alias, typ          string
	hasCert, servedByGo bool
}

// rowsTheFileContradicts are rows that the file itself contradicts: keytool
// finds a key entry in both, the index has none.
func rowsTheFileContradicts() map[string]string {
	return map[string]string{
		"generated/jceks-mixed.jceks":                      "keytool lists a key entry and a secret; the row counts no key",
		"apache_santuario-xml-security-java/keystore2.jks": "keytool lists two key entries, a certificate and a secret; the row counts no key",
	}
}

func readCorpus(t testing.TB) []corpusRow {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: left out in short mode")
	}
	b, err := os.ReadFile(filepath.Join(corpusDir, "index.tsv"))
	if err != nil {
		t.Skipf("NOT CHECKED: the keystore collection is not here (%s): %v", corpusDir, err)
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	head := strings.Split(lines[0], "\t")
	var rows []corpusRow
	for _, line := range lines[1:] {
		cell := make(map[string]string)
		for i, v := range strings.Split(line, "\t") {
			cell[head[i]] = v
		}
		rows = append(rows, parseRow(t, cell))
	}
	return rows
}

func parseRow(t testing.TB, cell map[string]string) corpusRow {
	t.Helper()
	r := corpusRow{file: cell["file"], expect: cell["expect"], reason: cell["reason"], format: cell["format"]}
	decode := func(name string, v any) {
		if text := cell[name]; text != "" && text != "-" {
			if err := json.Unmarshal([]byte(text), v); err != nil {
				t.Fatalf("%s: column %s: %v", r.file, name, err)
			}
		}
	}
	decode("password", &r.password)
	decode("key_passwords", &r.keyPasswords)
	r.keys, _ = strconv.Atoi(cell["keys"])
	r.servable, _ = strconv.Atoi(cell["servable_keys"])
	r.certs, _ = strconv.Atoi(cell["certs"])
	var detail [][]any
	decode("key_detail", &detail)
	for _, d := range detail {
		k := corpusKey{typ: d[1].(string), hasCert: d[2].(bool), servedByGo: d[3].(bool)}
		k.alias, _ = d[0].(string)
		r.detail = append(r.detail, k)
	}
	var trusted []*string
	decode("trusted_aliases", &trusted)
	for _, name := range trusted {
		if name == nil {
			name = new(string)
		}
		r.trusted = append(r.trusted, *name)
	}
	return r
}

// open opens and proves the file of a row, with each of its key passwords.
func (r corpusRow) open(ctx context.Context) (*Store, error) {
	passwords := r.keyPasswords
	if len(passwords) == 0 {
		passwords = []string{""}
	}
	var best *Store
	for _, pw := range passwords {
		src := keymanager.Source{Paths: []string{filepath.Join(corpusDir, r.file)}, Store: value(r.password)}
		if len(r.keyPasswords) > 0 {
			src.Key = value(pw)
		}
		s, err := Open(ctx, src, Limits{})
		if err != nil {
			return nil, err
		}
		if err := s.Prove(ctx, ProveOptions{}); err != nil {
			return nil, err
		}
		best = merge(best, s)
	}
	return best, nil
}

// merge takes from each opening the keys that are usable there: where keys have
// passwords of their own, the index does not say which has which.
func merge(a, b *Store) *Store {
	if a == nil {
		return b
	}
	for i, e := range b.Entries {
		if e.Usable {
			a.Entries[i] = e
		}
	}
	return a
}

func value(password string) keymanager.PasswordRef {
	secret := keymanager.Secret(password)
	return keymanager.PasswordRef{Value: &secret}
}

// TestCorpus opens every keystore of the collection and compares with what its
// index says, as its README decides.
func TestCorpus(t *testing.T) {
	rows := readCorpus(t)
	var right, unsupported int
	var wrong []string
	for _, row := range rows {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		s, err := row.open(ctx)
		cancel()
		verdict := judgeRow(row, s, err)
		why, contradicted := rowsTheFileContradicts()[row.file]
		switch {
		case verdict == nil:
			right++
		case errors.Is(verdict, errUnsupportedRow):
			unsupported++
			t.Logf("unsupported: %s: %v", row.file, verdict)
		case contradicted && err == nil:
			right++
			t.Logf("by what it holds: %s: %s (%v)", row.file, why, verdict)
		default:
			wrong = append(wrong, fmt.Sprintf("%s (%s %s): %v", row.file, row.expect, row.reason, verdict))
		}
	}
	for _, w := range wrong {
		t.Errorf("wrong: %s", w)
	}
	t.Logf("score: %d rows, %d right, %d unsupported by name, %d wrong", len(rows), right, unsupported, len(wrong))
}

// errUnsupportedRow marks a file that is refused by name, which counts as right.
var errUnsupportedRow = errors.New("unsupported by name")

// judgeRow returns nil if the reading is as the row says.
func judgeRow(r corpusRow, s *Store, err error) error {
	var u *UnsupportedError
	if errors.As(err, &u) {
		return unsupportedRow(r, u)
	}
	switch r.expect {
	case "refuse", "policy":
		if err == nil {
			return refusedEntry(r, s)
		}
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range s.Entries {
		if errors.As(e.Err, &u) {
			return unsupportedRow(r, u)
		}
	}
	return sameEntries(r, s)
}

func unsupportedRow(r corpusRow, u *UnsupportedError) error {
	if u.Algorithm == "" || u.Hint == "" {
		return fmt.Errorf("refused without name or advice: %v", u)
	}
	if r.expect == "refuse" || r.expect == "policy" {
		return nil
	}
	return fmt.Errorf("%w: %s", errUnsupportedRow, u.Algorithm)
}

// refusedEntry accepts a store that opens where what is wrong is about one key.
func refusedEntry(r corpusRow, s *Store) error {
	broken := false
	for _, e := range s.Entries {
		if e.Usable {
			return fmt.Errorf("opens, and entry %q is usable", e.Alias)
		}
		broken = broken || e.Broken
	}
	if !broken {
		return errors.New("opens, and no entry is refused")
	}
	return nil
}

func sameEntries(r corpusRow, s *Store) error {
	keys, trusted := kinds(s)
	if len(keys) != r.keys {
		return fmt.Errorf("%d keys, want %d", len(keys), r.keys)
	}
	if r.format != "pem" && r.format != "pkcs8-der" && len(trusted) != len(r.trusted) {
		return fmt.Errorf("%d trusted entries, want %d", len(trusted), len(r.trusted))
	}
	for i, want := range r.trusted {
		if !aliasFits(trusted[i].Alias, want) {
			return fmt.Errorf("trusted entry %d is %q, want %q", i, trusted[i].Alias, want)
		}
	}
	servable := 0
	for i, want := range r.detail {
		if err := sameKey(keys[i], want); err != nil {
			return fmt.Errorf("key %d, %q: %w", i, keys[i].Alias, err)
		}
		if want.servedByGo {
			servable++
		}
	}
	if servable != r.servable {
		return fmt.Errorf("row contradicts itself: %d servable keys, %d in detail", r.servable, servable)
	}
	return nil
}

func kinds(s *Store) (keys, trusted []*Entry) {
	for _, e := range s.Entries {
		switch e.Kind {
		case keymanager.KindKey:
			keys = append(keys, e)
		case keymanager.KindTrusted:
			trusted = append(trusted, e)
		}
	}
	return keys, trusted
}

func sameKey(e *Entry, want corpusKey) error {
	switch {
	case !aliasFits(e.Alias, want.alias):
		return fmt.Errorf("alias, want %q", want.alias)
	case want.servedByGo && want.hasCert && !e.Usable:
		return fmt.Errorf("not usable: %s", e.Reason)
	case want.servedByGo && !want.hasCert && !withoutCertificate(e.Err):
		return fmt.Errorf("reason %q, want no certificate", e.Reason)
	case !want.servedByGo && (e.Usable || e.Broken || e.Reason == ""):
		return fmt.Errorf("usable %v, broken %v, reason %q; want a key type that TLS can't use (%s)", e.Usable, e.Broken, e.Reason, want.typ)
	case want.servedByGo && compact(e.KeyType) != compact(want.typ):
		return fmt.Errorf("type %q, want %q", e.KeyType, want.typ)
	case e.Usable:
		return trySignature(e)
	}
	return nil
}

// withoutCertificate reports whether the key decrypted and its certificate is
// what is wrong: missing, another's, or one that Go does not parse.
func withoutCertificate(err error) bool {
	var damaged *DamagedError
	return errors.Is(err, ErrNoCertificate) || errors.Is(err, ErrSerial) || errors.As(err, new(*MismatchError)) ||
		errors.As(err, &damaged) && damaged.Where == "certificate"
}

// aliasFits compares with what is in the file: no name is a number here, and
// the second of equal names has a suffix.
func aliasFits(got, want string) bool {
	want = strings.TrimRight(want, "\x00")
	if want == "" {
		_, err := strconv.Atoi(got)
		return err == nil
	}
	return got == want || strings.HasPrefix(got, want+"-")
}

func compact(typ string) string {
	return strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(typ))
}

// trySignature signs with the key and verifies with the leaf of the chain.
func trySignature(e *Entry) error {
	signer, err := e.Signer(context.Background())
	if err != nil {
		return err
	}
	defer Wipe(signer)
	digest := sha256.Sum256([]byte("trial"))
	msg, hash := digest[:], crypto.SHA256
	if _, ok := signer.(ed25519.PrivateKey); ok {
		hash = 0
	}
	sig, err := signer.Sign(rand.Reader, msg, hash)
	if err != nil {
		return err
	}
	if !slices.Equal(e.Leaf().Raw, e.Chain[0]) {
		return errors.New("leaf is not the first of the chain")
	}
	return verifySignature(e.Leaf().PublicKey, msg, sig)
}
