// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFrontsCannotSilenceAnEndpoint: what they ask for counts as far as it has the
// endpoint say as much as its own configuration does, of loggers that it has.
func TestFrontsCannotSilenceAnEndpoint(t *testing.T) {
	least := map[string]string{"": "info", "plugin": "warn"}
	for name, tt := range map[string]struct{ asked, want map[string]string }{
		"nothing":       {nil, map[string]string{}},
		"off":           {map[string]string{"": "off", "keymanager": "off", "plugin": "error"}, map[string]string{"": "info", "keymanager": "info", "plugin": "warn"}},
		"more":          {map[string]string{"keymanager": "debug", "plugin": "info"}, map[string]string{"keymanager": "debug", "plugin": "info"}},
		"taken_back":    {map[string]string{"keymanager": ""}, map[string]string{"keymanager": ""}},
		"made-up_names": {map[string]string{"x": "debug", "server": "off"}, map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, noLess(tt.asked, least)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
