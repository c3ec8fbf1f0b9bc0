// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package logging sets up zap for front and key process alike: one line of JSON
// or console text each on stderr, a level for each named logger, and the names
// of fields and messages in one place.
package logging
