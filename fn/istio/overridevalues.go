// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/podvalidation"
	"github.com/prerig/prerig/fn/quantity"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/fn/workload"
)

// checkOverrideValues rejects overrides that no cluster accepts, or that silently mean something else. The error names the
// override, where a check of the injected pod would name each workload. base are the values below the overrides.
func checkOverrideValues(overrides, base map[string]any) error {
	problems := wrongValues(overrides)
	if len(problems) == 0 {
		isSet := func(path []string) bool { _, ok := valueAt(overrides, path); return ok }
		problems = excessRequests(overlaidValues(base, overrides), isSet)
	}
	for _, p := range problems {
		return overrideError(p.path, "%s", p.message)
	}
	return nil
}

// checkBaseValues returns warnings about values that the overrides do not replace: the control plane has them already, so that
// they are no error.
func checkBaseValues(base Values, overrides map[string]any) []error {
	var out []error
	problems := wrongValues(base)
	if len(problems) == 0 {
		problems = excessRequests(base, func([]string) bool { return true })
	}
	for _, p := range problems {
		if _, replaced := valueAt(overrides, p.path); replaced {
			continue
		}
		at := []any{"injector", "values"}
		for _, key := range p.path {
			at = append(at, key)
		}
		out = append(out, strict.AtField(fmt.Errorf("injector.values.%s: %s", strings.Join(p.path, "."), p.message), at...))
	}
	return out
}

// valueProblem is what is wrong with one value.
type valueProblem struct {
	path    []string
	message string
}

// wrongValues returns what is wrong with values of a known format.
func wrongValues(values map[string]any) []valueProblem {
	var out []valueProblem
	add := func(path []string, format string, args ...any) {
		out = append(out, valueProblem{path, fmt.Sprintf(format, args...)})
	}
	for _, f := range valueFormats {
		for _, name := range strings.Fields(f.keys) {
			path := strings.Split(name, ".")
			value, ok := valueAt(values, path)
			if !ok || value == nil || isEmptyOrReplaced(value) || f.right(value) {
				continue
			}
			want := f.want
			if describeValueKind(value) != oneValue {
				want = oneValue + ": " + want
			}
			add(path, "must be %s, is %s%s", want, strict.Describe(value), strict.DidYouMean(fmt.Sprint(value), f.words))
		}
	}
	for _, check := range []func(map[string]any, func([]string, string, ...any)){checkResourceValues, checkTypedValues, checkPullSecrets, checkAnnotationValues} {
		check(values, add)
	}
	return out
}

// resourceValues are the values with the resources of a container.
var resourceValues = [][]string{{"global", "proxy", "resources"}, {"global", "proxy_init", "resources"}}

// containerResources are the resources of containers whose names have no domain.
var containerResources = []string{"cpu", "memory", "ephemeral-storage"}

// resourceKinds are the keys of the resources of a container.
var resourceKinds = []string{"requests", "limits", "claims"}

// checkResourceValues checks the requests and limits of containers.
func checkResourceValues(values map[string]any, add func([]string, string, ...any)) {
	for _, at := range resourceValues {
		value, _ := valueAt(values, at)
		resources, _ := value.(map[string]any)
		for _, kind := range slices.Sorted(maps.Keys(resources)) {
			if !slices.Contains(resourceKinds, kind) {
				add(slices.Concat(at, []string{kind}), "unknown field%s; the fields are %s", strict.DidYouMean(kind, resourceKinds), strings.Join(resourceKinds, ", "))
			}
			amounts, _ := resources[kind].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(amounts)) {
				checkAmount(slices.Concat(at, []string{kind, name}), name, amounts[name], add)
			}
		}
	}
}

// checkAmount checks the amount of one resource.
func checkAmount(path []string, name string, amount any, add func([]string, string, ...any)) {
	if !slices.Contains(containerResources, name) && !strings.Contains(name, "/") && !strings.HasPrefix(name, "hugepages-") {
		add(path, "is not a resource of a container%s; the resources are %s",
			strict.DidYouMean(name, containerResources), strings.Join(containerResources, ", "))
		return
	}
	if amount == nil {
		return
	}
	if q, err := quantity.Parse(fmt.Sprint(amount)); err != nil || q.Sign() < 0 {
		add(path, "must be a quantity such as 100m or 128Mi, is %s", strict.Describe(amount))
	}
}

// excessRequests returns the requests of the proxy that are above its limits. set reports whether the reader of the message has
// set a value, so that the message names the one to change.
func excessRequests(values map[string]any, set func([]string) bool) []valueProblem {
	var out []valueProblem
	for _, at := range resourceValues {
		for _, name := range containerResources {
			requestPath, limitPath := slices.Concat(at, []string{"requests", name}), slices.Concat(at, []string{"limits", name})
			request, _ := valueAt(values, requestPath)
			limit, _ := valueAt(values, limitPath)
			if request == nil || limit == nil || !set(requestPath) && !set(limitPath) {
				continue
			}
			requested, err := quantity.Parse(fmt.Sprint(request))
			limited, limitErr := quantity.Parse(fmt.Sprint(limit))
			if err != nil || limitErr != nil || requested.Cmp(limited) <= 0 {
				continue
			}
			if set(requestPath) {
				out = append(out, valueProblem{requestPath, fmt.Sprintf("%v is above the limit %v, and the API server rejects such a pod; lower it, or raise %s",
					request, limit, strings.Join(limitPath, "."))})
			} else {
				out = append(out, valueProblem{limitPath, fmt.Sprintf("%v is below the request %v, and the API server rejects such a pod; raise it, or lower %s",
					limit, request, strings.Join(requestPath, "."))})
			}
		}
	}
	return out
}

