// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

const storePassword = "changeit"

// question is a keystore, or several, and a hello, which a JDK can be asked too.
type question struct {
	id          string
	builders    [][]testca.StoreEntry
	hello       *keymanager.Hello
	authorities []*testca.Cert // that a server names; Hello.Issuers are their names
	constraints keymanager.Constraints

	paths, authorityPaths []string // where write has put them

	since  int             // the first JDK that it is put to
	seen   map[string]seen // by builder and alias
	signed map[*x509.Certificate]schemeSet
	parsed map[bool]*Constraints // by Java's rules, or ours
}

func (q *question) rules(t *testing.T, compat bool) *Constraints {
	t.Helper()
	if q.parsed[compat] == nil {
		c, err := ParseConstraints(q.constraints, compat)
		if err != nil {
			t.Fatal(err)
		}
		q.parsed[compat] = c
	}
	return q.parsed[compat]
}

// seen is an entry by Java's eyes and by ours.
type seen struct{ jdk, ours *candidate }

func (q *question) candidate(e keymanager.Entry) seen {
	key := fmt.Sprint(e.Builder, e.Alias)
	s, ok := q.seen[key]
	if !ok {
		s = seen{newCandidate(e, jdkPKIX), newCandidate(e, ours)}
		q.seen[key] = s
	}
	return s
}

// signature returns the schemes that cover the signature of a certificate.
func (q *question) signature(c *x509.Certificate) schemeSet {
	s, ok := q.signed[c]
	if !ok {
		if read, err := traitsOfChain(c, [][]byte{c.Raw}, jdkPKIX); err == nil {
			s = read.signatures[0].schemes
		}
		q.signed[c] = s
	}
	return s
}

// entries returns what a keystore reader makes of the builders.
func (q *question) entries() (out []keymanager.Entry) {
	for b, builder := range q.builders {
		for _, s := range builder {
			e := keymanager.Entry{
				Builder: b, Alias: s.Alias, Kind: keymanager.KindKey, Chain: s.Chain,
				Key: keymanager.FromSigner(s.Cert.Key), Usable: true,
			}
			if e.Chain == nil {
				e.Chain = s.Cert.Chain()
			}
			out = append(out, e)
		}
	}
	return out
}

func (q *question) write(t *testing.T, dir string) {
	t.Helper()
	q.seen, q.signed, q.parsed = map[string]seen{}, map[*x509.Certificate]schemeSet{}, map[bool]*Constraints{}
	for i, builder := range q.builders {
		path := filepath.Join(dir, fmt.Sprintf("%s-%d.p12", q.id, i))
		testca.PKCS12{Iterations: 1}.Write(t, path, storePassword, builder...)
		q.paths = append(q.paths, path)
	}
	for i, ca := range q.authorities {
		path := filepath.Join(dir, fmt.Sprintf("%s-%d.pem", q.id, i))
		if err := os.WriteFile(path, ca.CertPEM(), 0o600); err != nil {
			t.Fatal(err)
		}
		q.authorityPaths = append(q.authorityPaths, path)
	}
}

// line is the question as AskKeyManagers reads it.
func (q *question) line(algorithm string) string {
	version, suites := "TLSv1.3", "both"
	if q.hello.Version == tls.VersionTLS12 {
		version = "TLSv1.2"
	}
	switch q.hello.Auth {
	case keymanager.AuthECDSA:
		suites = "ecdsa"
	case keymanager.AuthRSA:
		suites = "rsa"
	}
	return strings.Join([]string{
		q.id + "/" + algorithm, algorithm, q.hello.Role.String(), version, suites, javaSchemes(q.hello), q.hello.ServerName,
		strings.Join(q.authorityPaths, ","), strings.Join(q.paths, ","),
	}, "\t")
}

func javaSchemes(h *keymanager.Hello) string {
	var names []string
	for _, s := range h.Schemes {
		names = append(names, schemeName(s))
	}
	return strings.Join(names, ",")
}

// answer is what a key manager handed out: "builder.alias", or empty; failed
// says that the handshake came to nothing, signed by that entry or without any.
type answer struct {
	entry  string
	failed bool
}

func (a answer) String() string {
	switch {
	case a.entry == "":
		return "nothing"
	case a.failed:
		return fmt.Sprintf("%q, which can't sign", a.entry)
	}
	return fmt.Sprintf("%q", a.entry)
}

// java is a JDK with AskKeyManagers compiled for it.
type java struct {
	testca.JDK
	classes, dir, other string
}

// newJavas compiles AskKeyManagers by the oldest JDK for all of them.
func newJavas(t *testing.T) []java {
	t.Helper()
	jdks := testca.Keytools(t)
	classes, dir := t.TempDir(), t.TempDir()
	javac := exec.Command(filepath.Join(jdks[0].Home, "bin", "javac"), "-Xlint:all", "-d", classes, "testdata/jdk/AskKeyManagers.java")
	if out, err := javac.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("compile AskKeyManagers: %v\n%s", err, out)
	}
	other := filepath.Join(dir, "other.p12")
	testca.WritePKCS12(t, other, storePassword, otherSide(t)...)
	var out []java
	for _, j := range jdks {
		out = append(out, java{j, classes, dir, other})
	}
	return out
}

