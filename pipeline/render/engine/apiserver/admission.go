// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/prerig/prerig/fn"
	defaults "github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/chain"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/policy"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// admissionCheck is a checker that predicts the outcome of validating admission.
type admissionCheck struct {
	*checker
	policies *policy.Set
	security *podSecurity
	maker    *request.Maker
	chain    *chain.Cluster
	registry *workload.Registry
	options  *gate.Options
	kinds    map[schema.GroupVersionKind]request.Kind
	// sources maps kind and name to the policies and bindings, for findings about them.
	sources map[[2]string]gate.Object
	// problems maps a policy or binding to its problems, which are reported when it is checked.
	problems map[[2]string][]policy.Problem
	// notEvaluated are mutating policies and bindings, with the first pods that they were not evaluated for.
	notEvaluated map[policy.Lack]string
}

// newAdmissionCheck reads the policies, bindings and namespaces. The error is about the options.
func newAdmissionCheck(c *checker, objects []gate.Object, o gate.Options) (*admissionCheck, error) {
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		return nil, err
	}
	server, err := defaults.NewServer(c.server.Minor)
	if err != nil {
		return nil, err
	}
	var written []gate.Object
	for _, text := range o.Written {
		more, err := gate.AdmissionObjects(text)
		if err != nil {
			return nil, err
		}
		written = append(written, more...)
	}
	known := slices.Concat(written, o.Catalog, objects) // those that come with the objects replace those of the cluster
	a := &admissionCheck{
		checker: c, registry: registry, options: &o, kinds: map[schema.GroupVersionKind]request.Kind{}, sources: map[[2]string]gate.Object{},
		problems: map[[2]string][]policy.Problem{},
		maker:    &request.Maker{Server: server}, notEvaluated: map[policy.Lack]string{},
	}
	if o.User != "" {
		a.maker.User = request.User(o.User, o.Groups)
	}
	for _, k := range c.servedKinds() {
		a.kinds[k.GroupVersionKind] = k
	}
	a.chain = newChain(known, server, o)
	namespaces := a.chain.Namespaces
	minor := minorNumber(c.server.Minor)
	if a.security, err = newPodSecurity(minor, o.PodSecurity, namespaces); err != nil {
		return nil, err
	}
	a.policies = policy.NewSet(policy.Cluster{
		Minor: minor, Kinds: slices.Collect(maps.Values(a.kinds)), Namespaces: namespaces, ConvertedByName: c.convertedByName,
		Parameters: parametersAmong(known),
		IsComplete: completeParameters(objects, o),
	})
	a.chain.Policies = policy.NewMutatingSet(a.policies, a.maker)
	for _, object := range known {
		a.addPolicy(object)
	}
	return a, nil
}

// completeParameters reports of which kinds all parameters are known. The catalog has those that its own policies and
// bindings mean, and not those of policies and bindings that come with the objects.
func completeParameters(objects []gate.Object, o gate.Options) func(kind string) bool {
	further := slices.ContainsFunc(objects, func(object gate.Object) bool {
		ref := object.Ref()
		kind := request.ParseKind(ref.APIVersion, ref.Kind)
		return policy.IsPolicy(kind) || policy.IsBinding(kind) || policy.IsMutating(kind) || policy.IsMutatingBinding(kind)
	})
	return func(kind string) bool { return o.IsComplete(kind) || !further && slices.Contains(o.Parameters, kind) }
}

// parametersAmong returns a function that returns the objects of a kind, and looks for each kind once.
func parametersAmong(known []gate.Object) func(kind schema.GroupVersionKind) []map[string]any {
	byKind := map[schema.GroupVersionKind][]map[string]any{}
	return func(kind schema.GroupVersionKind) []map[string]any {
		objects, found := byKind[kind]
		if !found {
			objects = objectsOfKind(known, kind)
			byKind[kind] = objects
		}
		return objects
	}
}

