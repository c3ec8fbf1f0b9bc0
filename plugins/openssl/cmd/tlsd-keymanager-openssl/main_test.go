// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager/keymanagertest"
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/framework/plugin/plugintest"
	"github.com/tlsd/tlsd/plugins/openssl"
)

func TestMain(m *testing.M) {
	plugin.Main(openssl.Tier())
	os.Exit(m.Run())
}

// TestTierInItsProcess runs the suite over a child of this test binary, as a
// program that embeds the tier has it, and over the executable.
func TestTierInItsProcess(t *testing.T) {
	plugintest.Run(t, "openssl", keymanagertest.Caps{})
}
