// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// maxTrustFile bounds a trust store that is read here, in bytes.
const maxTrustFile = 16 << 20

// trustedPEM reads a trust store in this process, where no key process does it,
// because is why. Only PEM holds nothing but certificates, and one that holds a
// private key too is refused.
func trustedPEM(path, typ, because string) ([][]byte, []string, error) {
	refused := func(what string) error {
		return fmt.Errorf("%s and %s; only certificates in PEM can be read by the process that faces the network", because, what)
	}
	if typ != "" && !strings.EqualFold(typ, "auto") && !strings.EqualFold(typ, "pem") {
		return nil, nil, refused("of type " + typ)
	}
	rest, err := readRegular(path)
	if err != nil {
		return nil, nil, err
	}
	var ders [][]byte
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		switch {
		case block.Type == "CERTIFICATE":
			ders = append(ders, bytes.Clone(block.Bytes))
		case strings.HasSuffix(block.Type, "PRIVATE KEY"):
			return nil, nil, refused("holds a private key")
		}
	}
	if len(ders) == 0 {
		return nil, nil, refused("holds no certificate in PEM")
	}
	return ders, nil, nil
}

// readRegular reads a file that is one, and not too large.
func readRegular(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, pathCause(err)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, pathCause(err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("it is no regular file")
	case info.Size() > maxTrustFile:
		return nil, fmt.Errorf("it has more than %d bytes", maxTrustFile)
	}
	return io.ReadAll(io.LimitReader(file, maxTrustFile))
}
