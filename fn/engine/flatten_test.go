// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/engine"
)

// TestElementsOfATypedListHaveItsKind injects into a list as the API server writes it, whose elements say neither apiVersion nor kind.
func TestElementsOfATypedListHaveItsKind(t *testing.T) {
	const text = `apiVersion: apps/v1
kind: DeploymentList
items:
- metadata: {name: web, namespace: shop}
  spec: # of the application
    template:
      metadata:
        annotations: {gate: "on"}
      spec:
        containers:
        - {name: app, image: a}
- metadata: {name: plain, namespace: shop}
  spec:
    template:
      spec:
        containers:
        - {name: app, image: a}
`
	out, report := try(t, withObjects, v1alpha1.ModeInject, text)
	if report.Failed() || len(report.Outcomes) != 2 || report.Outcomes[0].Action != engine.Injected || report.Outcomes[0].Ref.String() != report.Outcomes[0].Ref.Kind+" shop/web" {
		t.Fatalf("%+v\n%v", report.Outcomes, report.Results)
	}
	list, _, _ := strings.Cut(out, "---\n")
	if strings.Count(list, "kind:") != 1 || strings.Count(list, "apiVersion:") != 1 || !strings.Contains(list, "name: gate") || !strings.Contains(list, "spec: # of the application\n") {
		t.Errorf("the list:\n%s", list)
	}
	if again, _ := try(t, withObjects, v1alpha1.ModeInject, out); again != out {
		t.Errorf("a second time:\n%s", again)
	}
	if _, report := try(t, withObjects, v1alpha1.ModeCheck, out); report.Failed() {
		t.Errorf("the check: %v", report.Results)
	}
	if removed, _ := try(t, withObjects, v1alpha1.ModeRemove, out); removed != text {
		t.Errorf("removed again:\n%s", removed)
	}
	nothing := strings.Replace(text, "items:\n", "items:\n- null\n- ~\n", 1)
	if out, report := try(t, withObjects, v1alpha1.ModeInject, nothing); report.Failed() || !strings.Contains(out, "items:\n- null\n- ~\n") || len(report.Outcomes) != 2 {
		t.Errorf("elements that are nothing: %v\n%s", report.Results, out)
	}
	// The API does not say what is in a List, and clients refuse such an element.
	if _, report := try(t, withObjects, v1alpha1.ModeInject, strings.Replace(strings.Replace(text, "DeploymentList", "List", 1), "apps/v1", "v1", 1)); len(report.Outcomes) != 0 {
		t.Errorf("elements of a List: %+v", report.Outcomes)
	}
}
