// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Modules that packages are allowed by name.
const (
	zap      = "go.uber.org/zap"
	sys      = "golang.org/x/sys"
	goPlugin = "github.com/hashicorp/go-plugin"
	hclog    = "github.com/hashicorp/go-hclog"
	grpc     = "google.golang.org/grpc"
	protobuf = "google.golang.org/protobuf"
	viper    = "github.com/spf13/viper"
	cobra    = "github.com/spf13/cobra"

	prometheus = "github.com/prometheus/client_golang"
)

// may is what a package may import besides the standard library: packages of
// this module, and modules of others.
type may struct{ own, others []string }

func own(paths ...string) []string    { return paths }
func others(paths ...string) []string { return paths }

// known lists every package and what it imports. Tests may import more.
var known = map[string]may{
	"logging": {nil, others(zap)},

	"framework/keymanager":                {nil, others(zap)},
	"framework/keymanager/keymanagertest": {own("framework/keymanager", "internal/testca"), nil},
	"framework/keystore":                  {own("framework/keymanager", "internal/dn", "internal/filewatch", "logging"), others(zap, "golang.org/x/crypto")},
	"framework/choose":                    {own("framework/keymanager", "internal/dn", "logging"), others(zap)},
	"framework/plugin":                    {own("framework/keymanager", "framework/keystore", "framework/plugin/proto", "internal/ballast", "internal/lockdir", "internal/sandbox", "logging"), others(zap, sys, goPlugin, hclog, grpc, protobuf)},
	"framework/plugin/plugintest":         {own("framework/keymanager", "framework/keymanager/keymanagertest", "framework/plugin"), nil},
	"framework/plugin/proto":              {nil, others(grpc, protobuf)},
	"framework/backend":                   {own("logging"), others(zap, "golang.org/x/net")},
	"framework":                           {own("framework/backend", "framework/choose", "framework/keymanager", "framework/plugin", "internal/filewatch", "logging"), others(zap, "golang.org/x/net")},
	"framework/metrics":                   {own("framework", "framework/keymanager", "logging"), others(prometheus)},
	"framework/admin":                     {own("framework", "framework/keymanager", "framework/plugin", "logging"), others(zap, "golang.org/x/net")},
	"framework/config":                    {own("framework", "framework/backend", "framework/keymanager", "logging"), others(viper, "github.com/go-viper/mapstructure/v2", "github.com/spf13/pflag", "go.yaml.in/yaml/v3")},

	"plugins/sunx509":    tier,
	"plugins/pkix":       tier,
	"plugins/pkixcached": tier,
	"plugins/openssl":    tier,

	"plugins/sunx509/cmd/tlsd-keymanager-sunx509":       tierCommand("sunx509"),
	"plugins/pkix/cmd/tlsd-keymanager-pkix":             tierCommand("pkix"),
	"plugins/pkixcached/cmd/tlsd-keymanager-pkixcached": tierCommand("pkixcached"),
	"plugins/openssl/cmd/tlsd-keymanager-openssl":       tierCommand("openssl"),

	"cmd/tlsd": {
		own("framework", "framework/admin", "framework/config", "framework/keymanager", "framework/metrics", "framework/keystore", "framework/plugin", "internal/ballast", "internal/filewatch", "internal/lockdir", "internal/reap", "internal/sandbox", "logging",
			"plugins/sunx509", "plugins/pkix", "plugins/pkixcached"),
		others(zap, cobra, "github.com/cloudflare/tableflip", "github.com/coreos/go-systemd", "golang.org/x/term", "software.sslmate.com/src/go-pkcs12"),
	},

	"bench/compare":  {},
	"bench/fleet":    {nil, others(sys)},
	"bench/jdk":      {},
	"bench/load":     {},
	"bench/material": {own("internal/testca"), nil},
	"bench/memory":   {own("bench/compare", "bench/fleet", "bench/load", "bench/material", "framework", "framework/keymanager"), nil},
	"bench/report":   {own("bench/compare"), nil},
	"bench/scale":    {own("bench/fleet", "bench/load", "bench/material", "bench/whole", "framework/keymanager"), nil},
	"bench/where":    {},
	"bench/whole":    {own("bench/compare", "bench/fleet", "bench/load", "bench/material"), nil},
	"bench/cmd/tlsbench": {own("bench/compare", "bench/fleet", "bench/jdk", "bench/load", "bench/material", "bench/memory", "bench/report", "bench/scale", "bench/where", "bench/whole",
		"framework", "framework/keymanager", "framework/plugin", "internal/testca", "plugins/pkix", "plugins/pkixcached", "plugins/sunx509"), nil},

	"internal/equaltest": {own("framework/keymanager", "internal/testca"), nil},
	"internal/archtest":  {},
	"internal/doctest":   {},
	"internal/e2e":       {},
	"internal/filewatch": {nil, others(zap, "github.com/fsnotify/fsnotify")},
	"internal/lockdir":   {nil, others(sys)},
	"internal/memsearch": {},
	"internal/soak":      {},
	"internal/ballast":   {},
	"internal/dn":        {},
	"internal/reap":      {},
	"internal/sandbox":   {nil, others("github.com/landlock-lsm/go-landlock", sys)},
	"internal/testca":    {},
}

