// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import "crypto/x509"

// Carries says how leaf carries a server name as a peer sends it: exact, by a
// wildcard, or not at all, as where the name is empty.
func Carries(leaf *x509.Certificate, serverName string) Match {
	return namesOf(leaf).match(parseServerName(serverName))
}
