// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/tlsd/tlsd/internal/testca"
)

// A front that was started by a link gives up what it may run, but not what the link
// leads to when the upgrade comes.
func TestFaultEndpointFrontBehindALinkIsUpgraded(t *testing.T) {
	t.Parallel()
	u := newTwoUsers(t)
	u.startKeys()
	opt := filepath.Join(u.dir, "opt")
	link := filepath.Join(opt, "bin", "tlsd")
	for _, d := range []string{"v1", "v2", "bin"} {
		u.must(os.MkdirAll(filepath.Join(opt, d), 0o755))
	}
	for _, v := range []string{"v1", "v2"} {
		copyFile(t, bin("tlsd"), filepath.Join(opt, v, "tlsd"))
		u.must(os.Chmod(filepath.Join(opt, v, "tlsd"), 0o755))
	}
	u.must(os.Symlink("../v1/tlsd", link))

	u.front = &process{Cmd: as(frontUser, link, "--keymanager", "unix:"+u.socket, "--listen", u.addr, "--log-format", "json"), log: &buffer{}, exited: make(chan error, 1)}
	u.front.Stderr = u.front.log
	testca.StartGuarded(t, u.front.Cmd)
	go func() { u.front.exited <- u.front.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-u.front.Process.Pid, syscall.SIGKILL) // and what has taken its place
		<-u.front.exited
	})
	u.until(u.front, `"logger":"server","msg":"listening"`)

	u.must(os.Symlink("../v2/tlsd", link+"~"))
	u.must(os.Rename(link+"~", link))
	u.must(u.front.Process.Signal(syscall.SIGUSR2))
	u.until(u.front, "another process serves now")
	u.wantServed("first")
}
