// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/memsearch"
	"github.com/tlsd/tlsd/internal/testca"
)

// holderOf makes the test binary a process that has the keys of a keystore and
// knows them from nowhere else.
const holderOf = "TLSD_TEST_HOLD"

// holder tells of itself in a line each time that it is ready to be searched.
type holder struct {
	Heap uint64 // an address in Go's heap
	Err  string
}

// hold opens the keystore, and takes in what becomes of it for each line that
// it reads.
func hold(path string) int {
	out := json.NewEncoder(os.Stdout)
	ctx := context.Background()
	src := keymanager.Source{Paths: []string{path}, Store: keymanager.PasswordRef{File: path + ".pass"}}
	m, err := Tier().Open(ctx, keymanager.Env{Builders: []keymanager.Source{src}, FirstGeneration: 1})
	for in := bufio.NewScanner(os.Stdin); err == nil; err = m.(keymanager.Reloader).Reload(ctx) {
		if err = signAll(ctx, m); err != nil {
			break
		}
		for range 3 { // one finds what nobody has, the next runs its cleanup
			runtime.GC()
		}
		somewhere := new([64]byte)
		if out.Encode(holder{Heap: uint64(uintptr(unsafe.Pointer(somewhere)))}) != nil || !in.Scan() {
			return 0
		}
	}
	_ = out.Encode(holder{Err: err.Error()})
	return 1
}

func signAll(ctx context.Context, m keymanager.KeyManager) error {
	entries, err := m.(keymanager.Lister).List(ctx)
	if err != nil {
		return err
	}
	for _, e := range entries {
		req := &keymanager.SignRequest{Scheme: schemesOf(e.Key.Public())[0], Purpose: keymanager.ServerTLS13, Message: certificateVerify()}
		if _, err := e.Key.Sign(ctx, req); err != nil {
			return err
		}
	}
	return nil
}

// TestKeysAreInNoGoMemory searches a process that has keys and has signed: Go's
// heap holds nothing of them, libcrypto's memory does, and nothing does once they
// have left the keystore.
func TestKeysAreInNoGoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("what -short is for, the race detector, has memory of its own")
	}
	path := filepath.Join(t.TempDir(), "server.p12")
	root := testca.NewRoot(t, testca.Spec{Name: "root"})
	var secrets []memsearch.Secret
	var entries []testca.StoreEntry
	for _, kt := range keyTypes {
		c := root.Issue(t, testca.Spec{Name: string(kt), Key: kt})
		entries = append(entries, testca.StoreEntry{Alias: string(kt), Cert: c})
		secrets = append(secrets, memsearch.Of(string(kt), c.Key)...)
	}
	testca.WritePKCS12(t, path, "changeit", entries...)
	if err := os.WriteFile(path+".pass", []byte("changeit"), 0o600); err != nil {
		t.Fatal(err)
	}
	pid, next := startHolder(t, path)

	heap := next().Heap
	if found := search(t, pid, heap, secrets); len(found) > 0 {
		t.Errorf("Go's heap holds %q", found)
	}
	all := search(t, pid, 0, secrets)
	for _, kt := range keyTypes {
		if !slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, string(kt)) }) {
			t.Errorf("nothing of %s is found, so that the search shows nothing", kt)
		}
	}

	other := root.Issue(t, testca.Spec{Name: "other"})
	testca.WritePKCS12(t, path, "changeit", testca.StoreEntry{Alias: "other", Cert: other})
	next()
	if found := search(t, pid, 0, secrets); len(found) > 0 {
		t.Errorf("keys are gone and found in memory: %q", found)
	}
}

// startHolder returns the process and what makes it look again.
func startHolder(t *testing.T, path string) (pid int, next func() holder) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), holderOf+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	said := json.NewDecoder(out)
	asked := false
	return cmd.Process.Pid, func() (h holder) {
		t.Helper()
		if asked {
			_, err = io.WriteString(in, "\n")
		}
		asked = true
		if err = fmt.Errorf("%w", said.Decode(&h)); h.Heap == 0 {
			t.Fatalf("holder: %v %s", err, h.Err)
		}
		return h
	}
}

// search returns the names of the secrets that are in the memory of a process:
// around an address, or anywhere where that is 0.
func search(t *testing.T, pid int, address uint64, secrets []memsearch.Secret) []string {
	t.Helper()
	found, err := memsearch.Search(pid, secrets)
	if address != 0 {
		found, err = memsearch.SearchAround(pid, address, secrets)
	}
	if errors.Is(err, fs.ErrPermission) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}
