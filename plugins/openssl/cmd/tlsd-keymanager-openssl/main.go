// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Command tlsd-keymanager-openssl is the tier openssl as a plugin executable,
// which tlsd runs.
package main

import (
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/plugins/openssl"
)

func main() { plugin.Serve(openssl.Tier()) }
