// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

//go:build !no_pkix

package main

import "github.com/tlsd/tlsd/plugins/pkix"

func init() { builtin = append(builtin, pkix.Tier()) }
