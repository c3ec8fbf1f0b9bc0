// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	pb "github.com/tlsd/tlsd/framework/plugin/proto"
)

// Finding is one thing that keeps a key process apart, or doesn't.
type Finding struct {
	Name   string // of what it is about; there may be several keystores
	OK     bool   // it keeps it apart
	Value  string // what was found
	Remedy string // where not OK: what to do about it
}

// notIsolated is what is to be said of keys in the process that uses them.
func notIsolated() []Finding {
	return []Finding{{
		Name: "process", Value: "keys are in the process that faces the network",
		Remedy: "leave InProcess out of framework.Config",
	}}
}

// Isolation asks the key process what is in force there, and adds what can be
// seen from here.
func (c *caller) Isolation(ctx context.Context) ([]Finding, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return call(ctx, c, func(_ *wait, l *link) ([]Finding, error) {
		resp, err := l.api.Health(ctx, &pb.HealthRequest{})
		if err != nil {
			return nil, meaning(ctx, err)
		}
		if resp.GetIsolation() == nil {
			return nil, fmt.Errorf("isolation: the key process doesn't report any: %w", ErrUnsupported)
		}
		return judge(resp.GetIsolation(), l.socket), nil
	})
}

// judge says what is in force between this process and a key process that has
// reported itself, and is reached through socket.
func judge(key *pb.Isolation, socket string) []Finding {
	findings := []Finding{
		{Name: "process", OK: true, Value: kindOfProcess(key)},
		judgeUsers(key),
		{Name: "dumpable", OK: !key.GetDumpable(), Value: yesNo(key.GetDumpable()),
			Remedy: "look in the log for why the key process may be debugged"},
		{Name: "core_dumps", OK: key.GetCoreLimitZero(), Value: yesNo(!key.GetCoreLimitZero()),
			Remedy: "limit core dumps to 0 bytes (LimitCORE=0)"},
		{Name: "no_new_privs", OK: key.GetNoNewPrivs(), Value: yesNo(key.GetNoNewPrivs()),
			Remedy: "build the key manager without cgo, or set NoNewPrivileges=true"},
		judgeLandlock(key),
		judgeSocket(socket),
	}
	for _, path := range key.GetKeystores() {
		findings = append(findings, judgeKeystore(clean(path, maxErrorText)))
	}
	return findings
}

func kindOfProcess(key *pb.Isolation) string {
	if key.GetEndpoint() {
		return "endpoint"
	}
	return "child"
}

func judgeUsers(key *pb.Isolation) Finding {
	front := os.Getuid()
	return Finding{
		Name: "users", OK: int(key.GetUid()) != front,
		Value:  fmt.Sprintf("front %s, key process %s", describeUser(front, userName(front)), describeUser(int(key.GetUid()), clean(key.GetUser(), maxExcerpt))),
		Remedy: "run the key process as a user of its own, by tlsd keymanager serve",
	}
}

func judgeLandlock(key *pb.Isolation) Finding {
	f := Finding{Name: "landlock", OK: key.GetLandlock() != "", Value: clean(key.GetLandlock(), maxErrorText)}
	if !f.OK {
		f.Value = "no: " + clean(key.GetLandlockMissing(), maxErrorText)
		f.Remedy = "run it on a Linux whose kernel has Landlock (5.13 and newer, lsm=…,landlock), with a tier that needs nothing but its keystores"
	}
	return f
}

// judgeSocket says who can get at a socket. An abstract one, or none, is the
// business of certificates and descriptors.
func judgeSocket(socket string) Finding {
	f := Finding{Name: "socket", Remedy: "let nobody but the two users enter its directory (chmod o-rwx)"}
	if socket == "" || socket[0] != '/' {
		f.OK, f.Value = true, "without a file"
		return f
	}
	file, err := os.Stat(socket)
	if err != nil {
		f.Value = fmt.Sprintf("not found: %v", pathCause(err))
		return f
	}
	dir, err := os.Stat(filepath.Dir(socket))
	if err != nil {
		f.Value = fmt.Sprintf("directory not found: %v", pathCause(err))
		return f
	}
	f.OK = file.Mode().Perm()&0o002 == 0 || dir.Mode().Perm()&0o001 == 0
	f.Value = fmt.Sprintf("%v in %v", file.Mode(), dir.Mode())
	return f
}

// judgeKeystore tries whether this process may read a keystore, and reads
// nothing of it. What is no regular file is left alone: opening it could be
// noticed.
func judgeKeystore(path string) Finding {
	f := Finding{Name: "keystore", Remedy: "let only the key process's user read it, another one than the front's"}
	if _, ok := descriptorNumber(path); ok {
		f.Value = "the front can read " + path + ", and has handed it on"
		return f
	}
	err := tryOpen(path)
	switch {
	case err == nil:
		f.Value = "the front can open " + path
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		f.OK, f.Value = true, fmt.Sprintf("the front can't open %s: %v", path, pathCause(err))
	default:
		f.Value = fmt.Sprintf("not known whether the front can open %s: %v", path, pathCause(err))
	}
	return f
}

func tryOpen(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("no regular file")
	}
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	return file.Close()
}

// userName returns the name of a user, "" if it has none.
func userName(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return ""
	}
	return u.Username
}

func describeUser(uid int, name string) string {
	return strings.TrimSpace(fmt.Sprintf("%s (%d)", name, uid))
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
