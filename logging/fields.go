// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package logging

// KeyManager is the name of the logger that tells of credentials and keys, in
// front and key process alike.
const KeyManager = "keymanager"

// Access is the name of the logger that writes a line about each connection at
// its end, at debug.
const Access = "access"

// Keys that every line of JSON begins with (zap puts the level first).
const (
	keyTime    = "ts"
	keyLevel   = "level"
	keyLogger  = "logger"
	keyMessage = "msg"
)

// Names of fields, each with one meaning wherever it stands.
const (
	FieldTier       = "tier"
	FieldBuilder    = "builder_index"
	FieldAlias      = "alias"
	FieldGeneration = "generation"
	FieldReason     = "reason"
	FieldError      = "error"
	FieldClass      = "class" // ok, sni_mismatch, expired, not_yet_valid, wrong_usage
	FieldRule       = "rule"
	FieldKeystore   = "keystore"
	FieldServerName = "server_name"
	FieldListener   = "listener"
	FieldConn       = "conn"
	FieldPeer       = "peer"
	FieldScheme     = "scheme"
	FieldKeyID      = "key_id"
	FieldStack      = "stack" // of a panic
	FieldText       = "text"  // what a plugin wrote that is no line of ours
)

// Messages of the keymanager logger. Variables stand in fields only.
const (
	MsgFoundKey     = "found key"
	MsgNotUsable    = "key not usable"
	MsgSelected     = "selected"
	MsgRejected     = "candidate rejected"
	MsgNoCredential = "no credential"
	MsgChanged      = "keystore changed"
	MsgReloadFailed = "keystore reload failed"
	MsgSigned       = "signed"
	MsgSignFailed   = "sign failed"
)
