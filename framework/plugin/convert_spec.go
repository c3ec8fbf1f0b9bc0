// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"time"

	"github.com/tlsd/tlsd/framework/keymanager"
	pb "github.com/tlsd/tlsd/framework/plugin/proto"
)

// configureToProto makes the one Configure request of a key process.
func configureToProto(s Spec, firstGeneration uint64) *pb.ConfigureRequest {
	m := &pb.ConfigureRequest{
		Settings:        s.Settings,
		Options:         optionsToProto(s.Options),
		FirstGeneration: firstGeneration,
		LogLevels:       s.LogLevels,
		Files:           s.Files,
	}
	for _, src := range s.Sources {
		m.Sources = append(m.Sources, sourceToProto(src))
	}
	return m
}

// envFromProto returns what a tier is opened with; logger and clock are the key
// process's own.
func envFromProto(m *pb.ConfigureRequest) keymanager.Env {
	env := keymanager.Env{
		Settings:        m.GetSettings(),
		Options:         optionsFromProto(m.GetOptions()),
		FirstGeneration: m.GetFirstGeneration(),
	}
	for _, src := range m.GetSources() {
		env.Builders = append(env.Builders, sourceFromProto(src))
	}
	return env
}

func sourceToProto(s keymanager.Source) *pb.Source {
	m := &pb.Source{Paths: s.Paths, Type: s.Type, Store: passwordToProto(s.Store), Key: passwordToProto(s.Key)}
	for _, k := range s.Keys {
		m.Keys = append(m.Keys, &pb.KeyPassword{Alias: k.Alias, Password: passwordToProto(k.Password)})
	}
	return m
}

func sourceFromProto(m *pb.Source) keymanager.Source {
	s := keymanager.Source{
		Paths: m.GetPaths(),
		Type:  m.GetType(),
		Store: passwordFromProto(m.GetStore()),
		Key:   passwordFromProto(m.GetKey()),
	}
	for _, k := range m.GetKeys() {
		s.Keys = append(s.Keys, keymanager.KeyPassword{Alias: k.GetAlias(), Password: passwordFromProto(k.GetPassword())})
	}
	return s
}

// passwordToProto keeps the difference between no password and an empty one.
func passwordToProto(p keymanager.PasswordRef) *pb.PasswordRef {
	if p.IsZero() {
		return nil
	}
	m := &pb.PasswordRef{File: p.File}
	if p.Value != nil {
		m.Value = []byte(*p.Value)
	}
	return m
}

func passwordFromProto(m *pb.PasswordRef) keymanager.PasswordRef {
	p := keymanager.PasswordRef{File: m.GetFile()}
	if m != nil && m.Value != nil {
		v := keymanager.Secret(m.Value)
		p.Value = &v
	}
	return p
}

func optionsToProto(o keymanager.Options) *pb.Options {
	return &pb.Options{
		CertpathConstraints:  o.Constraints.CertPath,
		TlsConstraints:       o.Constraints.TLS,
		DefaultAlias:         text(o.DefaultAlias),
		Aliases:              texts(o.Aliases),
		JdkCompat:            o.JDKCompat,
		ExpiryWarningSeconds: int64(o.ExpiryWarning / time.Second),
		PollMillis:           o.Poll.Milliseconds(),
		Iterations:           int64(o.Iterations),
	}
}

func texts(in []string) []string {
	var out []string
	for _, s := range in {
		out = append(out, text(s))
	}
	return out
}

func optionsFromProto(m *pb.Options) keymanager.Options {
	if m == nil {
		return keymanager.Options{}
	}
	return keymanager.Options{
		Constraints:   keymanager.Constraints{CertPath: m.CertpathConstraints, TLS: m.TlsConstraints},
		DefaultAlias:  m.GetDefaultAlias(),
		Aliases:       m.GetAliases(),
		JDKCompat:     m.GetJdkCompat(),
		ExpiryWarning: time.Duration(m.GetExpiryWarningSeconds()) * time.Second,
		Poll:          time.Duration(m.GetPollMillis()) * time.Millisecond,
		Iterations:    int(m.GetIterations()),
	}
}
