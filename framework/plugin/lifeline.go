// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
)

// lifeLine is the end of a pipe or socket whose other end the front holds and
// never writes to. The kernel closes that end with the front, however it ends,
// which works on every Unix and through every kind of death.
type lifeLine struct{ file *os.File }

// openLifeLine takes the descriptor over, after a look at what it is: without a
// life line the number may be anything that the runtime has opened.
func openLifeLine() (*lifeLine, error) {
	var st unix.Stat_t
	if err := unix.Fstat(lifeLineFD, &st); err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", lifeLineFD, err)
	}
	if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFIFO && kind != unix.S_IFSOCK {
		return nil, fmt.Errorf("descriptor %d is neither a pipe nor a socket", lifeLineFD)
	}
	unix.CloseOnExec(lifeLineFD)
	return &lifeLine{os.NewFile(lifeLineFD, "life line")}, nil
}

// endTime is how long the process may take to end once its front is gone.
const endTime = 2 * time.Second

// stopAtEnd stops g when the front is gone, which ends the process and removes
// its socket.
func (l *lifeLine) stopAtEnd(g *grpc.Server) {
	_, _ = io.Copy(io.Discard, l.file)
	time.AfterFunc(endTime, func() { os.Exit(0) })
	g.Stop()
}
