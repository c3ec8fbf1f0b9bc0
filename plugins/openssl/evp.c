// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

#include "evp.h"

#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

// fail writes the reason of the first error of this thread, of which there may
// be none, and empties its queue. Texts that came with an error are left out:
// whatever they quote is not for a log.
static void fail(const char *what, char *error)
{
	const char *reason = ERR_reason_error_string(ERR_peek_error());

	snprintf(error, TLSD_ERROR, "%s: %s", what, reason ? reason : "no reason given");
	ERR_clear_error();
}

// libcrypto clears the numbers of a key that it frees, and not the DER that it
// has copied while it read one. So whatever a thread frees is cleared while it
// reads a key. Always to do so would make a signature of P-256 a fifth slower.
static _Thread_local int reads_key;

static void wiping_free(void *p, const char *file, int line)
{
	(void)file, (void)line;
	if (p && reads_key)
		OPENSSL_cleanse(p, malloc_usable_size(p));
	free(p);
}

static void *plain_malloc(size_t n, const char *file, int line)
{
	(void)file, (void)line;
	return malloc(n);
}

static void *wiping_realloc(void *p, size_t n, const char *file, int line)
{
	if (!p || !reads_key)
		return realloc(p, n);
	void *q = malloc(n);
	if (q) {
		size_t old = malloc_usable_size(p);
		memcpy(q, p, old < n ? old : n);
		wiping_free(p, file, line);
	}
	return q;
}

int tlsd_start(char *error)
{
	if (!CRYPTO_set_mem_functions(plain_malloc, wiping_realloc, wiping_free)) {
		snprintf(error, TLSD_ERROR, "libcrypto is in use in this process already: the key manager wants one of its own");
		return 0;
	}
	// The end of the process is Go's, which runs no handlers of C.
	if (!OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG | OPENSSL_INIT_LOAD_CRYPTO_STRINGS | OPENSSL_INIT_NO_ATEXIT, NULL)) {
		fail("start libcrypto", error);
		return 0;
	}
	return 1;
}

EVP_PKEY *tlsd_load(const unsigned char *der, size_t n, char *error)
{
	ERR_clear_error();
	reads_key = 1;
	EVP_PKEY *key = n > LONG_MAX ? NULL : d2i_AutoPrivateKey(NULL, &der, (long)n);
	reads_key = 0;
	if (!key)
		fail("load key", error);
	return key;
}

int tlsd_public(const EVP_PKEY *key, unsigned char **out, char *error)
{
	ERR_clear_error();
	int n = i2d_PUBKEY(key, out);
	if (n <= 0) {
		fail("public key", error);
		return 0;
	}
	return n;
}

void tlsd_free(unsigned char *p)
{
	OPENSSL_free(p);
}

static const char *sha2(int bits)
{
	switch (bits) {
	case 256:
		return "SHA256";
	case 384:
		return "SHA384";
	case 512:
		return "SHA512";
	}
	return NULL;
}

size_t tlsd_sign(EVP_PKEY *key, int sha, int pss, const unsigned char *msg, size_t n,
		 unsigned char *sig, size_t room, char *error)
{
	EVP_PKEY_CTX *of_key; // belongs to ctx
	size_t len = room;

	ERR_clear_error();
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	int ok = ctx && EVP_DigestSignInit_ex(ctx, &of_key, sha2(sha), NULL, NULL, key, NULL) > 0;
	if (ok && pss)
		ok = EVP_PKEY_CTX_set_rsa_padding(of_key, RSA_PKCS1_PSS_PADDING) > 0 &&
		     EVP_PKEY_CTX_set_rsa_pss_saltlen(of_key, RSA_PSS_SALTLEN_DIGEST) > 0;
	ok = ok && EVP_DigestSign(ctx, sig, &len, msg, n) > 0;
	if (!ok)
		fail("sign", error);
	EVP_MD_CTX_free(ctx);
	return ok ? len : 0;
}
