// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"crypto/sha256"
	"fmt"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// inputs identify all that a reading of one keystore comes of, by content: times
// and sizes of files don't tell. Readings of equal inputs say the same.
type inputs struct {
	files   [sha256.Size]byte // Store.Digest, or that of the reason why they can't be read
	secrets [sha256.Size]byte // of the passwords
}

// gather reads the files of src and says what they and the passwords are.
func gather(src keymanager.Source) (in inputs, files []file, err error) {
	in.secrets = secretsDigest(src)
	if files, err = readFiles(src.Paths); err != nil {
		in.files = sha256.Sum256([]byte("unreadable: " + err.Error()))
		return in, nil, fmt.Errorf("open keystore %q: %w", src.Name(), err)
	}
	in.files = digest(files)
	return in, files, nil
}

// secretsDigest identifies the content of all password files. Passwords given by
// value don't change, and what lies behind a descriptor may be there to be read
// once only.
func secretsDigest(src keymanager.Source) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, path := range src.PasswordFiles() {
		if keymanager.IsDescriptor(path) {
			continue
		}
		spellings, err := keymanager.PasswordRef{File: path}.Read()
		if err != nil {
			fmt.Fprintf(h, "unreadable: %v\n", err)
		}
		for _, s := range spellings {
			part := sha256.Sum256(s)
			h.Write(part[:])
		}
		wipeBytes(spellings)
	}
	h.Sum(sum[:0])
	return sum
}

// followed returns the files of sources that others may come in place of:
// keystores and password files.
func followed(sources []keymanager.Source) []string {
	var paths []string
	for _, src := range sources {
		for _, path := range append(src.PasswordFiles(), src.Paths...) {
			if !keymanager.IsDescriptor(path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}
