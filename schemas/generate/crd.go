// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// crdDirs are where the definitions of custom resources go: for kustomize and kubectl, and for the chart, which cannot read outside of
// its own directory.
var crdDirs = []string{"deploy/crds", "deploy/chart/crds"}

// customResource is the part of a definition beside the schema.
type customResource struct {
	kind, plural, short string
	schema, status      []byte
	columns             []any
	rules               []crdRule
	// bounds are the most elements of lists, by their paths: the API server works out from them what rules may cost.
	bounds map[string]int
}

// crdRule is a rule in CEL of the schema at a path.
type crdRule struct{ at, rule, message string }

// exactlyOneRule is a rule about fields of which one must be set.
func exactlyOneRule(at string, fields ...string) crdRule {
	return crdRule{at, countSetFieldsExpression(fields) + " == 1", "exactly one of " + strings.Join(fields, ", ") + " must be given"}
}

// atMostOne is a rule about fields that exclude each other.
func atMostOne(at string, fields ...string) crdRule {
	return crdRule{at, countSetFieldsExpression(fields) + " <= 1", "at most one of " + strings.Join(fields, ", ") + " may be given"}
}

// texts are fields that hold a text. An empty one is as good as none, as decoders read it.
var texts = []string{"branch", "tag", "name", "digest", "path", "file", "builtIn", "config", "values"}

// fieldIsSetExpression returns whether a field is set.
func fieldIsSetExpression(field string) string {
	if slices.Contains(texts, field) {
		return "has(self." + field + ") && self." + field + " != ''"
	}
	return "has(self." + field + ")"
}

// countSetFieldsExpression returns the number of fields that are set.
func countSetFieldsExpression(fields []string) string {
	has := make([]string, len(fields))
	for i, field := range fields {
		has[i] = fieldIsSetExpression(field)
	}
	return "[" + strings.Join(has, ", ") + "].filter(given, given).size()"
}

func printerColumn(name, kind, path string, priority int) any {
	out := map[string]any{"name": name, "type": kind, "jsonPath": path}
	if priority > 0 {
		out["priority"] = priority
	}
	return out
}

// customResources are the definitions. Rules check no more than the decoders do, which tests with an API server
// compare.
func customResources(pipeline, pipelineStatus, policy, policyStatus []byte) []customResource {
	ready, message := printerColumn("Ready", "string", `.status.conditions[?(@.type=="Ready")].status`, 0),
		printerColumn("Status", "string", `.status.conditions[?(@.type=="Ready")].message`, 0)
	age := printerColumn("Age", "date", ".metadata.creationTimestamp", 0)
	return []customResource{{
		kind: "RenderPipeline", plural: "renderpipelines", short: "rp", schema: pipeline, status: pipelineStatus,
		columns: []any{
			ready, message, printerColumn("Revision", "string", ".status.lastRun.revision", 1), printerColumn("Suspended", "boolean", ".spec.suspend", 1), age,
		},
		rules: []crdRule{
			exactlyOneRule("spec.source", "git", "oci", "dir"),
			exactlyOneRule("spec.sources[]", "git", "oci", "dir"),
			exactlyOneRule("spec.policies[]", "path", "file", "builtIn", "name"),
			exactlyOneRule("spec.publish[]", v1alpha1.PublishKinds()...),
			exactlyOneRule("spec.notify[]", "fluxReceiver", "cloudEvent", "commitStatus"),
			atMostOne("spec.source.git.ref", "branch", "tag", "name"),
			atMostOne("spec.source.oci.ref", "tag", "digest"),
		},
		bounds: map[string]int{"spec.sources": 64, "spec.policies": 64, "spec.publish": 64, "spec.notify": 64},
	}, {
		kind: "InjectionPolicy", plural: "injectionpolicies", short: "ipol", schema: policy, status: policyStatus,
		columns: []any{ready, message, printerColumn("Mode", "string", ".spec.mode", 1), age},
		rules: []crdRule{
			atMostOne("spec.istio.injector", "config", "configMap", "builtIn"),
			{"spec.istio.injector", "!(" + fieldIsSetExpression("values") + ") || " + fieldIsSetExpression("config"), "values belong to config, which must be given too"},
			{"spec", "!has(self.from) || self.from == '' || !has(self.istio) || !has(self.istio.injector) || !has(self.istio.injector.configMap)",
				"from: Cluster reads the injector's ConfigMap of the cluster, and excludes istio.injector.configMap"},
		},
	}}
}

// crdFiles returns the definitions as files.
func crdFiles(all []customResource) (files []generatedFile, err error) {
	for _, one := range all {
		text, err := one.customResourceDefinition()
		if err != nil {
			return nil, fmt.Errorf("writing the definition of %s: %w", one.kind, err)
		}
		for _, dir := range crdDirs {
			files = append(files, generatedFile{dir + "/prerig.dev_" + one.plural + ".yaml", text})
		}
	}
	return files, nil
}

