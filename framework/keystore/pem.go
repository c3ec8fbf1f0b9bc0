// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"strings"
)

const pemBegin = "-----BEGIN "

// readPEM reads files that belong together: PEM blocks, or DER of one
// certificate or key each.
func (r *reader) readPEM(files []file) error {
	var keys []*Entry
	for _, f := range files {
		found, err := r.readPEMFile(f.data)
		if err != nil {
			if len(files) > 1 {
				err = fmt.Errorf("file %q: %w", f.path, err)
			}
			return err
		}
		keys = append(keys, found...)
	}
	if err := r.work.sum(); err != nil {
		return err
	}
	for _, e := range keys {
		e.pool = r.certs
		if c := claimed(e, r.certs, len(keys)); c != nil {
			e.claim(c)
		} else if len(keys) == 1 && len(r.certs) > 0 {
			e.claim(r.certs[0]) // by convention the leaf comes first
		}
	}
	if len(keys) == 0 {
		for _, c := range r.certs {
			r.addTrusted("", c)
		}
	}
	return nil
}

// readPEMFile reads one file and returns the keys that it added.
func (r *reader) readPEMFile(data []byte) ([]*Entry, error) {
	format, err := sniff(data)
	switch {
	case err != nil:
		return nil, err
	case format != PEM:
		return nil, &FormatError{Want: PEM, Got: string(format), Hint: "a PKCS#12, JKS or JCEKS keystore stands alone"}
	case isDER(data):
		return r.readDER(data)
	}
	return r.readBlocks(data)
}

// readBlocks reads the PEM blocks of a file. Text between them is allowed; a
// block that doesn't decode is an error, where encoding/pem would go on to the
// next.
func (r *reader) readBlocks(data []byte) ([]*Entry, error) {
	var keys []*Entry
	line := 1
	for rest := data; ; {
		i := bytes.Index(rest, []byte(pemBegin))
		if i < 0 {
			return keys, nil
		}
		line += bytes.Count(rest[:i], []byte("\n"))
		block, after := pem.Decode(rest[i:])
		text := rest[i : len(rest)-len(after)]
		if block == nil || bytes.Count(text, []byte(pemBegin)) != 1 {
			return nil, &DamagedError{Where: fmt.Sprintf("PEM block at line %d (a cut, an indented or a changed line?)", line)}
		}
		if err := r.countBag(); err != nil {
			return nil, err
		}
		e, err := r.readBlock(block)
		if err != nil {
			return nil, fmt.Errorf("PEM block at line %d: %w", line, err)
		}
		if e != nil {
			keys = append(keys, e)
		}
		line += bytes.Count(text, []byte("\n"))
		rest = after
	}
}

// readBlock adds what one block holds and returns the entry, if it is a key.
func (r *reader) readBlock(b *pem.Block) (*Entry, error) {
	switch b.Type {
	case "CERTIFICATE", "X509 CERTIFICATE":
		r.certs = append(r.certs, newCertificate(b.Bytes))
	case "TRUSTED CERTIFICATE":
		c, err := readTrusted(b.Bytes)
		if err != nil {
			return nil, err
		}
		r.certs = append(r.certs, c)
	case "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY":
		if strings.Contains(b.Headers["Proc-Type"], "ENCRYPTED") {
			key, err := readDEK(b)
			return r.addKey("", key, err), nil
		}
		return r.addKey("", plainKey{der: b.Bytes}, nil), nil
	case "ENCRYPTED PRIVATE KEY":
		return r.addEncryptedKey(b.Bytes), nil
	case "DSA PRIVATE KEY":
		return r.addKey("", nil, &KeyTypeError{Type: "DSA"}), nil
	case "OPENSSH PRIVATE KEY":
		return r.addKey("", nil, &KeyTypeError{Type: "key in OpenSSH's format", Hint: "ssh-keygen -p -m PEM -f FILE converts it"}), nil
	}
	return nil, nil
}

// readDER reads one certificate or key.
func (r *reader) readDER(data []byte) ([]*Entry, error) {
	der, rest, err := toDER(data)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		r.warn("%d bytes follow the key or certificate in its file; they are ignored", len(rest))
	}
	switch derKind(der) {
	case derCertificate:
		r.certs = append(r.certs, newCertificate(der))
		return nil, nil
	case derEncryptedPKCS8:
		return []*Entry{r.addEncryptedKey(der)}, nil
	}
	return []*Entry{r.addKey("", plainKey{der: der}, nil)}, nil
}

// addEncryptedKey adds an encrypted PKCS#8 key, or the reason why it can't be
// read.
func (r *reader) addEncryptedKey(der []byte) *Entry {
	strict, _, err := toDER(der)
	if err != nil {
		return r.addKey("", nil, err)
	}
	key, err := readEncryptedKey(strict, r.work)
	return r.addKey("", key, err)
}
