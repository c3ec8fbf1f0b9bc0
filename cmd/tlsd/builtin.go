// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/tlsd/tlsd/framework/keymanager"

// builtin lists the tiers of this build. Each builtin_<tier>.go adds its own,
// unless a build tag leaves that file out; nothing else writes to it.
var builtin []keymanager.Tier
