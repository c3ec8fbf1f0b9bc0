// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/framework/config"
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/internal/sandbox"
)

// confine has this process give up, where an endpoint holds its keys, all files
// but those of the system and of its own configuration, and says what came of
// it. A front that starts key processes itself keeps everything: they inherit
// what it gives up.
func confine(eff *config.Effective) []plugin.Finding {
	if !strings.HasPrefix(eff.KeyManager, "unix:") {
		return nil
	}
	state := sandbox.Restrict(frontRules(eff))
	f := plugin.Finding{Name: "front_landlock", OK: state.InForce != "", Value: state.InForce}
	if !f.OK {
		f.Value = "no: " + state.Missing
		f.Remedy = "run it on a Linux whose kernel has Landlock (5.13 and newer, lsm=…,landlock)"
	}
	return []plugin.Finding{f}
}

// frontRules keeps what a front needs: trusted certificates and CRLs, as they
// are replaced; what names are resolved and systems' certificates are found by;
// the sockets that it listens on; and its executable, for an upgrade.
func frontRules(eff *config.Effective) sandbox.Rules {
	r := sandbox.Rules{
		Outside: true,
		Read:    append(sandbox.Above(frontFiles(eff)...), "/etc", "/usr", "/proc", "/sys", "/dev", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"),
	}
	r.Execute = executables(os.Args[0])
	if dirs := os.Getenv("SSL_CERT_DIR"); dirs != "" {
		r.Read = append(r.Read, filepath.SplitList(dirs)...)
	}
	for _, address := range listening(eff) {
		if path, ok := strings.CutPrefix(address, "unix:"); ok {
			r.Write = append(r.Write, filepath.Dir(path))
		}
	}
	return r
}

// executables returns where an upgrade may find the next executable: beside this
// one, and, since started may be a link that is to lead elsewhere by then, below the
// directories above it and above what it leads to now. All of the file system is
// none of them.
func executables(started string) []string {
	dirs := slices.DeleteFunc(sandbox.Above(started), func(dir string) bool { return dir == "/" })
	if exe, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(exe))
	}
	return dirs
}

// frontFiles lists the files that a front may have to read again. Where one is
// missing no rule comes of it.
func frontFiles(eff *config.Effective) []string {
	files := []string{eff.File, os.Getenv("SSL_CERT_FILE")}
	for i := range eff.Listeners {
		l := &eff.Listeners[i]
		files = append(files, l.ClientCA.Path, l.ClientCRL, l.BackendTLS.CA.Path)
		for j := range l.Hosts {
			h := &l.Hosts[j]
			files = append(files, h.ClientCA.Path, h.ClientCRL, h.BackendTLS.CA.Path)
		}
	}
	return files
}

func listening(eff *config.Effective) []string {
	addresses := []string{eff.Metrics, eff.Admin}
	for _, l := range eff.Listeners {
		addresses = append(addresses, l.Listen)
	}
	return addresses
}
