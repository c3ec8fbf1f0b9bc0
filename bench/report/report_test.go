// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/bench/compare"
)

func record(part, key string, callers, entries int, name string, micros, ratio float64) Record {
	cpu := time.Duration(micros * 1000)
	return Record{
		Setting: Setting{Part: part, Key: key, Version: "1.3", SNI: true, Callers: callers, Entries: entries},
		Row: compare.Row{
			Name: name, Sample: compare.Sample{CPU: cpu, Helpers: cpu / 4, Rate: 1e6 / micros},
			Ratio:     compare.Spread{Low: ratio - 0.05, Median: ratio, High: ratio + 0.05},
			RateRatio: compare.Spread{Low: 1 / ratio, Median: 1 / ratio, High: 1 / ratio},
		},
	}
}

func sample() []Record {
	return []Record{
		record(Servers, "p256", 4, 1, Plain, 200, 1),
		record(Servers, "p256", 4, 1, "tlsd pkixcached", 300, 1.5),
		record(Servers, "rsa2048", 32, 1, Plain, 1000, 1),
		record(Servers, "rsa2048", 32, 1, "tlsd pkixcached", 1070, 1.07),
		record(Memory, "p256", 1, 1, "pkixcached", 300, 1),
		record(Memory, "p256", 1, 1, "sunx509", 300, 1),
		record(Memory, "p256", 1, 1, "pkix", 2900, 9),
		record(Memory, "p256", 1, 1, Derivation, 2600, 8),
		record(Memory, "p256", 1, 1000, "pkixcached", 400, 1/0.75),
		record(Memory, "p256", 1, 1000, "sunx509", 300, 1),
	}
}

func TestTableJudgesBudgets(t *testing.T) {
	table := Table(sample())
	for what, row := range map[string]string{
		"worst number of entries counts": "1 to 1,000 entries | ≥ 0.97 | 0.75 (0.75–0.75) | **not met** |",
		"at most, met":                   "RSA-2048, 32 callers | ≤ 1.10 | 1.07 (1.02–1.12) | met |",
		"at most, not met":               "P-256, 4 callers | ≤ 1.40 | 1.50 (1.45–1.55) | **not met** |",
		"missing":                        "P-256, 32 callers | ≤ 1.22 | – | not measured |",
		"derivations":                    "one key derivation | 1, within noise | 1.00 (0.99–1.01) | met |",
	} {
		if !strings.Contains(table, row) {
			t.Errorf("%s: no %q in\n%s", what, row, table)
		}
	}
}

// TestBudgetsBoundBothSides: a pkix that decrypts nothing is as wrong as one that
// decrypts twice, and of each tier means of each.
func TestBudgetsBoundBothSides(t *testing.T) {
	records := []Record{
		record(Memory, "p256", 1, 1, Plain, 300, 1),
		record(Memory, "p256", 1, 1, "pkixcached", 300, 1),
		record(Memory, "p256", 1, 1, "pkix", 300, 1),
		record(Memory, "p256", 1, 1, Derivation, 2600, 8),
	}
	for _, name := range []string{Plain, "pkixcached"} {
		r := record(Memory, "p256", 1, 1, name, 100, 1)
		r.Version, r.Resume = "1.2", true
		records = append(records, r)
	}
	table := Table(records)
	for _, row := range []string{
		"one key derivation | 1, within noise | 0.00 (-0.01–0.01) | **not met** |",
		"TLS 1.2, `pkixcached` and `sunx509` | ≥ 0.98 | – | not measured |",
	} {
		if !strings.Contains(table, row) {
			t.Errorf("no %q in\n%s", row, table)
		}
	}
}

func TestCSVHasEachRecord(t *testing.T) {
	var b bytes.Buffer
	if err := WriteCSV(&b, sample()); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll() // refuses rows of another length than the header's
	if err != nil || len(rows) != len(sample())+1 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

func TestSVGDrawsWhatIsNamed(t *testing.T) {
	var b strings.Builder
	if err := WriteSVG(&b, "a < b", sample(), []string{Plain, "tlsd pkixcached"}); err != nil {
		t.Fatal(err)
	}
	rects := 0
	for dec := xml.NewDecoder(strings.NewReader(b.String())); ; {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, b.String())
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			rects++
		}
	}
	if rects != 6 { // two settings: the reference, and tlsd with its key process's part
		t.Errorf("%d bars\n%s", rects, b.String())
	}
}

func TestWritePageKeepsTheRest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("before\n"+beginMark("a")+"old\n"+endMark+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := WritePage(path, "a", "new\n"); err != nil {
			t.Fatal(err)
		}
	}
	if b, _ := os.ReadFile(path); string(b) != "before\n"+beginMark("a")+"new\n"+endMark+"after\n" {
		t.Errorf("%s", b)
	}
	if err := WritePage(path, "b", "new\n"); err == nil {
		t.Error("a place without marks was written")
	}
}
