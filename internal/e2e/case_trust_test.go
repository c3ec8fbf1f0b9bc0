// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/tlsd/tlsd/internal/testca"
)

// TestCaseR11_FirstCANeverFails: a client of the first CA comes all the time, while
// a second is appended and while the file is empty, which is an error.
func TestCaseR11_FirstCANeverFails(t *testing.T) {
	t.Parallel()
	r := newReloading(t)
	caA, caB := testca.NewRoot(t, testca.Spec{Name: "A"}), testca.NewRoot(t, testca.Spec{Name: "B"})
	alice, bob := r.s.as(caA.Issue(t, testca.Spec{Name: "alice", NoEKU: true})), r.s.as(caB.Issue(t, testca.Spec{Name: "bob", NoEKU: true}))
	path := r.put("clients.pem", caA.CertPEM())
	r.configure(r.listener(r.addr, "client_auth: require", "client_ca: "+path), "reload_poll: 1s")
	r.start()
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		for ctx.Err() == nil {
			if err := r.d.letIn(alice); err != nil {
				t.Errorf("a client of the first CA: %v", err)
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
	defer asking.Wait()
	defer stop()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	second := caB.CertPEM()
	for _, part := range [][]byte{second[:100], second[100:]} { // as it comes over a slow link
		if _, err := f.Write(part); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
	}
	f.Close()
	r.until("bob is let in", func() bool { return r.d.letIn(bob) == nil })
	before := r.d.count(`"level":"error"`)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	r.until("the empty file is an error", func() bool { return r.d.count(`"level":"error"`) > before })
	if err := r.d.letIn(bob); err != nil {
		t.Errorf("with an empty file: %v", err)
	}
}
