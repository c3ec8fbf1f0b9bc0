// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	kernel "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// maxABI is the newest Landlock that these rules were tried with. What a later
// one can forbid besides is left alone, since nobody has said what is needed of
// it.
const maxABI = 7

const (
	mayRead  = landlock.AccessFSSet(kernel.AccessFSReadFile | kernel.AccessFSReadDir)
	mayWrite = mayRead | landlock.AccessFSSet(kernel.AccessFSWriteFile|kernel.AccessFSTruncate|
		kernel.AccessFSMakeReg|kernel.AccessFSMakeDir|kernel.AccessFSMakeSock|kernel.AccessFSMakeSym|
		kernel.AccessFSRemoveFile|kernel.AccessFSRemoveDir)
	mayRun = landlock.AccessFSSet(kernel.AccessFSExecute | kernel.AccessFSReadFile)
)

// ABI returns the version of Landlock that this kernel has and this package
// makes use of; 0: none.
func ABI() int {
	abi, err := kernel.LandlockGetABIVersion()
	if err != nil || abi < 0 {
		return 0
	}
	return min(abi, maxABI)
}

// Restrict gives up, for all threads of this process and all that it will
// start, what r doesn't keep, as far as the kernel can forbid it. It also gives
// up new privileges. What was given up before stays so.
func Restrict(r Rules) State {
	abi := ABI()
	if abi == 0 {
		return missing("this kernel has no Landlock, or it is switched off")
	}
	config := landlock.V7
	if r.Outside {
		config.HandledAccessNet, config.Scoped = 0, 0
	}
	err := config.BestEffort().Restrict(
		below(mayRead, r.Read),
		landlock.PathAccess(landlock.AccessFSSet(kernel.AccessFSReadFile), existing(r.Files)...).IgnoreIfMissing(),
		below(mayWrite, r.Write),
		below(mayRun, r.Execute),
	)
	switch {
	case errors.Is(err, unix.E2BIG):
		return missing("too many restrictions were inherited; restart the service instead of upgrading it in place")
	case errors.Is(err, unix.ENOTSUP):
		return missing("not possible from within a program with cgo")
	case err != nil:
		return missing("%v", err)
	}
	return inForce(abi)
}

func below(rights landlock.AccessFSSet, dirs []string) landlock.FSRule {
	return landlock.PathAccess(rights, existing(dirs)...).IgnoreIfMissing()
}

// existing leaves out what can't be found, and what is found without being in a
// directory: a pipe or memory behind a descriptor, which Landlock doesn't forbid.
func existing(paths []string) []string {
	var found []string
	for _, p := range paths {
		var fs unix.Statfs_t
		if err := unix.Statfs(p, &fs); err != nil {
			continue
		}
		if target, err := os.Readlink(p); err == nil && nameless(target) {
			continue
		}
		found = append(found, p)
	}
	return found
}

// nameless reports whether a link of /proc/self/fd leads to what has no path.
func nameless(target string) bool {
	return target != "" && target[0] != '/' || len(target) > 7 && target[:7] == "/memfd:"
}
