// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// maxPiped bounds what is taken from a pipe, in bytes.
const maxPiped = 64 << 20

// openDescriptor returns a file that a child can open by /dev/fd as often as it
// likes, with what descriptor n of this process holds. The content never enters
// this process's memory: what has to be copied, the kernel copies, into a memfd.
//
// A pipe can be read once only. So a memfd with its content takes its place at
// n, and whoever names n later, such as the key process after a change of the
// configuration, finds the content there.
func openDescriptor(ctx context.Context, n int) (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 3)
	if errors.Is(err, unix.EBADF) {
		return nil, fmt.Errorf("descriptor %d is not open", n)
	}
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), fmt.Sprintf("descriptor %d", n))
	kept, err := reopenable(ctx, fd, n)
	if kept == nil && err == nil {
		return file, nil
	}
	return kept, errors.Join(err, file.Close())
}

// reopenable returns nil if fd can be opened anew by its /proc path and gives
// the whole content each time, else a memfd that can.
func reopenable(ctx context.Context, fd, n int) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return reopenableFile(fd)
	case unix.S_IFIFO, unix.S_IFSOCK:
		mem, err := newMemfd(func(mem int) error { return moveStream(ctx, mem, fd, st.Mode&unix.S_IFMT == unix.S_IFSOCK) })
		if err != nil {
			return nil, err
		}
		return mem, unix.Dup3(int(mem.Fd()), n, unix.O_CLOEXEC)
	}
	if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err == nil {
		return nil, errors.New("it is a terminal; name a file or redirect one")
	}
	return nil, nil
}

// reopenableFile copies a file that another user opened for us and that we
// couldn't open ourselves.
func reopenableFile(fd int) (*os.File, error) {
	probe, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err == nil {
		return nil, probe.Close()
	}
	return newMemfd(func(mem int) error { return copyFileTo(mem, fd) })
}

func copyFileTo(mem, fd int) error {
	for offset := int64(0); ; {
		n, err := unix.Sendfile(mem, fd, &offset, maxPiped)
		if err != nil || n == 0 {
			return err
		}
	}
}

// newMemfd returns a file in memory that fill has filled and nobody can change.
func newMemfd(fill func(fd int) error) (*os.File, error) {
	fd, err := unix.MemfdCreate("tlsd", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make a memfd: %w", err)
	}
	file := os.NewFile(uintptr(fd), "memfd")
	err = fill(fd)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// moveStream moves what comes from a pipe or socket into mem, until its end,
// as pages inside the kernel. It polls, because the far end may never write,
// and leaves the flags of the descriptor alone, since other processes share them.
func moveStream(ctx context.Context, mem, from int, isSocket bool) error {
	move := func() (int64, error) { return splice(mem, from) }
	if isSocket { // splice(2) wants a pipe at one end
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer r.Close()
		defer w.Close()
		move = func() (int64, error) { return spliceThrough(mem, int(r.Fd()), int(w.Fd()), from) }
	}
	const tick = 100 // ms
	for total := int64(0); total <= maxPiped; {
		n, err := move()
		total += n
		switch {
		case errors.Is(err, unix.EAGAIN) && ctx.Err() == nil:
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(from), Events: unix.POLLIN}}, tick)
		case errors.Is(err, unix.EAGAIN):
			return fmt.Errorf("read it to its end: %w", ctx.Err())
		case err != nil:
			return fmt.Errorf("splice: %w", err)
		case n == 0:
			return nil
		}
	}
	return fmt.Errorf("more than %d bytes: too much for a keystore or password", maxPiped)
}

// spliceThrough moves what is there from a socket to mem by way of the pipe
// with the ends r and w, which it leaves empty.
func spliceThrough(mem, r, w, from int) (int64, error) {
	total, err := splice(w, from)
	for left := total; left > 0 && err == nil; {
		var n int64
		n, err = splice(mem, r)
		left -= n
	}
	return total, err
}

// splice moves what is there, at most so much as a pipe holds.
func splice(to, from int) (int64, error) {
	const chunk = 64 << 10
	for {
		n, err := unix.Splice(from, nil, to, nil, chunk, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
