// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

//go:build !no_pkixcached

package main

import "github.com/tlsd/tlsd/plugins/pkixcached"

func init() { builtin = append(builtin, pkixcached.Tier()) }
