// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package openssl

// #cgo pkg-config: libcrypto
// #cgo noescape tlsd_sign
// #cgo nocallback tlsd_sign
// #include "evp.h"
import "C"

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// start readies libcrypto, of which a process has one.
var start = sync.OnceValue(func() error {
	var why text
	if C.tlsd_start(why.buffer()) == 0 {
		return fmt.Errorf("openssl: %w", why.err())
	}
	return nil
})

// key is a private key in libcrypto's memory. Go's memory has none of it. Who
// holds a key may sign with it; when nobody does any more, libcrypto clears it.
type key struct {
	pkey   *C.EVP_PKEY
	public crypto.PublicKey
}

// load is a keystore.LoadFunc. It proves by a signature that the parts of the
// key belong together, which libcrypto doesn't look at.
func load(der []byte) (keymanager.Key, error) {
	var why text
	pkey := C.tlsd_load(uchars(der), C.size_t(len(der)), why.buffer())
	if pkey == nil {
		return nil, why.err()
	}
	k := &key{pkey: pkey}
	runtime.AddCleanup(k, func(p *C.EVP_PKEY) { C.EVP_PKEY_free(p) }, pkey)
	if err := k.readPublic(); err != nil {
		return nil, err
	}
	if err := k.prove(); err != nil {
		return nil, err
	}
	return k, nil
}

func (k *key) readPublic() error {
	var why text
	var out *C.uchar
	n := C.tlsd_public(k.pkey, &out, why.buffer())
	runtime.KeepAlive(k)
	if n == 0 {
		return why.err()
	}
	defer C.tlsd_free(out)
	var err error
	k.public, err = x509.ParsePKIXPublicKey(C.GoBytes(unsafe.Pointer(out), n))
	return err
}

func (k *key) prove() error {
	msg := []byte("a signature that proves a key")
	for _, s := range keymanager.Schemes() {
		if !keymanager.SchemeFits(s, k.public, tls.VersionTLS13) {
			continue
		}
		sig, err := k.sign(s, msg)
		if err != nil {
			return err
		}
		return keymanager.Verify(k.public, s, msg, sig)
	}
	return errors.New("of no use to TLS 1.3")
}

func (k *key) Public() crypto.PublicKey { return k.public }

func (k *key) Sign(ctx context.Context, req *keymanager.SignRequest) ([]byte, error) {
	if err := req.CheckKey(k.public); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("sign: %w", err)
	}
	return k.sign(req.Scheme, req.Message)
}

// sign hashes and signs in one call, the only one into C that a signature costs.
func (k *key) sign(s tls.SignatureScheme, msg []byte) ([]byte, error) {
	var why text
	var pss C.int
	opts := keymanager.SignerOpts(s)
	if _, ok := opts.(*rsa.PSSOptions); ok {
		pss = 1
	}
	var sha C.int
	if h := opts.HashFunc(); h != 0 {
		sha = C.int(8 * h.Size())
	}
	sig := make([]byte, maxSignature)
	n := C.tlsd_sign(k.pkey, sha, pss, uchars(msg), C.size_t(len(msg)), uchars(sig), maxSignature, why.buffer())
	runtime.KeepAlive(k)
	if n == 0 {
		return nil, why.err()
	}
	return sig[:n], nil
}

// maxSignature is the longest signature, in bytes: of RSA with 16384 bits, the
// most that libcrypto takes.
const maxSignature = 2048

// text is room for what libcrypto says of an error.
type text [C.TLSD_ERROR]C.char

func (t *text) buffer() *C.char { return &t[0] }

func (t *text) err() error { return errors.New(C.GoString(&t[0])) }

func uchars(b []byte) *C.uchar { return (*C.uchar)(unsafe.SliceData(b)) }
