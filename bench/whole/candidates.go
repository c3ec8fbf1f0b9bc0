// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/bench/material"
)

// Self is a server that the calling program is when it is started with args and,
// after them, an address and where it finds what was made: certificate and key,
// keystore and password, in that order.
func Self(name string, args ...string) Candidate {
	return Candidate{Name: name, Command: func(f material.Files, addr string) (*exec.Cmd, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return exec.Command(self, slices.Concat(args, []string{addr, f.Cert, f.Key, f.Store, f.PasswordFile})...), nil
	}}
}

// Tlsd is a tlsd executable with one of its tiers, as it is installed but for
// env, which is added to its environment.
func Tlsd(name, path, tier string, env ...string) Candidate {
	return Candidate{Name: strings.TrimSpace(name + " " + tier), Command: func(f material.Files, addr string) (*exec.Cmd, error) {
		cmd := exec.Command(path, "--listen", addr, "--keymanager", tier,
			"--keystore", f.Store, "--keystore-password-file", f.PasswordFile)
		cmd.Env = append(cmd.Environ(), env...)
		return cmd, nil
	}}
}
