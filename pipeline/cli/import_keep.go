// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/cli/importer"
)

// importedKeys are the parts of a spec that an import decides about even where it does not write them.
var importedKeys = map[string]bool{"from": true, "istio": true, "namespaces": true, "sidecars": true,
	"unknownNamespace": true}

// leftKeys are the parts of spec.istio that an import leaves to people.
var leftKeys = []string{"runtimeWebhook", "admission"}

// errNoPolicy is the cause of an error about a file that holds other things than a policy.
var errNoPolicy = errors.New("it contains no InjectionPolicy")

// readPolicyObject returns the policy of a file, which must contain exactly one, and the number of other documents
// in the file.
func readPolicyObject(name string, text []byte) (found map[string]any, others int, err error) {
	file, err := manifest.Parse(name, text)
	if err != nil {
		return nil, 0, err
	}
	for _, doc := range file.Docs {
		if doc.Empty() {
			continue
		}
		obj, err := doc.Object()
		switch {
		case err != nil:
			return nil, 0, err
		case obj["kind"] != v1alpha1.Kind:
			others++
			continue
		case found != nil:
			return nil, 0, fmt.Errorf("reading %s: it contains more than one policy", name)
		}
		found = obj
	}
	if found == nil {
		return nil, 0, fmt.Errorf("reading %s: %w", name, errNoPolicy)
	}
	return found, others, nil
}

// leftToPeople returns the parts of a policy's spec that an import does not decide about: those that no import writes,
// and that this one did not write.
func leftToPeople(spec map[string]any, imported []byte) (map[string]any, error) {
	var sets struct {
		Spec map[string]any `json:"spec"`
	}
	if err := yaml.Unmarshal(imported, &sets); err != nil {
		return nil, err
	}
	left, _ := withoutEmpty(spec).(map[string]any)
	maps.DeleteFunc(left, func(key string, _ any) bool { return sets.Spec[key] != nil || importedKeys[key] })
	istio, _ := spec["istio"].(map[string]any)
	own, _ := withoutEmpty(istio).(map[string]any)
	maps.DeleteFunc(own, func(key string, _ any) bool { return !slices.Contains(leftKeys, key) })
	if len(own) > 0 {
		left["istio"] = own
	}
	return left, nil
}

// withoutEmpty returns a copy of a value without what is null or an empty list or map in its maps: a policy is not
// written with these.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, one := range v {
			one = withoutEmpty(one)
			list, isList := one.([]any)
			of, isMap := one.(map[string]any)
			if one != nil && (!isList || len(list) > 0) && (!isMap || len(of) > 0) {
				out[key] = one
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			out[i] = withoutEmpty(one)
		}
		return out
	}
	return v
}

// keepFromOutput copies the settings that people made in the policy to be replaced into the imported one, so that
// another import changes only what it decides itself. It notes the settings it kept. A file that would lose content
// is not replaced.
func (im *importRun) keepFromOutput(imp *importer.Import) error {
	info, err := os.Stat(im.to)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() { // a pipe would wait for what is to be written
		return nil
	}
	text, err := os.ReadFile(im.to)
	if err != nil {
		return fmt.Errorf("reading the policy: %w", err)
	}
	if isBlank(text) {
		return nil
	}
	old, others, err := readPolicyObject(im.to, text)
	var parsed *v1alpha1.InjectionPolicy
	if err == nil {
		parsed, err = parsePolicy(old)
	}
	const instead = "remove it, or choose another file with --to"
	switch {
	case errors.Is(err, errNoPolicy):
		return fmt.Errorf("writing %s: the file exists and is not an InjectionPolicy; %s", im.to, instead)
	case err != nil:
		return fmt.Errorf("writing %s: the manual settings in the existing file cannot be kept; fix it, %s: %w", im.to,
			instead, err)
	case others > 0:
		return fmt.Errorf("writing %s: the existing file has %s besides the policy, which would be lost; move them to another file, or choose another file with --to",
			im.to, countWithNoun(others, "document"))
	}
	written, err := importer.Marshal(imp.Policy, "")
	if err != nil {
		return err
	}
	spec, _ := old["spec"].(map[string]any)
	left, err := leftToPeople(spec, written)
	if err != nil {
		return err
	}
	if imp.Policy.Spec.Istio == nil {
		delete(left, "istio")
	}
	im.copyOldMetadata(&imp.Policy.Metadata, parsed.Metadata)
	return im.copyOldSpec(imp.Policy, left)
}

// isBlank reports whether a file contains only blanks and document markers. Comments count as content: a person
// wrote them.
func isBlank(text []byte) bool {
	for line := range strings.Lines(strings.TrimPrefix(string(text), "\ufeff")) {
		if line = strings.TrimRight(line, " \t\r\n"); line != "" && line != "---" && line != "..." {
			return false
		}
	}
	return true
}

// parsePolicy returns the policy that an object is.
func parsePolicy(object map[string]any) (*v1alpha1.InjectionPolicy, error) {
	text, err := yaml.Marshal(object)
	if err != nil {
		return nil, err
	}
	return v1alpha1.Parse(text)
}

// copyOldSpec writes parts of an old spec into the new policy.
func (im *importRun) copyOldSpec(to *v1alpha1.InjectionPolicy, left map[string]any) error {
	var kept []string
	for _, key := range slices.Sorted(maps.Keys(left)) {
		if key != "istio" {
			kept = append(kept, "spec."+key)
			continue
		}
		own, _ := left[key].(map[string]any)
		for _, part := range slices.Sorted(maps.Keys(own)) {
			kept = append(kept, "spec.istio."+part)
		}
	}
	text, err := yaml.Marshal(map[string]any{"spec": left})
	if err == nil {
		err = yaml.Unmarshal(text, to) // it replaces what it names, and leaves the rest
	}
	if err != nil {
		return fmt.Errorf("keeping %s of %s: %w", strings.Join(kept, ", "), im.to, err)
	}
	im.kept = append(im.kept, kept...)
	return nil
}

// copyOldMetadata writes the labels and annotations of an old policy into the new one, which has its own name.
func (im *importRun) copyOldMetadata(to *v1alpha1.Metadata, old v1alpha1.Metadata) {
	if old.Namespace != "" {
		to.Namespace = old.Namespace
		im.kept = append(im.kept, "metadata.namespace")
	}
	delete(old.Annotations, v1alpha1.CompletedAnnotation) // it is about the policy that is replaced
	for _, of := range []struct {
		name string
		to   *map[string]string
		old  map[string]string
	}{{"labels", &to.Labels, old.Labels}, {"annotations", &to.Annotations, old.Annotations}} {
		for _, key := range slices.Sorted(maps.Keys(of.old)) {
			if _, written := (*of.to)[key]; written {
				continue
			}
			if *of.to == nil {
				*of.to = map[string]string{}
			}
			(*of.to)[key] = of.old[key]
			im.kept = append(im.kept, "metadata."+of.name+"["+key+"]")
		}
	}
}
