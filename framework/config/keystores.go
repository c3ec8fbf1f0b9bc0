// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// keystoreTypes are the values of keystores[].type.
func keystoreTypes() []string { return []string{"auto", "pkcs12", "jks", "jceks", "pem"} }

// setKeystores replaces the file's keystores, passwords included. Each value is
// one builder: a path, or paths that belong together, with commas between.
func (d *draft) setKeystores(values []string, from string) error {
	d.Keystores, d.dropped = nil, append(d.dropped, "keystores")
	for i, v := range values {
		p := list(v)
		if len(p) == 0 {
			return fmt.Errorf("%s: has no path", from)
		}
		d.Keystores = append(d.Keystores, keystore{Path: p})
		d.origins[fmt.Sprintf("keystores[%d].path", i)] = from
	}
	return nil
}

func (d *draft) setJavaKeystore(v, from string) error {
	if v == "NONE" {
		return fmt.Errorf("%s: NONE stands for a token, which needs a key manager plugin of its own: see --plugin", from)
	}
	d.Keystores, d.dropped = []keystore{{Path: paths{v}}}, append(d.dropped, "keystores")
	d.origins["keystores[0].path"] = from
	return nil
}

// setStoreType takes the type in a JVM's spelling (PKCS12, JKS) too.
func (d *draft) setStoreType(v, from string) error {
	d.storeType = given[string]{[]string{v}, from}
	return nil
}

func (d *draft) setStorePassword(v, from string) {
	secret := keymanager.Secret(v)
	d.passwords = given[keymanager.PasswordRef]{[]keymanager.PasswordRef{{Value: &secret}}, from}
}

func (d *draft) setJavaStorePassword(v, from string) error {
	d.noteArgv(from)
	d.setStorePassword(v, from)
	return nil
}

// noteArgv warns of a password on the command line; TLSD_OPTS is no better kept
// than TLSD_KEYSTORE_PASSWORD, but no worse either.
func (d *draft) noteArgv(from string) {
	if !strings.HasSuffix(from, EnvOpts) {
		d.note("%s: everyone who can list processes sees this password; use a password file or the environment", from)
	}
}

func (d *draft) setPasswordFiles(files []string, from string) error {
	d.passwords = given[keymanager.PasswordRef]{fileRefs(files), from}
	return nil
}

func (d *draft) setKeyPasswordFiles(files []string, from string) error {
	d.keyPasswords = given[keymanager.PasswordRef]{fileRefs(files), from}
	return nil
}

func fileRefs(files []string) []keymanager.PasswordRef {
	var refs []keymanager.PasswordRef
	for _, f := range files {
		refs = append(refs, keymanager.PasswordRef{File: f})
	}
	return refs
}

// finishKeystores lays type and passwords, given once for all keystores or once
// for each, over the list. An empty variable is the empty password of those that
// nothing else gives one: from a secret that is empty, say.
func (d *draft) finishKeystores() error {
	n := len(d.Keystores)
	if err := d.passwords.fits(n); err != nil {
		return err
	}
	if err := d.keyPasswords.fits(n); err != nil {
		return err
	}
	for i := range d.Keystores {
		d.layOver(i)
		if err := d.checkKeystore(i); err != nil {
			return err
		}
	}
	return nil
}

// fits checks that there is one value for all, or one for each keystore.
func (g given[T]) fits(keystores int) error {
	if n := len(g.values); n > 1 && n != keystores {
		return fmt.Errorf("%s: given %d times beside %d keystores; give one for all, or one for each in their order", g.from, n, keystores)
	}
	return nil
}

func (g given[T]) of(i int) T {
	if len(g.values) == 1 {
		return g.values[0]
	}
	return g.values[i]
}

func (d *draft) layOver(i int) {
	k, at := &d.Keystores[i], fmt.Sprintf("keystores[%d].", i)
	if d.storeType.from != "" {
		k.Type = d.storeType.of(i)
		d.origins[at+"type"] = d.storeType.from
	}
	if d.passwords.from != "" {
		ref := d.passwords.of(i)
		if k.PasswordFile != "" && strings.HasPrefix(d.passwords.from, "environment ") { // which may have been forgotten
			d.note("%s takes the place of %spassword_file", d.passwords.from, at)
		}
		k.PasswordFile, k.Password = ref.File, ref.Value
		d.origins[at+"password_file"], d.origins[at+"password"] = d.passwords.from, d.passwords.from
	}
	if d.emptyPassword && k.PasswordFile == "" && k.Password == nil {
		k.Password, d.origins[at+"password"] = new(keymanager.Secret), "environment "+EnvKeystorePassword
	}
	if d.keyPasswords.from != "" {
		k.KeyPasswordFile, k.KeyPasswords = d.keyPasswords.of(i).File, nil
		d.origins[at+"key_password_file"] = d.keyPasswords.from
	}
}

func (d *draft) checkKeystore(i int) error {
	k, at := &d.Keystores[i], fmt.Sprintf("keystores[%d]", i)
	if len(k.Path) == 0 || slices.Contains(k.Path, "") {
		return d.wrong(at, "has no path")
	}
	k.Type = strings.ToLower(k.Type)
	if k.Type != "" && !slices.Contains(keystoreTypes(), k.Type) {
		return d.wrong(at+".type", "%q is no keystore type; there are %s", k.Type, strings.Join(keystoreTypes(), ", "))
	}
	seen := map[string]bool{}
	for j, kp := range k.KeyPasswords {
		here := fmt.Sprintf("%s.key_passwords[%d]", at, j)
		if kp.Alias == "" || kp.File == "" {
			return d.wrong(here, "needs alias and file")
		}
		if seen[strings.ToLower(kp.Alias)] {
			return d.wrong(here, "alias %q is given twice (case does not count)", kp.Alias)
		}
		seen[strings.ToLower(kp.Alias)] = true
	}
	return nil
}

// sources returns the keystores as a key manager takes them.
func (d *draft) sources() []keymanager.Source {
	var sources []keymanager.Source
	for _, k := range d.Keystores {
		src := keymanager.Source{
			Type:  k.Type,
			Store: keymanager.PasswordRef{File: absolute(k.PasswordFile), Value: k.Password},
			Key:   keymanager.PasswordRef{File: absolute(k.KeyPasswordFile)},
		}
		for _, p := range k.Path {
			src.Paths = append(src.Paths, absolute(p))
		}
		for _, kp := range k.KeyPasswords {
			src.Keys = append(src.Keys, keymanager.KeyPassword{Alias: kp.Alias, Password: keymanager.PasswordRef{File: absolute(kp.File)}})
		}
		sources = append(sources, src)
	}
	return sources
}

// absolute makes a path one that means the same in the key process: a relative
// one counts from the working directory, wherever it was given.
func absolute(path string) string {
	if path == "" {
		return ""
	}
	abs, err := filepath.Abs(path)
	if err != nil { // the working directory is gone
		return path
	}
	return abs
}
