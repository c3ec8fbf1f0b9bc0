// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the architecture as tests: which package may import
// which, what is linked into what, and the form that every file has. It has no
// other code. A new package must be entered in the table of known packages, with
// what it may import.
package archtest
