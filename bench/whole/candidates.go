// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"os/exec"
	"strings"

	"github.com/tlsd/tlsd/bench/material"
)

// Plain is the reference: self runs fleet.ServePlain with address, certificate
// and key as its last arguments.
func Plain(self ...string) Candidate {
	return Candidate{Name: "crypto/tls", Command: func(f material.Files, addr string) (*exec.Cmd, error) {
		args := append(self[1:len(self):len(self)], addr, f.Cert, f.Key)
		return exec.Command(self[0], args...), nil
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
