// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package pkixcached_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/tlsd/tlsd/framework/keymanager/keymanagertest"
	"github.com/tlsd/tlsd/plugins/pkixcached"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTier(t *testing.T) {
	keymanagertest.Run(t, keymanagertest.Config{Open: keymanagertest.Direct(pkixcached.Tier())})
}
