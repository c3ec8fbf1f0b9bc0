// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf16"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// TestOpenSaysWhatIsWrong holds the message of each bad file and password. All
// name the file.
func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	s := newShop(t)
	s.write(s.entry("a"))
	p12 := readFileString(t, s.path)
	certPath, keyPath := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	testca.WritePEM(t, certPath, keyPath, s.entry("a").Cert)
	keyPEM := readFileString(t, keyPath)
	armoured := string(pem.EncodeToMemory(&pem.Block{Type: "PKCS12", Bytes: []byte(p12)}))
	put := func(name, content string) string {
		path := filepath.Join(dir, name)
		writeFile(t, path, content)
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	huge := put("huge.p12", "")
	if err := os.Truncate(huge, maxFile+1); err != nil {
		t.Fatal(err)
	}
	pw := value(storePassword)
	tests := []struct {
		name string
		src  keymanager.Source
		want string
	}{
		{"missing", keymanager.Source{Paths: []string{dir + "/none"}}, "no such file"},
		{"directory", keymanager.Source{Paths: []string{dir}}, "is a directory"},
		{"fifo", keymanager.Source{Paths: []string{fifo}}, "not a regular file"},
		{"device", keymanager.Source{Paths: []string{"/dev/null"}}, "not a regular file"},
		{"empty", keymanager.Source{Paths: []string{put("empty", "")}}, "is empty"},
		{"huge", keymanager.Source{Paths: []string{huge}}, "over a limit: size of the file in bytes: 67108865, at most 67108864"},
		{"text", keymanager.Source{Paths: []string{put("text", "hello")}}, "not a keystore but text without a PEM block"},
		{"utf16", keymanager.Source{Paths: []string{put("utf16", toWindowsText(keyPEM))}}, "UTF-16"},
		{"base64", keymanager.Source{Paths: []string{put("b64", base64.StdEncoding.EncodeToString([]byte(p12)))}}, "base64 -d"},
		{"armoured", keymanager.Source{Paths: []string{put("armour", armoured)}}, "PKCS#12 in PEM armour"},
		{"bks", keymanager.Source{Paths: []string{put("bks", "\x00\x00\x00\x02\x00\x00\x00\x14")}}, "BouncyCastle"},
		{"truncated", keymanager.Source{Paths: []string{put("torn", p12[:700])}, Store: pw}, "damaged: the file breaks off"},
		{"pem-cut", keymanager.Source{Paths: []string{put("cut", keyPEM[:len(keyPEM)-20])}}, "damaged: PEM block at line 1"},
		{"pem-indented", keymanager.Source{Paths: []string{put("yaml", strings.ReplaceAll(keyPEM, "\n", "\n  "))}}, "damaged: PEM block at line 1"},
		{"pem-as-pkcs12", keymanager.Source{Paths: []string{keyPath}, Type: "pkcs12"}, "not pkcs12 but pem"},
		{"pkcs12-as-pem", keymanager.Source{Paths: []string{s.path}, Type: "pem", Store: pw}, "not pem but pkcs12"},
		{"unknown-type", keymanager.Source{Paths: []string{s.path}, Type: "p12"}, `unknown keystore type "p12"`},
		{"pkcs12-in-a-pair", keymanager.Source{Paths: []string{certPath, s.path}}, "not pem but pkcs12"},
		{"pair-of-pkcs12", keymanager.Source{Paths: []string{s.path, keyPath}}, "only PEM files"},
		{"pair-without-key-file", keymanager.Source{Paths: []string{certPath, dir + "/none"}}, dir + `/none": no such file`},
		{"wrong-password", keymanager.Source{Paths: []string{s.path}, Store: value("changeit ")}, "wrong password"},
		{"empty-password", keymanager.Source{Paths: []string{s.path}, Store: value("")}, "wrong password"},
		{"no-password", keymanager.Source{Paths: []string{s.path}}, "needs a password"},
		{"no-password-file", keymanager.Source{Paths: []string{s.path}, Store: keymanager.PasswordRef{File: dir + "/none"}}, "read password file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Open(t.Context(), tt.src, Limits{})
			if err == nil {
				t.Fatal("it opens")
			}
			for _, want := range []string{tt.want, tt.src.Paths[0]} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
			if strings.Contains(err.Error(), storePassword) {
				t.Errorf("a password is in %q", err)
			}
		})
	}
}

func toWindowsText(s string) string {
	out := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		out = append(out, byte(u), byte(u>>8))
	}
	return string(out)
}

// TestErrorTypes: a program can tell the causes apart.
func TestErrorTypes(t *testing.T) {
	s := newShop(t)
	s.write(s.entry("a"))
	open := func(src keymanager.Source, lim Limits) error {
		_, err := Open(t.Context(), src, lim)
		return err
	}
	var password *PasswordError
	if err := open(keymanager.Source{Paths: []string{s.path}}, Limits{}); !errors.As(err, &password) || !password.Missing {
		t.Errorf("no password: %v", err)
	}
	if err := open(keymanager.Source{Paths: []string{s.path}, Store: value("no")}, Limits{}); !errors.As(err, &password) || password.Missing {
		t.Errorf("wrong password: %v", err)
	}
	var limit *LimitError
	if err := open(s.source(), Limits{Iterations: 99}); !errors.As(err, &limit) || limit.Value != 100 || limit.Max != 99 {
		t.Errorf("limit: %v", err)
	}
	if err := open(keymanager.Source{Paths: []string{s.path + ".none"}}, Limits{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if err := openCause(&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}); !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), "uid") {
		t.Errorf("unreadable: %v", err)
	}
	own := s.entry("own")
	own.KeyPassword = "its own"
	s.write(s.entry("a"), own)
	e := mustProve(t, s.source()).Find("OWN")
	if !errors.As(e.Err, &password) || password.Alias != "own" || password.Missing || !e.Broken || e.Usable {
		t.Errorf("wrong key password: %+v", e.Err)
	}
}

// TestSumOfIterationsIsRefusedBeforeWork: no key alone is over the limit.
func TestSumOfIterationsIsRefusedBeforeWork(t *testing.T) {
	s := newShop(t)
	var entries []testca.StoreEntry
	for _, alias := range strings.Split("abcdefghijklmnopqrstuvwxyz0123456789_-+.=~", "") {
		entries = append(entries, s.entry(alias))
	}
	s.write(entries...)
	var limit *LimitError
	_, err := Open(t.Context(), s.source(), Limits{Iterations: 100})
	if !errors.As(err, &limit) || limit.Max != 4000 {
		t.Errorf("got %v, want the limit of the sum", err)
	}
}
