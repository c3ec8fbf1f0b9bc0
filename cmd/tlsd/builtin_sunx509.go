// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

//go:build !no_sunx509

package main

import "github.com/tlsd/tlsd/plugins/sunx509"

func init() { builtin = append(builtin, sunx509.Tier()) }
