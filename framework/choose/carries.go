// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"crypto/x509"
	"slices"
)

// Carries says how leaf carries a server name as a peer sends it: exact, by a
// wildcard, or not at all, as where the name is empty.
func Carries(leaf *x509.Certificate, serverName string) Match {
	return namesOf(leaf).match(parseServerName(serverName))
}

// Forms returns the two forms by which names of certificates carry a server
// name as a peer sends it: the name itself, and what a wildcard has behind its
// dot. Each is empty where there is none, both for a name that no certificate
// can carry. Names with equal forms are equal to every [Chooser] that does not
// follow the JDK (Options.JDKCompat).
func Forms(serverName string) (exact, parent string) {
	n := parseServerName(serverName)
	return n.exact, n.parent
}

// Names returns the names that the usable entries carry, each once: exact ones,
// addresses among them, and what follows the dot of wildcards. All answers to
// hellos whose server name is neither, by Forms, are the same but for that.
// known is false where that can't be said: the JDK has another way to compare
// names. A Chooser that looks at no name has none.
func (c *Chooser) Names() (exact, parents []string, known bool) {
	if c.mode == jdkPKIX {
		return nil, nil, false
	}
	for _, cand := range c.candidates {
		exact = append(exact, cand.names.exact...)
		parents = append(parents, cand.names.parents...)
	}
	return distinct(exact), distinct(parents), true
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
