// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// webhookRule is a field that the webhook sets and istioctl kube-inject of the same version does not.
type webhookRule struct {
	release.Spans
	// part is labels, annotations, values of annotations, imagePullSecrets, or env, volumeMounts or place of an
	// injected container.
	part string
	// names are the keys or names.
	names []string
	why   string
	// only is the name of the one case that the rule holds for; empty for all.
	only string
}

// webhookOnly are all of them. They hold only for expected outputs of the kube-inject path, and, but for values, only
// where such an output lacks the field altogether.
var webhookOnly = []webhookRule{
	{release.Between("1.5", "1.7"), "labels", []string{"service.istio.io/canonical-name", "service.istio.io/canonical-revision", ""},
		"istioctl kube-inject up to 1.7 does not set the canonical labels", ""},
	{release.Between("1.6", "1.7"), "labels", []string{"istio.io/rev", ""},
		"istioctl kube-inject up to 1.7 does not set the revision's label", ""},
	{release.Between("1.6", "1.7"), "annotations",
		[]string{"prometheus.io/scrape", "prometheus.io/path", "prometheus.io/port", ""},
		"istioctl kube-inject up to 1.7 does not merge Prometheus' settings", ""},
	{release.Between("1.6", "1.7"), "values", []string{"prometheus.io/scrape", "prometheus.io/path", "prometheus.io/port", ""},
		"istioctl kube-inject up to 1.7 keeps the pod's own Prometheus settings", ""},
	{release.Between("1.0", "1.5"), "imagePullSecrets", nil,
		"istioctl kube-inject up to 1.5 does not add image pull secrets", ""},
	{release.Between("1.4", "1.4"), "labels", []string{"security.istio.io/tlsMode", ""},
		"istioctl kube-inject up to 1.4 does not set the label of mutual TLS", ""},
	{release.Between("1.6", "1.7"), "env", []string{"ISTIO_PROMETHEUS_ANNOTATIONS", ""},
		"istioctl kube-inject up to 1.7 does not tell the proxy the pod's Prometheus settings", ""},
	{release.Between("1.1", "1.7"), "volumeMounts", []string{"/var/run/secrets/kubernetes.io/serviceaccount", ""},
		"istioctl kube-inject up to 1.7 does not give the proxy the application's service account mount", ""},
	{release.Between("1.6", "1.7"), "place", []string{"istio-validation", ""},
		"istioctl kube-inject up to 1.7 adds istio-validation at the end", ""},
}

// caseRules hold for one case each.
var caseRules = []webhookRule{
	{release.Between("1.5.10", "1.5.10"), "env", []string{"ISTIO_KUBE_APP_PROBERS"},
		"istioctl kube-inject of 1.5.10 does not tell a proxy without a status port of the probes; the webhook does",
		"traffic-params"},
}

// statusAnnotation is what the injector leaves in a pod.
const statusAnnotation = "sidecar.istio.io/status"

// templatesOf are the pod templates of an object.
func templatesOf(obj map[string]any) ([]workload.Template, error) {
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		return nil, err
	}
	return registry.Templates(obj)
}

// blankHash puts an empty text for the hash of the template in the status of an object's pods: the corpus does not have
// the hash.
func blankHash(obj map[string]any) (map[string]any, error) {
	templates, err := templatesOf(obj)
	if err != nil {
		return nil, err
	}
	for _, t := range templates {
		pod := deepCopy(t.Pod)
		if !blankPodHash(pod) {
			continue
		}
		obj = t.Write(obj, pod)
	}
	return obj, nil
}

