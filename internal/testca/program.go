// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package testca

import (
	"os"
	"syscall"
	"testing"
)

// WriteProgram writes a file that is to be run. While it is written nothing of
// this process is started: a child would have the file open for writing for a
// moment too, and who runs it then is told "text file busy".
func WriteProgram(t testing.TB, path string, content []byte, mode os.FileMode) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
}
