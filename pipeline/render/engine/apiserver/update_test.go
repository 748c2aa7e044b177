// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/render/gate/validation"
)

// updateAnswers is a validator with the same answer to every update.
type updateAnswers struct{ answer validation.Answer }

func (a updateAnswers) Ask(_ context.Context, requests []validation.Request) ([]validation.Answer, error) {
	out := make([]validation.Answer, len(requests))
	for i, r := range requests {
		out[i].Known = true
		if r.Operation == validation.Update {
			out[i] = a.answer
		}
	}
	return out, nil
}

// checkChange checks the objects of a text as the next state of those of another one, as updates alone.
func checkChange(t *testing.T, next, old string, validator gate.Validator, catalog ...string) result.Results {
	t.Helper()
	objects := readObjects(t, "a.yaml", []byte(next))
	gate.PairOld(objects, readObjects(t, "old.yaml", []byte(old)))
	o := gate.Options{UpdatesOnly: true}
	for _, text := range catalog {
		o.Catalog = append(o.Catalog, readObjects(t, "catalog.yaml", []byte(text))...)
	}
	if validator != nil {
		var err error
		if o.Validated, err = gate.ValidateUpdates(t.Context(), objects, validator); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Check(t.Context(), objects, o)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

const doorDefinition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: doors.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: doors, kind: Door, singular: door, listKind: DoorList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer, maximum: 9}
              lock:
                type: string
                x-kubernetes-validations: [{rule: self == oldSelf, message: the lock is immutable}]
`

const door = "apiVersion: example.org/v1\nkind: Door\nmetadata: {name: front, namespace: shop}\nspec: {lock: a, size: 12}\n"

// TestTransitionRulesSeeTheOldObject changes a custom resource whose definition has a rule with oldSelf.
func TestTransitionRulesSeeTheOldObject(t *testing.T) {
	t.Parallel()
	changed := strings.Replace(door, "lock: a", "lock: b", 1)
	compareFindings(t, checkChange(t, changed, door, nil, doorDefinition), []string{
		`4 update-rejected: spec.lock: the API server rejects the change: Invalid value: "b": the lock is immutable`,
	})
	// A value that is not valid and does not change is accepted, and so is a new object.
	labelled := strings.Replace(door, "namespace: shop", "namespace: shop, labels: {a: b}", 1)
	compareFindings(t, checkChange(t, labelled, door, nil, doorDefinition), nil)
	compareFindings(t, checkChange(t, changed, strings.Replace(door, "front", "back", 1), nil, doorDefinition), nil)
	replaced := strings.Replace(changed, "namespace: shop", "namespace: shop, annotations: {kustomize.toolkit.fluxcd.io/force: Enabled}", 1)
	compareFindings(t, checkChange(t, replaced, door, nil, doorDefinition), []string{"4 update-replaced: spec.lock: the object is deleted and created again"})
	skipped := strings.Replace(changed, "namespace: shop", "namespace: shop, annotations: {kustomize.toolkit.fluxcd.io/ssa: IfNotPresent}", 1)
	compareFindings(t, checkChange(t, skipped, door, nil, doorDefinition), []string{"1 update-ignored: : the change is not applied"})
}

const keepsData = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: keeps}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [UPDATE], resources: [configmaps]}
  validations: [{expression: object.data.a == oldObject.data.a && request.operation == 'UPDATE', message: a stays}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: keeps}
spec: {policyName: keeps, validationActions: [Deny]}
`

// TestPoliciesSeeUpdates changes an object that a policy about updates protects.
func TestPoliciesSeeUpdates(t *testing.T) {
	t.Parallel()
	const old = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata: {a: b, c: d}\n"
	denied := []string{"4 policy-denied: data.a: ValidatingAdmissionPolicy 'keeps' with binding 'keeps' denied request: a stays"}
	compareFindings(t, checkChange(t, strings.Replace(old, "a: b", "a: c", 1), old, nil, keepsData), denied)
	compareFindings(t, checkChange(t, strings.Replace(old, "c: d", "c: e", 1), old, nil, keepsData), nil)
	created := strings.Replace(keepsData, "[UPDATE]", "[CREATE]", 1)
	compareFindings(t, checkChange(t, strings.Replace(old, "a: b", "a: c", 1), old, nil, created), nil)
}

// TestRejectedUpdatesNameTheField maps the API server's fields to those of the object.
func TestRejectedUpdatesNameTheField(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		old, from, to string
		answer        validation.Problem
		want          string
	}{
		"claim templates": {
			"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec:\n  replicas: 1\n  serviceName: a\n", "replicas: 1\n  serviceName: a", "replicas: 2\n  serviceName: b",
			validation.Problem{Field: "spec", Type: validation.TypeImmutable, Message: "Forbidden: updates to statefulset spec are forbidden"},
			"6 update-rejected: spec.serviceName: the API server rejects the change: updates to statefulset spec are forbidden; take the change back",
		},
		"volume": {
			"apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: a}\nspec:\n  nfs: {server: a, path: /}\n", "server: a", "server: b",
			validation.Problem{Field: "spec.persistentvolumesource", Type: validation.TypeImmutable, Message: "Forbidden: is immutable after creation\n{...}"},
			"5 update-rejected: spec.nfs: the API server rejects the change: is immutable after creation; take the change back",
		},
		"volume mode": {
			"apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: a}\nspec:\n  volumeMode: Block\n", "Block", "Filesystem",
			validation.Problem{Field: "volumeMode", Type: validation.TypeImmutable, Message: `Invalid value: "Block": field is immutable`},
			"5 update-rejected: spec.volumeMode: the API server rejects the change: field is immutable",
		},
		"address": {
			"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec:\n  clusterIP: 10.0.0.1\n", "10.0.0.1", "10.0.0.2",
			validation.Problem{Field: "spec.clusterIPs[0]", Type: validation.TypeImmutable, Message: `Invalid value: ["10.0.0.2"]: may not change once set`},
			"5 update-rejected: spec.clusterIP: the API server rejects the change: may not change once set",
		},
		"value of a Secret": {
			"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nimmutable: true\nstringData: {a: hunter2}\n", "hunter2", "hunter3",
			validation.Problem{Field: "data", Type: validation.TypeImmutable, Message: `Invalid value: {"a":"hunter3"}: field is immutable`},
			"1 update-rejected: data: the API server rejects the change: field is immutable; give the changed object another name",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := validation.Answer{Known: true, Problems: []validation.Problem{c.answer}}
			compareFindings(t, checkChange(t, strings.Replace(c.old, c.from, c.to, 1), c.old, updateAnswers{answer}), []string{c.want})
		})
	}
}

