// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
	"github.com/tlsd/tlsd/logging"
)

// never is a poll that no test lives to see: what is found without it was found
// by events.
const never = time.Hour

// watched are views under test, what Watch told last, and the log.
type watched struct {
	*Views[[]string]
	t    testing.TB
	last atomic.Pointer[keymanager.Change]
	logs *observer.ObservedLogs
}

// follow opens views of sources and watches them until the test ends, when
// nothing may be left of it.
func follow(t testing.TB, poll time.Duration, sources ...keymanager.Source) *watched {
	t.Helper()
	return followWith(t, keymanager.Options{Poll: poll}, sources...)
}

func followWith(t testing.TB, o keymanager.Options, sources ...keymanager.Source) *watched {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	e := env(sources...)
	e.Options, e.Log = o, zap.New(core)
	f := &watched{Views: mustOpenNames(t, e, ViewOptions{Follow: true}), t: t, logs: logs}
	f.watch()
	until(t, "the first look", func() bool { l := f.sight.last.Load(); return l != nil && isClosed(l.done) })
	return f
}

func (f *watched) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.Watch(ctx, func(c keymanager.Change) { f.last.Store(&c) }) }()
	f.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Errorf("watch ended with %v", err)
		}
	})
}

// until waits for what is bound to happen.
func until(t testing.TB, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if happened() {
			return
		}
	}
	t.Fatalf("%s: did not come", what)
}

// serves waits until the views are of entries with these aliases, and Watch has
// told of them.
func (f *watched) serves(aliases ...string) {
	f.t.Helper()
	until(f.t, "entries "+cmp.Diff(f.Current(), aliases), func() bool {
		told := f.last.Load()
		return slices.Equal(f.Current(), aliases) && told != nil && told.Generation == f.Generation()
	})
}

// fails waits until it is said once that a reading failed.
func (f *watched) fails() {
	f.t.Helper()
	until(f.t, "a failed reload", func() bool { return f.last.Load().Failed != "" })
}

// complaints returns how often it was said that a reading failed.
func (f *watched) complaints() int { return f.logs.FilterMessage(logging.MsgReloadFailed).Len() }

// looked waits for another whole look.
func (f *watched) looked() {
	f.t.Helper()
	before := f.sight.last.Load()
	f.hurry <- struct{}{}
	until(f.t, "another look", func() bool { l := f.sight.last.Load(); return l != before && isClosed(l.done) })
}

// way is a way to change the file at path.
type way struct {
	name   string
	change func(t testing.TB, path string, content []byte)
}

func ways() []way {
	return []way{
		{"rename", func(t testing.TB, path string, b []byte) { replaceFile(t, path, b) }},
		{"in_place", func(t testing.TB, path string, b []byte) { writeFile(t, path, string(b)) }},
		{"editor", func(t testing.TB, path string, b []byte) {
			must(t, os.Rename(path, path+"~"))
			writeFile(t, path, string(b))
			must(t, os.Remove(path+"~"))
		}},
		{"removed_first", func(t testing.TB, path string, b []byte) {
			must(t, os.Remove(path))
			writeFile(t, path, string(b))
		}},
		{"directory_anew", func(t testing.TB, path string, b []byte) {
			must(t, os.RemoveAll(filepath.Dir(path)))
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			writeFile(t, path, string(b))
		}},
		{"directory_swapped", func(t testing.TB, path string, b []byte) {
			dir := filepath.Dir(path)
			must(t, os.Mkdir(dir+".new", 0o700))
			writeFile(t, filepath.Join(dir+".new", filepath.Base(path)), string(b))
			must(t, os.RemoveAll(dir+".old"))
			must(t, os.Rename(dir, dir+".old"))
			must(t, os.Rename(dir+".new", dir))
		}},
		{"two_directories_anew", func(t testing.TB, path string, b []byte) {
			must(t, os.RemoveAll(filepath.Dir(filepath.Dir(path))))
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			writeFile(t, path, string(b))
		}},
	}
}

