// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package whole

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/bench/material"
)

// Self is Part of the calling program.
func Self(name string, args ...string) Candidate {
	return Candidate{Name: name, Command: func(f material.Files, addr string) (*exec.Cmd, error) {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return Part(name, self, args...).Command(f, addr)
	}}
}

// Part is a server that a program is when it is started with args and, after them,
// an address and where it finds what was made: certificate and key, keystore and
// password, in that order.
func Part(name, path string, args ...string) Candidate {
	return Candidate{Name: name, Command: func(f material.Files, addr string) (*exec.Cmd, error) {
		return exec.Command(path, slices.Concat(args, []string{addr, f.Cert, f.Key, f.Store, f.PasswordFile})...), nil
	}}
}

// Tlsd is a tlsd executable with one of its tiers, as it is installed but for
// env, which is added to its environment.
func Tlsd(name, path, tier string, env ...string) Candidate {
	return tlsd(name, path, tier, nil, env)
}

// Plugin is Tlsd with an executable of its own for the tier.
func Plugin(name, path, tier, plugin string, env ...string) Candidate {
	return tlsd(name, path, tier, []string{"--plugin", tier + "=" + plugin}, env)
}

func tlsd(name, path, tier string, args, env []string) Candidate {
	return Candidate{Name: strings.TrimSpace(name + " " + tier), Command: func(f material.Files, addr string) (*exec.Cmd, error) {
		cmd := exec.Command(path, slices.Concat(args, []string{"--listen", addr, "--keymanager", tier,
			"--keystore", f.Store, "--keystore-password-file", f.PasswordFile})...)
		cmd.Env = append(cmd.Environ(), env...)
		return cmd, nil
	}}
}

// nginxConf is a server that makes handshakes as the others do and answers
// nothing. Its tickets are off, so that it has full handshakes only.
const nginxConf = `daemon off;
pid %[1]s/nginx.pid;
error_log stderr crit;
worker_processes auto;
events { worker_connections 4096; }
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	server {
		listen %[2]s ssl;
		ssl_certificate %[3]s;
		ssl_certificate_key %[4]s;
		ssl_protocols TLSv1.2 TLSv1.3;
		ssl_ecdh_curve X25519:prime256v1;
		ssl_session_tickets off;
		return 204;
	}
}
`

// Nginx is nginx with one worker for each CPU.
func Nginx(path string) Candidate {
	return Candidate{Name: "nginx", FullOnly: true, Command: func(f material.Files, addr string) (*exec.Cmd, error) {
		dir := filepath.Dir(f.Cert)
		conf := filepath.Join(dir, "nginx.conf")
		if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, addr, f.Cert, f.Key), 0o600); err != nil {
			return nil, err
		}
		return exec.Command(path, "-e", "stderr", "-p", dir, "-c", conf), nil
	}}
}
