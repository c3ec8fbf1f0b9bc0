// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

// maxCRLFile bounds what is read of a file with revocation lists, in bytes: about
// two million revoked certificates.
const maxCRLFile = 64 << 20

// pemCRL is the type of a revocation list's PEM block.
const pemCRL = "X509 CRL"

// errCRLFile is that a file is larger than maxCRLFile.
var errCRLFile = fmt.Errorf("it has more than %d MiB", maxCRLFile>>20)

// readCRLFile returns the content of a file with revocation lists. One that is too
// large is looked at again and again, and so it isn't read to find that out.
func readCRLFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, pathCause(err)
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a file")
	case info.Size() > maxCRLFile:
		return nil, errCRLFile
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, pathCause(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxCRLFile+1))
	if err == nil && len(raw) > maxCRLFile { // it has grown meanwhile
		err = errCRLFile
	}
	return raw, pathCause(err)
}

// pathCause drops what an *fs.PathError says beside its cause, since callers name
// the path.
func pathCause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// parseCRLs returns the lists in a file: any number in PEM, or one in DER.
func parseCRLs(raw []byte) ([]*x509.RevocationList, error) {
	ders, err := splitCRLs(raw)
	if err != nil {
		return nil, err
	}
	lists := make([]*x509.RevocationList, 0, len(ders))
	for i, der := range ders {
		list, err := parseCRL(der)
		if err != nil {
			return nil, fmt.Errorf("list %d: %w", i+1, err)
		}
		lists = append(lists, list)
	}
	return lists, nil
}

// splitCRLs returns the DER of each list. A block that is damaged or cut off is
// an error, since what it revokes would be let in.
func splitCRLs(raw []byte) (ders [][]byte, err error) {
	const asn1Sequence = 0x30
	if len(raw) > 0 && raw[0] == asn1Sequence {
		return [][]byte{raw}, nil
	}
	raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")) // as editors on Windows write it
	blocks := bytes.Count(raw, []byte("-----BEGIN "))
	for block, rest := pem.Decode(raw); block != nil; block, rest = pem.Decode(rest) {
		blocks--
		if block.Type == pemCRL {
			ders = append(ders, block.Bytes)
		}
	}
	switch {
	case blocks != 0:
		return nil, errors.New("a PEM block is damaged or cut off")
	case len(ders) == 0:
		return nil, fmt.Errorf("no revocation list: give PEM with blocks of %q, or DER", pemCRL)
	}
	return ders, nil
}

// parseCRL refuses what would be obeyed by half: a critical extension limits what
// a list is about (RFC 5280, 5.2), and none of them is known here.
func parseCRL(der []byte) (*x509.RevocationList, error) {
	list, err := x509.ParseRevocationList(der)
	if err != nil && strings.HasSuffix(err.Error(), "unsupported crl version") {
		return nil, errors.New("it is of version 1: have the CA make lists of version 2 (openssl ca: set crl_extensions or crlnumber)")
	}
	if err != nil {
		return nil, err
	}
	if len(list.Raw) != len(der) {
		return nil, errors.New("there is more after its end: only PEM can hold several lists")
	}
	for _, e := range list.Extensions {
		if e.Critical {
			return nil, fmt.Errorf("it is of %q and has the critical extension %s, which is not supported: give a full list of the CA", list.Issuer, extensionName(e.Id.String()))
		}
	}
	for _, revoked := range list.RevokedCertificateEntries {
		for _, e := range revoked.Extensions {
			if e.Critical {
				return nil, fmt.Errorf("it is of %q and its entry %x has the critical extension %s, which is not supported: give a list of the CA's own certificates", list.Issuer, revoked.SerialNumber, extensionName(e.Id.String()))
			}
		}
	}
	return list, nil
}

// extensionName says what people call an extension of revocation lists.
func extensionName(oid string) string {
	switch oid {
	case "2.5.29.27":
		return oid + " (delta list)"
	case "2.5.29.28":
		return oid + " (issuing distribution point: a part of the certificates)"
	case "2.5.29.29":
		return oid + " (certificate issuer: an indirect list)"
	}
	return oid
}

