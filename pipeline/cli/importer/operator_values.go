// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/builtin"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// readByOthers are values of which the policy has the effect elsewhere than among its overrides.
var readByOthers = []string{
	"profile", "global.profile", "platform", "global.platform", "compatibilityVersion", "meshConfig", "revision",
	"revisionTags",
	"global.remotePilotAddress", "global.proxy.tracer", "global.proxy.variant", "global.tracer", "env", "pilot.env",
	"pilot.cni.enabled",
	"cni.enabled", "cni.provider", "istiodRemote.injectionPath", "istiodRemote.injectionURL",
}

// unsupportedValues are values that change injected pods and that the built-in policy does not read, with those of the
// chart's settings that are all the same to it (files/injection-template.yaml of the chart).
var unsupportedValues = []struct {
	path     string
	harmless []string
	what     string
}{
	{"global.caName", nil, "it mounts credentials into the proxy"},
	{"global.mountMtlsCerts", []string{"false"}, "it mounts certificates into the proxy"},
	{"global.pilotCertProvider", []string{"istiod"}, "it changes the proxy's environment and volumes"},
	{"global.proxy.outlierLogPath", nil, "it adds an argument to the proxy"},
	{"global.proxy.tracer", []string{"none", "zipkin"}, "it adds to the mesh config and the proxy"},
	{"global.sts.servicePort", []string{"0"}, "it adds an argument to the proxy"},
	{"pilot.env.ENABLE_CLUSTER_TRUST_BUNDLE_API", []string{"false"}, "it changes the proxy's volumes"},
	{"global.omitSidecarInjectorConfigMap", []string{"false"}, "no injector is installed"},
	{"global.resourceScope", []string{"all", "namespace"}, "no injector is installed"},
	{"configMap", []string{"true"}, "the control plane of another cluster injects"},
	{"istiodRemote.enabled", []string{"false"}, "the control plane of another cluster injects"},
}

// unreadOverrides are values of the built-in policy that Istio's chart does not hand on to the injector.
var unreadOverrides = []string{"global.proxy.drainDuration", "global.proxy.terminationDrainDuration",
	"pilot.crlConfigMapName"}

// templateValue finds the values that a template reads.
var templateValue = lazyregexp.New(`\.Values((?:\.[A-Za-z0-9_]+)+)`)

// setValues uses the values of the document, adds the defaults of its profile, and rejects settings that pods would
// lack.
func (o *operatorBuilder) setValues(values map[string]any) error {
	below, err := chartDefaults(values)
	if err != nil {
		return fmt.Errorf("importing %s: %w", o.object, err)
	}
	o.values = mergedValues(below, values)
	// The values below pilot are merged over the top level (templates/zzy_descope_legacy.yaml of the chart).
	pilot, _ := o.values["pilot"].(map[string]any)
	for _, key := range []string{"cni", "env"} {
		top, _ := o.values[key].(map[string]any)
		own, _ := pilot[key].(map[string]any)
		pilot = mergedValues(pilot, map[string]any{key: mergedValues(top, own)})
	}
	o.values["pilot"] = pilot
	for name, value := range mergedValues(nil, pilot["env"].(map[string]any)) {
		if _, set := o.env[name]; !set {
			o.setEnv(name, fmt.Sprint(value))
		}
	}
	if api, ok := o.env["ENABLE_CLUSTER_TRUST_BUNDLE_API"]; ok {
		pilot["env"].(map[string]any)["ENABLE_CLUSTER_TRUST_BUNDLE_API"] = api
	}
	if o.version == "" {
		o.version = firstText(podmap.ValueAt(o.values, "global", "tag"))
	}
	for _, u := range unsupportedValues {
		path := strings.Split(u.path, ".")
		if v := firstText(podmap.ValueAt(o.values, path...)); v != "" && !slices.Contains(u.harmless, v) {
			return o.errorAtField(append([]string{"spec", "values"}, path...),
				"the value %s is not supported: %s; import the installed objects: "+
					"istioctl manifest generate -f FILE | prerig import, or the objects of the cluster", v, u.what)
		}
	}
	if firstText(o.values["revision"]) == defaultRevision {
		return o.errorAtField([]string{"spec", "revision"},
			"a revision named default does not inject by istio-injection; omit the field")
	}
	return nil
}

// setIstio writes spec.istio.
func (o *operatorBuilder) setIstio() error {
	revision := firstText(o.values["revision"])
	o.plane = &controlPlane{namespace: o.controlPlaneNamespace(), revision: firstText(revision, defaultRevision)}
	overrides := o.readPolicyOverrides()
	if revision != "" {
		overrides["revision"] = revision
	}
	if tag, ok := podmap.ValueAt(overrides, "global", "tag").(string); !ok && tag != "" {
		overrides = mergedValues(overrides, map[string]any{"global": map[string]any{"tag": tag}})
	}
	i := &v1alpha1.Istio{Injector: v1alpha1.Injector{BuiltIn: meshName}, Revision: revision}
	if len(overrides) > 0 {
		i.Injector.Overrides = overrides
	}
	for _, tag := range listOf(o.values["revisionTags"]) {
		i.RevisionTags = append(i.RevisionTags, fmt.Sprint(tag))
	}
	o.spec.Istio = i
	if v, ok := istio.ParseVersion(o.version); ok {
		i.Version = v.Short()
		if v.Patch >= 0 {
			i.Version = fmt.Sprintf("1.%d.%d", v.Minor, v.Patch)
		}
	}
	if _, err := builtin.Choose(i.Version, overrides); err != nil {
		return fmt.Errorf("importing %s: %w", o.object.referenceWithoutPlace(), err)
	}
	o.setIstiodEnv()
	path := map[string]any{"url": podmap.ValueAt(o.values, "istiodRemote", "injectionURL"),
		"service": map[string]any{"path": podmap.ValueAt(o.values, "istiodRemote", "injectionPath")}}
	o.injectionURL(map[string]any{"clientConfig": path})
	return o.setMesh()
}

