// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/chain"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/openapi"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// Mutator evaluates the MutatingAdmissionPolicies that InjectionPolicies write. It may be used by several goroutines at once.
type Mutator struct {
	mu     sync.Mutex
	chains map[[2]string]*mutatorChain
}

// mutatorChain is the chain of the objects of one text, for one version.
type mutatorChain struct {
	*admissionCheck

	own map[string]bool // the Namespaces among the objects
	err error
}

// NewMutator returns a Mutator.
func NewMutator() *Mutator { return &Mutator{chains: map[[2]string]*mutatorChain{}} }

// Evaluate returns what the policies of a request change of its pod.
func (m *Mutator) Evaluate(asked fn.AdmissionRequest) fn.AdmissionAnswer {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := [2]string{asked.Policies, asked.KubernetesVersion}
	c := m.chains[key]
	if c == nil {
		c = newMutatorChain(asked.Policies, asked.KubernetesVersion)
		m.chains[key] = c
	}
	answer, err := c.evaluate(asked)
	if err != nil {
		return fn.AdmissionAnswer{Failed: err.Error()}
	}
	return answer
}

// newMutatorChain reads the policies.
func newMutatorChain(text, version string) *mutatorChain {
	out := &mutatorChain{own: map[string]bool{}}
	objects, err := gate.AdmissionObjects(text)
	if err != nil {
		return &mutatorChain{err: err}
	}
	server, err := openapi.NewServer(version)
	if err != nil {
		return &mutatorChain{err: err}
	}
	c := &checker{server: server}
	c.addDefinitions(objects, nil)
	if out.admissionCheck, err = newAdmissionCheck(c, objects, gate.Options{KubernetesVersion: version}); err != nil {
		return &mutatorChain{err: err}
	}
	for name := range out.chain.Namespaces {
		out.own[name] = true
	}
	out.err = out.findProblem(objects)
	return out
}

// findProblem returns why the policies cannot be written.
func (m *mutatorChain) findProblem(objects []gate.Object) error {
	for _, o := range objects {
		ref := o.Ref()
		if problems := m.problems[[2]string{ref.Kind, ref.Name}]; len(problems) > 0 {
			return fmt.Errorf("reading %s %s of spec.admission.policies: %s", ref.Kind, ref.Name, problems[0].Message)
		}
	}
	unbound := m.chain.Policies.Unbound()
	for _, binding := range slices.Sorted(maps.Keys(unbound)) {
		return fmt.Errorf("spec.admission.policies has the MutatingAdmissionPolicyBinding %s, and not its policy %s", binding, unbound[binding])
	}
	if m.chain.Policies.Empty() {
		return errors.New("spec.admission.policies has no MutatingAdmissionPolicy with a binding")
	}
	return nil
}

func (m *mutatorChain) evaluate(asked fn.AdmissionRequest) (fn.AdmissionAnswer, error) {
	if m.err != nil {
		return fn.AdmissionAnswer{}, m.err
	}
	r, err := m.requestFor(asked)
	if err != nil {
		return fn.AdmissionAnswer{}, fmt.Errorf("reading the pod: %w", err)
	}
	if ns := asked.Namespace; ns.Known && !m.own[ns.Name] {
		m.chain.Namespaces[ns.Name] = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name, Labels: ns.Labels, Annotations: ns.Annotations}}
		defer delete(m.chain.Namespaces, ns.Name)
	}
	change := m.chain.ChangeByPolicies(context.Background(), r)
	if change.Unknown != "" {
		return fn.AdmissionAnswer{}, errors.New(change.Unknown)
	}
	out := fn.AdmissionAnswer{By: change.By}
	if len(out.By) == 0 {
		return out, nil
	}
	if out.Before, err = json.Marshal(podParts(chain.Map(change.Before))); err != nil {
		return out, err
	}
	out.After, err = json.Marshal(podParts(chain.Map(change.After)))
	return out, err
}

// requestFor returns the request that creates the pod.
func (m *mutatorChain) requestFor(asked fn.AdmissionRequest) (*request.Request, error) {
	value, err := manifest.Decode(asked.Object)
	if err != nil {
		return nil, err
	}
	object, _ := value.(map[string]any)
	registry := m.registry
	if len(asked.Workloads) > 0 {
		if registry, err = workload.NewRegistry(asked.Workloads); err != nil {
			return nil, err
		}
	}
	templates, err := registry.Templates(object)
	if err != nil {
		return nil, err
	}
	object = inOwnNamespace(object, asked.Namespace.Name)
	for _, t := range templates {
		if t.Field != asked.Field {
			continue
		}
		if len(t.Path) == 0 {
			return m.maker.Make(object, request.PodKind)
		}
		return m.maker.PodOf(object, t)
	}
	return nil, fmt.Errorf("it has no pod template at %q", asked.Field)
}

// inOwnNamespace returns an object with the namespace that it will have.
func inOwnNamespace(object map[string]any, namespace string) map[string]any {
	metadata, _ := object["metadata"].(map[string]any)
	if namespace == "" || metadata["namespace"] == namespace {
		return object
	}
	object, metadata = maps.Clone(object), maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["namespace"], object["metadata"] = namespace, metadata
	return object
}
