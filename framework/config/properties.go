// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"
)

// property is a name that -D may give: what it sets, or why it has no effect.
type property struct {
	name  string
	set   setter
	empty bool   // an empty value means something
	note  string // has no effect: why
}

// setter lays values that were given at one place over a draft. from says
// where.
type setter func(d *draft, values []string, from string) error

// one makes a setter of a function that takes a single value.
func one(set func(d *draft, value, from string) error) setter {
	return func(d *draft, values []string, from string) error { return set(d, values[0], from) }
}

// knownProperties lists the names that mean something. Where two set the same
// key, the later one wins.
func knownProperties() []property {
	return []property{
		{name: "ssl.KeyManagerFactory.algorithm", set: one((*draft).setAlgorithm)},
		{name: "tlsd.keymanager", set: one((*draft).setKeyManager)},
		{name: "javax.net.ssl.keyStore", set: one((*draft).setJavaKeystore)},
		{name: "javax.net.ssl.keyStorePassword", set: one((*draft).setJavaStorePassword)},
		{name: "javax.net.ssl.keyStoreType", set: one((*draft).setStoreType)},
		{name: "javax.net.ssl.trustStore", set: onListener("client_ca", setTrustStore)},
		{name: "javax.net.ssl.trustStorePassword", set: one((*draft).setTrustStorePassword)},
		{name: "javax.net.ssl.trustStoreType", set: onListener("client_ca_type", setTrustStoreType)},
		{name: "javax.net.debug", set: one((*draft).setJavaDebug)},
		{name: "jdk.certpath.disabledAlgorithms", set: one((*draft).setCertPath), empty: true},
		{name: "jdk.tls.disabledAlgorithms", set: one((*draft).setTLSConstraints), empty: true},
		{name: "jdk.tls.server.protocols", set: one((*draft).setJavaProtocols)},
		{name: "jdk.tls.server.cipherSuites", set: onEvery("tls.cipher_suites", setJavaSuites)},
		{name: "jdk.tls.namedGroups", set: onEvery("tls.groups", setJavaGroups)},
		{name: "jdk.tls.SunX509KeyManager.certChecking", set: one((*draft).setCertChecking)},
	}
}

// idleProperties lists names that a JVM knows and that have no effect here, by
// the reason. They are noted, so that a JVM's options can be kept together.
func idleProperties() []property {
	why := map[string][]string{
		"providers are classes of a JVM; here a key manager plugin takes their place": {
			"javax.net.ssl.keyStoreProvider", "javax.net.ssl.trustStoreProvider", "ssl.TrustManagerFactory.algorithm",
			"ssl.SocketFactory.provider", "ssl.ServerSocketFactory.provider",
		},
		"it concerns a JVM as client": {
			"jdk.tls.client.protocols", "jdk.tls.client.cipherSuites", "jdk.tls.client.SignatureSchemes",
			"jdk.tls.client.enableSessionTicketExtension", "jdk.tls.client.enableStatusRequestExtension",
			"jdk.tls.client.enableCAExtension", "jdk.tls.client.disableExtensions",
			"jdk.tls.client.maxInboundCertificateChainLength", "jdk.tls.trustNameService",
		},
		"sessions are resumed by tickets only, without a cache": {
			"javax.net.ssl.sessionCacheSize", "jdk.tls.server.enableSessionTicketExtension",
			"jdk.tls.server.sessionTicketTimeout", "jdk.tls.server.newSessionTicketCount",
			"jdk.tls.allowLegacyResumption", "jdk.tls.useExtendedMasterSecret", "jdk.tls.allowLegacyMasterSecret",
		},
		"finite-field Diffie-Hellman is never offered": {
			"jdk.tls.ephemeralDHKeySize", "jdk.tls.server.defaultDHEParameters",
		},
		"renegotiation is never accepted": {
			"jdk.tls.rejectClientInitiatedRenegotiation", "jdk.tls.allowUnsafeServerCertChange",
		},
		"Go's TLS decides it": {
			"jdk.tls.server.SignatureSchemes", "jdk.tls.server.disableExtensions", "jdk.tls.legacyAlgorithms",
			"jdk.tls.keyLimits", "jdk.tls.alpnCharset", "jdk.tls.acknowledgeCloseNotify",
			"jdk.tls.maxCertificateChainLength", "jdk.tls.maxHandshakeMessageSize",
			"jdk.tls.server.maxInboundCertificateChainLength", "jdk.tls.server.enableStatusRequestExtension",
		},
	}
	var idle []property
	for note, names := range why {
		for _, name := range names {
			idle = append(idle, property{name: name, note: note})
		}
	}
	return idle
}

// ours reports whether a property's name is in a namespace in which an unknown
// one is a mistake.
func ours(name string) bool {
	if name == "javax.net.debug" {
		return true
	}
	for _, prefix := range []string{"javax.net.ssl.", "jdk.tls.", "jdk.certpath.", "ssl.", "tlsd."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// properties lays over the draft what -D gave at one place. Of several values
// of one name the last counts, as in a JVM; between two names the table's order
// decides.
func (d *draft) properties(props []prop, place string) error {
	last := map[string]prop{}
	for _, p := range props {
		if err := d.known(p); err != nil {
			return fmt.Errorf("%w%s", err, place)
		}
		last[p.name] = p
	}
	for _, known := range knownProperties() {
		p, given := last[known.name]
		if !given {
			continue
		}
		from := "-D " + p.name + place
		if !p.hasValue || (p.value == "" && !known.empty) {
			return fmt.Errorf("%s: has no value; write -D %s=VALUE", from, p.name)
		}
		if err := known.set(d, []string{p.value}, from); err != nil {
			return err
		}
	}
	d.noteIdle(last, place)
	return nil
}

func (d *draft) noteIdle(given map[string]prop, place string) {
	for _, idle := range idleProperties() {
		if _, ok := given[idle.name]; ok {
			d.note("-D %s%s has no effect: %s", idle.name, place, idle.note)
		}
	}
}

// known refuses a name that is neither known nor known to be idle.
func (d *draft) known(p prop) error {
	var names []string
	for _, k := range knownProperties() {
		names = append(names, k.name)
	}
	isName := func(k property) bool { return k.name == p.name }
	if slices.Contains(names, p.name) || slices.ContainsFunc(idleProperties(), isName) {
		return nil
	}
	hint := ""
	if near := nearest(p.name, names); near != "" {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	slices.Sort(names)
	if hint == "" && !ours(p.name) {
		hint = "; other programs' names go into " + EnvOpts + ", where they are of no harm"
	}
	return fmt.Errorf("-D %s: unknown name%s (known: %s)", p.name, hint, strings.Join(names, ", "))
}