// controlPlaneNamespace of the control plane.
func (o *operatorBuilder) controlPlaneNamespace() string {
	return firstText(podmap.ValueAt(o.values, "global", "istioNamespace"), "istio-system")
}

// customTemplates are those of the document.
func (o *operatorBuilder) customTemplates() map[string]string {
	return stringMapAt(o.values, "sidecarInjectorWebhook", "templates")
}

// setIstiodEnv copies the variables that the injector or a template reads.
func (o *operatorBuilder) setIstiodEnv() {
	wanted := map[string]bool{}
	for _, name := range injectorEnv {
		wanted[name] = true
	}
	for _, text := range o.customTemplates() {
		for _, m := range envReference.FindAllStringSubmatch(text, -1) {
			wanted[m[1]+m[2]] = true
		}
	}
	for name, value := range o.env {
		if !wanted[name] {
			o.leftOut = append(o.leftOut, name+" in istiod's environment")
			continue
		}
		if o.spec.Istio.IstiodEnv == nil {
			o.spec.Istio.IstiodEnv = map[string]string{}
		}
		o.spec.Istio.IstiodEnv[name] = value
	}
}

// readPolicyOverrides returns those values that the built-in policy or a custom template reads.
func (o *operatorBuilder) readPolicyOverrides() map[string]any {
	known := mergedValues(o.baseValues, map[string]any{
		"sidecarInjectorWebhook": map[string]any{
			"templates": nil, "defaultTemplates": nil, "neverInjectSelector": nil, "alwaysInjectSelector": nil,
			"injectedAnnotations":       nil,
			"enableNamespacesByDefault": nil,
		},
		"global": map[string]any{"proxy": map[string]any{"autoInject": nil, "resources": nil}},
	})
	for _, path := range unreadOverrides {
		removeValue(known, strings.Split(path, "."))
	}
	for name, text := range o.customTemplates() {
		for _, m := range templateValue.FindAllStringSubmatch(text, -1) {
			o.addTemplateValue(known, name, strings.Split(m[1], ".")[1:])
		}
	}
	kept, left := splitValues(o.values, known, nil)
	if cni := mapOf(podmap.ValueAt(kept, "pilot", "cni")); cni["enabled"] == false { // as in the built-in policy
		delete(cni, "enabled")
		if len(cni) == 0 {
			delete(kept, "pilot")
		}
	}
	given := mergedValues(mapOf(podmap.ValueAt(o.object.Value, "spec", "values")),
		mapOf(podmap.ValueAt(o.object.Value, "spec", "unvalidatedValues")))
	for _, path := range left {
		elsewhere := slices.ContainsFunc(readByOthers, func(r string) bool { return path == r || strings.HasPrefix(path, r+".") })
		if !elsewhere && podmap.ValueAt(given, strings.Split(path, ".")...) != nil {
			o.leftOut = append(o.leftOut, "spec.values."+path)
			o.warnOfSimilar(path)
		}
	}
	return kept
}

// warnOfSimilar warns of a value that is left out and that looks like a misspelled one of Istio's chart.
func (o *operatorBuilder) warnOfSimilar(path string) {
	keys := strings.Split(path, ".")
	for i, key := range keys {
		known := slices.Sorted(maps.Keys(mapOf(podmap.ValueAt(o.baseValues, keys[:i]...))))
		if slices.Contains(known, key) {
			continue
		}
		if near := strict.Closest(key, known); near != "" {
			field := slices.Concat([]string{"spec", "values"}, keys[:i+1])
			o.addWarning("%s: unknown value, did you mean %s? it is skipped", o.placeText(field), near)
		}
		return
	}
}

// addTemplateValue makes a value known that a custom template reads. One that neither the document nor the built-in
// policy has may be a default of the chart, which is not at hand.
func (o *operatorBuilder) addTemplateValue(known map[string]any, template string, path []string) {
	if podmap.ValueAt(o.values, path...) == nil && podmap.ValueAt(o.baseValues, path...) == nil {
		o.addWarning("the template %s reads .Values.%s, which the policy lacks; if the chart has it, set it in injector.overrides", template, strings.Join(path, "."))
	}
	for m := known; ; path = path[1:] {
		if len(path) == 1 {
			m[path[0]] = nil
			return
		}
		next, there := m[path[0]]
		below, isMap := next.(map[string]any)
		if there && !isMap {
			return // it is taken as a whole
		}
		if below == nil {
			below = map[string]any{}
			m[path[0]] = below
		}
		m = below
	}
}

// splitValues parts values into those that are known and the paths of the others. What is known and no map with keys is
// taken as a whole.
func splitValues(values, known map[string]any, at []string) (kept map[string]any, left []string) {
	kept = map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		path := append(at[:len(at):len(at)], key)
		want, ok := known[key]
		if !ok {
			left = append(left, strings.Join(path, "."))
			continue
		}
		below, isMap := values[key].(map[string]any)
		wanted, _ := want.(map[string]any)
		if !isMap || len(wanted) == 0 {
			kept[key] = values[key]
			continue
		}
		inner, others := splitValues(below, wanted, path)
		left = append(left, others...)
		if len(inner) > 0 {
			kept[key] = inner
		}
	}
	return kept, left
}

func removeValue(values map[string]any, path []string) {
	for ; len(path) > 1; path = path[1:] {
		values = mapOf(values[path[0]])
	}
	delete(values, path[0])
}

// mapOf returns the value if it is a map, otherwise nil.
func mapOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// listOf returns the value if it is a list, otherwise nil.
func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}
