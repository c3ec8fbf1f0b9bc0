// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package jdk_test

import (
	"testing"
	"time"

	"github.com/tlsd/tlsd/bench/jdk"
	"github.com/tlsd/tlsd/bench/material"
	"github.com/tlsd/tlsd/bench/memory"
	"github.com/tlsd/tlsd/internal/testca"
)

func TestHandshakes(t *testing.T) {
	testca.Tool(t, "javac")
	all := jdk.Installed()
	if len(all) == 0 {
		t.Fatal("there is a Java compiler, and no JDK was found")
	}
	dir := t.TempDir()
	files, err := material.Make(dir, material.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := all[0].Handshakes(dir, jdk.Job{
		Store: files.Store, Password: material.Password, CA: files.CA,
		Algorithm: jdk.PKIX, Version: "TLSv1.3", Resume: true, Name: material.Name,
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err := memory.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := p.Turn(t.Context(), 50*time.Millisecond); err != nil || s.Rate <= 0 {
		t.Errorf("turn: %+v, %v", s, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
