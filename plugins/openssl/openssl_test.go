// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package openssl

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tlsd/tlsd/framework/keymanager/keymanagertest"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(holderOf); path != "" {
		os.Exit(hold(path))
	}
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func TestTier(t *testing.T) {
	keymanagertest.Run(t, keymanagertest.Config{Open: keymanagertest.Direct(Tier())})
}