// objectsOfKind returns the objects of a kind, each once.
func objectsOfKind(known []gate.Object, kind schema.GroupVersionKind) []map[string]any {
	byName := map[[2]string]map[string]any{}
	for _, o := range known {
		ref := o.Ref()
		if request.ParseKind(ref.APIVersion, ref.Kind) == kind && !isEncrypted(o.Value) && !isLocal(o.Value) {
			byName[[2]string{ref.Namespace, ref.Name}] = o.Value
		}
	}
	var out []map[string]any
	for _, key := range sortedNames(byName) {
		out = append(out, byName[key])
	}
	return out
}

// sortedNames returns the keys of what is known by namespace and name, in their order.
func sortedNames[V any](byName map[[2]string]V) [][2]string {
	return slices.SortedFunc(maps.Keys(byName), func(x, y [2]string) int { return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1])) })
}

func (a *admissionCheck) addPolicy(o gate.Object) {
	ref := o.Ref()
	kind := request.ParseKind(ref.APIVersion, ref.Kind)
	if isLocal(o.Value) || isEncrypted(o.Value) {
		return
	}
	key := [2]string{ref.Kind, ref.Name}
	switch {
	case policy.IsPolicy(kind):
		a.problems[key] = a.policies.AddPolicy(o.Value)
	case policy.IsBinding(kind):
		a.problems[key] = a.policies.AddBinding(o.Value)
	case policy.IsMutating(kind):
		a.problems[key] = a.chain.Policies.AddPolicy(o.Value)
	case policy.IsMutatingBinding(kind):
		a.problems[key] = a.chain.Policies.AddBinding(o.Value)
	default:
		return
	}
	a.sources[key] = o
}

// servedKinds are the kinds that the API server serves, with those of definitions.
func (c *checker) servedKinds() []request.Kind {
	var out []request.Kind
	for _, k := range c.server.Kinds() {
		out = append(out, request.Kind{
			GroupVersionKind: request.ParseKind(k.APIVersion, k.Kind), Resource: k.Resource, Namespaced: k.Namespaced, Status: true,
		})
	}
	for id, all := range c.definitions {
		for _, own := range all {
			for name := range own.versions {
				if d, v := c.servedVersion(id, name); d == own {
					out = append(out, request.Kind{
						GroupVersionKind: schema.GroupVersionKind{Group: id.group, Version: name, Kind: id.kind},
						Resource:         d.plural, Namespaced: d.namespaced, Status: v.status,
					})
				}
			}
		}
	}
	return out
}

func (c *checker) convertedByName(kind schema.GroupKind) bool {
	all := c.definitions[groupKind{kind.Group, kind.Kind}]
	return len(all) > 0 && !slices.ContainsFunc(all, func(d *definition) bool { return d.webhook })
}

// check reports the verdicts of policies and Pod Security on the object and on the pods that would be
// created from it.
func (a *admissionCheck) check(ctx context.Context, o gate.Object) {
	ref := o.Ref()
	kind, ok := a.kinds[request.ParseKind(ref.APIVersion, ref.Kind)]
	if !ok || isForOtherTool(o) || isEncrypted(o.Value) || isLocal(o.Value) {
		return
	}
	if a.sources[[2]string{ref.Kind, ref.Name}].Value != nil && kind.Group == policy.Group {
		a.checkPolicy(o, true)
	}
	r, err := a.makeRequest(o, kind)
	if err != nil {
		a.addUnread(o, err)
		return
	}
	if kind.GroupVersionKind == request.PodKind.GroupVersionKind && r.Old == nil {
		a.checkPod(ctx, o, r)
		return
	}
	a.checkRequest(ctx, o, r)
	if ns, ok := r.Object.(*corev1.Namespace); ok {
		a.checkSecurityLabels(o, ns)
	}
	templates, err := a.registry.Templates(o.Value)
	if err != nil || kind.GroupVersionKind == request.PodKind.GroupVersionKind { // a change of a Pod
		return // what is wrong with the template is a finding of the schemas
	}
	for _, t := range templates {
		pod, err := a.maker.PodOf(o.Value, t)
		if err != nil {
			a.addUnread(o, err)
			continue
		}
		a.checkPod(ctx, o, pod)
	}
}

