// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Command tlsd-keymanager-sunx509 is the tier sunx509 as a plugin executable,
// which tlsd runs.
package main

import (
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/plugins/sunx509"
)

func main() { plugin.Serve(sunx509.Tier()) }
