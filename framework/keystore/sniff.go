// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

const (
	jksMagic   = 0xfeedfeed
	jceksMagic = 0xcececece
)

// recognise tells the format by content and checks it against what was asked
// for. PKCS#12, JKS and JCEKS pass for one another, as they do in Java.
func recognise(files []file, typ string) (Format, error) {
	format, err := sniff(files[0].data)
	if err != nil {
		return "", err
	}
	want := Format(typ)
	switch want {
	case "", typeAuto:
	case PKCS12, JKS, JCEKS, PEM:
		if (want == PEM) != (format == PEM) {
			return "", &FormatError{Want: want, Got: string(format), Hint: "leave the type at auto (--keystore-type, type)"}
		}
	default:
		return "", fmt.Errorf("unknown keystore type %q: it is auto, pkcs12, jks, jceks or pem", typ)
	}
	if len(files) > 1 && format != PEM {
		return "", &FormatError{Want: PEM, Got: string(format), Hint: "only PEM files (certificate and key) belong together as one keystore"}
	}
	return format, nil
}

// sniff tells the format of one file.
func sniff(b []byte) (Format, error) {
	if len(b) >= 4 {
		switch binary.BigEndian.Uint32(b) {
		case jksMagic:
			return JKS, nil
		case jceksMagic:
			return JCEKS, nil
		}
	}
	if isDER(b) {
		return sniffDER(b)
	}
	if bytes.Contains(b, []byte(pemBegin)) {
		return sniffPEM(b)
	}
	return "", notAKeystore(b)
}

const asn1TagSequence = byte(asn1.SEQUENCE)

// isDER reports whether b is ASN.1 and no text with PEM blocks: that may begin
// with the digit 0, which is the tag of a sequence.
func isDER(b []byte) bool {
	if b[0] != asn1TagSequence || !bytes.Contains(b, []byte(pemBegin)) {
		return b[0] == asn1TagSequence
	}
	_, err := sniffDER(b)
	return err == nil
}

func sniffDER(b []byte) (Format, error) {
	der, _, err := toDER(b)
	if err != nil {
		return "", err
	}
	switch derKind(der) {
	case derPKCS12:
		return PKCS12, nil
	case derPKCS8, derEncryptedPKCS8, derPKCS1, derSEC1, derCertificate:
		return PEM, nil
	case derPKCS7:
		return "", &FormatError{Got: gotPKCS7, Hint: "openssl pkcs7 -inform DER -print_certs writes them as PEM"}
	case derRequest:
		return "", &FormatError{Got: gotRequest, Hint: hintRequest}
	case derCRL:
		return "", &FormatError{Got: gotCRL, Hint: hintCRL}
	case derBCFKS:
		return "", &FormatError{Got: "probably a BouncyCastle keystore (BCFKS)", Hint: hintBouncyCastle}
	}
	return "", &FormatError{Got: "ASN.1 of another kind", Hint: "PKCS#12, JKS, JCEKS and PEM are read"}
}

// What lies beside keystores and is none, and what to do about it.
const (
	gotPKCS7         = "PKCS#7 (certificates without a key)"
	gotRequest       = "a certificate request"
	hintRequest      = "name the certificate that the CA issued for it"
	gotCRL           = "a revocation list"
	hintCRL          = "client_crl takes those"
	hintBouncyCastle = "keytool -importkeystore with the BouncyCastle provider and -deststoretype pkcs12 converts it"
)

func sniffPEM(b []byte) (Format, error) {
	for _, name := range []string{"PKCS12", "PFX"} {
		if bytes.Contains(b, []byte(pemBegin+name+"-----")) {
			return "", &FormatError{Got: "PKCS#12 in PEM armour", Hint: "decode it: sed '/^-----/d' OLD | base64 -d > NEW"}
		}
	}
	if bytes.Contains(b, []byte("CERTIFICATE-----")) || bytes.Contains(b, []byte("KEY-----")) {
		return PEM, nil
	}
	for _, other := range []struct{ end, got, hint string }{
		{"PKCS7-----", gotPKCS7, "openssl pkcs7 -print_certs writes them as PEM"},
		{"CERTIFICATE REQUEST-----", gotRequest, hintRequest},
		{"X509 CRL-----", gotCRL, hintCRL},
	} {
		if bytes.Contains(b, []byte(other.end)) {
			return "", &FormatError{Got: other.got, Hint: other.hint}
		}
	}
	return PEM, nil
}

