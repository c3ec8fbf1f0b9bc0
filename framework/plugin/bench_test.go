// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/internal/testca"
)

// BenchmarkSign makes one signature after another: by a key in this process, by a
// key process that is asked over lanes, and by one that is asked by gRPC. What the
// latter two take longer is one hop without company, with all its waits.
func BenchmarkSign(b *testing.B) {
	for kt, scheme := range map[testca.KeyType]tls.SignatureScheme{
		testca.P256: tls.ECDSAWithP256AndSHA256, testca.RSA2048: tls.PSSWithSHA256,
	} {
		dir := b.TempDir()
		src := keymanager.Source{Paths: []string{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}}
		leaf := testca.NewRoot(b, testca.Spec{}).Issue(b, testca.Spec{DNS: []string{"a.example"}, Key: kt})
		testca.WritePEM(b, src.Paths[0], src.Paths[1], leaf)
		for way, open := range map[string]func(Spec) (Manager, error){
			"in_process": func(s Spec) (Manager, error) { return InProcess(b.Context(), testTier(), s) },
			"lane":       func(s Spec) (Manager, error) { return startBench(b, s) },
			"grpc":       func(s Spec) (Manager, error) { return startBench(b, s, byGRPCOnly) },
		} {
			b.Run(string(kt)+"/"+way, func(b *testing.B) {
				m, err := open(Spec{Sources: []keymanager.Source{src}})
				if err != nil {
					b.Fatal(err)
				}
				defer m.Close()
				hello := serverHello("a.example")
				hello.Schemes = []tls.SignatureScheme{scheme}
				cred, err := m.Select(b.Context(), hello)
				if err != nil {
					b.Fatal(err)
				}
				req := handshakeRequest()
				req.Scheme = scheme
				for b.Loop() {
					if _, err := cred.Key.Sign(b.Context(), req); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func startBench(b *testing.B, s Spec, args ...string) (Manager, error) {
	dir, err := os.MkdirTemp("/tmp", "b") // the path of a socket is short
	if err != nil {
		return nil, err
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return Start(b.Context(), Command{Tier: testTier().Name, Args: args}, s, HostOptions{RunDir: dir})
}
