// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package updates_test

import (
	"context"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish/updates"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver"
	"github.com/prerig/prerig/pipeline/render/gate/validation"
)

// localChecker checks objects in this process.
type localChecker struct{}

func (localChecker) CheckObjects(ctx context.Context, request render.GateRequest) (result.Results, error) {
	return apiserver.CheckRequest(ctx, &request)
}

// immutableFields is a validator that rejects other values of fields of a spec, by the kind, and counts the updates
// that it is asked about.
type immutableFields struct {
	fields map[string]string
	asked  int
}

func (v *immutableFields) Ask(_ context.Context, requests []validation.Request) ([]validation.Answer, error) {
	out := make([]validation.Answer, len(requests))
	for i, r := range requests {
		out[i].Known = true
		if r.Operation != validation.Update {
			continue
		}
		v.asked++
		kind, _ := r.Object["kind"].(string)
		field, ok := v.fields[kind]
		spec, _ := r.Object["spec"].(map[string]any)
		old, _ := r.Old["spec"].(map[string]any)
		if ok && !reflect.DeepEqual(spec[field], old[field]) {
			problem := validation.Problem{Field: "spec." + field, Type: validation.TypeImmutable, Message: "field is immutable"}
			out[i].Problems = []validation.Problem{problem}
		}
	}
	return out, nil
}

func asFiles(files map[string]string) map[string][]byte {
	out := map[string][]byte{}
	for name, text := range files {
		out[name] = []byte(text)
	}
	return out
}

