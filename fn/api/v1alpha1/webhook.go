// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/strict"
)

// labelRevision is the label of a MutatingWebhookConfiguration of Istio that names the revision it calls.
const labelRevision = "istio.io/rev"

// WebhookFromObject reduces a MutatingWebhookConfiguration to what decides whether a pod is sent to the injector.
// The revision is that of its label istio.io/rev. An entry whose rules do not cover the creation of pods is left
// out; an object without any such entry is returned with no entries.
func WebhookFromObject(obj map[string]any) (Webhook, error) {
	meta, _ := obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	w := Webhook{Name: name}
	if labels, ok := meta["labels"].(map[string]any); ok {
		w.Revision, _ = labels[labelRevision].(string)
	}
	entries, ok := obj["webhooks"].([]any)
	if !ok && obj["webhooks"] != nil {
		return w, fmt.Errorf("reading MutatingWebhookConfiguration %s: webhooks: is not a list", name)
	}
	ps := &problems{}
	for i, e := range entries {
		m, _ := e.(map[string]any)
		if m == nil || !matchesPodCreation(m) {
			continue
		}
		var rule WebhookRule
		ps.decodeAPIObject([]any{"webhooks", i}, e, &rule)
		ps.validateSelector([]any{"webhooks", i, "namespaceSelector"}, rule.NamespaceSelector)
		ps.validateSelector([]any{"webhooks", i, "objectSelector"}, rule.ObjectSelector)
		w.Webhooks = append(w.Webhooks, rule)
	}
	if len(ps.List) > 0 {
		return w, fmt.Errorf("reading MutatingWebhookConfiguration %s: %s", name, ps.List[0])
	}
	return w, nil
}

// webhookKeys are the fields of an entry of a MutatingWebhookConfiguration (source: type MutatingWebhook of
// admissionregistration.k8s.io/v1). People paste entries of their cluster into a policy.
var webhookKeys = []string{"admissionReviewVersions", "clientConfig", "failurePolicy", "matchConditions", "matchPolicy", "name", "namespaceSelector",
	"objectSelector", "reinvocationPolicy", "rules", "sideEffects", "timeoutSeconds"}

// checkWebhookKeys rejects unknown fields of the webhooks of a policy: without its selector, an entry selects everything.
func (ps *problems) checkWebhookKeys(obj map[string]any) {
	spec, _ := obj["spec"].(map[string]any)
	istio, _ := spec["istio"].(map[string]any)
	configurations, _ := istio["webhooks"].([]any)
	for i, c := range configurations {
		configuration, _ := c.(map[string]any)
		entries, _ := configuration["webhooks"].([]any)
		for j, e := range entries {
			entry, _ := e.(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(entry)) {
				if slices.Contains(webhookKeys, key) {
					continue
				}
				hint := strict.DidYouMean(key, webhookKeys)
				if hint == "" {
					hint = "; known fields are " + strings.Join(webhookKeys, ", ")
				}
				ps.Add([]any{"spec", "istio", "webhooks", i, "webhooks", j, key}, "unknown field%s", hint)
			}
		}
	}
}

// matchesPodCreation reports whether an entry's rules take in the creation of pods. An entry without rules was cut down
// by hand and is meant to.
func matchesPodCreation(entry map[string]any) bool {
	rules, ok := entry["rules"].([]any)
	if !ok {
		return true
	}
	for _, r := range rules {
		rule, _ := r.(map[string]any)
		if containsOrWildcard(rule["operations"], "CREATE") && containsOrWildcard(rule["resources"], "pods") && containsOrWildcard(rule["apiGroups"], "") {
			return true
		}
	}
	return false
}

func containsOrWildcard(list any, word string) bool {
	l, _ := list.([]any)
	for _, e := range l {
		if e == word || e == "*" {
			return true
		}
	}
	return false
}
