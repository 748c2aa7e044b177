// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/podmap"
)

// operatorFields are those of an IstioOperator's spec; false means that pods do not depend on the field.
var operatorFields = map[string]bool{
	"profile": true, "installPackagePath": true, "hub": true, "tag": true, "namespace": false, "revision": true,
	"compatibilityVersion": true, "meshConfig": true, "components": true, "values": true, "unvalidatedValues": true,
}

// sailFields are those of an Istio's spec.
var sailFields = map[string]bool{"version": true, "profile": true, "namespace": true, "values": true,
	"updateStrategy": true, "createNetworkPolicy": false}

// checkFields refuses fields that the kind does not have, and notes those that do not matter.
func (o *operatorBuilder) checkFields(known map[string]bool) error {
	spec, _ := o.object.Value["spec"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(spec)) {
		matters, ok := known[key]
		if !ok {
			return o.errorAtField([]string{"spec", key}, "unknown field; known fields are %s",
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if !matters {
			o.leftOut = append(o.leftOut, "spec."+key)
		}
	}
	return nil
}

// readOperator reads an IstioOperator as istioctl does: the profile, below the values, below hub, tag, revision and
// mesh config.
func (o *operatorBuilder) readOperator() error {
	if err := o.checkFields(operatorFields); err != nil {
		return err
	}
	if path := firstText(podmap.ValueAt(o.object.Value, "spec", "installPackagePath")); path != "" {
		return o.errorAtField([]string{"spec", "installPackagePath"},
			"custom charts cannot be read; import their output: istioctl manifest generate -f FILE | prerig import")
	}
	profile, err := o.profileByName(firstText(podmap.ValueAt(o.object.Value, "spec", "profile"), "default"))
	if err != nil {
		return err
	}
	given, err := o.mapAt("spec", "values")
	if err != nil {
		return err
	}
	// If a setting is also a field of the spec, the values win, except for the mesh config, where the spec's wins.
	values := profile.values
	for _, f := range []struct{ from, to string }{{"hub", "hub"}, {"tag", "tag"}} {
		if v := firstText(podmap.ValueAt(o.object.Value, "spec", f.from)); v != "" {
			values = mergedValues(values, map[string]any{"global": map[string]any{f.to: v}})
		}
	}
	for _, key := range []string{"revision", "compatibilityVersion"} {
		if v := firstText(podmap.ValueAt(o.object.Value, "spec", key)); v != "" {
			values = mergedValues(values, map[string]any{key: v})
		}
	}
	mesh, err := o.mapAt("spec", "meshConfig")
	if err != nil {
		return err
	}
	values = mergedValues(mergedValues(values, given), map[string]any{"meshConfig": mesh})
	cni, err := o.readComponents(profile)
	if err != nil {
		return err
	}
	values = mergedValues(values, map[string]any{"pilot": map[string]any{"cni": map[string]any{"enabled": cni}}})
	unvalidated, err := o.mapAt("spec", "unvalidatedValues")
	if err != nil {
		return err
	}
	if podmap.ValueAt(unvalidated, "global", "istioNamespace") != nil {
		return o.errorAtField([]string{"spec", "unvalidatedValues", "global", "istioNamespace"},
			"istioctl installs into another namespace; set it in spec.values")
	}
	return o.setValues(mergedValues(values, unvalidated))
}

// profileByName returns the profile of the name.
func (o *operatorBuilder) profileByName(name string) (operatorProfile, error) {
	p, ok := operatorProfiles[name]
	if !ok {
		return p, o.errorAtField([]string{"spec", "profile"}, "the profile %q is not one of Istio %s; it has %s", name, o.base.Version,
			strings.Join(slices.Sorted(maps.Keys(operatorProfiles)), ", "))
	}
	return p, nil
}

// mapAt is the map at the path, which may be missing.
func (o *operatorBuilder) mapAt(path ...string) (map[string]any, error) {
	v := podmap.ValueAt(o.object.Value, path...)
	m, ok := v.(map[string]any)
	if v != nil && !ok {
		return nil, o.errorAtField(path, "it must be a map")
	}
	return m, nil
}

// readComponents reads the settings of components that affect pods: whether a CNI plugin is used, and the
// environment of istiod.
func (o *operatorBuilder) readComponents(profile operatorProfile) (cni bool, err error) {
	const components, enabled = "components", "enabled"
	all, err := o.mapAt("spec", components)
	if err != nil {
		return false, err
	}
	cni = isEnabled(podmap.ValueAt(all, "cni", enabled), profile.cni)
	if !isEnabled(podmap.ValueAt(all, "pilot", enabled), !profile.withoutIstiod) {
		return false, o.errorAtField([]string{"spec", components, "pilot", enabled}, "no control plane is installed, so nothing is injected")
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name != "pilot" && name != "cni" {
			o.leftOut = append(o.leftOut, "spec.components."+name)
		}
	}
	pilot, err := o.mapAt("spec", components, "pilot")
	if err != nil {
		return false, err
	}
	for _, e := range objectsOf(podmap.ValueAt(pilot, "k8s", "env")) {
		o.setEnv(podmap.TextAt(e, "name"), e["value"])
	}
	namespace := firstText(podmap.ValueAt(o.object.Value, "spec", "values", "global", "istioNamespace"), "istio-system")
	if own := firstText(podmap.ValueAt(pilot, "namespace")); own != "" && own != namespace {
		return false, o.errorAtField([]string{"spec", components, "pilot", "namespace"}, "it is not values.global.istioNamespace, which is %s; set both to the same", namespace)
	}
	return cni, o.checkOverlays(pilot)
}

// checkOverlays refuses changes of the rendered objects from which the injector reads.
func (o *operatorBuilder) checkOverlays(pilot map[string]any) error {
	for _, overlay := range objectsOf(podmap.ValueAt(pilot, "k8s", "overlays")) {
		field := []string{"spec", "components", "pilot", "k8s", "overlays"}
		kind, name := podmap.TextAt(overlay, "kind"), podmap.TextAt(overlay, "name")
		env := slices.ContainsFunc(objectsOf(overlay["patches"]), func(p map[string]any) bool { return strings.Contains(podmap.TextAt(p, "path"), ".env") })
		if kind == "ConfigMap" || kind == "MutatingWebhookConfiguration" || kind == "Deployment" && env {
			return o.errorAtField(field, "the overlay changes %s %s, which the injector reads; import its output: istioctl manifest generate -f FILE | prerig import", kind, name)
		}
	}
	for key := range pilot {
		if key != "enabled" && key != "namespace" {
			o.leftOut = append(o.leftOut, "spec.components.pilot."+key)
		}
	}
	if k8s, ok := pilot["k8s"].(map[string]any); ok {
		o.leftOut = slices.DeleteFunc(o.leftOut, func(f string) bool { return f == "spec.components.pilot.k8s" })
		for key := range k8s {
			if key != "env" {
				o.leftOut = append(o.leftOut, "spec.components.pilot.k8s."+key)
			}
		}
	}
	return nil
}

func isEnabled(value any, otherwise bool) bool {
	if b, ok := value.(bool); ok {
		return b
	}
	return otherwise
}

// setEnv sets a variable of istiod's environment.
func (o *operatorBuilder) setEnv(name string, value any) {
	if value == nil {
		o.addWarning("%s of istiod's environment is set by a reference (valueFrom): set spec.istio.istiodEnv.%s yourself", name, name)
		return
	}
	o.env[name] = fmt.Sprint(value)
}

// readSail reads an Istio of the Sail operator, which accepts the values of its profiles and no components.
func (o *operatorBuilder) readSail(opts Options) error {
	if err := o.checkFields(sailFields); err != nil {
		return err
	}
	profile, err := o.profileByName(firstText(podmap.ValueAt(o.object.Value, "spec", "profile"), "default"))
	if err != nil {
		return err
	}
	given, err := o.mapAt("spec", "values")
	if err != nil {
		return err
	}
	version := strings.TrimPrefix(firstText(podmap.ValueAt(o.object.Value, "spec", "version")), "v")
	below := profile.values
	if v, ok := istio.ParseVersion(version); ok && v.Patch >= 0 {
		below = mergedValues(below, map[string]any{"global": map[string]any{"tag": version}})
	}
	if o.version == "" {
		o.version = strings.TrimSuffix(version, "-latest")
	}
	revision, err := o.sailRevision(version, opts)
	if err != nil {
		return err
	}
	namespace := firstText(podmap.ValueAt(o.object.Value, "spec", "namespace"), "istio-system")
	values := mergedValues(mergedValues(below, given),
		map[string]any{"revision": revision, "global": map[string]any{"istioNamespace": namespace}})
	if firstText(values["platform"], podmap.ValueAt(values, "global", "platform")) == "" {
		o.addNote("on OpenShift the Sail operator sets values.global.platform: openshift by itself; there, set it in %s before the import", o.object.referenceWithoutPlace())
	}
	return o.setValues(values)
}

// sailRevision is the name of the active revision: that of the Istio, with the version behind it where each version
// gets its own; default is none (pkg/istiovalues/overrides.go).
func (o *operatorBuilder) sailRevision(version string, opts Options) (string, error) {
	revision := o.object.name
	if firstText(podmap.ValueAt(o.object.Value, "spec", "updateStrategy", "type")) == "RevisionBased" {
		v, ok := istio.ParseVersion(version)
		switch {
		case opts.Revision != "":
			revision = opts.Revision
		case !ok || v.Patch < 0:
			return "", o.errorAtField([]string{"spec", "version"}, "the name of the revision depends on the release that %q refers to; set it with --revision", version)
		default:
			revision += "-v" + strings.ReplaceAll(version, ".", "-")
		}
	}
	if revision == defaultRevision {
		return "", nil
	}
	return revision, nil
}
