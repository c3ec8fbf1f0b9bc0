// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/tlsd/tlsd/framework/plugin"
	"github.com/tlsd/tlsd/logging"
)

// Isolation returns what keeps the key process apart from this one, and what
// doesn't, as both find it now: see plugin.Manager.
func (k *Keys) Isolation(ctx context.Context) ([]plugin.Finding, error) {
	findings, err := k.manager.Isolation(ctx)
	return append(findings, k.self...), err
}

// isolate writes down what is in force, and fails where that is less than what
// cfg requires.
func (k *Keys) isolate(ctx context.Context, cfg *Config, log *zap.Logger) error {
	findings, err := k.Isolation(ctx)
	fields := []zap.Field{zap.String(logging.FieldTier, k.tier)}
	for i, f := range findings {
		if i > 0 && f.Name == findings[i-1].Name { // another keystore
			fields[len(fields)-1].String += "; " + f.Value
			continue
		}
		fields = append(fields, zap.String(f.Name, f.Value))
	}
	if err != nil {
		fields = append(fields, zap.String(logging.FieldError, err.Error()))
	}
	log.Info("isolation", fields...)
	if cfg.Isolation != IsolationRequire {
		return nil
	}
	return errors.Join(err, lacking(findings))
}

// lacking returns an error for each thing that isn't isolated.
func lacking(findings []plugin.Finding) error {
	var errs []error
	for _, f := range findings {
		if !f.OK {
			errs = append(errs, fmt.Errorf("isolation is required, but %s: %s; %s", f.Name, f.Value, f.Remedy))
		}
	}
	return errors.Join(errs...)
}

// check refuses a value that is none.
func (i Isolation) check() error {
	switch i {
	case "", IsolationReport, IsolationRequire:
		return nil
	}
	return fmt.Errorf("isolation %q: write %s or %s", i, IsolationReport, IsolationRequire)
}