func blankPodHash(pod map[string]any) bool {
	meta, _ := pod["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	text, ok := annotations[statusAnnotation].(string)
	if !ok {
		return false
	}
	var status struct {
		Version          *string  `json:"version"`
		InitContainers   []string `json:"initContainers"`
		Containers       []string `json:"containers"`
		Volumes          []string `json:"volumes"`
		ImagePullSecrets []string `json:"imagePullSecrets"`
	}
	if err := json.Unmarshal([]byte(text), &status); err != nil || status.Version == nil {
		return false
	}
	*status.Version = ""
	out, err := json.Marshal(status)
	if err != nil {
		return false
	}
	annotations[statusAnnotation] = string(out)
	return true
}

// revisionLabels are the versions whose injector labels pods with its revision.
var revisionLabels = release.Between("1.6", "1.8")

// revisionNote is the rule for the revision's label.
const revisionNote = "the expected output is of an injector without REVISION; the chart sets the revision default of istiod, which compares as none"

// blankRevision replaces the revision default by an empty string in the labels of an object's pods, and reports
// whether it replaced any.
func blankRevision(obj map[string]any) (out map[string]any, blanked bool, err error) {
	templates, err := templatesOf(obj)
	if err != nil {
		return nil, false, err
	}
	for _, t := range templates {
		pod := deepCopy(t.Pod)
		meta, _ := pod["metadata"].(map[string]any)
		labels, _ := meta["labels"].(map[string]any)
		if labels["istio.io/rev"] == "default" {
			labels["istio.io/rev"] = ""
			obj, blanked = t.Write(obj, pod), true
		}
	}
	return obj, blanked, nil
}

// keepLastEntries returns an expected object without the list entries that the rule podmap.KeepLastRule explains, and
// reports whether it removed any.
func keepLastEntries(obj map[string]any) (out map[string]any, dropped bool, err error) {
	templates, err := templatesOf(obj)
	if err != nil {
		return nil, false, err
	}
	for _, t := range templates {
		if pod, ok := podmap.WithLast(nil, t.Pod); ok {
			obj, dropped = t.Write(obj, pod), true
		}
	}
	return obj, dropped, nil
}

// withoutWebhookOnly removes fields from our object that the expected one lacks because of a rule, and returns the
// reasons.
func (c *Case) withoutWebhookOnly(got, want map[string]any) (map[string]any, []string, error) {
	ours, err := templatesOf(got)
	if err != nil {
		return nil, nil, err
	}
	theirs, err := templatesOf(want)
	if err != nil || len(ours) != len(theirs) {
		return got, nil, err
	}
	var reasons []string
	for i, t := range ours {
		pod := runtime.DeepCopyJSON(t.Pod)
		var applied []string
		for _, rule := range slices.Concat(webhookOnly, caseRules) {
			if rule.Contains(c.version.Release()) && (rule.only == "" || rule.only == c.Name) &&
				rule.removeMissingFields(pod, theirs[i].Pod) {
				applied = append(applied, rule.why)
			}
		}
		if len(applied) > 0 {
			got = t.Write(got, pod)
			reasons = append(reasons, applied...)
		}
	}
	slices.Sort(reasons)
	return got, slices.Compact(reasons), nil
}

// removeMissingFields removes the rule's fields from a pod that another pod lacks, and reports whether it removed any.
func (r webhookRule) removeMissingFields(pod, other map[string]any) bool {
	switch r.part {
	case "values":
		return r.copyAnnotationValues(pod, other)
	case "env":
		return r.dropFromProxy(pod, other, "name")
	case "volumeMounts":
		return r.dropFromProxy(pod, other, "mountPath")
	case "place":
		return r.moveAsThere(pod, other)
	}
	parent := "metadata"
	if r.part == "imagePullSecrets" {
		parent = "spec"
	}
	ours, _ := pod[parent].(map[string]any)
	theirs, _ := other[parent].(map[string]any)
	if r.names == nil {
		_, has := theirs[r.part]
		_, had := ours[r.part]
		if had && !has {
			delete(ours, r.part)
		}
		return had && !has
	}
	mine, _ := ours[r.part].(map[string]any)
	wanted, _ := theirs[r.part].(map[string]any)
	removed := false
	for _, name := range r.names {
		_, has := wanted[name]
		if _, had := mine[name]; had && !has {
			delete(mine, name)
			removed = true
		}
	}
	if removed && len(mine) == 0 {
		delete(ours, r.part)
	}
	return removed
}

// copyAnnotationValues sets our annotations to the values that the other pod has, where both have them.
func (r webhookRule) copyAnnotationValues(pod, other map[string]any) bool {
	ours, _ := pod["metadata"].(map[string]any)
	theirs, _ := other["metadata"].(map[string]any)
	mine, _ := ours["annotations"].(map[string]any)
	wanted, _ := theirs["annotations"].(map[string]any)
	changed := false
	for _, name := range r.names {
		value, has := wanted[name]
		if old, had := mine[name]; had && has && old != value {
			mine[name], changed = value, true
		}
	}
	return changed
}

// String is the rule as text.
func (r webhookRule) String() string { return fmt.Sprintf("%s: %s (Istio %s)", r.part, r.why, r.Spans) }
