// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// The reference says of each key what it is, what holds if it is left out, and
// which flag and -D name give it too. It is kept in two places, a commented
// file and a table; both are held against the code here.
const (
	referenceFile = "../../configs/reference.yaml"
	referenceDocs = "../../docs/configuration.md"
)

// fact is what the reference says of one key.
type fact struct {
	typ, def    string
	flags, defs []string
}

// words are defaults that a tag can't say.
var words = map[string]string{
	"keymanager":           "the first of pkixcached, pkix, sunx509 in the build",
	"constraints.certpath": "that of JDK 25",
	"constraints.tls":      "that of JDK 25",
	"jdk_compat":           "false",
	"run_dir":              "the first usable of $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR/tlsd, $TMPDIR, /tmp",
	"log.format":           "console on a terminal, else json",

	"listeners[].alpn":                           "h2 and http/1.1 for HTTP backends",
	"listeners[].tls.cipher_suites":              "Go's",
	"listeners[].tls.groups":                     "Go's",
	"listeners[].backend_tls.ca":                 "the system's",
	"listeners[].backend_tls.name":               "the URL's host",
	"listeners[].backend_tls.client_certificate": "false",
	"keystores[].key_password_file":              "the store's password",

	"listeners[].hosts[].backend":                        "the listener's",
	"listeners[].hosts[].backend_tls.ca":                 "the listener's or the system's",
	"listeners[].hosts[].backend_tls.name":               "the listener's or the URL's host",
	"listeners[].hosts[].backend_tls.client_certificate": "the listener's or false",
	"listeners[].hosts[].alias":                          "the listener's",
	"listeners[].hosts[].client_auth":                    "the listener's",
	"listeners[].hosts[].client_ca":                      "the listener's",
	"listeners[].hosts[].client_crl":                     "the listener's",
	"metrics.listen":                                     "off",
	"admin.listen":                                       "off",
	"admin.pprof":                                        "false",
}

// reference collects the facts by reflection, and by trying each flag and
// property.
func reference(t *testing.T) map[string]*fact {
	facts := map[string]*fact{}
	collect(facts, reflect.TypeFor[settings](), "")
	for name, value := range samples {
		from, args := "-D "+name, []string{"-D", name + "=" + value}
		if strings.HasPrefix(name, "--") {
			from, args = "flag "+name, []string{name, value}
		}
		for other, value := range map[string]string{"--keystore": "a.p12", "--plugin": "p=/bin/true", "--client-auth": "none"} {
			if other != name && name != "javax.net.ssl.keyStore" {
				args = append(args, other, value)
			}
		}
		for _, v := range (input{args: args}).mustLoad(t).Values {
			f := facts[fileKey(v.Key)]
			switch {
			case v.Origin != from:
			case f == nil:
				t.Errorf("%s sets %s, which is no key", name, v.Key)
			case strings.HasPrefix(name, "--") && !slices.Contains(f.flags, name):
				f.flags = append(f.flags, name)
			case !strings.HasPrefix(name, "--") && !slices.Contains(f.defs, name):
				f.defs = append(f.defs, name)
			}
		}
	}
	for _, v := range (input{args: endpointArgs}).mustLoadEndpoint(t).Values {
		if v.Origin == "flag --allow-user" {
			facts[v.Key].flags = append(facts[v.Key].flags, "--allow-user")
		}
	}
	for _, f := range facts {
		slices.Sort(f.flags)
		slices.Sort(f.defs)
	}
	return facts
}

func collect(facts map[string]*fact, t reflect.Type, path string) {
	for _, f := range fieldsOf(t) {
		key := join(path, f.Tag.Get("mapstructure"))
		switch {
		case f.Type.Kind() == reflect.Struct:
			collect(facts, f.Type, key)
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			collect(facts, f.Type.Elem(), key+"[]")
		default:
			def := f.Tag.Get("default")
			if def == "" {
				def = words[key]
			}
			if def == "" {
				def = "none"
			}
			facts[key] = &fact{typ: typeName(f.Type), def: def}
		}
	}
}

func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration](), t == reflect.TypeFor[span]():
		return "duration"
	case t == reflect.TypeFor[paths]():
		return "text or list"
	case t.Kind() == reflect.Pointer:
		return typeName(t.Elem())
	case t.Kind() == reflect.Slice:
		return "list"
	case t.Kind() == reflect.Map:
		return "mapping"
	}
	return strings.TrimPrefix(string(scalarKind(t)), "a ")
}

// fileKey returns the key of a file that belongs to a key of Values.
func fileKey(key string) string {
	key = regexp.MustCompile(`\[\d+\]`).ReplaceAllString(key, "[]")
	switch {
	case strings.HasSuffix(key, "password"):
		return key + "_file"
	case strings.HasSuffix(key, "client_ca_type"):
		return strings.TrimSuffix(key, "_type")
	}
	return key
}

