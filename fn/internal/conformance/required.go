// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"slices"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/decide"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/workload"
)

// Rules for expected outputs of the kube-inject path where that decides otherwise than the webhook.
const (
	// lastUndecided is the last minor version whose kube-inject may not look at the pod's annotation.
	lastUndecided = 7
	annotatedNote = "istioctl kube-inject of the version injects although the pod opts out, so it is injected here too; the webhook leaves it alone"
	// lastLeft is the last minor version whose kube-inject leaves injected pods alone.
	lastLeft     = 16
	injectedNote = "istioctl kube-inject of the version leaves injected pods alone, so it is left here too; the webhook injects again"
	// annotated is the reason for a pod that opts out.
	annotated = "the pod opts out with sidecar.istio.io/inject"
)

// skipsInjectedPod reports whether kube-inject of the version considers a pod injected and leaves it unchanged: a pod
// with a proxy next to another container, and from 1.8 with a status too.
func skipsInjectedPod(minor int, pod map[string]any) bool {
	if minor > lastLeft {
		return false
	}
	spec, _ := pod["spec"].(map[string]any)
	containers, _ := spec["containers"].([]any)
	if len(containers) < 2 || minor > lastUndecided && !hasStatus(pod) {
		return false
	}
	return slices.ContainsFunc(containers, func(e any) bool {
		c, _ := e.(map[string]any)
		return c["name"] == istio.ProxyContainer
	})
}

func hasStatus(pod map[string]any) bool {
	meta, _ := pod["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	_, ok := annotations[statusAnnotation]
	return ok
}

// expectsInjection reports whether the expected output has the workload injected.
func (c *Case) expectsInjection(t workload.Template) bool {
	want, err := c.Objects(c.Expected)
	if err != nil {
		return false
	}
	for _, obj := range c.flattenForComparison(want) {
		templates, err := templatesOf(obj)
		if err != nil {
			return false
		}
		for _, other := range templates {
			if other.Declared == t.Declared && hasStatus(other.Pod) {
				return true
			}
		}
	}
	return false
}

// kubeInjectSkipReason returns the reason why istioctl kube-inject of the version leaves a pod alone, or "" if it does
// not. It knows no namespace labels and assumes that the policy is enabled.
func kubeInjectSkipReason(in *istio.Injector, t workload.Template) (string, error) {
	d, err := decide.New(decide.Options{
		Release: in.Profile().Release(), Policy: istio.PolicyEnabled, UnknownNamespace: v1alpha1.UnknownNamespaceInject,
	})
	if err != nil {
		return "", err
	}
	spec, _ := t.Pod["spec"].(map[string]any)
	host, _ := spec["hostNetwork"].(bool)
	meta, _ := t.Pod["metadata"].(map[string]any)
	decision := d.Decide(decide.Pod{
		Labels: textMap(meta["labels"]), Annotations: textMap(meta["annotations"]), HostNetwork: host,
		Namespace: decide.Namespace{Name: t.Declared.Namespace},
	})
	switch {
	case decision.Inject:
		return "", nil
	case decision.Code == decide.CodePodRefuses:
		return annotated, nil
	default:
		return decision.Reason, nil
	}
}

func textMap(v any) map[string]string {
	m, _ := v.(map[string]any)
	out := make(map[string]string, len(m))
	for k, e := range m {
		out[k], _ = e.(string)
	}
	return out
}
