// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/result"
)

// annotatedObject is a Service or a Namespace with its annotations. Those of pods and workloads are checked with the pod.
type annotatedObject struct {
	ref         result.ResourceRef
	file        *result.File
	ignored     ignoredRules
	annotations map[string]string
}

func (s *workloadSet) annotatedObjects() []annotatedObject {
	var out []annotatedObject
	for _, ns := range s.namespaces {
		out = append(out, annotatedObject{result.ResourceRef{APIVersion: "v1", Kind: "Namespace", Name: ns.Name}, ns.File, parseIgnoredRules(ns.Annotations), ns.Annotations})
	}
	for _, f := range s.services {
		meta, _ := f.Object.Object["metadata"].(map[string]any)
		out = append(out, annotatedObject{
			result.ResourceRef{APIVersion: f.APIVersion, Kind: f.Kind, Name: f.Name, Namespace: f.objectFacts.Namespace},
			f.File, f.ignored, stringMap(meta["annotations"]),
		})
	}
	return out
}

// checkAnnotatedObjects returns a finding for each of Istio's annotations for which problem returns a message.
func (s *workloadSet) checkAnnotatedObjects(problem func(o annotatedObject, key string) string) []setFinding {
	var out []setFinding
	for _, o := range s.annotatedObjects() {
		for _, key := range sortedKeys(o.annotations) {
			if !istioKey(key) {
				continue
			}
			if message := problem(o, key); message != "" {
				out = append(out, setFinding{
					ref: o.ref, file: o.file, ignored: o.ignored, message: message,
					field: &result.Field{Path: annotationPath(key), CurrentValue: o.annotations[key]},
				})
			}
		}
	}
	return out
}

func checkMisplacedOnObjects(s *workloadSet) []setFinding {
	return s.checkAnnotatedObjects(func(o annotatedObject, key string) string {
		a, ok := annotations[key]
		if !ok || len(a.on) == 0 || slices.Contains(a.on, o.ref.Kind) {
			return ""
		}
		return fmt.Sprintf("annotation %s has no effect on a %s: it belongs on %s", key, o.ref.Kind, strings.Join(a.on, " or "))
	})
}

func checkUnknownOnObjects(s *workloadSet) []setFinding {
	return s.checkAnnotatedObjects(func(_ annotatedObject, key string) string { return unknownAnnotation(key) })
}

func checkDeprecatedOnObjects(s *workloadSet) []setFinding {
	return s.checkAnnotatedObjects(func(o annotatedObject, key string) string {
		a := annotations[key]
		if a.deprecated == "" || !slices.Contains(a.on, o.ref.Kind) {
			return ""
		}
		return fmt.Sprintf("annotation %s is deprecated; use %s", key, a.deprecated)
	})
}

func checkAlphaOnObjects(s *workloadSet) []setFinding {
	return s.checkAnnotatedObjects(func(o annotatedObject, key string) string {
		if a := annotations[key]; a.status != alpha || a.deprecated != "" || !slices.Contains(a.on, o.ref.Kind) {
			return ""
		}
		return fmt.Sprintf("annotation %s is alpha", key)
	})
}
