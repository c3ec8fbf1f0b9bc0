// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keystore

// Object identifiers that decide what is done.
const (
	oidData          = "1.2.840.113549.1.7.1"
	oidSignedData    = "1.2.840.113549.1.7.2"
	oidEnvelopedData = "1.2.840.113549.1.7.3"
	oidEncryptedData = "1.2.840.113549.1.7.6"

	oidKeyBag      = "1.2.840.113549.1.12.10.1.1"
	oidShroudedBag = "1.2.840.113549.1.12.10.1.2"
	oidCertBag     = "1.2.840.113549.1.12.10.1.3"
	oidCRLBag      = "1.2.840.113549.1.12.10.1.4"
	oidSecretBag   = "1.2.840.113549.1.12.10.1.5"
	oidNestedBag   = "1.2.840.113549.1.12.10.1.6"
	oidX509        = "1.2.840.113549.1.9.22.1"

	oidFriendlyName = "1.2.840.113549.1.9.20"
	oidLocalKeyID   = "1.2.840.113549.1.9.21"
	oidTrusted      = "2.16.840.1.113894.746875.1.1" // Java's trustedKeyUsage

	oidPBE3DES   = "1.2.840.113549.1.12.1.3"
	oidPBE2DES   = "1.2.840.113549.1.12.1.4"
	oidPBERC2128 = "1.2.840.113549.1.12.1.5"
	oidPBERC240  = "1.2.840.113549.1.12.1.6"
	oidPBES2     = "1.2.840.113549.1.5.13"
	oidPBKDF2    = "1.2.840.113549.1.5.12"
	oidPBMAC1    = "1.2.840.113549.1.5.14"
	oidJKS       = "1.3.6.1.4.1.42.2.17.1.1" // Sun's key protector
	oidJCEKS     = "1.3.6.1.4.1.42.2.19.1"   // Sun's PBEWithMD5AndTripleDES

	oidAES128CBC = "2.16.840.1.101.3.4.1.2"
	oidAES192CBC = "2.16.840.1.101.3.4.1.22"
	oidAES256CBC = "2.16.840.1.101.3.4.1.42"
	oid3DESCBC   = "1.2.840.113549.3.7"

	oidHMACSHA1   = "1.2.840.113549.2.7"
	oidHMACSHA224 = "1.2.840.113549.2.8"
	oidHMACSHA256 = "1.2.840.113549.2.9"
	oidHMACSHA384 = "1.2.840.113549.2.10"
	oidHMACSHA512 = "1.2.840.113549.2.11"

	oidSHA1      = "1.3.14.3.2.26"
	oidSHA256    = "2.16.840.1.101.3.4.2.1"
	oidSHA384    = "2.16.840.1.101.3.4.2.2"
	oidSHA512    = "2.16.840.1.101.3.4.2.3"
	oidSHA224    = "2.16.840.1.101.3.4.2.4"
	oidSHA512224 = "2.16.840.1.101.3.4.2.5"
	oidSHA512256 = "2.16.840.1.101.3.4.2.6"
	oidSHA3224   = "2.16.840.1.101.3.4.2.7"
	oidSHA3256   = "2.16.840.1.101.3.4.2.8"
	oidSHA3384   = "2.16.840.1.101.3.4.2.9"
	oidSHA3512   = "2.16.840.1.101.3.4.2.10"

	oidRSA     = "1.2.840.113549.1.1.1"
	oidEC      = "1.2.840.10045.2.1"
	oidEd25519 = "1.3.101.112"
	oidP256    = "1.2.840.10045.3.1.7"
	oidP384    = "1.3.132.0.34"
	oidP521    = "1.3.132.0.35"
)

