// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package examples holds plugins as somebody outside of this repository writes
// them, each a command in a folder of its own, and the tests that run them.
package examples