// generatedHeader begins generated YAML.
const generatedHeader = "# SPDX-FileCopyrightText: The Prerig Authors\n# SPDX-License-Identifier: Apache-2.0\n# Generated by go run ./schemas/generate.\n"

// alertFiles returns the alerts of the example as the Prometheus operator reads them, for kustomize, and as the chart
// reads them.
func alertFiles() ([]generatedFile, error) {
	text, err := os.ReadFile("examples/monitoring/rules.yaml")
	if err != nil {
		return nil, fmt.Errorf("reading the alerts: %w", err)
	}
	var rules map[string]any
	if err := yaml.Unmarshal(text, &rules); err != nil {
		return nil, fmt.Errorf("reading the alerts: %w", err)
	}
	object, err := yaml.Marshal(map[string]any{
		"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": map[string]any{"name": "prerig", "namespace": "prerig"}, "spec": rules,
	})
	if err != nil {
		return nil, fmt.Errorf("writing the alerts: %w", err)
	}
	return []generatedFile{
		{"deploy/components/monitoring/prometheusrule.yaml", append([]byte(generatedHeader), object...)},
		{"deploy/chart/alerts.yaml", append([]byte(generatedHeader), text...)},
	}, nil
}

// customResourceDefinition returns the CustomResourceDefinition.
func (r customResource) customResourceDefinition() ([]byte, error) {
	schema, err := toStructuralSchema(r.schema)
	if err != nil {
		return nil, err
	}
	properties := schema["properties"].(map[string]any)
	status, err := toStructuralSchema(r.status)
	if err != nil {
		return nil, err
	}
	// Without one, kstatus reports an object that no controller has seen yet as current. Flux' kinds have the same.
	status["default"] = map[string]any{"observedGeneration": -1}
	properties["status"] = status
	properties["metadata"] = map[string]any{"type": "object"}
	for _, field := range []string{"apiVersion", "kind"} {
		delete(properties[field].(map[string]any), "enum") // the API server knows both
	}
	schema["required"] = []any{"spec"}
	for at, most := range r.bounds {
		schemaAt(schema, at)["maxItems"] = most
	}
	for _, rule := range r.rules {
		at := schemaAt(schema, rule.at)
		rules, _ := at["x-kubernetes-validations"].([]any)
		at["x-kubernetes-validations"] = append(rules, map[string]any{"rule": rule.rule, "message": rule.message})
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": r.plural + ".prerig.dev", "labels": map[string]any{"app.kubernetes.io/part-of": "prerig"}},
		"spec": map[string]any{
			"group": "prerig.dev", "scope": "Namespaced",
			"names": map[string]any{
				"kind": r.kind, "listKind": r.kind + "List", "plural": r.plural, "singular": strings.ToLower(r.kind),
				"shortNames": []any{r.short}, "categories": []any{"prerig"},
			},
			"versions": []any{map[string]any{
				"name": "v1alpha1", "served": true, "storage": true, "additionalPrinterColumns": r.columns,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema":       map[string]any{"openAPIV3Schema": schema},
			}},
		},
	})
	return append([]byte(generatedHeader), text...), err
}

// schemaAt returns the schema of a field, such as spec.publish[] for the elements of a list.
func schemaAt(schema map[string]any, path string) map[string]any {
	for field := range strings.SplitSeq(path, ".") {
		name, element := strings.CutSuffix(field, "[]")
		schema = schema["properties"].(map[string]any)[name].(map[string]any)
		if element {
			schema = schema["items"].(map[string]any)
		}
	}
	return schema
}

// toStructuralSchema returns a JSON Schema in the form that a definition accepts.
func toStructuralSchema(text []byte) (map[string]any, error) {
	var s map[string]any
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	definitions, _ := s["$defs"].(map[string]any)
	out, _ := inlineRefs(s, definitions).(map[string]any)
	makeStructural(out)
	return out, nil
}

// makeStructural removes what a structural schema must not have, and adds what it must. The API server's own field
// validation closes closed objects.
func makeStructural(s map[string]any) {
	for _, word := range []string{"title", "allOf"} {
		delete(s, word)
	}
	switch more := s["additionalProperties"].(type) {
	case bool:
		delete(s, "additionalProperties")
	case map[string]any:
		makeStructural(more)
	}
	if items, ok := s["items"].(map[string]any); ok {
		makeStructural(items)
	} else if s["items"] == true {
		s["items"] = map[string]any{"x-kubernetes-preserve-unknown-fields": true}
	}
	properties, _ := s["properties"].(map[string]any)
	for _, p := range properties {
		makeStructural(p.(map[string]any))
	}
	if s["type"] == nil {
		s["x-kubernetes-preserve-unknown-fields"] = true // any value
	}
	if s["type"] == "object" && properties == nil && s["additionalProperties"] == nil {
		s["x-kubernetes-preserve-unknown-fields"] = true
	}
}
