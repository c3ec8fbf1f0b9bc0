// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package memsearch looks for secrets in the memory of processes, so that tests
// can show where private keys and passwords are, and where they are not. Linux
// only, and other processes' memory is open to root only.
package memsearch

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"fmt"
	"io"
	"os"
	"slices"
)

// minMemory is what any Go program has, in bytes: a search that read less has
// seen nothing.
const minMemory = 1 << 20

// Secret is a sequence of bytes that is searched for.
type Secret struct {
	Name  string
	Bytes []byte
}

// Of returns what gives a key away, as big-endian numbers and as little-endian
// ones, which is how Go's arithmetic keeps them. The names begin with owner.
func Of(owner string, key crypto.Signer) []Secret {
	var all []Secret
	add := func(name string, big []byte) {
		little := slices.Clone(big)
		slices.Reverse(little)
		all = append(all, Secret{owner + ": " + name, big}, Secret{owner + ": " + name + ", little-endian", little})
	}
	switch k := key.(type) {
	case *rsa.PrivateKey:
		add("d", k.D.Bytes())
		for i, p := range k.Primes {
			add(fmt.Sprintf("prime %d", i+1), p.Bytes())
		}
		add("d mod p-1", k.Precomputed.Dp.Bytes())
		add("d mod q-1", k.Precomputed.Dq.Bytes())
		add("q^-1 mod p", k.Precomputed.Qinv.Bytes())
	case *ecdsa.PrivateKey:
		if d, err := k.Bytes(); err == nil {
			add("d", d)
		}
	case ed25519.PrivateKey:
		add("seed", k.Seed())
	}
	return all
}

// Search returns the names of the secrets that are in the memory of a process.
// It fails where the memory can't be read, which is not the same as empty.
func Search(pid int, secrets []Secret) ([]string, error) {
	return search(pid, secrets, func(region) bool { return true })
}

// around is how far from an address SearchAround looks, in bytes.
const around = 256 << 20

// SearchAround is Search within 256 MiB of an address: of a small process, the
// heap that the address is in.
func SearchAround(pid int, address uint64, secrets []Secret) ([]string, error) {
	return search(pid, secrets, func(r region) bool {
		return r.to+around > address && r.from < address+around
	})
}

func search(pid int, secrets []Secret, wanted func(region) bool) ([]string, error) {
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, err
	}
	defer mem.Close()
	all, err := regions(pid)
	if err != nil {
		return nil, err
	}
	var found []string
	total := 0
	for _, r := range all {
		if !wanted(r) {
			continue
		}
		total += r.read(mem, func(chunk []byte) {
			for _, s := range secrets {
				if bytes.Contains(chunk, s.Bytes) && !slices.Contains(found, s.Name) {
					found = append(found, s.Name)
				}
			}
		})
	}
	if total < minMemory {
		return nil, fmt.Errorf("only %d bytes of process %d could be read", total, pid)
	}
	return found, nil
}

// region is a range of addresses with something in it.
type region struct{ from, to uint64 }

// regions returns what a process can read and has in memory.
func regions(pid int) ([]region, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []region
	var now region
	var perms string
	var kept uint64 // kB
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &now.from, &now.to, &perms); n == 3 {
			continue
		}
		if n, _ := fmt.Sscanf(lines.Text(), "Rss: %d", &kept); n == 1 && kept > 0 && perms[0] == 'r' {
			all = append(all, now)
		}
	}
	return all, lines.Err()
}

// read calls f with all of the region, in chunks that overlap by more than a
// secret is long, and returns how many bytes there were.
func (r region) read(mem io.ReaderAt, f func(chunk []byte)) (total int) {
	const size, overlap = 1 << 20, 4 << 10
	chunk := make([]byte, size)
	for at := r.from; at < r.to; at += size - overlap {
		n, err := mem.ReadAt(chunk[:min(size, r.to-at)], int64(at))
		f(chunk[:n])
		total += n
		if err != nil {
			break // the kernel's own, or gone
		}
	}
	return total
}
