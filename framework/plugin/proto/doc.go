// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package keymanagerpb is the wire form of the key manager contract, generated
// from keymanager.proto. Plugin authors in Go don't need it: plugin.Serve
// speaks it for them.
package keymanagerpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative keymanager.proto
