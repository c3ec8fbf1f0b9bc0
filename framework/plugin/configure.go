// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/logging"
)

// withLog gives the tier its logger, named and with the tier as a field.
func withLog(env keymanager.Env, tier string, log *zap.Logger) keymanager.Env {
	env.Log = log.Named(logging.KeyManager).With(zap.String(logging.FieldTier, tier))
	return env
}

// version returns the version of this executable as the Go toolchain recorded
// it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
