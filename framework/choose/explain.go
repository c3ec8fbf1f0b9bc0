// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package choose

import (
	"fmt"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// Explain returns Verdicts in the words of the contract, for a key manager that
// is a keymanager.Explainer.
func (c *Chooser) Explain(h *keymanager.Hello) ([]keymanager.Verdict, error) {
	if h.Role != keymanager.RoleServer && h.Role != keymanager.RoleClient {
		return nil, fmt.Errorf("explain: hello of role %q", h.Role)
	}
	named := h.ServerName != "" && c.vary(h)&keymanager.FieldServerName != 0
	verdicts := c.Verdicts(h)
	out := make([]keymanager.Verdict, len(verdicts))
	for i, v := range verdicts {
		out[i] = keymanager.Verdict{
			Builder: v.Builder, Alias: v.Alias, Out: v.Out, Scheme: v.Scheme, Rule: string(v.Rule), Reason: v.Reason,
		}
		if v.Rule == RuleUnusable {
			continue
		}
		out[i].Class = v.Class.String()
		if named {
			out[i].Match = v.Match.String()
		}
	}
	return out, nil
}