// check returns the findings about the change of files, a line each: severity, object, field, code and message.
func check(t *testing.T, gates v1alpha1.Gates, before, after map[string]string) (lines []string, asked int) {
	t.Helper()
	fields := map[string]string{"Job": "template", "PersistentVolumeClaim": "storageClassName"}
	validator := &immutableFields{fields: fields}
	checker := updates.Checker{Validator: validator, Objects: localChecker{}, Limits: render.DefaultLimits()}
	found, err := checker.Check(t.Context(), gates, asFiles(before), asFiles(after), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range found {
		lines = append(lines, one.String())
	}
	return lines, validator.asked
}

// wants compares findings, each by a part of it.
func wants(t *testing.T, found []string, want ...string) {
	t.Helper()
	for i, part := range want {
		if i >= len(found) || !strings.Contains(found[i], part) {
			t.Errorf("want %q as finding %d: %q", part, i, found)
		}
	}
	if len(found) != len(want) {
		t.Errorf("want %d findings: %q", len(want), found)
	}
}

const (
	migrate = `apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: shop}
spec: {parallelism: 1, template: {spec: {containers: [{name: c, image: c}]}}}
`
	claim = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: shop}
spec: {storageClassName: slow}
`
	namespace  = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
	definition = `apiVersion: apiextensions.k8s.io/v1
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
              lock: {type: string, x-kubernetes-validations: [{rule: self == oldSelf, message: the lock is immutable}]}
`
	door = "apiVersion: example.org/v1\nkind: Door\nmetadata: {name: front, namespace: shop}\nspec: {lock: a}\n"
)

// TestImmutableFields changes fields that the API server lets change, and others.
func TestImmutableFields(t *testing.T) {
	t.Parallel()
	before := map[string]string{"job.yaml": migrate, "claim.yaml": claim, "namespace.yaml": namespace}
	after := maps.Clone(before)
	after["job.yaml"] = strings.Replace(migrate, "parallelism: 1", "parallelism: 2", 1)
	found, asked := check(t, v1alpha1.Gates{}, before, after)
	if wants(t, found); asked != 1 {
		t.Errorf("the validation is asked about %d updates, and one object changes", asked)
	}
	after["job.yaml"] = strings.Replace(migrate, "image: c", "image: d", 1)
	after["claim.yaml"] = strings.Replace(claim, "slow", "fast", 1)
	found, _ = check(t, v1alpha1.Gates{}, before, after)
	const immutable = ": the API server rejects the change: field is immutable; take the change back, "
	wants(t, found, "error: PersistentVolumeClaim shop/data spec.storageClassName"+immutable+"or move the data",
		"error: Job shop/migrate spec.template"+immutable+"delete the object first")
	off := v1alpha1.Gates{Schemas: &v1alpha1.SchemaGate{Rules: map[string]string{"update-rejected": "Off"}}}
	found, _ = check(t, off, before, after)
	wants(t, found)
}

// TestMovedObjectsAreUpdates moves an object to another file: its identity decides what it is compared with.
func TestMovedObjectsAreUpdates(t *testing.T) {
	t.Parallel()
	before := map[string]string{"a.yaml": migrate + "---\n" + claim}
	after := map[string]string{"b.yaml": strings.Replace(migrate, "image: c", "image: d", 1), "c.yaml": claim}
	found, _ := check(t, v1alpha1.Gates{}, before, after)
	wants(t, found, "Job shop/migrate spec.template: the API server rejects the change")
	renamed := map[string]string{"b.yaml": strings.Replace(migrate, "name: migrate", "name: migrate-2", 1)}
	found, _ = check(t, v1alpha1.Gates{}, before, renamed)
	wants(t, found)
}

// TestReplacedObjects annotates objects whose immutable fields change.
func TestReplacedObjects(t *testing.T) {
	t.Parallel()
	const (
		replaced = "info: Job shop/migrate spec.template: the object is deleted and created again"
		rejected = "error: Job shop/migrate spec.template: the API server rejects the change"
	)
	for annotation, want := range map[string]string{
		"kustomize.toolkit.fluxcd.io/force: enabled":                 replaced,
		"argocd.argoproj.io/sync-options: 'Force=true,Replace=true'": replaced,
		"helm.sh/hook: pre-upgrade":                                  replaced,
		"argocd.argoproj.io/sync-options: Replace=true":              rejected,
		"kustomize.toolkit.fluxcd.io/force: disabled":                rejected,
		"kustomize.toolkit.fluxcd.io/ssa: IfNotPresent":              "warning: Job shop/migrate: the change is not applied",
	} {
		annotated := "namespace: shop, annotations: {" + annotation + "}"
		after := strings.NewReplacer("image: c", "image: d", "namespace: shop", annotated).Replace(migrate)
		found, _ := check(t, v1alpha1.Gates{}, map[string]string{"job.yaml": migrate}, map[string]string{"job.yaml": after})
		wants(t, found, want)
	}
}

// TestTransitionRules changes a custom resource. Its definition, whose rule has oldSelf, is in another file.
func TestTransitionRules(t *testing.T) {
	t.Parallel()
	before := map[string]string{"crd.yaml": definition, "door.yaml": door}
	locked := strings.Replace(door, "lock: a", "lock: b", 1)
	without := strings.Replace(definition, "self == oldSelf", "'true' == 'true'", 1)
	for name, c := range map[string]struct {
		crd, door string
		want      []string
	}{
		"changed":            {definition, locked, []string{"error: Door shop/front spec.lock: the API server rejects the"}},
		"another field":      {definition, strings.Replace(door, "metadata: {", "metadata: {labels: {a: b}, ", 1), nil},
		"another object":     {definition, strings.Replace(locked, "front", "back", 1), nil},
		"another definition": {without, locked, nil},
		"without definition": {"", locked, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, _ := check(t, v1alpha1.Gates{}, before, map[string]string{"crd.yaml": c.crd, "door.yaml": c.door})
			wants(t, found, c.want...)
		})
	}
}

// TestDeletionsAreNoUpdates deletes objects beside one that changes: the API server deletes what it is asked to.
func TestDeletionsAreNoUpdates(t *testing.T) {
	t.Parallel()
	before := map[string]string{"all.yaml": namespace + "---\n" + claim + "---\n" + definition, "job.yaml": migrate}
	after := map[string]string{"job.yaml": strings.Replace(migrate, "parallelism: 1", "parallelism: 2", 1)}
	found, asked := check(t, v1alpha1.Gates{}, before, after)
	if wants(t, found); asked != 1 {
		t.Errorf("the validation is asked about %d updates", asked)
	}
	found, asked = check(t, v1alpha1.Gates{}, before, nil)
	if wants(t, found); asked != 0 {
		t.Errorf("the validation is asked about %d updates where all is deleted", asked)
	}
}