// algorithmName names what is not read, for messages; an identifier that is
// not in the list names itself.
func algorithmName(oid string) string {
	switch oid {
	case "1.2.840.113549.1.12.1.1":
		return "PBE-SHA1-RC4-128"
	case "1.2.840.113549.1.12.1.2":
		return "PBE-SHA1-RC4-40"
	case "1.2.840.113549.1.5.1":
		return "PBE-MD2-DES"
	case "1.2.840.113549.1.5.3":
		return "PBE-MD5-DES"
	case "1.2.840.113549.1.5.4":
		return "PBE-MD2-RC2-64"
	case "1.2.840.113549.1.5.6":
		return "PBE-MD5-RC2-64"
	case "1.2.840.113549.1.5.10":
		return "PBE-SHA1-DES"
	case "1.2.840.113549.1.5.11":
		return "PBE-SHA1-RC2-64"
	case "1.3.6.1.4.1.11591.4.11":
		return "scrypt"
	case "1.3.14.3.2.7":
		return "DES"
	case "1.2.840.113549.3.2":
		return "RC2"
	case "1.2.840.113549.3.4":
		return "RC4"
	case "2.16.840.1.101.3.4.1.6", "2.16.840.1.101.3.4.1.26", "2.16.840.1.101.3.4.1.46":
		return "AES-GCM"
	case "1.2.392.200011.61.1.1.1.2", "1.2.392.200011.61.1.1.1.3", "1.2.392.200011.61.1.1.1.4":
		return "Camellia"
	case "1.2.410.200046.1.1.2", "1.2.410.200046.1.1.7", "1.2.410.200046.1.1.12":
		return "ARIA"
	case "1.2.410.200004.1.4":
		return "SEED"
	case "1.2.156.10197.1.104.2":
		return "SM4"
	case "1.2.643.2.2.21":
		return "GOST 28147-89"
	case "1.2.643.2.2.9", "1.2.643.2.2.10":
		return "GOST R 34.11-94"
	case "1.2.643.7.1.1.2.2", "1.2.643.7.1.1.2.3", "1.2.643.7.1.1.4.1", "1.2.643.7.1.1.4.2":
		return "GOST R 34.11-2012"
	case "1.2.840.113549.2.2":
		return "MD2"
	case "1.2.840.113549.2.5":
		return "MD5"
	case "1.3.36.3.2.1":
		return "RIPEMD-160"
	case "1.2.156.10197.1.401":
		return "SM3"
	case "1.3.6.1.4.1.1722.12.2.1.16":
		return "BLAKE2b-512"
	case "1.2.840.113549.2.6":
		return "HMAC-MD5"
	case "1.2.840.113549.2.12":
		return "HMAC-SHA-512/224"
	case "1.2.840.113549.2.13":
		return "HMAC-SHA-512/256"
	case "2.16.840.1.101.3.4.2.13", "2.16.840.1.101.3.4.2.14", "2.16.840.1.101.3.4.2.15", "2.16.840.1.101.3.4.2.16":
		return "HMAC-SHA3"
	}
	return oid
}

// keyTypeName names the key types and curves that are not used, for messages.
func keyTypeName(oid string) string {
	switch oid {
	case "1.2.840.10040.4.1":
		return "DSA"
	case "1.2.840.113549.1.1.10":
		return "RSASSA-PSS"
	case "1.2.840.113549.1.3.1", "1.2.840.10046.2.1":
		return "DH"
	case "1.3.101.110":
		return "X25519"
	case "1.3.101.111":
		return "X448"
	case "1.3.101.113":
		return "Ed448"
	case "2.16.840.1.101.3.4.3.17":
		return "ML-DSA-44"
	case "2.16.840.1.101.3.4.3.18":
		return "ML-DSA-65"
	case "2.16.840.1.101.3.4.3.19":
		return "ML-DSA-87"
	case "1.2.643.2.2.19":
		return "GOST R 34.10-2001"
	case "1.2.643.7.1.1.1.1", "1.2.643.7.1.1.1.2":
		return "GOST R 34.10-2012"
	case "1.2.156.10197.1.301":
		return "SM2"
	case "1.2.840.10045.3.1.1":
		return "P-192"
	case "1.3.132.0.33":
		return "P-224"
	case "1.3.132.0.10":
		return "secp256k1"
	case "1.3.36.3.3.2.8.1.1.7":
		return "brainpoolP256r1"
	case "1.3.36.3.3.2.8.1.1.11":
		return "brainpoolP384r1"
	case "1.3.36.3.3.2.8.1.1.13":
		return "brainpoolP512r1"
	}
	return oid
}
