// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Command tlsd terminates TLS with keystores as people have them, while a key
// manager in another process holds the keys. "tlsd help" says how to run it.
package main

import (
	"context"
	"os"

	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/internal/reap"
)

func main() {
	plugin.Main(builtin...)
	go reap.Orphans(context.Background())
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
