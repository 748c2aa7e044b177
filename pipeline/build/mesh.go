// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/kubernetes/mesh"
	"github.com/prerig/prerig/pipeline/render"
)

// PolicyCompleter completes policies with from: Cluster. mesh.Completer and mesh.Given implement it. It is safe for
// concurrent use.
type PolicyCompleter interface {
	// Complete returns a policy completed with the cluster's settings, or nil if the policy does not ask for them.
	Complete(id string, text []byte) (*mesh.Completed, error)
}

// allNamespaces represents all namespaces if it is unknown which ones a render has read.
const allNamespaces = "*"

// objectOrigin returns the origin of a policy that is an object.
func objectOrigin(namespace, name string) string { return mesh.ObjectID(namespace, name) }

// completedPolicy is a policy of a request with from: Cluster.
type completedPolicy struct {
	at int // among those of the request
	*mesh.Completed
}

// completeReferencedPolicies completes the policies that one reference of a pipeline names. Those in a source are left
// as they are, and refused by who uses them: its authors may not read the cluster.
func (s PolicySource) completeReferencedPolicies(ref v1alpha1.PolicyRef, found []render.Policy) ([]*mesh.Completed, error) {
	if ref.Name == "" && ref.File == "" {
		return nil, nil
	}
	var out []*mesh.Completed
	for i, one := range found {
		if !mesh.Asks([]byte(one.YAML)) {
			out = append(out, nil)
			continue
		}
		if s.cluster == nil {
			out = append(out, nil) // the engine reports how to fix it
			continue
		}
		completed, err := s.cluster.Complete(policyID(one.Origin, i), []byte(one.YAML))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.Origin, err)
		}
		out = append(out, completed)
	}
	return out, nil
}

// policyID distinguishes the policies of a file; an object is a single policy.
func policyID(origin string, at int) string {
	if at == 0 {
		return origin
	}
	return fmt.Sprintf("%s#%d", origin, at)
}

// completeAll is complete for a text that one reference names.
func (s PolicySource) completeAll(namespace string, ref v1alpha1.PolicyRef, text []byte) ([]*mesh.Completed, error) {
	if s.cluster == nil || !mesh.Asks(text) {
		return nil, nil
	}
	found := []render.Policy{{Origin: objectOrigin(namespace, ref.Name), YAML: string(text)}}
	if ref.File != "" {
		var err error
		if found, err = parsePolicyFile(ref.File, text); err != nil {
			return nil, err
		}
	}
	return s.completeReferencedPolicies(ref, found)
}

// writeCompleted writes the parts of a policy that come from the cluster, without its namespaces, since each
// pipeline reads only few of them.
func (s PolicySource) writeCompleted(w io.Writer, namespace string, ref v1alpha1.PolicyRef, text []byte) {
	all, err := s.completeAll(namespace, ref, text)
	if err != nil {
		fmt.Fprintf(w, "\nnot completed")
	}
	for _, one := range all {
		if one != nil {
			fmt.Fprintf(w, "\ncompleted %s", one.Base)
		}
	}
}

// currentCompletedPolicies returns all policies of a pipeline with from: Cluster, in their current state.
func (s PolicySource) currentCompletedPolicies(p *v1alpha1.RenderPipeline) []*mesh.Completed {
	if s.cluster == nil {
		return nil
	}
	var out []*mesh.Completed
	for _, ref := range p.Spec.Policies {
		read := func() ([]byte, error) { return nil, errors.New("it is in the source") }
		switch {
		case ref.Name != "":
			read = func() ([]byte, error) { return s.readObject(p.Metadata.Namespace, ref.Name) }
		case ref.File != "":
			read = func() ([]byte, error) { return s.readFile(ref.File) }
		}
		text, err := read()
		if err != nil {
			continue
		}
		all, _ := s.completeAll(p.Metadata.Namespace, ref, text)
		out = append(out, slices.DeleteFunc(all, func(c *mesh.Completed) bool { return c == nil })...)
	}
	return out
}

// ClusterDigest returns a digest of everything that a pipeline could use from the cluster, or "" if it uses none of
// it.
func (s PolicySource) ClusterDigest(p *v1alpha1.RenderPipeline) string {
	digest, _ := s.ClusterState(p)
	return digest
}

// ClusterState is ClusterDigest, and reports whether any of it is older than what the cluster has now.
func (s PolicySource) ClusterState(p *v1alpha1.RenderPipeline) (digest string, stale bool) {
	var all []string
	for _, one := range s.currentCompletedPolicies(p) {
		all = append(all, one.Digest)
		stale = stale || one.Stale != ""
	}
	return strings.Join(all, " "), stale
}

// changedNamespace returns a namespace whose settings in the cluster have changed since a pipeline was rendered, or
// "" if none has.
func (s PolicySource) changedNamespace(p *v1alpha1.RenderPipeline, seen map[string]string) string {
	if len(seen) == 0 {
		return ""
	}
	all := s.currentCompletedPolicies(p)
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		if namespaceDigest(all, name) != seen[name] {
			return name
		}
	}
	return ""
}

// namespaceDigest returns a digest of the policies' settings for a namespace.
func namespaceDigest(all []*mesh.Completed, name string) string {
	parts := make([]string, len(all))
	for i, one := range all {
		parts[i] = one.Namespace(name)
		if name == allNamespaces {
			parts[i] = one.Digest
		}
	}
	return strings.Join(parts, " ")
}

// recordPolicySnapshots records what was read of the cluster, and replaces the full state in the request by it, so that
// rendering the request again yields the same result.
func recordPolicySnapshots(built *Built, completed []completedPolicy) error {
	if len(completed) == 0 {
		return nil
	}
	all := make([]*mesh.Completed, len(completed))
	for i, one := range completed {
		all[i] = one.Completed
	}
	built.Namespaces = map[string]string{}
	if built.Response == nil {
		built.Namespaces[allNamespaces] = namespaceDigest(all, allNamespaces)
		return nil
	}
	written := map[string]bool{}
	for _, object := range built.Objects {
		written[object.Namespace] = true
	}
	for _, decision := range built.Decisions {
		written[decision.Object.Namespace] = true
	}
	names := slices.Sorted(maps.Keys(written))
	for _, one := range completed {
		homes := one.Homes(names)
		snapshot, err := one.Snapshot(homes)
		if err != nil {
			return err
		}
		for _, name := range homes {
			built.Namespaces[name] = namespaceDigest(all, name)
		}
		built.Request.Policies[one.at].YAML = string(snapshot.Text)
		built.Snapshots = append(built.Snapshots, snapshot)
		for _, text := range one.Warnings {
			built.Warnings = append(built.Warnings, built.Request.Policies[one.at].Origin+": "+text)
		}
		if one.Stale != "" {
			built.Warnings = append(built.Warnings, built.Request.Policies[one.at].Origin+": "+one.Stale)
		}
	}
	return nil
}
