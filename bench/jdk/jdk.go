// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package jdk makes the handshakes of package memory with the SSLEngine of
// installed JDKs.
package jdk

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

//go:embed Handshakes.java
var program []byte

// Algorithms of key managers.
const (
	SunX509 = "SunX509"
	PKIX    = "PKIX"
)

// JDK is an installed one.
type JDK struct {
	Version string // "17", "25"
	java    string
}

var release = regexp.MustCompile(`(?m)^JAVA_VERSION="(\d+)`)

// Installed returns the JDKs below /usr/lib/jvm that can run a source file, one
// of each version.
func Installed() (all []JDK) {
	seen := map[string]bool{}
	files, _ := filepath.Glob("/usr/lib/jvm/*/release")
	for _, file := range files {
		b, _ := os.ReadFile(file)
		version := release.FindSubmatch(b)
		java := filepath.Join(filepath.Dir(file), "bin", "java")
		if version == nil || seen[string(version[1])] || !compiles(java) {
			continue
		}
		seen[string(version[1])] = true
		all = append(all, JDK{Version: string(version[1]), java: java})
	}
	return all
}

func compiles(java string) bool {
	_, err := exec.LookPath(filepath.Join(filepath.Dir(java), "javac"))
	return err == nil
}

// Job says what handshakes are made.
type Job struct {
	Store, Password string // PKCS#12
	CA              string // PEM file
	Algorithm       string
	Version         string // "TLSv1.3"
	Resume          bool
	Name            string // server name; empty: none
}

// Handshakes returns a command that has turns as memory.Serve has. It puts the
// program into dir.
func (j JDK) Handshakes(dir string, job Job) (*exec.Cmd, error) {
	source := filepath.Join(dir, "Handshakes.java")
	if err := os.WriteFile(source, program, 0o600); err != nil {
		return nil, fmt.Errorf("write Java program: %w", err)
	}
	return exec.Command(j.java, "-XX:ActiveProcessorCount=1", "-Djdk.tls.namedGroups=x25519,secp256r1", source,
		job.Store, job.Password, job.CA, job.Algorithm, job.Version, strconv.FormatBool(job.Resume), job.Name), nil
}
