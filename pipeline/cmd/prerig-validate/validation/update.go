// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package validation

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
)

// update validates an object as the next state of the old one, and returns the fields whose change is dropped.
func (v *Validator) update(r Request) (problems []Problem, ignored []string, err error) {
	old, err := v.decode(r.Old, r.Namespace, Update)
	var undecodable *undecodableError
	if errors.As(err, &undecodable) {
		return nil, nil, fmt.Errorf("reading the old object: %s", undecodable)
	}
	if err != nil {
		return nil, nil, err
	}
	next, err := v.decode(r.Object, r.Namespace, Update)
	if err != nil {
		return nil, nil, err
	}
	if err := sameObject(old, next); err != nil {
		return nil, nil, err
	}
	applied, err := fieldsOf(old.object, next.kind)
	if err != nil {
		return nil, nil, err
	}
	keepPullPolicies(next.object, old.object, r.Object, r.Old)
	old.store(next.object)
	inCluster, err := fieldsOf(old.object, next.kind)
	if err != nil {
		return nil, nil, err
	}
	wanted, err := fieldsOf(next.object, next.kind)
	if err != nil {
		return nil, nil, err
	}
	keepGenerated(wanted, applied, inCluster)
	if err := next.replace(wanted); err != nil {
		return nil, nil, err
	}
	problems, err = problemsOf(next.validateUpdate(old))
	if err != nil {
		return nil, nil, err
	}
	problems = slices.DeleteFunc(problems, isAboutAllocated)
	markImmutable(problems)
	left, err := fieldsOf(next.object, next.kind)
	if err != nil {
		return nil, nil, err
	}
	return problems, ignoredChanges(inCluster, wanted, left), nil
}

// sameObject returns an error where two objects do not have the same kind, namespace and name.
func sameObject(old, next *stored) error {
	before, err := meta.Accessor(old.object)
	if err != nil {
		return err
	}
	after, err := meta.Accessor(next.object)
	if err != nil {
		return err
	}
	if old.strategy != next.strategy || before.GetName() != after.GetName() {
		return fmt.Errorf("reading the request: %s %s is not the old state of %s %s", old.kind.Kind, before.GetName(),
			next.kind.Kind, after.GetName())
	}
	return nil
}

// store makes of a decoded object what the cluster has after it was created. next is what is applied after it.
func (s *stored) store(next runtime.Object) {
	if service, ok := s.object.(*core.Service); ok {
		allocateHealthCheckPort(service, next.(*core.Service))
	}
	s.prepareCreate()
	s.strategy.PrepareForCreate(s.ctx, s.object)
	s.strategy.Canonicalize(s.object)
	accessor, err := meta.Accessor(s.object)
	if err != nil {
		return
	}
	accessor.SetResourceVersion("1")
	switch object := s.object.(type) {
	case *core.PersistentVolumeClaim:
		// A claim is bound to a volume of the size that it asked for.
		object.Status.Phase = core.ClaimBound
		object.Status.Capacity = object.Spec.Resources.Requests.DeepCopy()
	case *core.Service:
		allocateClusterIPs(object, next.(*core.Service))
	case *apiextensions.CustomResourceDefinition:
		// The kind is served: only then its scope and names are immutable.
		apiextensions.SetCRDCondition(object, apiextensions.CustomResourceDefinitionCondition{
			Type: apiextensions.Established, Status: apiextensions.ConditionTrue,
		})
	}
}

// keepPullPolicies sets the default of their first image in containers of a Pod that name no pull policy, neither now
// nor before: applying another image does not change the policy.
func keepPullPolicies(next, old runtime.Object, nextText, oldText json.RawMessage) {
	pod, isPod := next.(*core.Pod)
	before, wasPod := old.(*core.Pod)
	if !isPod || !wasPod {
		return
	}
	written := writtenPullPolicies(nextText)
	for name := range writtenPullPolicies(oldText) {
		written[name] = true
	}
	policies := map[string]core.PullPolicy{}
	for _, list := range [][]core.Container{before.Spec.InitContainers, before.Spec.Containers} {
		for _, c := range list {
			policies[c.Name] = c.ImagePullPolicy
		}
	}
	for _, list := range [][]core.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if policy := policies[list[i].Name]; policy != "" && !written[list[i].Name] {
				list[i].ImagePullPolicy = policy
			}
		}
	}
}

// writtenPullPolicies returns the names of the containers of a Pod that name a pull policy.
func writtenPullPolicies(text json.RawMessage) map[string]bool {
	var pod corev1.Pod
	out := map[string]bool{}
	if json.Unmarshal(text, &pod) != nil {
		return out
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.ImagePullPolicy != "" {
			out[c.Name] = true
		}
	}
	return out
}

// replace decodes the object again from its fields.
func (s *stored) replace(fields map[string]any) error {
	text, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("writing the object: %w", err)
	}
	s.object, _, err = legacyscheme.Codecs.UniversalDecoder().Decode(text, nil, nil)
	if err != nil {
		return fmt.Errorf("decoding the object: %w", err)
	}
	return nil
}