// tier: no tier imports another, so that a build tag really unlinks one.
var tier = may{own: own("framework/keymanager", "framework/keystore", "framework/choose")}

func tierCommand(name string) may {
	return may{own: own("framework/plugin", "plugins/"+name)}
}

func TestImports(t *testing.T) {
	unseen := maps.Clone(known)
	for _, p := range allPackages(t) {
		allowed, ok := known[p.rel()]
		if !ok {
			t.Errorf("package %q is unknown: enter it in internal/archtest with what it may import", p.rel())
			continue
		}
		delete(unseen, p.rel())
		for _, imp := range p.Imports {
			if !allowed.imports(imp) {
				t.Errorf("%q imports %q, which the table of internal/archtest doesn't allow it", p.rel(), imp)
			}
		}
		for _, unused := range allowed.without(p.Imports) {
			t.Errorf("%q may import %q by the table of internal/archtest and doesn't: take it out", p.rel(), unused)
		}
	}
	if len(unseen) > 0 {
		t.Errorf("packages in the table that don't exist: %q", slices.Sorted(maps.Keys(unseen)))
	}
}

// imports reports whether m allows an import path.
func (m may) imports(path string) bool {
	if inner, ok := strings.CutPrefix(path, module+"/"); ok {
		return slices.Contains(m.own, inner)
	}
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") || below(path, m.others...)
}

// without returns what of m none of the imports needs.
func (m may) without(imports []string) (unused []string) {
	for _, path := range m.own {
		if !slices.Contains(imports, module+"/"+path) {
			unused = append(unused, path)
		}
	}
	for _, path := range m.others {
		if !slices.ContainsFunc(imports, func(imp string) bool { return below(imp, path) }) {
			unused = append(unused, path)
		}
	}
	return unused
}

// never are the directions that no entry in the table of known packages may
// open: from is a pattern of packages, except those, to is what they must not
// import.
var never = []struct {
	name         string
	from, except []string
	to           []string
}{
	{"framework_to_plugins", []string{"framework", "framework/*", "framework/*/*"}, nil, []string{"plugins"}},
	{"plugins_to_framework_root", []string{"plugins/*", "plugins/*/cmd/*"}, nil, []string{"framework"}},
	{"plugins_to_config", []string{"plugins/*", "plugins/*/cmd/*"}, nil, []string{"framework/config"}},
	{"tiers_to_plugin", []string{"plugins/*"}, nil, []string{"framework/plugin"}},
	{"transport_outside_plugin", []string{"*", "*/*", "*/*/*", "*/*/*/*"}, []string{"framework/plugin", "framework/plugin/*"}, []string{goPlugin, grpc}},
	{"prometheus_outside_metrics", []string{"*", "*/*", "*/*/*", "*/*/*/*"}, []string{"framework/metrics"}, []string{prometheus}},
	{"viper_outside_config", []string{"*", "*/*", "*/*/*", "*/*/*/*"}, []string{"framework/config"}, []string{viper}},
}

func TestNever(t *testing.T) {
	pkgs := allPackages(t)
	for _, n := range never {
		t.Run(n.name, func(t *testing.T) {
			for _, p := range pkgs {
				if !match(p.rel(), n.from...) || match(p.rel(), n.except...) {
					continue
				}
				for _, imp := range p.Imports {
					if forbidden(imp, n.to) {
						t.Errorf("%q imports %q", p.rel(), imp)
					}
				}
			}
		})
	}
}

// forbidden: "framework" means that package alone, every other path what is
// below it too.
func forbidden(path string, to []string) bool {
	inner, isOwn := strings.CutPrefix(path, module+"/")
	if !isOwn {
		return below(path, to...)
	}
	for _, f := range to {
		if inner == f || f != "framework" && below(inner, f) {
			return true
		}
	}
	return false
}