// TestEveryWayOfChanging is seen by events alone, three times in a row.
func TestEveryWayOfChanging(t *testing.T) {
	for _, w := range ways() {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.path = filepath.Join(t.TempDir(), "a", "b", "server.p12")
			must(t, os.MkdirAll(filepath.Dir(s.path), 0o700))
			s.write(s.entry("0"))
			f := follow(t, never, s.source())
			for _, alias := range []string{"1", "2", "3"} {
				w.change(t, s.path, s.encode(s.entry(alias)))
				f.serves(alias)
			}
		})
	}
}

// TestKubernetesSwap: the links of a mounted Secret, swapped three times, with
// the old directory removed each time.
func TestKubernetesSwap(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	volume := newVolume(t, "server.p12")
	volume.swap(s.encode(s.entry("0")))
	s.path = volume.file
	f := follow(t, never, s.source())
	for _, alias := range []string{"1", "2", "3"} {
		volume.swap(s.encode(s.entry(alias)))
		f.serves(alias)
	}
}

// volume is a directory as kubelet writes it.
type volume struct {
	t         testing.TB
	dir, file string
	n         int
}

func newVolume(t testing.TB, name string) *volume {
	dir := t.TempDir()
	v := &volume{t: t, dir: dir, file: filepath.Join(dir, name)}
	must(t, os.Symlink(filepath.Join("..data", name), v.file))
	return v
}

func (v *volume) swap(content []byte) {
	v.t.Helper()
	data := filepath.Join(v.dir, "..data")
	old, _ := os.Readlink(data)
	v.n++
	stamp := "..2026_11_30_" + string(rune('a'+v.n))
	must(v.t, os.Mkdir(filepath.Join(v.dir, stamp), 0o700))
	writeFile(v.t, filepath.Join(v.dir, stamp, filepath.Base(v.file)), string(content))
	must(v.t, os.Symlink(stamp, data+"_tmp"))
	must(v.t, os.Rename(data+"_tmp", data))
	if old != "" {
		must(v.t, os.RemoveAll(filepath.Join(v.dir, old)))
	}
}

// TestLinkIsFollowed: a link that comes to name another file, and that file.
func TestLinkIsFollowed(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	one, two := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "two")
	link := filepath.Join(t.TempDir(), "link")
	writeFile(t, one, string(s.encode(s.entry("1"))))
	writeFile(t, two, string(s.encode(s.entry("2"))))
	must(t, os.Symlink(one, link))
	s.path = link
	f := follow(t, never, s.source())
	must(t, os.Symlink(two, link+".new"))
	must(t, os.Rename(link+".new", link))
	f.serves("2")
	writeFile(t, two, string(s.encode(s.entry("3"))))
	f.serves("3")
}

// silent is a file that changes without an event: a directory above those that
// are watched is another each time.
type silent struct {
	t         testing.TB
	top, file string
}

func newSilent(t testing.TB, content []byte) *silent {
	top := filepath.Join(t.TempDir(), "top")
	s := &silent{t: t, top: top, file: filepath.Join(top, "a", "b", "server.p12")}
	s.make(top, content)
	return s
}

func (s *silent) make(top string, content []byte) {
	s.t.Helper()
	must(s.t, os.MkdirAll(filepath.Join(top, "a", "b"), 0o700))
	writeFile(s.t, filepath.Join(top, "a", "b", filepath.Base(s.file)), string(content))
}

func (s *silent) swap(content []byte) {
	s.t.Helper()
	s.make(s.top+".new", content)
	must(s.t, os.RemoveAll(s.top+".old"))
	must(s.t, os.Rename(s.top, s.top+".old"))
	must(s.t, os.Rename(s.top+".new", s.top))
}

