// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// sClient runs openssl s_client against addr, with input that does not end
// before the server has closed, and returns what it prints.
func (w world) sClient(t *testing.T, addr, input string, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	ca, key := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca.key")
	testca.WritePEM(t, ca, key, w.root)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	args = append([]string{"s_client", "-ign_eof", "-verify_return_error", "-CAfile", ca, "-connect", addr}, args...)
	cmd := exec.CommandContext(ctx, testca.Tool(t, "openssl"), args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// s_client says "closed" for close_notify and "read:errno=" for any other end.
func endedByCloseNotify(out string) bool {
	return strings.Contains(out, "\nclosed\n") && !strings.Contains(out, "errno")
}

func TestOpensslSeesCloseNotify(t *testing.T) {
	w := newWorld(t)
	echoing := w.streamBackends(t, func(c Conn) {
		buf := make([]byte, 6)
		_, _ = io.ReadFull(c, buf)
		fmt.Fprintf(c, "<%s>\n", buf)
	})["tcp"]
	down := "tcp://" + deadAddress(t)
	for _, version := range []string{"-tls1_2", "-tls1_3"} {
		t.Run("answered"+version, func(t *testing.T) {
			addr, _ := w.bytesFront(t, newBytes(t, echoing, nil))
			if out := w.sClient(t, addr, "hello\n", version); !strings.Contains(out, "<hello\n>") || !endedByCloseNotify(out) {
				t.Errorf("got\n%s", out)
			}
		})
		t.Run("down"+version, func(t *testing.T) {
			addr, _ := w.bytesFront(t, newBytes(t, down, nil))
			if out := w.sClient(t, addr, "hello\n", version); !endedByCloseNotify(out) {
				t.Errorf("got\n%s", out)
			}
		})
	}
}
