// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tlsd/tlsd/framework/keymanager"
)

var (
	// ErrBusy is returned when a call is shed because too many are waiting.
	ErrBusy = errors.New("key process is overloaded")
	// ErrUnavailable is returned when no key process is there to answer, or it
	// asks to be tried again, and the time to wait for it is over.
	ErrUnavailable = errors.New("key process is not available")
	// ErrUnreachable is returned by Dial when nobody serves the socket of an
	// endpoint, or nobody yet: it may be started later.
	ErrUnreachable = errors.New("endpoint can't be reached")
	// ErrNotAllowed is returned when the key process refuses what it is asked
	// to do for good, such as to be configured twice.
	ErrNotAllowed = errors.New("not allowed by the key process")
	// ErrUnsupported is returned when a key manager doesn't implement an
	// optional part of the contract.
	ErrUnsupported = errors.New("not supported by this key manager")
	// ErrRunDir is returned when there is no directory for the socket of the
	// key process.
	ErrRunDir = errors.New("no usable run directory")
	// ErrClosed is returned by calls after Close.
	ErrClosed = errors.New("key manager is closed")
)

// wireErrors pairs each error that has a meaning in the contract with its code.
// Nothing else is looked at: a tier's own gRPC status, met while it talked to
// some service, must not pass for an answer of the tier.
func wireErrors() []wireError {
	return []wireError{
		{codes.NotFound, keymanager.ErrNoCredential},
		{codes.FailedPrecondition, keymanager.ErrUnknownKey},
		{codes.InvalidArgument, keymanager.ErrNotHandshake},
		{codes.ResourceExhausted, ErrBusy},
		{codes.Unavailable, ErrUnavailable},
		{codes.PermissionDenied, ErrNotAllowed},
		{codes.Unimplemented, ErrUnsupported},
		{codes.Canceled, context.Canceled},
		{codes.DeadlineExceeded, context.DeadlineExceeded},
	}
}

type wireError struct {
	code codes.Code
	err  error
}

// toStatus makes a gRPC status of an error, for the key process. What has no
// meaning in the contract becomes codes.Unknown with the error's text.
func toStatus(err error) error {
	if err == nil {
		return nil
	}
	code := codes.Unknown
	for _, w := range wireErrors() {
		if errors.Is(err, w.err) {
			code = w.code
			break
		}
	}
	return status.Error(code, strings.ToValidUTF8(err.Error(), "\uFFFD"))
}

// fromStatus makes an error of a gRPC status, for the front: the other side's
// text without gRPC's decoration, as an error that errors.Is finds the meaning
// in.
func fromStatus(err error) error {
	if err == nil {
		return nil
	}
	s, ok := status.FromError(err)
	if !ok {
		return err
	}
	remote := &remoteError{text: cleanLines(s.Message(), maxErrorText)}
	for _, w := range wireErrors() {
		if s.Code() == w.code {
			remote.meaning = w.err
		}
	}
	return remote
}

// maxErrorText bounds what a key process may say in an error, in bytes.
const maxErrorText = 4 << 10

// remoteError is an error that came over the wire.
type remoteError struct {
	text    string
	meaning error // nil: a failure without a meaning of its own
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.meaning }
