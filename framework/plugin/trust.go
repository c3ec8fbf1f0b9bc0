// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"

	"github.com/tlsd/tlsd/framework/keymanager"
	"github.com/tlsd/tlsd/framework/keystore"
)

// trust reads a trust store on behalf of a front that may not, since keys may
// be in the same file. It is the SDK's part: no tier knows of it.
func (s *service) trust(ctx context.Context, path, typ string, pw keymanager.PasswordRef) (ders [][]byte, warnings []string, err error) {
	defer s.recovered("trust", &err)
	certs, warnings, err := keystore.Trusted(ctx, path, typ, pw, s.limits)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range certs {
		ders = append(ders, c.Raw)
	}
	return ders, warnings, nil
}
