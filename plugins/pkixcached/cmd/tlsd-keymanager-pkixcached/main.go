// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Command tlsd-keymanager-pkixcached is the tier pkixcached as a plugin executable,
// which tlsd runs.
package main

import (
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/plugins/pkixcached"
)

func main() { plugin.Serve(pkixcached.Tier()) }