// checkPod reports the verdicts on a new pod as mutating admission makes it.
func (a *admissionCheck) checkPod(ctx context.Context, o gate.Object, r *request.Request) {
	var trace *chain.Trace
	if len(writtenPolicies(r)) > 0 {
		trace = &chain.Trace{}
	}
	mutation := a.chain.New(r, trace)
	mutation.Mutate(ctx)
	mutation.Again(ctx)
	mutation.Finish()
	for _, one := range mutation.NotEvaluated() {
		if a.notEvaluated[one] == "" {
			a.notEvaluated[one] = cmp.Or(r.Of, o.Ref().String())
		}
	}
	checkWritten(a.checker, o, r, mutation)
	if mutation.Rejected != "" && !strings.HasPrefix(mutation.Rejected, "LimitRanger") { // lint reports these
		message := mutation.Rejected
		if r.Of != "" {
			message = "the pods of " + r.Of + ": " + message
		}
		a.addFieldFinding(o, gate.CodeRejected, longestExistingPath(append(slices.Clone(r.Path), "spec"), o.Value), message)
	}
	a.checkRequest(ctx, o, mutation.Request())
}

// makeRequest returns the request that creates the object, or changes it if it has an old state.
func (a *admissionCheck) makeRequest(o gate.Object, kind request.Kind) (*request.Request, error) {
	if o.Old == nil {
		return a.maker.Make(o.Value, kind)
	}
	return a.maker.MakeUpdate(o.Value, o.Old, kind)
}

// checkUpdate reports the verdicts of policies on the change of an object alone.
func (a *admissionCheck) checkUpdate(ctx context.Context, o gate.Object) {
	ref := o.Ref()
	kind, ok := a.kinds[request.ParseKind(ref.APIVersion, ref.Kind)]
	if !ok || a.policies.Empty() || isForOtherTool(o) || isEncrypted(o.Value) || gate.NotApplied(o.Value) != "" {
		return
	}
	if r, err := a.makeRequest(o, kind); err == nil {
		a.addDecisions(ctx, o, r)
	}
}

// addUnread reports that an object does not match its kind; the schema check reports where.
func (a *admissionCheck) addUnread(o gate.Object, err error) {
	if !a.policies.Empty() {
		a.addFieldFinding(o, gate.CodeNotEvaluated, nil, "no policy was evaluated, as the object cannot be read: "+err.Error())
	}
}

func (a *admissionCheck) checkRequest(ctx context.Context, o gate.Object, r *request.Request) {
	if !a.options.Ignores("PodSecurity") {
		a.checkPodSecurity(o, r)
	}
	a.addDecisions(ctx, o, r)
}

// addDecisions reports the verdicts of policies on a request.
func (a *admissionCheck) addDecisions(ctx context.Context, o gate.Object, r *request.Request) {
	if a.options.Ignores("ValidatingAdmissionPolicy") {
		return
	}
	for _, d := range a.policies.Evaluate(ctx, r) {
		message := d.Message
		if r.Of != "" {
			message = "the pods of " + r.Of + ": " + message
		}
		code := gate.CodeNotEvaluated
		switch d.Action {
		case admissionv1.Deny:
			code = gate.CodePolicyDenied
		case admissionv1.Warn:
			code = gate.CodePolicyWarning
		case admissionv1.Audit:
			code = gate.CodePolicyAudit
		}
		path := d.Path
		if r.Of != "" {
			path = append(slices.Clone(r.Path), path...)
		}
		if r.Old != nil && code == gate.CodePolicyDenied && fn.MayBeReplaced(o.Value) {
			code, message = gate.CodeUpdateReplaced, "the object is deleted and created again, as its change is rejected: "+message
		}
		a.addFieldFinding(o, code, longestExistingPath(path, o.Value), message)
	}
}