// otherSide returns an entry for each scheme that a TLS 1.3 server can sign by.
func otherSide(t *testing.T) (out []testca.StoreEntry) {
	t.Helper()
	for scheme, key := range map[tls.SignatureScheme]testca.KeyType{
		tls.ECDSAWithP256AndSHA256: testca.P256, tls.ECDSAWithP384AndSHA384: testca.P384, tls.ECDSAWithP521AndSHA512: testca.P521,
		tls.PSSWithSHA256: testca.RSA2048, tls.PSSWithSHA384: testca.RSA2048, tls.Ed25519: testca.Ed25519,
	} {
		out = append(out, testca.StoreEntry{Alias: schemeName(scheme), Cert: testca.SelfSigned(t, testca.Spec{Name: "other side", Key: key})})
	}
	return out
}

// ask returns the answers of both key managers, by "id/algorithm"; SunX509 takes
// one keystore only. A JDK before 19 is told the schemes by a property of the
// process, and each the constraints: questions that agree in them share one.
func (j java) ask(t *testing.T, questions []*question) map[string]answer {
	t.Helper()
	groups := map[string][]*question{}
	for _, q := range questions {
		schemes := javaSchemes(q.hello)
		if j.Version >= 19 {
			schemes = ""
		}
		key := schemes + "\n" + securityProperties(q.constraints)
		groups[key] = append(groups[key], q)
	}
	answers := map[string]answer{}
	for key, group := range groups {
		schemes, properties, _ := strings.Cut(key, "\n")
		j.run(t, schemes, properties, group, answers)
	}
	return answers
}

func securityProperties(c keymanager.Constraints) string {
	var b strings.Builder
	if c.CertPath != nil {
		fmt.Fprintf(&b, "%s=%s\n", propertyCertPath, *c.CertPath)
	}
	if c.TLS != nil {
		fmt.Fprintf(&b, "%s=%s\n", propertyTLS, *c.TLS)
	}
	return b.String()
}

func (j java) run(t *testing.T, schemes, properties string, questions []*question, answers map[string]answer) {
	t.Helper()
	security := filepath.Join(j.dir, j.Name()+".security")
	if err := os.WriteFile(security, []byte(properties), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-Djava.security.properties=" + security}
	if schemes != "" {
		args = append(args, "-Djdk.tls.client.SignatureSchemes="+schemes, "-Djdk.tls.server.SignatureSchemes="+schemes)
	}
	var in, problems bytes.Buffer
	for _, q := range questions {
		fmt.Fprintln(&in, q.line("PKIX"))
		if len(q.builders) == 1 {
			fmt.Fprintln(&in, q.line("SunX509"))
		}
	}
	cmd := exec.CommandContext(t.Context(), j.Java(), append(args, "-cp", j.classes, "AskKeyManagers", j.other, storePassword)...)
	cmd.Stdin, cmd.Stderr = &in, &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", j.Name(), err, problems.String())
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		_, algorithm, _ := strings.Cut(f[0], "/")
		answers[f[0]] = answer{entry: entryOf(algorithm, f[2]), failed: f[1] != "ok" || f[2] == ""}
	}
}

// entryOf makes "builder.alias" of an alias as the key manager calls it: PKIX
// puts a number of its own and the builder before it.
func entryOf(algorithm, alias string) string {
	switch {
	case alias == "":
		return ""
	case algorithm == "SunX509":
		return "0." + alias
	}
	_, rest, _ := strings.Cut(alias, ".")
	return rest
}

// inJavasOrder returns entries as SunX509 walks them: its map of aliases has 16
// buckets for up to 12 entries.
func inJavasOrder(entries []keymanager.Entry) []keymanager.Entry {
	bucket := func(alias string) int {
		var h int32
		for _, c := range []byte(alias) {
			h = 31*h + int32(c)
		}
		return int((uint32(h) ^ uint32(h)>>16) & 15)
	}
	out := slices.Clone(entries)
	slices.SortStableFunc(out, func(a, b keymanager.Entry) int { return bucket(a.Alias) - bucket(b.Alias) })
	return out
}

// choice returns what a Chooser makes of a question.
func (q *question) choice(t *testing.T, mk maker) answer {
	t.Helper()
	c := mustNew(t, mk, keymanager.Env{Options: keymanager.Options{Constraints: q.constraints}}, q.entries()...)
	cred, err := c.Select(q.hello)
	if err != nil {
		return answer{failed: true}
	}
	return answer{entry: strconv.Itoa(cred.Builder) + "." + cred.Alias}
}

// String is what a failed case is told by.
func (q *question) String() string {
	h := q.hello
	return fmt.Sprintf("%s (%v, %s, schemes %s, name %q)", q.id, h.Role, tls.VersionName(h.Version), javaSchemes(h), h.ServerName)
}