// TestNoEvent: what comes without an event is found by polling, three times in a
// row.
func TestNoEvent(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	silent := newSilent(t, s.encode(s.entry("0")))
	s.path = silent.file
	f := follow(t, 10*time.Millisecond, s.source())
	for _, alias := range []string{"1", "2", "3"} {
		silent.swap(s.encode(s.entry(alias)))
		f.serves(alias)
	}
}

// TestSameSizeAndTime: other content of the same length and time of change is
// other content, whether a rename or a poll brings it up.
func TestSameSizeAndTime(t *testing.T) {
	for _, poll := range []time.Duration{never, 10 * time.Millisecond} {
		t.Run(poll.String(), func(t *testing.T) {
			t.Parallel()
			p := newPair(t)
			both := filepath.Join(t.TempDir(), "both.pem")
			writeFile(t, both, padded(p.a))
			info, err := os.Stat(both)
			must(t, err)
			f := follow(t, poll, keymanager.Source{Paths: []string{both}})
			next := both + ".next"
			writeFile(t, next, padded(p.b))
			must(t, os.Chtimes(next, info.ModTime(), info.ModTime()))
			must(t, os.Rename(next, both))
			until(t, "the other content", func() bool { return bytes.Equal(f.View().Entries[0].Chain[0], p.b.DER) })
			if now, err := os.Stat(both); err != nil || now.Size() != info.Size() || !now.ModTime().Equal(info.ModTime()) {
				t.Errorf("size or time is another: %v, %v", now, err)
			}
		})
	}
}

// TestTouchedIsNotChanged: events about the same content make no generation.
func TestTouchedIsNotChanged(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	content := s.encode(s.entry("a"))
	writeFile(t, s.path, string(content))
	f := follow(t, never, s.source())
	replaceFile(t, s.path, content)
	must(t, os.Chtimes(s.path, time.Now(), time.Now()))
	f.looked()
	f.looked()
	if g := f.Generation(); g != 7 {
		t.Errorf("generation %d after a touch, want 7", g)
	}
}

// TestWatchesTakeTurns: of several Watches one follows files; when it ends,
// another does.
func TestWatchesTakeTurns(t *testing.T) {
	s := newShop(t)
	s.write(s.entry("0"))
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	v := mustOpenNames(t, env(s.source()), ViewOptions{Follow: true})
	watch := func() (end func(), told *atomic.Uint64) {
		told = new(atomic.Uint64)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = v.Watch(ctx, func(c keymanager.Change) { told.Store(c.Generation) })
		}()
		return func() { cancel(); <-ended }, told
	}
	endFirst, first := watch()
	endSecond, second := watch()
	s.write(s.entry("1"))
	until(t, "both", func() bool { return first.Load() == 8 && second.Load() == 8 })
	endFirst()
	s.write(s.entry("2"))
	until(t, "the one that is left", func() bool { return second.Load() == 9 })
	endSecond()
	if v.sight.last.Load() != nil {
		t.Error("a look is left behind by who looks no more")
	}
}

// TestNotFollowed: without Follow only Reload looks.
func TestNotFollowed(t *testing.T) {
	s := newShop(t)
	s.write(s.entry("0"))
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	v := mustOpenNames(t, env(s.source()), ViewOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan keymanager.Change, 9)
	ended := make(chan error)
	go func() { ended <- v.Watch(ctx, func(c keymanager.Change) { told <- c }) }()
	<-told
	s.write(s.entry("1"))
	must(t, v.Reload(ctx))
	if c := <-told; c.Generation != 8 || c.Cause != "reload" {
		t.Errorf("told of %+v", c)
	}
	if v.sight.last.Load() != nil {
		t.Error("files are followed")
	}
	cancel()
	must(t, <-ended)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// replaceFile puts content in place by a rename.
func replaceFile(t testing.TB, path string, content []byte) {
	t.Helper()
	writeFile(t, path+".tmp", string(content))
	must(t, os.Rename(path+".tmp", path))
}

func (s *shop) encode(entries ...testca.StoreEntry) []byte {
	return testca.PKCS12{}.Encode(s.t, storePassword, entries...)
}
