// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// stdio is what became of a child's standard streams. The front reads one line
// from standard output, go-plugin's handshake, and any other byte before it
// would end the start. So descriptor 1 is standard error from the first moment,
// for C code and for programs that a tier starts too, and the handshake goes to
// a copy that only go-plugin is shown.
type stdio struct {
	handshake *os.File // where descriptor 1 led; kept open, being the front's to close
	stderr    *os.File
}

func takeStdio() (*stdio, error) {
	fd, err := unix.FcntlInt(1, unix.F_DUPFD_CLOEXEC, lifeLineFD+1)
	if err != nil {
		return nil, fmt.Errorf("copy standard output: %w", err)
	}
	if err := dup2(2, 1); err != nil {
		return nil, fmt.Errorf("point standard output at standard error: %w", err)
	}
	if null, err := os.Open(os.DevNull); err == nil {
		_ = dup2(int(null.Fd()), 0) // the front has done so already, if it is ours
		null.Close()
	}
	s := &stdio{handshake: os.NewFile(uintptr(fd), "handshake"), stderr: os.Stderr}
	os.Stdout = s.handshake
	return s, nil
}

// settle makes os.Stdout and os.Stderr the descriptors again that they are
// named after. go-plugin has replaced them by pipes into its own stream, which
// would block this process when nobody drains it.
func (s *stdio) settle() {
	os.Stdout = s.stderr
	os.Stderr = s.stderr
}
