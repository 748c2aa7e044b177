// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"strings"
	"testing"
)

// TestLabelsOfControllers has policies select and read labels that controllers add to pods.
func TestLabelsOfControllers(t *testing.T) {
	t.Parallel()
	workload := func(apiVersion, kind, spec string) string {
		return "{apiVersion: " + apiVersion + ", kind: " + kind + ", metadata: {name: web, namespace: shop}, spec: {" + spec +
			" template: {metadata: {labels: {app: web}}, spec: {restartPolicy: Never, containers: [{name: c, image: x}]}}}}\n"
	}
	selecting := func(label string) string {
		return strings.Replace(mutating("p", "  reinvocationPolicy: Never", `[JSONPatch{op: "add", path: "/metadata/annotations", value: {"selected": "yes"}}]`),
			"  matchConstraints: {", "  matchConstraints: {objectSelector: {matchLabels: {"+label+"}}, ", 1)
	}
	reading := func(expression string) string {
		return mutating("p", "  reinvocationPolicy: Never", `[JSONPatch{op: "add", path: "/metadata/annotations", value: {"selected": `+expression+`}}]`)
	}
	for name, c := range map[string]struct {
		workload, policy string
		want             any
		missing          string
	}{
		"index":          {workload("apps/v1", "StatefulSet", ""), selecting(`apps.kubernetes.io/pod-index: "0"`), "yes", ""},
		"first ordinal":  {workload("apps/v1", "StatefulSet", "ordinals: {start: 3},"), selecting(`statefulset.kubernetes.io/pod-name: web-3`), "yes", ""},
		"name":           {workload("apps/v1", "StatefulSet", ""), reading("object.metadata.name"), "web-0", ""},
		"other ordinal":  {workload("apps/v1", "StatefulSet", ""), selecting(`apps.kubernetes.io/pod-index: "1"`), nil, ""},
		"revision":       {workload("apps/v1", "StatefulSet", ""), selecting("controller-revision-hash: x"), nil, "controller-revision-hash"},
		"Job":            {workload("batch/v1", "Job", ""), selecting("batch.kubernetes.io/job-name: web"), "yes", ""},
		"Job of old":     {workload("batch/v1", "Job", ""), selecting("job-name: web"), "yes", ""},
		"uid":            {workload("batch/v1", "Job", ""), reading(`object.metadata.labels[?"controller-uid"].orValue("none")`), "none", "controller-uid"},
		"hash":           {workload("apps/v1", "Deployment", ""), reading(`object.metadata.labels[?"pod-template-hash"].orValue("none")`), "none", "pod-template-hash"},
		"nothing drawn":  {workload("apps/v1", "Deployment", ""), reading(`object.metadata.labels.app`), "web", ""},
		"Pod of its own": {plainPod, selecting("app: a"), "yes", ""},
	} {
		got := admitOne(t, c.workload, c.policy, "LimitRange", "PriorityClass")
		if found := podField(got.Pod, "metadata", "annotations", "selected"); got.Rejected != "" || found != c.want {
			t.Errorf("%s: rejected %q, selected %v, want %v", name, got.Rejected, found, c.want)
		}
		i := slices.IndexFunc(got.Missing, func(text string) bool { return strings.HasPrefix(text, "the label ") })
		if (i >= 0) != (c.missing != "") || i >= 0 && !strings.Contains(got.Missing[i], "the label "+c.missing+",") {
			t.Errorf("%s: not known: %q, want %q", name, got.Missing, c.missing)
		}
		for _, r := range got.Reasons {
			if r.Step == "" {
				t.Errorf("%s: %s has no reason", name, r.Field)
			}
		}
	}
}
