// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestChoiceAgainstJDKs asks the key managers of every JDK present and us the
// same questions. With jdk_compat the answer must be Java's, without it Java's
// or the one that numbered deviations make of it; sunx509 likewise. -v prints
// the score.
func TestChoiceAgainstJDKs(t *testing.T) {
	w := newJDKWorld(t, 1)
	questions := w.questions(240)
	questions = append(questions, w.constrained(12)...)
	dir := t.TempDir()
	for _, q := range questions {
		q.write(t, dir)
	}
	javas := newJavas(t)
	for _, version := range []int{17, 25} { // that the choice was modelled on
		if j := (testca.JDK{Version: version}); !slices.ContainsFunc(javas, func(have java) bool { return have.Version == version }) {
			t.Run(j.Name(), func(t *testing.T) { t.Skip("NOT CHECKED: it is not installed") })
		}
	}
	for _, j := range javas {
		t.Run(j.Name(), func(t *testing.T) {
			questions := slices.DeleteFunc(slices.Clone(questions), func(q *question) bool { return q.since > j.Version })
			answers := j.ask(t, questions)
			compat, pkix, sun := score{}, score{}, score{}
			for _, q := range questions {
				java := answers[q.id+"/PKIX"]
				compat.add(t, q, java, q.choice(t, newAsJDK), 0, false)
				pkix.add(t, q, java, q.choice(t, New), checkedDeviations, false)
				if java, ok := answers[q.id+"/SunX509"]; ok {
					sun.add(t, q, java, q.choice(t, NewUnchecked), uncheckedDeviations, true)
				}
			}
			t.Logf("jdk_compat against PKIX:  %v", compat)
			t.Logf("pkix       against PKIX:  %v", pkix)
			t.Logf("sunx509    against SunX509: %v", sun)
			pkix.mustShow(t, checkedDeviations)
			sun.mustShow(t, uncheckedDeviations)
		})
	}
}

// score counts answers by the deviations that explain them.
type score map[deviations]int

// unexplained is a set that no explanation is.
const unexplained deviations = 1

// add counts one answer. It may differ from Java's by deviations out of allowed.
func (s score) add(t *testing.T, q *question, java, got answer, allowed deviations, sunx509 bool) {
	t.Helper()
	if !sameOutcome(newModel(t, q, 0, sunx509).answer(), java) {
		t.Errorf("%s: Java answers %v, the model of it %v", q, java, newModel(t, q, 0, sunx509).answer())
	}
	d, ok := explain(t, q, sunx509, got)
	if !ok || d&^allowed != 0 || (d == 0) != sameOutcome(java, got) {
		t.Errorf("%s: Java answers %v, we %v: explained by deviations %q of %q", q, java, got, d, allowed)
		d = unexplained
	}
	s[d]++
}

func (s score) String() string {
	total := 0
	byNumber := map[string]int{}
	for d, n := range s {
		total += n
		for i := 1; i < 16; i++ {
			if d != unexplained && d.has(1<<i) {
				byNumber[fmt.Sprintf("deviation %d", i)] += n
			}
		}
	}
	parts := []string{fmt.Sprintf("%d cases, %d equal", total, s[0])}
	for _, k := range slices.Sorted(maps.Keys(byNumber)) {
		parts = append(parts, fmt.Sprintf("%s: %d", k, byNumber[k]))
	}
	return strings.Join(append(parts, fmt.Sprintf("unexplained: %d", s[unexplained])), ", ")
}

// mustShow fails where a deviation is listed and no case shows it.
func (s score) mustShow(t *testing.T, all deviations) {
	t.Helper()
	var shown deviations
	for d := range s {
		shown |= d
	}
	if missing := all &^ shown; missing != 0 {
		t.Errorf("no case shows deviation %v", missing)
	}
}

// constrained makes n questions for each of some sets of constraints.
func (w *jdkWorld) constrained(n int) (out []*question) {
	for i, c := range [][2]string{
		{"MD2, MD5, SHA1, RSA keySize < 2048", defaultTLS},
		{"secp384r1, RSA keySize == 1024", defaultTLS},
		{"RSA denyAfter 2019-01-01, Ed25519", defaultTLS},
		{"EC denyAfter 2100-01-01, SHA256withRSA denyAfter 2019-01-01, SHA512 usage TLSServer, RSA usage TLSServer & keySize < 2048", "SHA512withRSA, SSLv3"},
	} {
		for _, q := range w.questions(n) {
			q.id = fmt.Sprintf("c%d-%s", i, q.id)
			q.hello.Schemes = schemeLists()[i%2]
			q.constraints = keymanager.Constraints{CertPath: &c[0], TLS: &c[1]}
			if strings.Contains(c[0], "denyAfter") {
				q.since = 25 // JDK 17 holds conditions against signatures too
			}
			out = append(out, q)
		}
	}
	return out
}
