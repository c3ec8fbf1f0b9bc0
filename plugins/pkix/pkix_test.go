// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package pkix_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tlsd/tlsd/framework/keymanager/keymanagertest"
	"github.com/tlsd/tlsd/plugins/pkix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTier(t *testing.T) {
	keymanagertest.Run(t, keymanagertest.Config{Open: keymanagertest.Direct(pkix.Tier()), Caps: keymanagertest.Caps{NoReuse: true}})
}