// longestExistingPath returns the path to what the object has.
func longestExistingPath(path []any, object any) []any {
	for i, key := range path {
		if object = gate.Child(object, key); object == nil {
			return path[:i]
		}
	}
	return path
}

// checkPolicy reports problems of a policy or binding; expensive checks run only for those that are checked
// themselves.
func (a *admissionCheck) checkPolicy(o gate.Object, types bool) {
	ref := o.Ref()
	for _, p := range a.problems[[2]string{ref.Kind, ref.Name}] {
		a.addFieldFinding(o, gate.CodeInvalidPolicy, p.Path, strings.Join(strings.Fields(p.Message), " "))
	}
	if !types || !policy.IsPolicy(request.ParseKind(ref.APIVersion, ref.Kind)) {
		return
	}
	for _, p := range a.policies.CheckTypes(ref.Name, a.schemaOf) {
		field, _ := p.Path[0].(string)
		a.addFieldFinding(o, gate.CodePolicyTypes, fieldPath(field, o.Value), strings.Join(strings.Fields(p.Message), " "))
	}
}

func (c *checker) schemaOf(kind schema.GroupVersionKind) *spec.Schema {
	if k, ok := c.server.Lookup(kind.GroupVersion().String(), kind.Kind); ok {
		return c.server.Spec(k)
	}
	_, version := c.servedVersion(groupKind{kind.Group, kind.Kind}, kind.Version)
	if version == nil || version.prepareValidators() != nil {
		return nil
	}
	return version.structural.ToKubeOpenAPI()
}

// finish reports what was not evaluated, at the policy or binding that is the reason, and the problems of
// those in the catalog.
func (a *admissionCheck) finish(catalog []gate.Object) {
	for _, o := range catalog {
		ref := o.Ref()
		if s, ok := a.sources[[2]string{ref.Kind, ref.Name}]; ok && s.File == o.File {
			a.checkPolicy(o, false)
		}
	}
	gaps := a.policies.Gaps()
	for _, g := range slices.SortedFunc(maps.Keys(gaps), func(x, y policy.Gap) int {
		return cmp.Or(cmp.Compare(x.Policy+x.Binding, y.Policy+y.Binding), cmp.Compare(x.Path, y.Path), cmp.Compare(x.Reason, y.Reason))
	}) {
		key := [2]string{"ValidatingAdmissionPolicy", g.Policy}
		if g.Policy == "" {
			key = [2]string{"ValidatingAdmissionPolicyBinding", g.Binding}
		}
		o := a.sources[key]
		a.addFieldFinding(o, gate.CodeNotEvaluated, longestExistingPath(fieldPath(g.Path, o.Value), o.Value), fmt.Sprintf("%s %s %s", key[0], key[1], gaps[g]))
	}
	for _, one := range slices.SortedFunc(maps.Keys(a.notEvaluated), func(x, y policy.Lack) int { return cmp.Compare(x.String(), y.String()) }) {
		a.addFieldFinding(a.sources[[2]string{one.Kind, one.Name}], gate.CodeNotEvaluated, nil,
			fmt.Sprintf("%s (first for %s)", one, a.notEvaluated[one]))
	}
	unbound := a.policies.Unbound()
	for _, name := range slices.Sorted(maps.Keys(unbound)) {
		o := a.sources[[2]string{"ValidatingAdmissionPolicyBinding", name}]
		if problems := a.problems[[2]string{"ValidatingAdmissionPolicy", unbound[name]}]; len(problems) == 0 {
			a.addFieldFinding(o, gate.CodeNotEvaluated, []any{"spec", "policyName"}, fmt.Sprintf(
				"ValidatingAdmissionPolicyBinding %s was not evaluated: the policy %s is neither among the objects nor in --policies",
				name, unbound[name]))
		}
	}
}
