// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
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
