// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package doctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

func TestConfigurationsLoad(t *testing.T) {
	var tiers []keymanager.Tier
	for _, name := range []string{"pkixcached", "pkix", "sunx509"} {
		tiers = append(tiers, keymanager.Tier{Name: name})
	}
	for _, b := range blocks(t, "yaml") {
		file := filepath.Join(t.TempDir(), "tlsd.yaml")
		if err := os.WriteFile(file, []byte(b.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var flags config.Flags
		fs := pflag.NewFlagSet("tlsd", pflag.ContinueOnError)
		flags.Register(fs)
		if err := fs.Parse([]string{"--config", file}); err != nil {
			t.Fatal(err)
		}
		if _, err := config.Load(config.Input{Flags: &flags, Environ: []string{}, Tiers: tiers}); err != nil {
			t.Errorf("%s:%d doesn't load: %v", b.page, b.line, err)
		}
	}
}

// Each tlsd command that serves or checks is run as tlsd check, with the same
// flags, where the files lie that the pages name.
func TestCommandsCheck(t *testing.T) {
	dir := desk(t)
	checked := 0
	for _, b := range blocks(t, "sh") {
		for _, args := range commands(b.text) {
			checked++
			cmd := exec.Command(filepath.Join(dir, "bin", "tlsd"), append([]string{"check"}, args...)...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s:%d: tlsd %s: %v\n%s", b.page, b.line, strings.Join(args, " "), err, out)
			}
		}
	}
	if checked == 0 {
		t.Error("no tlsd command in the docs")
	}
}

// commands returns the arguments of each tlsd command that serves or checks.
func commands(script string) (found [][]string) {
	script = strings.ReplaceAll(script, "\\\n", " ")
	for l := range strings.Lines(script) {
		l, _, _ = strings.Cut(l, " #")
		words := strings.Fields(l)
		if len(words) < 2 || words[0] != "tlsd" {
			continue
		}
		if args := words[1:]; args[0] == "check" {
			found = append(found, args[1:])
		} else if strings.HasPrefix(args[0], "-") {
			found = append(found, args)
		}
	}
	return found
}

// desk is a folder with everything that a command in the docs names.
func desk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	ca := testca.NewRoot(t, testca.Spec{Name: "root"})
	leaf := ca.Issue(t, testca.Spec{Name: "server", DNS: []string{"a.example"}})
	testca.WritePKCS12(t, filepath.Join(dir, "server.p12"), "changeit", testca.StoreEntry{Alias: "server", Cert: leaf})
	testca.WritePEM(t, filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), leaf)
	for name, content := range map[string][]byte{"pass": []byte("changeit\n"), "clients.pem": ca.CertPEM()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "bin") + string(filepath.Separator)
	goBuild(t, root, bin, "./cmd/tlsd", "./plugins/pkix/cmd/tlsd-keymanager-pkix")
	goBuild(t, filepath.Join(root, "examples"), bin, "./pemfile", "./keydir")
	return dir
}

func goBuild(t *testing.T, in, out string, targets ...string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"build", "-o", out}, targets...)...)
	cmd.Dir = in
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build %v: %v\n%s", targets, err, text)
	}
}
