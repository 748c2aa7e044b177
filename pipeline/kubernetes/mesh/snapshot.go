// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// Completed is a policy with what the cluster has. It is not changed.
type Completed struct {
	// Base is a digest of all but the namespaces, with what holds for all of them. Digest is one of all.
	Base, Digest string
	// Stale is why something other than the current state of the cluster is used, or "" if it is current.
	Stale string
	// Warnings are about what the cluster has.
	Warnings []string

	policy  *v1alpha1.InjectionPolicy
	root    string // rootNamespace of the policy
	text    []byte
	digests map[string]string // of namespaces
}

func newCompleted(policy *v1alpha1.InjectionPolicy, stale string) (*Completed, error) {
	text, err := v1alpha1.Marshal(policy)
	if err != nil {
		return nil, err
	}
	c := &Completed{Digest: DigestOf(text), Stale: stale, policy: policy, root: rootNamespace(policy), text: text,
		digests: map[string]string{}}
	base, err := c.Snapshot(nil)
	if err != nil {
		return nil, err
	}
	c.Base = base.Digest
	for _, one := range policy.Spec.Namespaces {
		contents, err := json.Marshal(one)
		if err != nil {
			return nil, err
		}
		c.digests[one.Name] = DigestOf(contents)
	}
	return c, nil
}

// Text is the completed policy.
func (c *Completed) Text() []byte { return c.text }

// Namespace returns a digest of a namespace's content, or "" if it does not exist.
func (c *Completed) Namespace(name string) string { return c.digests[name] }

// Homes returns the namespaces that the engine reads for objects in the written ones.
func (c *Completed) Homes(written []string) []string {
	s := c.policy.Spec
	if s.TargetNamespace != "" {
		return []string{s.TargetNamespace}
	}
	var out []string
	for _, name := range written {
		if name == "" {
			name = s.DefaultNamespace
		}
		if name != "" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Snapshot is a policy that was completed, as it was used for a render.
type Snapshot struct {
	// Digest of the text, sha256:….
	Digest string
	// Text is a self-contained InjectionPolicy.
	Text []byte
}

// Snapshot returns the policy with those namespaces only, and of the root namespace the ProxyConfigs, which hold for
// all.
func (c *Completed) Snapshot(namespaces []string) (Snapshot, error) {
	small := *c.policy
	small.Spec.Namespaces = nil
	for _, one := range c.policy.Spec.Namespaces {
		switch {
		case slices.Contains(namespaces, one.Name):
		case c.policy.Spec.Istio != nil && (c.root == one.Name || c.root == "") && len(one.ProxyConfigs) > 0:
			one = c.reduceRootNamespace(one)
		default:
			continue
		}
		small.Spec.Namespaces = append(small.Spec.Namespaces, one)
	}
	text, err := v1alpha1.Marshal(&small)
	return Snapshot{DigestOf(text), text}, err
}

// reduceRootNamespace returns the root namespace with what holds for all, and with its labels where they decide whether
// istiod reads that.
func (c *Completed) reduceRootNamespace(root v1alpha1.Namespace) v1alpha1.Namespace {
	out := v1alpha1.Namespace{Name: root.Name, ProxyConfigs: root.ProxyConfigs}
	if strings.Contains(c.policy.Spec.Istio.MeshConfig, "discoverySelectors") {
		out.Labels = root.Labels
	}
	return out
}

// rootNamespace returns the namespace of the resources that apply to a policy's whole mesh, or "" if the mesh
// config that specifies it may be among the manifests.
func rootNamespace(policy *v1alpha1.InjectionPolicy) string {
	istio := policy.Spec.Istio
	if istio == nil || istio.RootNamespace == "" && istio.MeshConfig == "" && istio.Injector.Config != "" {
		return ""
	}
	var config struct {
		Root  string `json:"rootNamespace"`
		Snake string `json:"root_namespace"` // as protocol buffers may be written, too
	}
	_ = yaml.Unmarshal([]byte(istio.MeshConfig), &config) // one that cannot be read is the engine's to complain about
	return cmp.Or(istio.RootNamespace, config.Root, config.Snake, "istio-system")
}

var snapshotDigest = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)

// IsDigest reports whether a text is the digest of a snapshot.
func IsDigest(text string) bool { return snapshotDigest.MatchString(text) }

// DigestOf returns the digest that names a text.
func DigestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
