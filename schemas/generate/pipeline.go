// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	pipelinev1alpha1 "github.com/prerig/prerig/pipeline/api/v1alpha1"
)

const pipelineDir = "pipeline/api/v1alpha1"

// pipelineSchema returns the JSON Schema of a RenderPipeline. The status is not the user's and stays open.
func pipelineSchema() (generatedFile, error) {
	return reflectSchema(&pipelinev1alpha1.RenderPipeline{}, pipelinev1alpha1.Kind)
}

// chartLockSchema returns the JSON Schema of a ChartLock.
func chartLockSchema() (generatedFile, error) {
	return reflectSchema(&pipelinev1alpha1.ChartLock{}, pipelinev1alpha1.KindChartLock)
}

// reflectSchema returns the JSON Schema of an object.
func reflectSchema(object any, kind string) (generatedFile, error) {
	name := strings.ToLower(kind) + "_v1alpha1.json"
	r := &jsonschema.Reflector{ExpandedStruct: true, Anonymous: true, Mapper: func(t reflect.Type) *jsonschema.Schema {
		switch t {
		case reflect.TypeFor[metav1.Duration]():
			return &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
		case reflect.TypeFor[pipelinev1alpha1.RenderPipelineStatus]():
			return &jsonschema.Schema{Type: "object"}
		}
		return nil
	}}
	if err := r.AddGoComments(module, "./"+pipelineDir, jsonschema.WithFullComment()); err != nil {
		return generatedFile{}, fmt.Errorf("reading the comments of %s: %w", pipelineDir, err)
	}
	enums := enumsOf(r.CommentMap)
	schema := r.Reflect(object)
	schema.ID = jsonschema.ID("https://prerig.dev/schemas/" + name)
	schema.Title = kind
	setConst(schema, "apiVersion", pipelinev1alpha1.APIVersion)
	setConst(schema, "kind", kind)
	for name, s := range schema.Definitions {
		if name == "Metadata" || name == "ChartLockMetadata" {
			s.AdditionalProperties = nil // other tools add their own
		}
		if name == "LocalObjectReference" {
			describeReference(s)
		}
		for p := s.Properties.Oldest(); p != nil; p = p.Next() {
			for _, value := range enums[strings.ToLower(name+"."+p.Key)] {
				p.Value.Enum = append(p.Value.Enum, value)
			}
		}
	}
	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return generatedFile{}, fmt.Errorf("writing the schema: %w", err)
	}
	return generatedFile{"schemas/" + name, append(text, '\n')}, nil
}

// statusSchemas returns the JSON Schemas of what the daemon writes into objects of a cluster.
func statusSchemas() (pipeline, policy []byte, err error) {
	for object, to := range map[any]*[]byte{&pipelinev1alpha1.RenderPipelineStatus{}: &pipeline, &pipelinev1alpha1.PolicyStatus{}: &policy} {
		r := &jsonschema.Reflector{ExpandedStruct: true, Anonymous: true, Mapper: func(t reflect.Type) *jsonschema.Schema {
			switch t {
			case reflect.TypeFor[metav1.Time]():
				return &jsonschema.Schema{Type: "string", Format: "date-time"}
			case reflect.TypeFor[metav1.ConditionStatus]():
				return &jsonschema.Schema{Type: "string", Enum: []any{"True", "False", "Unknown"}}
			}
			return nil
		}}
		if err := r.AddGoComments(module, "./"+pipelineDir, jsonschema.WithFullComment()); err != nil {
			return nil, nil, fmt.Errorf("reading the comments of %s: %w", pipelineDir, err)
		}
		enumsOf(r.CommentMap)
		if *to, err = json.Marshal(r.Reflect(object)); err != nil {
			return nil, nil, fmt.Errorf("writing the schema of a status: %w", err)
		}
	}
	return pipeline, policy, nil
}

// describeReference describes the purpose of Flux' type, whose comments are elsewhere.
func describeReference(s *jsonschema.Schema) {
	s.Description = "LocalObjectReference names an object beside the pipeline."
	name, _ := s.Properties.Get("name")
	name.Description = "Name of the secret, in the pipeline's namespace."
}

// enumsOf extracts the enums from the comments, by type and field in lower case.
func enumsOf(comments map[string]string) map[string][]string {
	enums := map[string][]string{}
	for key, comment := range comments {
		name := strings.ToLower(strings.TrimPrefix(key, module+"/"+pipelineDir+"."))
		var text []string
		for line := range strings.SplitSeq(comment, "\n") {
			if values, ok := strings.CutPrefix(strings.TrimSpace(line), "+enum="); ok {
				enums[name] = strings.Split(values, ",")
				continue
			}
			text = append(text, strings.TrimSpace(line))
		}
		comments[key] = strings.TrimSpace(strings.Join(text, " "))
	}
	return enums
}
