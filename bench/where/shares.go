// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package where

import "strings"

// kind is a kind of work: a stack is of the first kind one of whose functions is
// in it.
type kind struct {
	name      string
	functions []string // beginnings of names
}

// kinds are told apart from the special to the general: a system call of a lane is
// the hop's, not the network's.
func kinds() []kind {
	return []kind{
		{"garbage collection", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge", "runtime.gcStart", "runtime.(*sweepLocked)"}},
		{"X25519", []string{"ecdh.(*x25519Curve)", "ecdh.x25519"}},
		{"signature", []string{"ecdsa.Sign", "ecdsa.(*PrivateKey)", "rsa.Sign", "ecdsa.sign"}},
		{"verifying signatures", []string{"ecdsa.Verify", "rsa.Verify"}},
		{"choice of the certificate", []string{"framework.(*Keys).certificate", "tls.(*Config).getCertificate"}},
		{"the hop", []string{"plugin.", "framework.(*signer)", "proto."}},
		{"serving HTTP", []string{"http.", "http2."}},
		{"hashes and ciphers", []string{"sha256.", "hmac.", "hkdf.", "tls13.", "aes.", "gcm.", "sha512."}},
		{"network", []string{"poll.(*FD)", "net.(*", "net.sysSocket", "poll.(*pollDesc)"}},
		{"scheduler of Go", []string{"runtime.mcall", "runtime.schedule", "runtime.mstart", "runtime.park_m", "runtime.findRunnable", "runtime.sysmon", "runtime.goready", "runtime.ready"}},
		{"allocation", []string{"runtime.mallocgc", "runtime.newobject", "runtime.makeslice", "runtime.growslice"}},
		{"crypto/tls, the rest", []string{"tls."}},
	}
}

// Other is the kind of what is of no other.
const Other = "other"

// Kinds returns the names of all kinds.
func Kinds() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return append(names, Other)
}

// Shares counts stacks by their kind.
func Shares(stacks []Stack) map[string]int {
	counts := map[string]int{}
	all := kinds()
	for _, s := range stacks {
		counts[kindOf(s, all)]++
	}
	return counts
}

func kindOf(s Stack, all []kind) string {
	for _, k := range all {
		for _, f := range s {
			for _, beginning := range k.functions {
				if strings.HasPrefix(f, beginning) {
					return k.name
				}
			}
		}
	}
	return Other
}
