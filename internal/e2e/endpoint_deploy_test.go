// SPDX-FileCopyrightText: The tlsd authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/tlsd/tlsd/internal/testca"
)

// pod is what of the sample is looked at.
type pod struct {
	Spec struct {
		SecurityContext struct {
			RunAsNonRoot bool `yaml:"runAsNonRoot"`
		} `yaml:"securityContext"`
		Containers []podContainer
		Volumes    []struct {
			Name   string
			Secret *struct {
				SecretName string `yaml:"secretName"`
			}
		}
	}
}

type podContainer struct {
	Name            string
	Args            []string
	SecurityContext struct {
		RunAsUser                int  `yaml:"runAsUser"`
		AllowPrivilegeEscalation bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct{ Drop []string }
	} `yaml:"securityContext"`
	VolumeMounts []struct{ Name string } `yaml:"volumeMounts"`
}

func readPod(t *testing.T) (keys, front podContainer, secret string) {
	t.Helper()
	raw, err := os.ReadFile("../../deploy/endpoint/pod.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var p pod
	if err := yaml.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	if len(p.Spec.Containers) != 2 || !p.Spec.SecurityContext.RunAsNonRoot {
		t.Fatalf("%+v", p)
	}
	for _, v := range p.Spec.Volumes {
		if v.Secret != nil {
			secret = v.Name
		}
	}
	return p.Spec.Containers[0], p.Spec.Containers[1], secret
}

func (c podContainer) mounts(volume string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m struct{ Name string }) bool { return m.Name == volume })
}

// The Pod keeps to the restricted profile, and its Secret from the front.
func TestPodOfTwoContainers(t *testing.T) {
	t.Parallel()
	keys, front, secret := readPod(t)
	if !keys.mounts(secret) || front.mounts(secret) {
		t.Errorf("the Secret %q is mounted by keys: %v, by front: %v", secret, keys.mounts(secret), front.mounts(secret))
	}
	for _, c := range []podContainer{keys, front} {
		s := c.SecurityContext
		if s.RunAsUser == 0 || s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
			t.Errorf("%s: %+v", c.Name, s)
		}
	}
	if keys.SecurityContext.RunAsUser == front.SecurityContext.RunAsUser {
		t.Error("both are one user")
	}
}

// What the containers run works, by the same users, over a directory like an
// emptyDir.
func TestPodOfTwoContainersRuns(t *testing.T) {
	testca.Root(t, "to be two users")
	t.Parallel()
	u := newTwoUsers(t)
	keys, front, _ := readPod(t)
	secret, run := filepath.Join(u.dir, "secret"), filepath.Join(u.dir, "empty")
	u.must(os.Mkdir(secret, 0o755))
	u.must(os.Mkdir(run, 0o755))
	u.must(os.Chown(run, 0, sharedGroup))
	u.must(os.Chmod(run, 0o777|os.ModeSetgid))
	testca.WritePEM(t, filepath.Join(secret, "tls.crt"), filepath.Join(secret, "tls.key"),
		u.root.Issue(t, testca.Spec{Name: "pod", DNS: []string{"w.test"}}))
	for _, f := range []string{"tls.crt", "tls.key"} {
		u.must(os.Chown(filepath.Join(secret, f), keys.SecurityContext.RunAsUser, sharedGroup))
	}
	here := func(args []string) []string {
		args = slices.Clone(args)
		for i, a := range args {
			args[i] = strings.NewReplacer("/run/tlsd-keys/", run+"/", "=/keys/", "="+secret+"/", ",/keys/", ","+secret+"/",
				"0.0.0.0:8443", u.addr, "0.0.0.0:9100", freeAddr(t), "http://127.0.0.1:8080", "builtin:hello").Replace(a)
		}
		return args
	}
	u.keys = u.start(keys.SecurityContext.RunAsUser, here(keys.Args)...)
	u.until(u.keys, "endpoint ready")
	u.front = u.start(front.SecurityContext.RunAsUser, here(front.Args)...)
	u.until(u.front, `"logger":"server","msg":"listening"`)
	u.wantServed("pod")
	u.end(u.front)
	u.end(u.keys)
}