// typedValues are the values that templates copy into a pod as they are: where they are in the values, and in the pod.
var typedValues = []struct {
	path   []string
	inPod  string
	target func() any
}{
	{[]string{"global", "proxy", "lifecycle"}, "spec.containers[0].lifecycle", func() any { return &corev1.Lifecycle{} }},
	{[]string{"global", "proxy", "seccompProfile"}, "spec.containers[0].securityContext.seccompProfile", func() any { return &corev1.SeccompProfile{} }},
	{[]string{"gateways", "seccompProfile"}, "spec.securityContext.seccompProfile", func() any { return &corev1.SeccompProfile{} }},
	{[]string{"gateways", "securityContext"}, "spec.securityContext", func() any { return &corev1.PodSecurityContext{} }},
}

// checkTypedValues checks the values that templates copy: their fields, and what the API server checks of them.
func checkTypedValues(values map[string]any, add func([]string, string, ...any)) {
	for _, typed := range typedValues {
		value, ok := valueAt(values, typed.path)
		if m, isMap := value.(map[string]any); !ok || value == nil || isEmptyOrReplaced(value) || isMap && len(m) == 0 {
			continue
		}
		var ps strict.Problems
		strict.Decoder{Optional: true, NullIsUnset: true}.Decode(nil, asDocument(value), typed.target(), &ps)
		for _, p := range ps.List {
			path := slices.Clone(typed.path)
			for _, e := range p.Path {
				path = append(path, fmt.Sprint(e))
			}
			add(path, "%s", p.Message)
		}
		if len(ps.List) == 0 {
			checkInPod(typed.path, typed.inPod, asDocument(value), add)
		}
	}
}

// checkInPod checks a value as the API server does in a pod that has it at a path.
func checkInPod(path []string, inPod string, value any, add func([]string, string, ...any)) {
	container := map[string]any{"name": "istio-proxy", "image": "proxyv2"}
	spec := map[string]any{"containers": []any{container}}
	at, keys := container, strings.Split(strings.TrimPrefix(inPod, "spec.containers[0]."), ".")
	if keys[0] == "spec" {
		at, keys = spec, keys[1:]
	}
	for _, key := range keys[:len(keys)-1] {
		below := map[string]any{}
		at[key], at = below, below
	}
	at[keys[len(keys)-1]] = value
	for _, p := range podvalidation.Check(map[string]any{"spec": spec}, podvalidation.Options{}) {
		rest, below := strings.CutPrefix(p.Field, inPod)
		if !below {
			continue
		}
		path := slices.Clone(path)
		for _, e := range workload.ParseField(rest) {
			path = append(path, fmt.Sprint(e))
		}
		add(path, "%s", strings.TrimPrefix(p.Message, "container istio-proxy: "))
	}
}

// asDocument returns a value with the numbers of a document.
func asDocument(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = asDocument(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = asDocument(e)
		}
		return out
	case int:
		return int64(v)
	}
	return v
}

// checkPullSecrets checks the names of the Secrets for pulling images.
func checkPullSecrets(values map[string]any, add func([]string, string, ...any)) {
	path := []string{"global", "imagePullSecrets"}
	value, _ := valueAt(values, path)
	list, isList := value.([]any)
	if value != nil && value != "" && !isList {
		add(path, "must be a list of names of Secrets, is %s", strict.Describe(value))
	}
	for i, e := range list {
		name, isText := e.(string)
		if isText && (name == "" || isDNSName(name) || feature.HasPlaceholder(name)) { // API servers accept a reference without a name
			continue
		}
		hint := ""
		if m, isMap := e.(map[string]any); isMap && m["name"] != nil {
			hint = fmt.Sprintf("; write - %v", m["name"])
		}
		add(append(path[:2:2], strconv.Itoa(i)), "must be the name of a Secret, is %s%s", strict.Describe(e), hint)
	}
}

// checkAnnotationValues checks the names of the annotations that every injected pod gets.
func checkAnnotationValues(values map[string]any, add func([]string, string, ...any)) {
	path := []string{hookValues, "injectedAnnotations"}
	value, _ := valueAt(values, path)
	annotations, _ := value.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if reasons := validation.IsQualifiedName(strings.ToLower(key)); len(reasons) > 0 {
			add(append(path[:2:2], key), "is not the name of an annotation: %s", reasons[0])
		}
	}
}

// valueAt returns the value at a path of keys.
func valueAt(values map[string]any, path []string) (value any, ok bool) {
	value = values
	for _, key := range path {
		below, isMap := value.(map[string]any)
		if !isMap {
			return nil, false
		}
		if value, ok = below[key]; !ok {
			return nil, false
		}
	}
	return value, true
}

// dottedKey returns the mapping that a key with dots means to helm --set, or "".
func dottedKey(key string) string {
	parts := strings.Split(key, ".")
	if len(parts) < 2 || slices.Contains(parts, "") {
		return ""
	}
	return strings.Join(parts, ": {") + ": …" + strings.Repeat("}", len(parts)-1)
}