// samples holds a value for each flag and property that gives a key.
var samples = map[string]string{
	"--keymanager": "pkix", "--keystore": "b.p12", "--keystore-type": "jks", "--keystore-password-file": "p",
	"--key-password-file": "p", "--listen": "127.0.0.1:1", "--backend": "tcp://a:1", "--alias": "a",
	"--client-auth": "none", "--client-ca": "c.pem", "--client-ca-password-file": "p",
	"--client-crl": "c.crl", "--metrics": "127.0.0.1:2", "--admin": "127.0.0.1:3",
	"--plugin": "q=/bin/true@sha256:" + strings.Repeat("0", 64), "--plugin-setting": "p.k=v",
	"--log-level": "warn", "--log-format": "json", "--debug": "keymanager",

	"ssl.KeyManagerFactory.algorithm": "PKIX", "tlsd.keymanager": "pkix",
	"javax.net.ssl.keyStore": "b.p12", "javax.net.ssl.keyStorePassword": "x", "javax.net.ssl.keyStoreType": "JKS",
	"javax.net.ssl.trustStore": "t.jks", "javax.net.ssl.trustStorePassword": "x", "javax.net.ssl.trustStoreType": "JKS",
	"javax.net.debug": "all", "jdk.certpath.disabledAlgorithms": "MD5", "jdk.tls.disabledAlgorithms": "MD5",
	"jdk.tls.server.protocols": "TLSv1.2", "jdk.tls.server.cipherSuites": "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
	"jdk.tls.namedGroups": "x25519",
}

// notKeys are the flags and properties that give no key of a file.
var notKeys = []string{"--config", "--define", "--demo", "jdk.tls.SunX509KeyManager.certChecking"}

func TestSamplesAreComplete(t *testing.T) {
	var names []string
	for _, f := range flagDefs() {
		names = append(names, "--"+f.name)
	}
	for _, p := range knownProperties() {
		names = append(names, p.name)
	}
	for _, name := range names {
		if samples[name] == "" && !slices.Contains(notKeys, name) {
			t.Errorf("%s has no sample value", name)
		}
	}
}

func TestDocsTableIsComplete(t *testing.T) {
	raw, err := os.ReadFile(referenceDocs)
	if err != nil {
		t.Fatal(err)
	}
	facts := reference(t)
	seen := map[string]bool{}
	for line := range strings.Lines(string(raw)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], "`", ""))
		}
		f := facts[cells[0]]
		if len(cells) != 7 || f == nil {
			continue
		}
		seen[cells[0]] = true
		want := []string{f.typ, f.def, strings.Join(f.flags, ", "), strings.Join(f.defs, ", ")}
		if got := cells[1:5]; !slices.Equal(got, want) {
			t.Errorf("%s: the table says %q, the code %q", cells[0], got, want)
		}
		if taken := cells[5]; taken != takenBy(cells[0]) {
			t.Errorf("%s: a change takes a %s, says the table; the code: %s", cells[0], taken, takenBy(cells[0]))
		}
	}
	for key := range facts {
		if !seen[key] {
			t.Errorf("%s is not in the table of %s", key, referenceDocs)
		}
	}
	for _, p := range slices.Concat(knownProperties(), idleProperties()) {
		if !strings.Contains(string(raw), "`"+p.name+"`") {
			t.Errorf("-D %s is not in %s", p.name, referenceDocs)
		}
	}
	for _, f := range slices.Concat(flagDefs(), endpointFlagDefs()) {
		if !strings.Contains(string(raw), "`--"+f.name) {
			t.Errorf("--%s is not in %s", f.name, referenceDocs)
		}
	}
}

// takenBy says what takes a change of a key.
func takenBy(key string) string {
	if slices.Contains(restartKeys(), key) {
		return "restart"
	}
	return "reload"
}

// Above each key of the reference stands a line with its facts.
func TestReferenceFileIsComplete(t *testing.T) {
	raw, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := parse("yaml", raw)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(raw), "\n")
	for key, f := range reference(t) {
		line := lineOf(doc, strings.ReplaceAll(key, "[]", "[0]"))
		if line == 0 {
			t.Errorf("%s is not in %s", key, referenceFile)
			continue
		}
		want := f.typ + "; default " + f.def
		for _, set := range slices.Concat(f.flags, prefixed("-D ", f.defs)) {
			want += "; " + set
		}
		above := strings.TrimSpace(lines[line-2])
		if want += "; " + takenBy(key); above != "# "+want {
			t.Errorf("%s:%d: above %s stands %q, want %q", referenceFile, line, key, above, want)
		}
	}
}

func prefixed(prefix string, words []string) []string {
	var out []string
	for _, w := range words {
		out = append(out, prefix+w)
	}
	return out
}

// lineOf returns the line of a key, not of its value.
func lineOf(doc *node, key string) int {
	parent, last := doc, key
	if i := strings.LastIndex(key, "."); i >= 0 {
		parent, last = doc.at(key[:i]), key[i+1:]
	}
	if parent == nil {
		return 0
	}
	for _, f := range parent.fields {
		if f.key == last {
			return f.line
		}
	}
	return 0
}

func TestSamplesLoad(t *testing.T) {
	files, err := filepath.Glob("../../configs/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %d samples: %v", len(files), err)
	}
	for _, file := range files {
		if filepath.Base(file) == "prometheus-alerts.yaml" { // is for another program
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in := input{file: string(raw), ext: strings.TrimPrefix(filepath.Ext(file), ".")}
			if notes := in.mustLoad(t).Notes; len(notes) > 0 {
				t.Errorf("it loads with notes: %q", notes)
			}
		})
	}
}
