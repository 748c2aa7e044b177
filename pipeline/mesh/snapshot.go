// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// Completed is a policy with what the cluster has. It is not changed.
type Completed struct {
	// Base is a digest of all but the namespaces, Digest one of all.
	Base, Digest string
	// Stale says why something else is used than what the cluster has now, "" where it is not.
	Stale string
	// Warnings are about what the cluster has.
	Warnings []string

	policy  *v1alpha1.InjectionPolicy
	text    []byte
	digests map[string]string // of namespaces
}

func newCompleted(policy *v1alpha1.InjectionPolicy, stale string) (*Completed, error) {
	text, err := v1alpha1.Marshal(policy)
	if err != nil {
		return nil, err
	}
	c := &Completed{Digest: DigestOf(text), Stale: stale, policy: policy, text: text, digests: map[string]string{}}
	base, err := c.Snapshot(nil)
	if err != nil {
		return nil, err
	}
	c.Base = base.Digest
	for _, one := range policy.Spec.Namespaces {
		c.digests[one.Name] = DigestOf(fmt.Append(nil, one.Labels, one.Annotations)) // maps are printed in order
	}
	return c, nil
}

// Text is the completed policy.
func (c *Completed) Text() []byte { return c.text }

// Namespace returns a digest of what is said of a namespace, "" for one that there is not.
func (c *Completed) Namespace(name string) string { return c.digests[name] }

// Homes returns the namespaces that the engine looks at for objects in the given ones.
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
	// Text is an InjectionPolicy that says all by itself.
	Text []byte
}

// Snapshot returns the policy with those namespaces only.
func (c *Completed) Snapshot(namespaces []string) (Snapshot, error) {
	small := *c.policy
	small.Spec.Namespaces = slices.DeleteFunc(slices.Clone(small.Spec.Namespaces), func(n v1alpha1.Namespace) bool { return !slices.Contains(namespaces, n.Name) })
	text, err := v1alpha1.Marshal(&small)
	return Snapshot{DigestOf(text), text}, err
}

var snapshotDigest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// IsDigest reports whether a text is the digest of a snapshot.
func IsDigest(text string) bool { return snapshotDigest.MatchString(text) }

// DigestOf returns the digest that names a text.
func DigestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