// TestIgnoredChangesAreWarnings tells of a change that the API server drops, and of none that a tool fills in later.
func TestIgnoredChangesAreWarnings(t *testing.T) {
	t.Parallel()
	const old = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {clusterIP: None, selector: {a: b}}\n"
	ignores := updateAnswers{validation.Answer{Known: true, Ignored: []string{"spec.clusterIP"}}}
	found := checkChange(t, strings.Replace(old, "clusterIP: None, ", "", 1), old, ignores)
	compareFindings(t, found, []string{"4 update-ignored: spec.clusterIP: the API server keeps the value"})
	if found[0].Severity != result.Warning {
		t.Errorf("severity %s", found[0].Severity)
	}
	compareFindings(t, checkChange(t, strings.Replace(old, "None", `"${IP}"`, 1), old, ignores), nil)
}

// TestPlaceholdersHideNoOtherChange changes the image of a Job whose template has values that are filled in elsewhere.
func TestPlaceholdersHideNoOtherChange(t *testing.T) {
	t.Parallel()
	const old = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b, args: [$(POD), \"${X}\"]}]}}}\n"
	rejects := updateAnswers{validation.Answer{Known: true, Problems: []validation.Problem{{Field: "spec.template", Type: validation.TypeImmutable, Message: "field is immutable"}}}}
	compareFindings(t, checkChange(t, strings.Replace(old, "image: b", "image: c", 1), old, rejects), []string{"4 update-rejected: spec.template"})
	compareFindings(t, checkChange(t, strings.Replace(old, "${X}", "${Y}", 1), old, rejects), nil)
}

// TestJobsThatEndByThemselvesAreWarnings is about a Job that may be deleted before the next one is applied.
func TestJobsThatEndByThemselvesAreWarnings(t *testing.T) {
	t.Parallel()
	const old = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {ttlSecondsAfterFinished: 60, template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}\n"
	rejects := updateAnswers{validation.Answer{Known: true, Problems: []validation.Problem{{Field: "spec.template", Type: validation.TypeImmutable, Message: "field is immutable"}}}}
	found := checkChange(t, strings.Replace(old, "image: b", "image: c", 1), old, rejects)
	if len(found) != 1 || found[0].Severity != result.Warning {
		t.Errorf("found %v", found)
	}
	found = checkChange(t, strings.Replace(strings.ReplaceAll(old, "ttlSecondsAfterFinished: 60, ", ""), "image: b", "image: c", 1), strings.ReplaceAll(old, "ttlSecondsAfterFinished: 60, ", ""), rejects)
	if len(found) != 1 || found[0].Severity != result.Error {
		t.Errorf("found %v", found)
	}
}
