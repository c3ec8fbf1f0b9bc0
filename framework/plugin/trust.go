// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"

	"github.com/tlsd/tlsd/framework/keymanager"
)

// trust reads a trust store on behalf of a front that may not.
func (s *service) trust(ctx context.Context, path, typ string, pw keymanager.PasswordRef) (ders [][]byte, warnings []string, err error) {
	return nil, nil, fmt.Errorf("read trust store %q: %w", path, ErrUnsupported)
}
