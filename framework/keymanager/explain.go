// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package keymanager

import (
	"context"
	"crypto/tls"
)

// Explainer is implemented by key managers that can say why they choose as they
// do. Explain returns a verdict on every entry: the one that Select would return
// for h first, unless it is Out and there is none; then the others that h could
// have, best first; then those that are Out. That nothing fits h is an answer
// here and never ErrNoCredential. It is for people who ask, not for handshakes:
// it may take its time, and it logs nothing.
type Explainer interface {
	Explain(ctx context.Context, h *Hello) ([]Verdict, error)
}

// Verdict is what a choice made of one entry. Its words are those of the
// keymanager log; those of framework/choose are listed there, and a key manager
// that chooses otherwise may have others.
type Verdict struct {
	Builder int
	Alias   string
	Out     bool                // the peer can't have it at all
	Class   string              // "ok", or which kind of last resort: "expired", …; empty where the entry was not judged
	Match   string              // how it carries the server name: "exact", "wildcard", "none"; empty where that was not looked at
	Scheme  tls.SignatureScheme // the peer's most preferred of those that it signs by; 0: none
	Rule    string              // what decided against it; empty for a winner of class "ok"
	Reason  string              // the same in words
}

// Winner returns the verdict on the entry that would be selected; false: there
// is none.
func Winner(verdicts []Verdict) (Verdict, bool) {
	if len(verdicts) == 0 || verdicts[0].Out {
		return Verdict{}, false
	}
	return verdicts[0], true
}
