// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

// Package kubernetes holds the samples for Kubernetes in deploy against Kubernetes'
// and cert-manager's own types and rules. It is a module of its own, so that tlsd
// depends on neither.
package kubernetes

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// sample is what a file holds.
type sample struct {
	pods  []pod
	kinds []string
}

// pod is a Pod, or what one is made by.
type pod struct {
	name string
	meta meta.ObjectMeta
	spec core.PodSpec
}

// eachSample runs f with each file, once all that is in it has been decoded into
// the types of its kind, which know every field that there is.
func eachSample(t *testing.T, f func(t *testing.T, s sample)) {
	files, err := filepath.Glob("../../deploy/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var s sample
			for _, document := range bytes.Split(content, []byte("\n---\n")) {
				s.decode(t, document)
			}
			f(t, s)
		})
	}
}

func (s *sample) decode(t *testing.T, document []byte) {
	t.Helper()
	var kind meta.TypeMeta
	if err := yaml.Unmarshal(document, &kind); err != nil {
		t.Fatal(err)
	}
	name := kind.APIVersion + " " + kind.Kind
	s.kinds = append(s.kinds, name)
	strictly := func(into any) {
		t.Helper()
		if err := yaml.UnmarshalStrict(document, into); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	switch name {
	case "apps/v1 Deployment":
		var d apps.Deployment
		strictly(&d)
		s.pods = append(s.pods, pod{d.Name, d.Spec.Template.ObjectMeta, d.Spec.Template.Spec})
	case "v1 Pod":
		var p core.Pod
		strictly(&p)
		s.pods = append(s.pods, pod{p.Name, p.ObjectMeta, p.Spec})
	case "v1 Service":
		strictly(&core.Service{})
	case "v1 ConfigMap":
		strictly(&core.ConfigMap{})
	case "v1 Secret":
		strictly(&core.Secret{})
	case "cert-manager.io/v1 Certificate":
		strictly(&certmanager.Certificate{})
	default:
		t.Errorf("this test doesn't know %s", name)
	}
}

// TestSamplesAreWhatKubernetesTakes decodes each sample strictly.
func TestSamplesAreWhatKubernetesTakes(t *testing.T) {
	eachSample(t, func(t *testing.T, s sample) {
		if len(s.pods) == 0 {
			t.Errorf("no Pod in %v", s.kinds)
		}
	})
}

// TestSamplesAreRestricted has the admission controller's own checks look at the
// Pods, and wants more for tlsd: nothing to write to, and no token.
func TestSamplesAreRestricted(t *testing.T) {
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	eachSample(t, func(t *testing.T, s sample) {
		for _, p := range s.pods {
			if r := policy.AggregateCheckResults(checks.EvaluatePod(level, &p.meta, &p.spec)); !r.Allowed {
				t.Errorf("%s: %s: %s", p.name, r.ForbiddenReason(), r.ForbiddenDetail())
			}
			if token := p.spec.AutomountServiceAccountToken; token == nil || *token {
				t.Errorf("%s: a token of the service account is mounted", p.name)
			}
			for _, c := range p.spec.Containers {
				if ro := c.SecurityContext.ReadOnlyRootFilesystem; ro == nil || !*ro {
					t.Errorf("%s: container %s can write to its root", p.name, c.Name)
				}
				if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
					t.Errorf("%s: container %s has no resources", p.name, c.Name)
				}
			}
		}
	})
}

// TestSamplesHangTogether: volumes, ports and times name each other.
func TestSamplesHangTogether(t *testing.T) {
	eachSample(t, func(t *testing.T, s sample) {
		for _, p := range s.pods {
			for _, c := range p.spec.Containers {
				checkMounts(t, p, c)
				checkProbes(t, c)
				if h := c.Lifecycle; h != nil && h.PreStop != nil && h.PreStop.Sleep != nil && h.PreStop.Sleep.Seconds >= *p.spec.TerminationGracePeriodSeconds {
					t.Errorf("%s: container %s sleeps until it is killed", p.name, c.Name)
				}
			}
		}
	})
}

func checkMounts(t *testing.T, p pod, c core.Container) {
	t.Helper()
	for _, m := range c.VolumeMounts {
		i := slices.IndexFunc(p.spec.Volumes, func(v core.Volume) bool { return v.Name == m.Name })
		switch {
		case i < 0:
			t.Errorf("%s: container %s mounts %q, which is no volume", p.name, c.Name, m.Name)
		case m.SubPath != "":
			t.Errorf("%s: container %s mounts %q by subPath, which is never renewed", p.name, c.Name, m.Name)
		case p.spec.Volumes[i].EmptyDir == nil && !m.ReadOnly:
			t.Errorf("%s: container %s may write to %q", p.name, c.Name, m.Name)
		}
	}
}

// checkProbes wants the containers that answer for themselves to be asked at a
// port that they have.
func checkProbes(t *testing.T, c core.Container) {
	t.Helper()
	for path, probe := range map[string]*core.Probe{"/readyz": c.ReadinessProbe, "/healthz": c.LivenessProbe} {
		if probe == nil || probe.HTTPGet == nil {
			continue
		}
		if probe.HTTPGet.Path != path {
			t.Errorf("container %s is asked for %s", c.Name, probe.HTTPGet.Path)
		}
		if !slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool { return p.Name == probe.HTTPGet.Port.StrVal }) {
			t.Errorf("container %s has no port %v", c.Name, probe.HTTPGet.Port)
		}
	}
	if c.Name == "tlsd" && (c.StartupProbe == nil || c.ReadinessProbe == nil || c.LivenessProbe == nil) {
		t.Errorf("container %s lacks a probe", c.Name)
	}
}
