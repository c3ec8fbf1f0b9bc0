// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tlsd/tlsd/framework/choose"
)

// constrain takes out of cfg the protocol versions, the cipher suites of TLS
// 1.2 and the groups that c denies. Groups and versions that c leaves alone stay as
// they are, so that crypto/tls's defaults stay defaults. Suites are always listed,
// since crypto/tls takes longer over its defaults, several times for each full
// handshake and for each resumed one of TLS 1.2. Where nothing is left the error
// quotes the rule that took the last.
func constrain(cfg *tls.Config, c *choose.Constraints) error {
	groups, all, err := kept(cfg.CurvePreferences, choose.Groups, c.Group)
	if err != nil {
		return fmt.Errorf("no group is left: %w", err)
	}
	if !all {
		cfg.CurvePreferences = groups
	}
	suites, all, noSuite := kept(cfg.CipherSuites, signedSuites, c.Suite)
	if !all || cfg.CipherSuites == nil {
		cfg.CipherSuites = suites
	}
	return constrainVersions(cfg, func(v uint16) error {
		if v == tls.VersionTLS12 && noSuite != nil {
			return noSuite // TLS 1.3 brings suites of its own
		}
		return c.Version(v)
	})
}

func constrainVersions(cfg *tls.Config, denied func(uint16) error) error {
	lowest, highest := cmp.Or(cfg.MinVersion, tls.VersionTLS12), cmp.Or(cfg.MaxVersion, tls.VersionTLS13)
	versions := slices.DeleteFunc([]uint16{tls.VersionTLS12, tls.VersionTLS13},
		func(v uint16) bool { return v < lowest || v > highest })
	left, all, err := kept(versions, nil, denied)
	if err != nil {
		return fmt.Errorf("no protocol version is left: %w", err)
	}
	if !all {
		cfg.MinVersion, cfg.MaxVersion = left[0], left[len(left)-1]
	}
	return nil
}

// kept returns those of list that aren't denied, and whether these are all;
// where list is nil, of what defaults returns. The error is the last denial, if
// none is left.
func kept[T any](list []T, defaults func() []T, denied func(T) error) (left []T, all bool, err error) {
	if list == nil && defaults != nil {
		list = defaults()
	}
	for _, x := range list {
		if e := denied(x); e != nil {
			err = e
			continue
		}
		left = append(left, x)
	}
	if len(left) > 0 || err == nil {
		return left, len(left) == len(list), nil
	}
	return nil, false, quote(err)
}

// quote says of a denial what an operator can do about it.
func quote(err error) error {
	var v *choose.Violation
	if !errors.As(err, &v) {
		return err
	}
	return fmt.Errorf("%q of jdk.tls.disabledAlgorithms denies %s: take it out of the constraints on TLS, or allow another", v.Rule, v.Algorithm)
}

// signedSuites returns the cipher suites of TLS 1.2 that crypto/tls offers by
// default, all of which have the key sign.
func signedSuites() []uint16 {
	var ids []uint16
	for _, s := range tls.CipherSuites() {
		if strings.HasPrefix(s.Name, "TLS_ECDHE_") {
			ids = append(ids, s.ID)
		}
	}
	return ids
}
