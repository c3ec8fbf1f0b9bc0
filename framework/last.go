// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import "net/http"

// lastAnswer is how a request is answered after which its connection ends. To say
// so in the header beforehand isn't enough: a proxy clears it after each 1xx answer,
// and in HTTP/2 such an answer is malformed by it.
type lastAnswer struct{ http.ResponseWriter }

// WriteHeader has net/http close the connection after a final answer, in HTTP/2
// too.
func (w lastAnswer) WriteHeader(code int) {
	if code >= http.StatusOK {
		w.Header().Set("Connection", "close")
	}
	w.ResponseWriter.WriteHeader(code)
}

// Write is for handlers that write no header, which means 200.
func (w lastAnswer) Write(b []byte) (int, error) {
	w.Header().Set("Connection", "close") // of no meaning once the header is written
	return w.ResponseWriter.Write(b)
}

// Unwrap serves http.ResponseController.
func (w lastAnswer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
