// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tlsd/tlsd/framework"
	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/plugins/pkixcached"
)

// A server of net/http whose keys live in another process. The program's main
// begins with plugin.Main(pkixcached.Tier()), and the TestMain of its tests too.
func ExampleKeys_TLSConfig() {
	s := newSample() // a keystore, and a client that trusts it
	defer s.remove()
	keys, err := framework.Open(context.Background(), framework.Config{
		Tiers: []keymanager.Tier{pkixcached.Tier()},
		Keystores: []keymanager.Source{{
			Paths: []string{s.keystore},
			Store: keymanager.PasswordRef{File: s.password},
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer keys.Close()

	server := &http.Server{
		TLSConfig:   keys.TLSConfig(),
		ConnContext: framework.ConnContext,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			served, _ := framework.ServedBy(r.Context())
			fmt.Fprintf(w, "%s, served by %s with %q", r.Proto, served.Tier, served.Alias)
		}),
	}
	ln := listen()
	go server.ServeTLS(ln, "", "")
	defer server.Close()

	fmt.Println(s.get(ln.Addr()))
	// Output: HTTP/2.0, served by pkixcached with "server"
}

// A gRPC server whose keys live in another process.
func ExampleKeys_TLSConfig_grpc() {
	s := newSample()
	defer s.remove()
	keys, err := framework.Open(context.Background(), s.config())
	if err != nil {
		log.Fatal(err)
	}
	defer keys.Close()

	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(keys.TLSConfig())))
	healthpb.RegisterHealthServer(server, health.NewServer())
	ln := listen()
	go server.Serve(ln)
	defer server.Stop()

	conn, err := grpc.NewClient(ln.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(s.trusting())))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	reply, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.GetStatus())
	// Output: SERVING
}

// A client that shows a certificate whose key lives in another process.
func ExampleKeys_ClientConfig() {
	s := newSample()
	defer s.remove()
	keys, err := framework.Open(context.Background(), s.config())
	if err != nil {
		log.Fatal(err)
	}
	defer keys.Close()

	cfg := keys.ClientConfig()
	cfg.RootCAs = s.roots
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: cfg}}
	defer client.CloseIdleConnections()

	resp, err := client.Get(s.demanding())
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Printf("%s\n", body)
	// Output: hello, sample
}

// The daemon as a library: a listener that terminates TLS and forwards.
func ExampleNewServer() {
	s := newSample()
	defer s.remove()
	cfg := s.config()
	cfg.Listeners = []framework.Listener{{Listen: "127.0.0.1:0", Backend: "builtin:hello"}}
	server, err := framework.NewServer(context.Background(), cfg)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- server.Run(ctx) }()

	conn, err := tls.Dial("tcp", server.Addrs()[0].String(), s.trusting())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tls.VersionName(conn.ConnectionState().Version))
	conn.Close()

	stop()
	fmt.Println(<-done)
	// Output:
	// TLS 1.3
	// <nil>
}

func listen() net.Listener {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	return ln
}
