// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestSocketPathThatIsTooLong(t *testing.T) {
	address := unixPrefix + "/tmp/" + strings.Repeat("s", 120)
	_, err := Listen(t.Context(), address)
	want := fmt.Sprintf("listen on %q: the path is too long for a socket: choose one of at most 107 bytes with --listen ADDR", address)
	if le := (*ListenError)(nil); !errors.As(err, &le) || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestFamilyOfAddress(t *testing.T) {
	for address, want := range map[string]string{"0.0.0.0:0": "0.0.0.0:", "127.0.0.1:0": "127.0.0.1:", ":0": "[::]:", "[::]:0": "[::]:"} {
		ln, err := Listen(t.Context(), address)
		if err != nil {
			t.Fatal(err)
		}
		if got := ln.Addr().String(); !strings.HasPrefix(got, want) {
			t.Errorf("%s became %s", address, got)
		}
		ln.Close()
	}
}
