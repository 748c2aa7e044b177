// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
)

// builtInGroups are the API groups with pod templates that need no CustomResourceDefinition: those of Kubernetes, beside the groups that end in
// .k8s.io, and that of OpenShift's API server.
var builtInGroups = []string{"", "apps", "batch", "extensions", "apps.openshift.io"}

// customKind reports whether a kind comes from a CustomResourceDefinition.
func customKind(group string) bool {
	return !slices.Contains(builtInGroups, group) && !strings.HasSuffix(group, ".k8s.io")
}

// nativeSince are the releases of controllers whose definitions have restartPolicy in init containers, and the end of the name of their image.
// Source: manifests/crds/rollout-crd.yaml of Argo Rollouts 1.6.6 and 1.7.0.
var nativeSince = map[string]struct {
	name, image  string
	major, minor int
}{
	"argoproj.io/Rollout": {"Argo Rollouts", "argoproj/argo-rollouts", 1, 7},
}

// keptTemplates are kinds whose definitions keep all of the pod template. Source: the markers of template in apis/apps of OpenKruise (v1alpha1
// cloneset_types.go and broadcastjob_types.go, v1beta1 statefulset_types.go); its DaemonSet has a schema.
var keptTemplates = []string{"apps.kruise.io/CloneSet", "apps.kruise.io/BroadcastJob", "apps.kruise.io/StatefulSet"}

// NeedsDefinition reports whether the definition of the workload's kind decides over a sidecar in its pod.
func (s Summary) NeedsDefinition() bool {
	group, _, grouped := strings.Cut(s.ref.APIVersion, "/")
	return grouped && customKind(group) && s.injectedNative() >= 0
}

// injectedNative is the index of the first native sidecar that injection brought, or -1.
func (s *Summary) injectedNative() int {
	return slices.IndexFunc(s.containers, func(c containerSummary) bool { return c.native && c.injected })
}

// checkPrunedSidecars reports the first native sidecar of a pod that injection brought.
func checkPrunedSidecars(s *workloadSet) []setFinding {
	var out []setFinding
	for i := range s.pods {
		pod := &s.pods[i]
		if !pod.NeedsDefinition() {
			continue
		}
		group, version, _ := strings.Cut(pod.ref.APIVersion, "/")
		c := pod.containers[pod.injectedNative()]
		message, unsure := s.describeSidecarPruning(group, version, pod, c)
		if message == "" {
			continue
		}
		out = append(out, setFinding{
			ref: pod.ref, file: pod.file, ignored: pod.ignored, container: c.name, unsure: unsure,
			field: &result.Field{Path: c.path + ".restartPolicy", CurrentValue: "Always"}, message: message,
		})
	}
	return out
}

// describeSidecarPruning describes what happens to a native sidecar in a custom resource, or returns "" if it stays.
func (s *workloadSet) describeSidecarPruning(group, version string, pod *Summary, c containerSummary) (message string, unsure bool) {
	kind := pod.ref.Kind
	lost := fmt.Sprintf("the API server removes restartPolicy from init container %s, which then never ends, so that the application never starts", c.name)
	for _, crd := range s.objects["CustomResourceDefinition"] {
		if textOf(crd.spec["group"]) != group || textOf(podmap.MapAt(crd.spec, "names")["kind"]) != kind {
			continue
		}
		keeps, known := definitionKeeps(crd.spec, version, c.path)
		switch {
		case known && keeps:
			return "", false
		case known:
			return fmt.Sprintf("%s; the CustomResourceDefinition %s among the files does not have the field", lost, crd.Name), false
		}
	}
	if slices.Contains(keptTemplates, group+"/"+kind) {
		return "", false
	}
	since, listed := nativeSince[group+"/"+kind]
	if !listed {
		return fmt.Sprintf("if the CustomResourceDefinition of %s is older than native sidecars, %s; it is not among the files", kind, lost), true
	}
	if v, ok := s.controllerVersion(since.image); ok {
		if v.major > since.major || v.major == since.major && v.minor >= since.minor {
			return "", false
		}
		return fmt.Sprintf("%s; %s has the field from %d.%d on, and the controller among the files is version %s", lost, since.name, since.major, since.minor, v), false
	}
	return fmt.Sprintf("with %s before %d.%d %s; its CustomResourceDefinition is not among the files", since.name, since.major, since.minor, lost), true
}

// controllerVersion returns the version of a controller among the workloads, by the tag of its image.
func (s *workloadSet) controllerVersion(image string) (versionNumber, bool) {
	for i := range s.pods {
		for _, c := range s.pods[i].containers {
			name, _, _ := strings.Cut(c.image, "@")
			tag := imageTag(name)
			if tag == "" || !strings.HasSuffix(strings.TrimSuffix(name, ":"+tag), image) {
				continue
			}
			if v, ok := parseVersion(strings.TrimPrefix(tag, "v")); ok {
				return v, true
			}
		}
	}
	return versionNumber{}, false
}

// definitionKeeps reports whether a CustomResourceDefinition has restartPolicy at the path of a container, and
// whether this is known: a definition without the version or without a schema leaves it unknown.
func definitionKeeps(spec map[string]any, version, path string) (keeps, known bool) {
	if preserves, _ := spec["preserveUnknownFields"].(bool); preserves {
		return true, true
	}
	schema := podmap.MapAt(spec, "validation", "openAPIV3Schema") // of apiextensions.k8s.io/v1beta1
	for _, v := range podmap.Maps(spec["versions"]) {
		if own := podmap.MapAt(v, "schema", "openAPIV3Schema"); textOf(v["name"]) == version && own != nil {
			schema = own
		}
	}
	if schema == nil {
		return false, false
	}
	for _, step := range append(pathSteps(path), "restartPolicy") {
		next, through := schemaStep(schema, step)
		switch {
		case through:
			return true, true
		case next == nil:
			return false, true
		}
		schema = next
	}
	return true, true
}

// schemaStep descends from a schema to that of a field, or of an element of a list (step ""). through reports
// whether the server keeps everything below the field: an unknown field is kept if the schema preserves unknown
// fields.
func schemaStep(schema map[string]any, step string) (next map[string]any, through bool) {
	if step == "" {
		next = podmap.MapAt(schema, "items")
	} else if next = podmap.MapAt(schema, "properties", step); next == nil {
		next = podmap.MapAt(schema, "additionalProperties")
	}
	if next != nil {
		return next, false
	}
	preserves, _ := schema["x-kubernetes-preserve-unknown-fields"].(bool)
	allowed, _ := schema["additionalProperties"].(bool)
	return nil, preserves || allowed
}

// pathSteps splits a path such as spec.template.spec.initContainers[0] into fields; an index becomes the step "".
func pathSteps(path string) []string {
	var steps []string
	for part := range strings.SplitSeq(path, ".") {
		field, rest, indexed := strings.Cut(part, "[")
		steps = append(steps, field)
		for indexed {
			steps = append(steps, "")
			_, rest, indexed = strings.Cut(rest, "[")
		}
	}
	return steps
}
