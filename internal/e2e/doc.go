// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e holds end-to-end tests only: a tlsd built from this tree, run as
// its users run it, against real peers: curl, openssl, Java and Go.
package e2e