// newRevocation makes of the lists in file what holds for clients of cas. Each
// list must be signed by one of these. Of several lists of one issuer the latest
// counts.
func newRevocation(file string, lists []*x509.RevocationList, cas []*x509.Certificate, expired CRLExpired) (*revocation, error) {
	r := &revocation{
		lists: map[issuerKey]*crl{},
		above: map[[sha256.Size]byte]issuerKey{},
		warns: expired == CRLExpiredWarn,
		now:   time.Now,
	}
	for i, list := range lists {
		ca, err := signerOf(list, cas)
		if err != nil {
			return nil, fmt.Errorf("list %d, of %q: %w", i+1, list.Issuer, err)
		}
		key := issuerKeyOf(ca)
		if there := r.lists[key]; there == nil || there.thisUpdate.Before(list.ThisUpdate) {
			r.lists[key] = newCRL(file, list)
		}
	}
	for _, ca := range cas {
		if subject := ca.Subject.String(); r.lists[issuerKeyOf(ca)] == nil && mayIssue(ca) && !slices.Contains(r.bare, subject) {
			r.bare = append(r.bare, subject)
		}
		i := slices.IndexFunc(cas, func(issuer *x509.Certificate) bool {
			return !bytes.Equal(ca.RawSubject, issuer.RawSubject) && bytes.Equal(ca.RawIssuer, issuer.RawSubject) && ca.CheckSignatureFrom(issuer) == nil
		})
		if i >= 0 {
			r.above[sha256.Sum256(ca.Raw)] = issuerKeyOf(cas[i])
		}
	}
	r.digest = r.sum()
	return r, nil
}

// mayIssue says whether certificates below cert count: a client's own may be
// trusted as it is.
func mayIssue(cert *x509.Certificate) bool { return cert.IsCA || cert.Version < 3 }

// signerOf returns the client CA that signed list.
func signerOf(list *x509.RevocationList, cas []*x509.Certificate) (*x509.Certificate, error) {
	err := errors.New("its issuer is none of the client CAs: add the CA's certificate to client_ca, or take the list out")
	for _, ca := range cas {
		if !bytes.Equal(ca.RawSubject, list.RawIssuer) {
			continue
		}
		bad := list.CheckSignatureFrom(ca)
		if bad == nil {
			return ca, nil
		}
		err = fmt.Errorf("the client CA of that name did not sign it: %w", bad)
		if ca.KeyUsage != 0 && ca.KeyUsage&x509.KeyUsageCRLSign == 0 {
			err = errors.New("the client CA of that name may not sign lists: its key usage is without cRLSign")
		}
	}
	return nil, err
}

// newCRL keeps of a list what is looked up in it. The serial numbers are cut out
// of one string, so that nothing else of the list stays in memory.
func newCRL(file string, list *x509.RevocationList) *crl {
	var all strings.Builder
	for _, e := range list.RevokedCertificateEntries {
		all.Write(e.SerialNumber.Bytes())
	}
	rest := all.String()
	serials := make(map[string]struct{}, len(list.RevokedCertificateEntries))
	for _, e := range list.RevokedCertificateEntries {
		n := len(e.SerialNumber.Bytes())
		serials[rest[:n]] = struct{}{}
		rest = rest[n:]
	}
	return &crl{
		file: file, issuer: list.Issuer.String(), serials: serials,
		thisUpdate: list.ThisUpdate, nextUpdate: list.NextUpdate,
	}
}

// sum is over issuers and serial numbers, in an order of their own.
func (r *revocation) sum() (digest [sha256.Size]byte) {
	all := sha256.New()
	for _, key := range slices.SortedFunc(maps.Keys(r.lists), func(a, b issuerKey) int { return cmp.Compare(string(a[:]), string(b[:])) }) {
		fmt.Fprintf(all, "%x %d\n", key, len(r.lists[key].serials))
		for _, serial := range slices.Sorted(maps.Keys(r.lists[key].serials)) {
			fmt.Fprintf(all, "%d %s", len(serial), serial)
		}
	}
	all.Sum(digest[:0])
	return digest
}
