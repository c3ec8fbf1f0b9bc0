// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Command tlsd-keymanager-pkix is the tier pkix as a plugin executable,
// which tlsd runs.
package main

import (
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/plugins/pkix"
)

func main() { plugin.Serve(pkix.Tier()) }
