// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoCertificate is the reason of a key that is in order and has no
// certificate in its keystore.
var ErrNoCertificate = errors.New("no certificate")

// ErrSerial is the reason of a certificate whose serial number is negative, which
// RFC 5280 (4.1.2.2) forbids and Go refuses to parse; Java and OpenSSL don't mind.
// It is no damage: the entry is skipped and the others serve.
var ErrSerial = errors.New("the certificate has a negative serial number, which is not read here: have it issued anew")

// errPassword is returned inside the package when a password does not fit. It
// becomes a *PasswordError where it is known whose password it was.
var errPassword = errors.New("wrong password")

// PasswordError is returned when a password is wrong or missing.
type PasswordError struct {
	Alias   string // the entry whose key it is for; empty: the store itself
	Missing bool   // none was given
	Trust   bool   // it is for a trust store
}

func (e *PasswordError) Error() string {
	switch {
	case e.Trust && e.Missing:
		return "needs a password: give one with --client-ca-password-file (client_ca_password_file); that of a backend (backend_tls.ca) has none: make it PEM"
	case e.Trust:
		return "wrong password, or the file was changed after it was written: check --client-ca-password-file (client_ca_password_file)"
	case e.Alias == "" && e.Missing:
		return "needs a password: give one with --keystore-password-file (password_file)"
	case e.Alias == "":
		return "wrong password, or the file was changed after it was written: check --keystore-password-file (password_file)"
	case e.Missing:
		return "the key is encrypted and there is no password: give one with --key-password-file (key_password_file)"
	}
	return "wrong key password: give the key's own with --key-password-file (key_password_file, or key_passwords where they differ)"
}

// DamagedError is returned when a file or an entry breaks off or makes no
// sense.
type DamagedError struct {
	Where string // the part that is damaged
	Err   error  // the cause; may be nil
}

func (e *DamagedError) Error() string {
	if e.Err == nil {
		return "damaged: " + e.Where
	}
	return "damaged: " + e.Where + ": " + e.Err.Error()
}

func (e *DamagedError) Unwrap() error { return e.Err }

// UnsupportedError is returned for an algorithm that is known to exist and
// deliberately not read.
type UnsupportedError struct {
	Algorithm string // its name, or its object identifier
	Hint      string // what to do: mostly the command that converts the store
}

func (e *UnsupportedError) Error() string {
	if e.Hint == "" {
		return "unsupported algorithm " + e.Algorithm
	}
	return "unsupported algorithm " + e.Algorithm + "; " + e.Hint
}

// FormatError is returned when a file is not a keystore, or one of another
// format than was asked for.
type FormatError struct {
	Want Format // what was asked for; empty: any
	Got  string // what the content is, in words
	Hint string // what to do
}

func (e *FormatError) Error() string {
	var b strings.Builder
	if e.Want != "" {
		fmt.Fprintf(&b, "not %s but ", e.Want)
	} else {
		b.WriteString("not a keystore but ")
	}
	b.WriteString(e.Got)
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return b.String()
}

// LimitError is returned when a file asks for more than a limit allows. It is
// found before any work is done.
type LimitError struct {
	What       string // what there is too much of, with its unit
	Value, Max int64
	Hint       string // the setting that raises the limit, if there is one
}

func (e *LimitError) Error() string {
	s := fmt.Sprintf("over a limit: %s: %d, at most %d", e.What, e.Value, e.Max)
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// KeyTypeError is the reason of an entry of a kind that TLS cannot use here. It
// is no damage: the entry is skipped and the others serve.
type KeyTypeError struct {
	Type string // the key's type in words
	Hint string // more, if there is something to do
}

func (e *KeyTypeError) Error() string {
	s := e.Type + ": TLS cannot use this kind of key here"
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// MismatchError is the reason of a key whose certificate has another public
// key.
type MismatchError struct {
	Subject string // of the certificate that claims to be the key's
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("the key does not match its certificate (subject %q), nor any other in the keystore", e.Subject)
}

// NoKeyError is returned when a keystore holds no key that TLS can use.
type NoKeyError struct {
	Entries []string // each entry there is, with the reason
	Hint    string   // what to do; may be empty
}

func (e *NoKeyError) Error() string {
	s := "no key entry: it holds no private key"
	if len(e.Entries) > 0 {
		s = "no usable key entry: " + strings.Join(e.Entries, "; ")
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// AliasError is returned when a demanded alias is missing or not usable.
type AliasError struct {
	Alias  string
	Reason string   // why not, where the entry is there
	Known  []string // the usable aliases there are
}

func (e *AliasError) Error() string {
	if e.Reason != "" {
		return fmt.Sprintf("alias %q is not usable: %s", e.Alias, e.Reason)
	}
	return fmt.Sprintf("no entry with alias %q; there are: %s", e.Alias, quoted(e.Known))
}

// skipped reports whether an entry with this reason is of a kind that TLS
// cannot use, as opposed to one that should work and does not.
func skipped(err error) bool {
	var kind *KeyTypeError
	return errors.As(err, &kind) || errors.Is(err, ErrSerial) || errors.Is(err, ErrNoCertificate)
}

// maxNames bounds how many aliases one message lists.
const maxNames = 20

func quoted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	var b strings.Builder
	for i, name := range names {
		if i == maxNames {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", name)
	}
	return b.String()
}
