// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package capture writes the objects of a cluster that can change a pod or reject an object into a directory: without
// Secrets, sorted, and without what only a server sets, so that a second capture has the same bytes.
package capture

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// FileName is the file that describes a capture.
const FileName = "capture.yaml"

// The kind of the description.
const (
	APIVersion = "prerig.dev/v1alpha1"
	Kind       = "ClusterCapture"
)

// Description lists what a capture holds.
type Description struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// KubernetesVersion is that of the API server, such as v1.36.3.
	KubernetesVersion string `json:"kubernetesVersion"`
	// Complete are the kinds of which the capture has all objects.
	Complete []string `json:"complete"`
	// Parameters are the kinds of which the capture has all objects that its policies read as parameters.
	Parameters []string `json:"parameters,omitempty"`
	// Unread are the resources that could not be read.
	Unread []string `json:"unread,omitempty"`
	// Files are the files of the capture beside this one.
	Files []string `json:"files"`
}

// ReadDescription reads the description among the objects of a directory; nil if the object is none.
func ReadDescription(object map[string]any) (*Description, error) {
	if object["apiVersion"] != APIVersion || object["kind"] != Kind {
		return nil, nil
	}
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var out Description
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("reading the %s: %w", Kind, err)
	}
	return &out, nil
}

// Files returns the files of a capture, by their names below its directory.
func Files(d Description, objects []map[string]any) (map[string][]byte, error) {
	d.APIVersion, d.Kind = APIVersion, Kind
	byFile := map[string][]map[string]any{}
	for _, object := range objects {
		if object["kind"] == "Secret" {
			continue
		}
		clean := cleaned(object)
		byFile[fileOf(clean)] = append(byFile[fileOf(clean)], clean)
	}
	out := map[string][]byte{}
	for name, list := range byFile {
		slices.SortFunc(list, func(a, b map[string]any) int { return cmp.Compare(keyOf(a), keyOf(b)) })
		var text bytes.Buffer
		for i, object := range list {
			one, err := yaml.Marshal(object)
			if err != nil {
				return nil, fmt.Errorf("writing %s: %w", keyOf(object), err)
			}
			if i > 0 {
				text.WriteString("---\n")
			}
			text.Write(one)
		}
		out[name] = text.Bytes()
	}
	d.Files = slices.Sorted(maps.Keys(out))
	d.Complete = slices.Sorted(slices.Values(d.Complete))
	text, err := yaml.Marshal(d)
	out[FileName] = text
	return out, err
}

// fileOf returns the file of an object: one for each kind, and for each namespace.
func fileOf(object map[string]any) string {
	kind, _ := object["kind"].(string)
	metadata, _ := object["metadata"].(map[string]any)
	name := strings.ToLower(kind) + ".yaml"
	if namespace, _ := metadata["namespace"].(string); namespace != "" {
		return path.Join("namespaces", namespace, name)
	}
	return name
}

func keyOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	return fmt.Sprintf("%v %v/%v", object["kind"], metadata["namespace"], metadata["name"])
}

// kept are the fields of metadata that a capture keeps.
var kept = []string{"name", "namespace", "labels", "annotations"}

// lastApplied holds the whole object as kubectl applied it.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// mountableAnnotation makes the Secrets that a ServiceAccount lists count.
const mountableAnnotation = "kubernetes.io/enforce-mountable-secrets"

// cleaned returns an object without what only a server sets.
func cleaned(object map[string]any) map[string]any {
	out := maps.Clone(object)
	if out["kind"] != "Node" {
		delete(out, "status")
	}
	from, _ := object["metadata"].(map[string]any)
	metadata := map[string]any{}
	for _, key := range kept {
		if v, ok := from[key]; ok {
			metadata[key] = v
		}
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok && annotations[lastApplied] != nil {
		annotations = maps.Clone(annotations)
		delete(annotations, lastApplied)
		metadata["annotations"] = annotations
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	out["metadata"] = metadata
	switch out["kind"] {
	case "ServiceAccount":
		if annotations, _ := metadata["annotations"].(map[string]any); annotations[mountableAnnotation] == nil {
			delete(out, "secrets") // the names of tokens
		}
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		out["webhooks"] = withoutBundles(out["webhooks"])
	case "CustomResourceDefinition":
		if spec, ok := out["spec"].(map[string]any); ok {
			spec = maps.Clone(spec)
			spec["conversion"] = withoutBundle(spec["conversion"])
			out["spec"] = spec
		}
	}
	return out
}

// withoutBundles leaves out the certificates of webhooks, which are renewed.
func withoutBundles(list any) any {
	webhooks, _ := list.([]any)
	out := make([]any, len(webhooks))
	for i, w := range webhooks {
		out[i] = withoutBundle(w)
	}
	return out
}

// withoutBundle leaves out caBundle below a value.
func withoutBundle(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for key, child := range v {
			if key != "caBundle" {
				out[key] = withoutBundle(child)
			}
		}
		return out
	case []any:
		return withoutBundles(v)
	}
	return v
}
