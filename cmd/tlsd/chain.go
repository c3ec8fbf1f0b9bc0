// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"
)

// judgeChain judges the certificates that a key is served with, the leaf first.
// Problems are what clients refuse. Notes are what they may, and what will be one
// when soon is over.
func judgeChain(chain []*x509.Certificate, now time.Time, soon time.Duration) (problems, notes []string) {
	for i, cert := range chain {
		if why := validity(cert, now); why != "" {
			problems = append(problems, fmt.Sprintf("certificate %q %s", title(cert), why))
		} else if cert.NotAfter.Sub(now) < soon {
			notes = append(notes, fmt.Sprintf("certificate %q has %d days left", title(cert), daysLeft(cert, now)))
		}
		if i+1 == len(chain) {
			break
		}
		var weak x509.InsecureAlgorithmError
		switch err := cert.CheckSignatureFrom(chain[i+1]); {
		case err == nil:
		case errors.As(err, &weak):
			notes = append(notes, fmt.Sprintf("certificate %q is signed with %v, which clients refuse", title(cert), cert.SignatureAlgorithm))
		default:
			problems = append(problems, fmt.Sprintf("certificate %q is not signed by %q, which follows it: %v", title(cert), title(chain[i+1]), err))
		}
	}
	if n := len(chain); n > 1 && bytes.Equal(chain[n-1].RawSubject, chain[n-1].RawIssuer) {
		notes = append(notes, fmt.Sprintf("the chain ends with its root %q, which clients do not need", title(chain[n-1])))
	}
	return problems, notes
}

// validity says why a certificate is not valid now; empty: it is.
func validity(cert *x509.Certificate, now time.Time) string {
	switch {
	case now.After(cert.NotAfter):
		return "expired on " + cert.NotAfter.UTC().Format(time.DateOnly)
	case now.Before(cert.NotBefore):
		return "not valid before " + cert.NotBefore.UTC().Format(time.DateOnly)
	}
	return ""
}

func daysLeft(cert *x509.Certificate, now time.Time) int {
	return int(cert.NotAfter.Sub(now) / (24 * time.Hour))
}

// title names a certificate: by its subject or, where that is empty, by what it
// is for.
func title(c *x509.Certificate) string {
	if subject := c.Subject.String(); subject != "" {
		return subject
	}
	return strings.Join(certNames(c), ",")
}
