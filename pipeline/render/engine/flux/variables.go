// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package flux

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/envsubst"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/render/engine/release"
)

// Variables are those of a Kustomization's spec.postBuild.
type Variables struct {
	values map[string]string
	// locked are variables whose values cannot be read, with the object that has them.
	locked map[string]string
	// absent are the optional objects that the tree does not have, and that may set further ones.
	absent []string
	active bool
	// keep keeps the text of variables without a value.
	keep bool
}

// Unresolved is a variable without a value in a field of an object.
type Unresolved struct {
	Field, Variable, Reason string
	// Kept reports that the text of the variable stays, and Elsewhere that what is not in the tree may have its value.
	Kept, Elsewhere bool
}

var variableName = lazyregexp.New(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`)

// ReadVariables collects the variables of a Kustomization. find returns a ConfigMap or Secret of its namespace, or nil.
// Absent returns what is optional and was not found. With keep, every object is optional, and the text of variables without a value
// stays.
func ReadVariables(k *Kustomization, keep bool, find func(kind, name string) *release.Object) (*Variables, error) {
	v := &Variables{values: map[string]string{}, locked: map[string]string{}, keep: keep}
	build := k.Spec.PostBuild
	if build == nil {
		return v, nil
	}
	for i, ref := range build.SubstituteFrom {
		at := fmt.Sprintf("spec.postBuild.substituteFrom[%d]", i)
		if ref.Kind != "ConfigMap" && ref.Kind != "Secret" {
			return nil, release.FieldError(k.Object, at+".kind", "must be ConfigMap or Secret, found %q", ref.Kind)
		}
		name := fmt.Sprintf("%s %s/%s", ref.Kind, k.Namespace, ref.Name)
		object := find(ref.Kind, ref.Name)
		if object == nil && !ref.Optional && !keep {
			return nil, release.FieldError(k.Object, at+".name", "%s is not among the objects of the tree, and only the cluster has its values; "+
				"put it into the source, or set its variables under spec.postBuild.substitute", name)
		}
		if object == nil {
			v.absent = append(v.absent, name)
			continue
		}
		if err := v.addObject(name, object); err != nil {
			return nil, release.FieldError(k.Object, at+".name", "%s: %v", name, err)
		}
	}
	for key, value := range build.Substitute {
		v.set(key, value)
	}
	for _, key := range slices.Sorted(maps.Keys(v.values)) {
		if !variableName.MatchString(key) {
			return nil, release.FieldError(k.Object, "spec.postBuild", "%q is no name of a variable: only letters, digits and _ are, and no digit at the start", key)
		}
	}
	always := build.SubstituteStrategy == kustomizev1.SubstituteStrategyAlways
	v.active = always || len(v.values)+len(v.locked)+len(v.absent) > 0
	return v, nil
}

// Active reports whether variables are substituted at all.
func (v *Variables) Active() bool { return v.active }

// Absent returns the optional objects that the tree does not have.
func (v *Variables) Absent() []string { return v.absent }

func (v *Variables) set(key, value string) {
	v.values[key] = strings.ReplaceAll(value, "\n", "")
	delete(v.locked, key)
}

// addObject adds the variables of a ConfigMap or Secret. Of one that SOPS has encrypted, only the names can be read.
func (v *Variables) addObject(name string, object *release.Object) error {
	for _, key := range release.DataKeys(object) {
		if object.Value["sops"] != nil {
			delete(v.values, key)
			v.locked[key] = name
			continue
		}
		value, found, err := release.DataOf(object, key)
		if err != nil {
			return err
		}
		if found {
			v.set(key, value)
		}
	}
	return nil
}

// disabledKey is the label or annotation that leaves an object as it is.
const disabledKey = Group + "/substitute"

// Disabled reports whether an object asks that its text is left as it is.
func Disabled(res *resource.Resource) bool {
	return res.GetLabels()[disabledKey] == kustomizev1.DisabledValue || res.GetAnnotations()[disabledKey] == kustomizev1.DisabledValue
}

// Substitute replaces the variables of an object by their values, as kustomize-controller does when it is strict
// (StrictPostBuildSubstitutions). It returns the variables without a value and without a default: the object stays as it is then, or
// has their text, if that is kept.
func (v *Variables) Substitute(res *resource.Resource) ([]Unresolved, error) {
	if !v.active || Disabled(res) {
		return nil, nil
	}
	text, err := res.AsYAML()
	if err != nil {
		return nil, err
	}
	output, missing, err := v.evaluate(string(text))
	if err != nil {
		return nil, fmt.Errorf("substituting variables: %w", err)
	}
	var unresolved []Unresolved
	if len(missing) > 0 {
		unresolved = v.describeMissing(res, missing)
	}
	if slices.ContainsFunc(unresolved, func(one Unresolved) bool { return !one.Kept }) {
		return unresolved, nil
	}
	converted, err := yaml.YAMLToJSON([]byte(output))
	if err != nil {
		return nil, fmt.Errorf("reading it with its variables substituted: %w", err)
	}
	if err := res.UnmarshalJSON(converted); err != nil {
		return nil, fmt.Errorf("reading it with its variables substituted: %w", err)
	}
	return unresolved, nil
}

// Variables without a value are looked for up to a number, and to a sum of bytes: each of them reads the whole text.
const (
	leastMissing = 50
	maxTried     = 16 << 20
)

// evaluate substitutes in a text, and returns the variables that have no value. Each is found by a try of its own, as
// the package does not report whether an expression has a default.
func (v *Variables) evaluate(text string) (output string, missing []string, err error) {
	most := max(leastMissing, maxTried/(len(text)+1))
	for {
		last := ""
		output, err = envsubst.Eval(text, func(name string) (string, bool) {
			last = name
			if v.locked[name] != "" && !slices.Contains(missing, name) {
				missing = append(missing, name)
			}
			if v.keep && slices.Contains(missing, name) {
				return "${" + name + "}", true
			}
			value, ok := v.values[name]
			return value, ok || slices.Contains(missing, name)
		})
		if err == nil {
			return output, missing, nil
		}
		if len(missing) >= most {
			return "", nil, fmt.Errorf("more than %d variables have no value, such as %s", most, missing[0])
		}
		_, known := v.values[last]
		if last == "" || known || slices.Contains(missing, last) {
			return "", nil, err
		}
		missing = append(missing, last)
	}
}

// isElsewhere reports whether what is not in the tree may have the value of a variable.
func (v *Variables) isElsewhere(name string) bool { return v.locked[name] != "" || len(v.absent) > 0 }

func (v *Variables) describeMissing(res *resource.Resource, missing []string) []Unresolved {
	value, err := res.Map()
	if err != nil {
		value = nil
	}
	var out []Unresolved
	for _, name := range missing {
		field, _ := release.FindVariable(value, func(found string) bool { return found == name })
		out = append(out, Unresolved{Field: field, Variable: name, Reason: v.reasonFor(name), Kept: v.keep, Elsewhere: v.isElsewhere(name)})
	}
	return out
}

// reasonFor describes why a variable has no value, and what to do.
func (v *Variables) reasonFor(name string) string {
	if object := v.locked[name]; object != "" {
		return "its value is in " + object + ", which is encrypted, and needs a key, which a render does not have"
	}
	reason := "it has no value and no default"
	if len(v.absent) > 0 {
		reason += "; " + strings.Join(v.absent, ", ") + ", which may set it, is not among the objects of the tree"
	}
	return fmt.Sprintf("%s; set it under spec.postBuild.substitute, or write ${%s:=default}, or $${%s} for the text itself", reason, name, name)
}
