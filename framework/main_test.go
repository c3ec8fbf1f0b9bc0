// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/plugins/pkix"
	"github.com/tlsd/tlsd/plugins/pkixcached"
	"github.com/tlsd/tlsd/plugins/sunx509"
)

// Tiers that stand for programs that forget to call plugin.Main, a plain one
// and a test.
const (
	tierForgets    = "forgets"
	tierForgetTest = "forgets-in-test"
)

func TestMain(m *testing.M) {
	switch childOf() {
	case tierForgets:
		_, err := Open(context.Background(), forgetful(tierForgets))
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case tierForgetTest:
		flag.Parse()
		_ = flag.Set("test.run", "^TestForgottenMain$")
	default:
		plugin.Main(testTiers()...)
	}
	if spec := os.Getenv(frontEnv); spec != "" {
		if err := runFront(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// testTiers are those that the test binary embeds.
func testTiers() []keymanager.Tier {
	return []keymanager.Tier{sunx509.Tier(), pkix.Tier(), pkixcached.Tier()}
}

// childOf returns the tier that this process was started to serve.
func childOf() string { return os.Getenv("TLSD_KEYMANAGER_CHILD") }