// notAKeystore says what b is instead, as far as that can be told.
func notAKeystore(b []byte) error {
	switch {
	case isUTF16(b):
		return &FormatError{Got: "text in UTF-16, as PowerShell writes it", Hint: "save it as ASCII or UTF-8"}
	case isBase64(b):
		return &FormatError{Got: "base64 text (of a Kubernetes secret?)", Hint: "decode it: base64 -d OLD > NEW"}
	case len(b) >= 4 && binary.BigEndian.Uint32(b) <= 2:
		return &FormatError{Got: "probably a BouncyCastle keystore (BKS or UBER)", Hint: hintBouncyCastle}
	}
	got := "something else"
	if utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 {
		got = "text without a PEM block"
	}
	return &FormatError{Got: got, Hint: "PKCS#12, JKS, JCEKS and PEM are read"}
}

func isUTF16(b []byte) bool {
	for _, mark := range []string{"\xff\xfe", "\xfe\xff", "-\x00-\x00", "\x00-\x00-"} {
		if bytes.HasPrefix(b, []byte(mark)) {
			return true
		}
	}
	return false
}

// isBase64 reports whether b looks like base64 of an ASN.1 or Java keystore.
func isBase64(b []byte) bool {
	b = bytes.TrimSpace(b)
	if len(b) < 8 {
		return false
	}
	raw := make([]byte, 6)
	if _, err := base64.StdEncoding.Decode(raw, b[:8]); err != nil {
		return false
	}
	magic := binary.BigEndian.Uint32(raw)
	return raw[0] == asn1TagSequence && raw[1] >= 0x80 || magic == jksMagic || magic == jceksMagic
}

// kindOfDER is what a DER value holds.
type kindOfDER int

const (
	derOther kindOfDER = iota
	derPKCS12
	derPKCS7
	derPKCS8
	derEncryptedPKCS8
	derPKCS1
	derSEC1
	derCertificate
	derRequest
	derCRL
	derBCFKS
)

// derKind tells what der holds by the first two elements of its sequence.
func derKind(der []byte) kindOfDER {
	s := cryptobyte.String(der)
	var seq, first, second cryptobyte.String
	var firstTag, secondTag asn1.Tag
	if !s.ReadASN1(&seq, asn1.SEQUENCE) || !seq.ReadAnyASN1(&first, &firstTag) || !seq.ReadAnyASN1(&second, &secondTag) {
		return derOther
	}
	var oid string
	keyVersion := firstTag == asn1.INTEGER && len(first) == 1 && first[0] <= 1
	switch {
	case firstTag == asn1.INTEGER && secondTag == asn1.SEQUENCE:
		if !readOID(&second, &oid) {
			return derOther
		}
		if oid == oidData || oid == oidSignedData || oid == oidEnvelopedData || oid == oidEncryptedData {
			return derPKCS12
		}
		if keyVersion && seq.PeekASN1Tag(asn1.OCTET_STRING) {
			return derPKCS8
		}
	case keyVersion && secondTag == asn1.INTEGER:
		return derPKCS1
	case keyVersion && secondTag == asn1.OCTET_STRING:
		return derSEC1
	case firstTag == asn1.SEQUENCE && secondTag == asn1.OCTET_STRING:
		return derEncryptedPKCS8
	case firstTag == asn1.SEQUENCE && secondTag == asn1.SEQUENCE:
		return signedKind(first, seq)
	case firstTag == asn1.OBJECT_IDENTIFIER:
		return derPKCS7
	}
	return derOther
}

// signedKind tells apart what begins with two sequences, of which first is what
// is signed and rest follows them: what is none of the others is a certificate,
// if a damaged one. A request (RFC 2986, 4.1) has attributes after two sequences,
// a revocation list (RFC 5280, 5.1) a time; BCFKS has no signature.
func signedKind(first, rest cryptobyte.String) kindOfDER {
	version := first.PeekASN1Tag(asn1.INTEGER)
	if version && !first.SkipASN1(asn1.INTEGER) || !first.SkipASN1(asn1.SEQUENCE) {
		return derCertificate
	}
	if !rest.PeekASN1Tag(asn1.BIT_STRING) && first.PeekASN1Tag(asn1.OCTET_STRING) {
		return derBCFKS
	}
	switch {
	case !first.SkipASN1(asn1.SEQUENCE):
	case first.PeekASN1Tag(asn1.UTCTime), first.PeekASN1Tag(asn1.GeneralizedTime):
		return derCRL
	case version && (first.Empty() || first.PeekASN1Tag(asn1.Tag(0).Constructed().ContextSpecific())):
		return derRequest
	}
	return derCertificate
}
