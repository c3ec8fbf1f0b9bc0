// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
	"github.com/tlsd/tlsd/internal/sandbox"
)

// confinement is what a key process has given up.
type confinement struct {
	user     string
	endpoint bool

	mu       sync.Mutex // guards what follows
	landlock sandbox.State
	reads    []string // directories that may be read
	sources  []string // keystores
}

// newConfinement is that of a process that is about to confine itself: who it
// is, and in which time zone, can't be looked up later.
func newConfinement(endpoint bool) *confinement {
	_, _ = time.Now().Zone()
	return &confinement{
		user: userName(os.Getuid()), endpoint: endpoint,
		landlock: sandbox.State{Missing: "the keystores are not opened yet"},
	}
}

// restrict keeps, of all files, those that spec names and what may come in
// their place, and the directories in which this process itself writes. A tier
// that doesn't say that this is enough keeps everything: it may need a device,
// a library or a service.
func (c *confinement) restrict(tier keymanager.Tier, spec Spec, own ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sources = keystorePaths(spec)
	if !tier.FilesOnly {
		c.landlock = sandbox.State{Missing: "the tier may need more than its keystores"}
		return
	}
	var named, open []string
	for _, path := range specPaths(spec) {
		if n, ok := descriptorNumber(path); ok {
			open = append(open, fmt.Sprintf("/proc/self/fd/%d", n))
			continue
		}
		named = append(named, path)
	}
	c.reads = sandbox.Above(named...)
	c.landlock = sandbox.Restrict(sandbox.Rules{Read: c.reads, Files: open, Write: own})
}

// report says what is in force.
func (c *confinement) report() *pb.Isolation {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &pb.Isolation{
		Uid: uint32(os.Getuid()), User: c.user, Endpoint: c.endpoint,
		Landlock: c.landlock.InForce, LandlockMissing: c.landlock.Missing, Keystores: c.sources,
	}
	if m.Landlock != "" && len(c.reads) > 0 {
		m.Landlock += ", reads below " + strings.Join(c.reads, ", ")
	}
	reportSelf(m)
	return m
}

// specPaths lists the files that a key process will open.
func specPaths(s Spec) []string {
	var paths []string
	_, _ = mapPaths(s, func(path string) (string, error) {
		paths = append(paths, path)
		return path, nil
	})
	return paths
}

func keystorePaths(s Spec) []string {
	var paths []string
	for _, src := range s.Sources {
		paths = append(paths, src.Paths...)
	}
	return paths
}

// noCore reports whether the kernel writes no core dump of this process.
func noCore() bool {
	var limit unix.Rlimit
	return unix.Getrlimit(unix.RLIMIT_CORE, &limit) == nil && limit.Cur == 0 && limit.Max == 0
}
