// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package doctest runs the documentation: commands, configurations and programs
// that README.md and docs/ show, links, and quoted code. It has no other code.
//
// A fenced block that begins with an HTML comment naming a file, on the line
// before the fence, is a quotation of that file.
package doctest
