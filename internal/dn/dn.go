// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package dn compares distinguished names.
package dn

import (
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"slices"
	"strings"
)

// Canonical returns a distinguished name (DER of RDNSequence) in a form that is
// equal for names that X.500 takes for equal: whatever the string type, case and
// inner white space (RFC 5280, 7.1). What can't be read stands for itself.
func Canonical(der []byte) string {
	var rdns pkix.RDNSequence
	if rest, err := asn1.Unmarshal(der, &rdns); err != nil || len(rest) > 0 {
		return string(der)
	}
	var b strings.Builder
	for _, rdn := range rdns {
		parts := make([]string, len(rdn))
		for i, av := range rdn {
			value := strings.Join(strings.Fields(fmt.Sprint(av.Value)), " ")
			parts[i] = fmt.Sprintf("%v=%q", av.Type, strings.ToLower(value))
		}
		slices.Sort(parts)
		b.WriteString(strings.Join(parts, "+") + ",")
	}
	return b.String()
}
