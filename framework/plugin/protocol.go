// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package plugin runs key managers as plugins: child processes that speak the
// contract in framework/keymanager over hashicorp/go-plugin and gRPC. It is the
// only package that knows either.
//
// A plugin's side is [Main] for a program that embeds tiers, and [Serve] for an
// executable that is only a plugin. The front's side is [Start], whose [Host]
// is a keymanager.KeyManager like any other.
package plugin

import goplugin "github.com/hashicorp/go-plugin"

// ContractVersion is the newest version of the contract that this package
// speaks; it is served together with the one before, where there is one.
const ContractVersion = 1

// Names in a child's environment.
const (
	// childMarker holds the name of the tier that a child is to serve. Its
	// presence is what makes a process a child.
	childMarker = "TLSD_KEYMANAGER_CHILD"
	// cookieName and cookieValue are go-plugin's handshake: no secret, only
	// proof that the program was not started by hand.
	cookieName  = "TLSD_KEYMANAGER_PLUGIN"
	cookieValue = "6a2f6f0e-1e0d-4b0e-9d57-0d8b6c1f3a51"
)

// lifeLineFD is the descriptor, inherited by a child, that reaches end of file
// when its front is gone, however it ended.
const lifeLineFD = 3

// pluginName is the one plugin that a child serves, by go-plugin's name.
const pluginName = "keymanager"

func handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{
		ProtocolVersion:  ContractVersion,
		MagicCookieKey:   cookieName,
		MagicCookieValue: cookieValue,
	}
}
