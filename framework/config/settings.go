// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// settings is the configuration file, key by key. It is decoded from the file,
// laid over with what flags, properties and the environment say, and filled up
// with the default tags. A show tag names what no file gives.
//
// Lists, never maps keyed by a user's name: viper lower-cases the keys of maps.
type settings struct {
	KeyManager     string         `mapstructure:"keymanager"`
	Keystores      []keystore     `mapstructure:"keystores"`
	Listeners      []listener     `mapstructure:"listeners"`
	Plugins        []plugin       `mapstructure:"plugins"`
	Constraints    constraints    `mapstructure:"constraints"`
	DefaultAlias   string         `mapstructure:"default_alias"`
	ExpiryWarning  time.Duration  `mapstructure:"expiry_warning" default:"21d"`
	ReloadPoll     time.Duration  `mapstructure:"reload_poll" default:"10s"`
	RunDir         string         `mapstructure:"run_dir"`
	Drain          drain          `mapstructure:"drain"`
	PluginWait     time.Duration  `mapstructure:"plugin_wait" default:"2s"`
	Limits         limits         `mapstructure:"limits"`
	KeystoreLimits keystoreLimits `mapstructure:"keystore_limits"`
	Isolation      string         `mapstructure:"isolation" default:"report"`
	AllowUser      []string       `mapstructure:"allow_user"` // of an endpoint
	JDKCompat      bool           `mapstructure:"jdk_compat"`
	Log            logSettings    `mapstructure:"log"`
	Metrics        metrics        `mapstructure:"metrics"`
	Admin          admin          `mapstructure:"admin"`
}

// span is a duration that may be zero, which turns off what it bounds.
type span time.Duration

type keystore struct {
	Path            paths         `mapstructure:"path"`
	Type            string        `mapstructure:"type" default:"auto"`
	PasswordFile    string        `mapstructure:"password_file"`
	KeyPasswordFile string        `mapstructure:"key_password_file"`
	KeyPasswords    []keyPassword `mapstructure:"key_passwords"`

	Password *keymanager.Secret `mapstructure:"-" show:"password"` // by environment or property, never by file
}

// paths is one path, or a list of them.
type paths []string

type keyPassword struct {
	Alias string `mapstructure:"alias"`
	File  string `mapstructure:"file"`
}

type listener struct {
	Listen               string         `mapstructure:"listen" default:"127.0.0.1:8443"`
	Backend              string         `mapstructure:"backend" default:"builtin:hello"`
	BackendTLS           backendTLS     `mapstructure:"backend_tls"`
	BackendTimeout       backendTimeout `mapstructure:"backend_timeout"`
	TLS                  tlsSettings    `mapstructure:"tls"`
	ALPN                 []string       `mapstructure:"alpn"`
	UnknownSNI           string         `mapstructure:"unknown_sni" default:"default"`
	Alias                string         `mapstructure:"alias"`
	ClientAuth           string         `mapstructure:"client_auth" default:"none"`
	ClientCA             string         `mapstructure:"client_ca"`
	ClientCAPasswordFile string         `mapstructure:"client_ca_password_file"`
	ClientCRL            string         `mapstructure:"client_crl"`
	CRLExpired           string         `mapstructure:"crl_expired" default:"refuse"`
	ClientHeaders        clientHeaders  `mapstructure:"client_headers"`
	TrustedProxies       []string       `mapstructure:"trusted_proxies"`
	Hosts                []host         `mapstructure:"hosts"`

	ClientCAType     string             `mapstructure:"-" show:"client_ca_type"` // by property only: a file's type shows in its bytes
	ClientCAPassword *keymanager.Secret `mapstructure:"-" show:"client_ca_password"`
}

type backendTLS struct {
	CA                string `mapstructure:"ca"`
	Name              string `mapstructure:"name"`
	ClientCertificate bool   `mapstructure:"client_certificate"`
}

type backendTimeout struct {
	Connect   time.Duration `mapstructure:"connect" default:"5s"`
	FirstByte time.Duration `mapstructure:"first_byte" default:"60s"`
}

type tlsSettings struct {
	MinVersion   string   `mapstructure:"min_version" default:"1.2"`
	MaxVersion   string   `mapstructure:"max_version"`
	CipherSuites []string `mapstructure:"cipher_suites"`
	Groups       []string `mapstructure:"groups"`
}

// clientHeaders names headers; an empty name, other than one left out, is a
// header that is not sent.
type clientHeaders struct {
	Cert    *string `mapstructure:"cert" default:"Client-Cert"`
	Chain   *string `mapstructure:"chain" default:"Client-Cert-Chain"`
	Subject *string `mapstructure:"subject" default:"X-Client-Subject"`
	Format  string  `mapstructure:"format" default:"rfc9440"`
}

type plugin struct {
	Name     string         `mapstructure:"name"`
	Path     string         `mapstructure:"path"`
	SHA256   string         `mapstructure:"sha256"`
	Settings map[string]any `mapstructure:"settings"` // from the document: viper lower-cases keys
}

type constraints struct {
	CertPath *string `mapstructure:"certpath"` // nil: the defaults of JDK 25
	TLS      *string `mapstructure:"tls"`
}

type drain struct {
	Delay   span          `mapstructure:"delay" default:"0s"`
	Timeout time.Duration `mapstructure:"timeout" default:"30s"`
}

type limits struct {
	HandshakeTimeout time.Duration `mapstructure:"handshake_timeout" default:"10s"`
	Connections      int           `mapstructure:"connections" default:"0"`
	ConnectionsPerIP int           `mapstructure:"connections_per_ip" default:"0"`
	Handshakes       int           `mapstructure:"handshakes" default:"0"`
	Idle             span          `mapstructure:"idle" default:"0s"`
	Lifetime         span          `mapstructure:"lifetime" default:"0s"`
}

type keystoreLimits struct {
	Iterations int `mapstructure:"iterations" default:"5000000"`
}

type logSettings struct {
	Level  string   `mapstructure:"level" default:"info"`
	Format string   `mapstructure:"format"` // empty: console on a terminal, else json
	Debug  []string `mapstructure:"debug"`
}

type metrics struct {
	Listen string `mapstructure:"listen"`
}

type admin struct {
	Listen string `mapstructure:"listen"`
	Pprof  bool   `mapstructure:"pprof"`
}
