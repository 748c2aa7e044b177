// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"slices"
	"sync/atomic"

	"helm.sh/helm/v4/pkg/chart/common/util"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/prerig/prerig/fn"
	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver"
)

// pristineSchema is the version of the schema that kustomize has before anything has set one.
var pristineSchema = openapi.GetSchemaVersion()

// schemaIsSet reports whether something has set a schema.
func schemaIsSet() bool { return openapi.GetSchemaVersion() != pristineSchema }

// isReusable reports whether the process can render another source with the same result as a new process.
// kustomize keeps the schema that a kustomization names (openapi.SetSchema) and does not forget all of it, and Helm
// does not repeat a warning.
func (w *renderWorker) isReusable() bool {
	return !w.kustomize.setsSchema() && !schemaIsSet() && !helmWarned.Load()
}

// checkUnused rejects a build that sets a schema in a process that has rendered before: kustomize would merge the
// schema's definitions with those it already knows, whereas a new process would know only these.
func (w *renderWorker) checkUnused() error {
	if w.used && w.kustomize.setsSchema() {
		return errors.New("a schema is set only in a process that has not rendered before")
	}
	return nil
}

// helmWarned is set when Helm has met a URN in a schema, of which it warns once in a process.
var helmWarned atomic.Bool

// noticeWarnings sets helmWarned from here on.
func noticeWarnings() {
	resolve := util.URNResolver
	util.URNResolver = func(urn string) (any, error) {
		helmWarned.Store(true)
		return resolve(urn)
	}
}

// maxPolicies bounds what a renderer keeps compiled.
const maxPolicies = 8

// compiledPolicies are policies with their injector, which is immutable.
type compiledPolicies struct {
	text     string
	policies []*policyv1alpha1.InjectionPolicy
	injector *fn.Injector
}

// policyCache caches policies by their text: reading one and parsing its templates is slower than injecting a
// few pods. It must be used by one goroutine only.
type policyCache struct {
	kept []*compiledPolicies // the last used last
}

// policiesForText returns the policies of a text.
func (c *policyCache) policiesForText(text string, parse func() ([]*policyv1alpha1.InjectionPolicy, error)) (*compiledPolicies, error) {
	if i := slices.IndexFunc(c.kept, func(k *compiledPolicies) bool { return k.text == text }); i >= 0 {
		one := c.kept[i]
		c.kept = append(slices.Delete(c.kept, i, i+1), one)
		return one, nil
	}
	policies, err := parse()
	if err != nil {
		return nil, err
	}
	if len(c.kept) >= maxPolicies {
		c.kept = slices.Delete(c.kept, 0, 1)
	}
	one := &compiledPolicies{text: text, policies: policies}
	c.kept = append(c.kept, one)
	return one, nil
}

// compiledInjector returns the injector.
func (p *compiledPolicies) compiledInjector() (*fn.Injector, error) {
	if p.injector != nil {
		return p.injector, nil
	}
	var err error
	p.injector, err = fn.New(p.policies, fn.WithAdmission(apiserver.NewMutator().Evaluate))
	return p.injector, err
}
