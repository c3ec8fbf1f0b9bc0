// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// What the package needs of libcrypto, each as one call, so that a signature
// crosses from Go to C once and an error is read on the thread that met it.
#ifndef TLSD_EVP_H
#define TLSD_EVP_H

#include <stddef.h>
#include <openssl/evp.h>

#if OPENSSL_VERSION_NUMBER < 0x30000000L
#error "libcrypto 3 or newer is needed"
#endif

// Bytes of an error's text, with its zero.
enum { TLSD_ERROR = 128 };

// tlsd_start readies libcrypto: its configuration, and memory that is cleared
// when it is freed while a key is read. It returns 0 and says why where that fails.
int tlsd_start(char *error);

// tlsd_load makes a key of DER, PKCS#8, PKCS#1 or SEC 1, or returns NULL.
EVP_PKEY *tlsd_load(const unsigned char *der, size_t n, char *error);

// tlsd_public writes the SubjectPublicKeyInfo of a key to *out, for
// tlsd_free, and returns its length, or 0.
int tlsd_public(const EVP_PKEY *key, unsigned char **out, char *error);

void tlsd_free(unsigned char *p);

// tlsd_sign signs msg and writes at most room bytes to sig. sha is the length of a
// SHA-2 in bits, or 0 for a key that hashes by its own rules; pss is for RSA. It
// returns the length of the signature, or 0.
size_t tlsd_sign(EVP_PKEY *key, int sha, int pss, const unsigned char *msg, size_t n,
		 unsigned char *sig, size_t room, char *error);

#endif
