// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"testing"
)

func TestChanged(t *testing.T) {
	const keystore = "keystores: [{path: a.p12}]\n"
	load := func(text string) *Effective { return input{file: keystore + text, ext: "yaml"}.mustLoad(t) }
	old := load("listeners: [{listen: 127.0.0.1:1}]\nlog: {level: info}\nplugin_wait: 2s\n")
	if keys, restart := Changed(old, load("plugin_wait: 2s\nlisteners:\n- listen: 127.0.0.1:1\n")); len(keys) > 0 || len(restart) > 0 {
		t.Errorf("written in another way: %q, %q", keys, restart)
	}
	now := load("listeners: [{listen: 127.0.0.1:2}, {listen: 127.0.0.1:3, hosts: [{names: [a.test]}]}]\nlog: {format: json}\nmetrics: {listen: 127.0.0.1:4}\n")
	keys, restart := Changed(old, now)
	if want := []string{"listeners[0].listen", "listeners[1]", "listeners[1].hosts[0]", "log.format", "metrics.listen"}; !slices.Equal(keys, want) {
		t.Errorf("%q, want %q", keys, want)
	}
	if want := []string{"log.format", "metrics.listen"}; !slices.Equal(restart, want) {
		t.Errorf("restart: %q, want %q", restart, want)
	}
}