// validateUpdate does what the store of a kind does with an update (source: Update in pkg/registry/generic/registry of
// k8s.io/apiserver).
func (s *stored) validateUpdate(old *stored) error {
	before, err := meta.Accessor(old.object)
	if err != nil {
		return err
	}
	after, err := meta.Accessor(s.object)
	if err != nil {
		return err
	}
	after.SetResourceVersion(before.GetResourceVersion())
	after.SetUID(before.GetUID())
	if service, ok := s.object.(*core.Service); ok {
		prepareServiceUpdate(service, old.object.(*core.Service))
	}
	return rest.BeforeUpdate(s.strategy, s.ctx, s.object, old.object)
}

// fieldsOf returns an internal object in a version of its kind, as JSON is decoded.
func fieldsOf(object runtime.Object, kind schema.GroupVersionKind) (map[string]any, error) {
	versioned, err := legacyscheme.Scheme.ConvertToVersion(object.DeepCopyObject(), kind.GroupVersion())
	if err != nil {
		return nil, fmt.Errorf("converting %s: %w", kind, err)
	}
	versioned.GetObjectKind().SetGroupVersionKind(kind)
	text, err := json.Marshal(versioned)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", kind, err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("reading %s: %w", kind, err)
	}
	return out, nil
}

// keepGenerated adds to the next state the fields that the API server has generated, and that applying an object does
// not remove: those that the cluster has and that were not applied.
func keepGenerated(next, applied, inCluster map[string]any) {
	for key, value := range inCluster {
		before, wasApplied := applied[key]
		after, isNext := next[key]
		if !isNext && !wasApplied {
			next[key] = value
			continue
		}
		if list, isList := value.([]any); isList {
			keepGeneratedInList(after, before, list)
			continue
		}
		generated, isMap := value.(map[string]any)
		following, alsoMap := after.(map[string]any)
		if !isMap || isNext && !alsoMap {
			continue
		}
		if following == nil {
			following = map[string]any{}
		}
		earlier, _ := before.(map[string]any)
		if keepGenerated(following, earlier, generated); len(following) > 0 {
			next[key] = following
		}
	}
}

// keepGeneratedInList does the same in the elements of a list that have a name, such as containers: the API server sets
// in them what a Pod's annotations request, such as an AppArmor profile.
func keepGeneratedInList(next, applied any, inCluster []any) {
	following, _ := next.([]any)
	for _, element := range following {
		after, _ := element.(map[string]any)
		generated, earlier := elementNamed(inCluster, after["name"]), elementNamed(applied, after["name"])
		if after != nil && generated != nil && earlier != nil {
			keepGenerated(after, earlier, generated)
		}
	}
}

// elementNamed returns the element of a list with the name, or nil without one.
func elementNamed(list, name any) map[string]any {
	elements, _ := list.([]any)
	for _, element := range elements {
		object, _ := element.(map[string]any)
		if object != nil && name != nil && object["name"] == name {
			return object
		}
	}
	return nil
}

// ofServer are the fields of the metadata that the API server alone sets.
var ofServer = map[string]bool{
	"metadata.creationTimestamp": true, "metadata.generation": true, "metadata.managedFields": true,
	"metadata.resourceVersion": true, "metadata.uid": true, "metadata.selfLink": true, "status": true,
}

// templateGeneration is an annotation that the strategy of DaemonSets counts up.
const templateGeneration = "metadata.annotations[" + appsv1.DeprecatedTemplateGeneration + "]"

// ignoredChanges returns the paths of the fields that differ from what the cluster has in what is wanted, but do not
// come out so.
func ignoredChanges(inCluster, wanted, left map[string]any) []string {
	var out []string
	for _, path := range differences("", wanted, left) {
		at := strings.Join(path, "")
		if ofServer[at] || path[0] == "status" || at == templateGeneration {
			continue
		}
		if !reflect.DeepEqual(valueAt(inCluster, path), valueAt(wanted, path)) {
			out = append(out, at)
		}
	}
	slices.Sort(out)
	return out
}

// differences returns the paths at which two values differ, each as its segments: "spec", ".ports", "[0]".
func differences(prefix string, a, b any, at ...string) [][]string {
	aMap, aIsMap := a.(map[string]any)
	bMap, bIsMap := b.(map[string]any)
	if aIsMap && bIsMap {
		return differencesOfMaps(prefix, aMap, bMap, at)
	}
	aList, aIsList := a.([]any)
	bList, bIsList := b.([]any)
	if aIsList && bIsList && len(aList) == len(bList) {
		var out [][]string
		for i := range aList {
			out = append(out, differences(".", aList[i], bList[i], append(slices.Clone(at), "["+strconv.Itoa(i)+"]")...)...)
		}
		return out
	}
	if reflect.DeepEqual(a, b) {
		return nil
	}
	return [][]string{at}
}

func differencesOfMaps(prefix string, a, b map[string]any, at []string) [][]string {
	keys := map[string]bool{}
	for key := range a {
		keys[key] = true
	}
	for key := range b {
		keys[key] = true
	}
	var out [][]string
	for key := range keys {
		segment := prefix + key
		if strings.ContainsAny(key, "./[]") {
			segment = "[" + key + "]"
		}
		out = append(out, differences(".", a[key], b[key], append(slices.Clone(at), segment)...)...)
	}
	slices.SortFunc(out, slices.Compare)
	return out
}

// valueAt returns the value at the segments of a path, nil if the path does not exist.
func valueAt(value any, path []string) any {
	for _, segment := range path {
		key := strings.TrimPrefix(segment, ".")
		if strings.HasPrefix(key, "[") {
			key = strings.Trim(key, "[]")
		}
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}
