// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/engine"
)

var (
	digestA = "sha256:" + strings.Repeat("a", 64)
	digestB = "sha256:" + strings.Repeat("b", 64)
)

// pinAll injects a sidecar where a pod asks for it, and pins everything.
const pinAll = `
apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: all}
spec:
  images:
    scope: All
    onMissing: Warn
    pins:
      app:1: app:1@DIGEST
      init:1: mirror.example/init:1@DIGEST
      debug:1: debug:1@DIGEST
      example.com/gate:1: example.com/gate:1@DIGEST
  sidecars:
  - name: gate
    select: {rules: [{annotations: {matchLabels: {gate: "on"}}, action: Inject}]}
    template: "spec: {containers: [{name: gate, image: 'example.com/gate:1'}]}"
`

const ownImages = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations: {}
spec:
  template:
    metadata:
      annotations: {gate: "GATE"}
    spec:
      initContainers:
      - name: init
        image: init:1 # ours
      containers:
      - name: app
        image: "app:1"
      - name: pinned
        image: app:1@sha256:` + "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc" + `
      - name: other
        image: other:1
      - {name: auto, image: auto}
      ephemeralContainers:
      - {name: debug, image: debug:1, targetContainerName: app}
`

func pins(digest string) string { return strings.ReplaceAll(pinAll, "DIGEST", digest) }

// TestOwnImagesArePinned pins a workload's own containers, whether it is injected or not, again with other digests, and takes
// everything out again.
func TestOwnImagesArePinned(t *testing.T) {
	t.Parallel()
	for _, gate := range []string{"on", "off"} {
		original := strings.Replace(ownImages, "GATE", gate, 1)
		once, report := try(t, pins(digestA), v1alpha1.ModeInject, original)
		for _, want := range []string{"image: mirror.example/init:1@" + digestA + " # ours\n", "\"app:1@" + digestA + "\"\n", "image: debug:1@" + digestA, "app:1@sha256:ccc", "image: other:1\n", "image: auto"} {
			if !strings.Contains(once, want) {
				t.Errorf("gate %s: %q is not in\n%s", gate, want, once)
			}
		}
		if got := strings.Contains(once, "example.com/gate:1@"+digestA); got != (gate == "on") {
			t.Errorf("gate %s: the sidecar is pinned: %v\n%s", gate, got, once)
		}
		var missing []string
		for _, r := range report.Results {
			if r.Tags["prerig.dev/code"] == "image-not-locked" {
				missing = append(missing, r.Field.Path+" "+r.Message)
			}
		}
		if len(missing) != 1 || !strings.HasPrefix(missing[0], "spec.template.spec.containers[2].image image other:1 of the container other is not locked") {
			t.Errorf("gate %s: not locked: %q", gate, missing)
		}
		if twice, _ := try(t, pins(digestA), v1alpha1.ModeInject, once); twice != once {
			t.Errorf("gate %s: a second run gives\n%s", gate, twice)
		}
		if _, check := try(t, pins(digestA), v1alpha1.ModeCheck, once); check.Failed() {
			t.Errorf("gate %s: a check says %s", gate, errorsOf(check))
		}
		want, _ := try(t, pins(digestB), v1alpha1.ModeInject, original)
		if moved, _ := try(t, pins(digestB), v1alpha1.ModeInject, once); moved != want {
			t.Errorf("gate %s: other digests give\n%s\nand not\n%s", gate, moved, want)
		}
		want, _ = try(t, strings.Replace(pins(digestB), "scope: All", "scope: Injected", 1), v1alpha1.ModeInject, original)
		if back, _ := try(t, strings.Replace(pins(digestB), "scope: All", "scope: Injected", 1), v1alpha1.ModeInject, once); back != want {
			t.Errorf("gate %s: scope Injected gives\n%s\nand not\n%s", gate, back, want)
		}
		back, removed := try(t, pins(digestA), v1alpha1.ModeRemove, once)
		if back != original || removed.Outcomes[0].Action != engine.Removed {
			t.Errorf("gate %s: removing gives %s and\n%s", gate, removed.Outcomes[0].Action, back)
		}
	}
}

// TestAnEditedImageStays changes the tag of a pinned image by hand: neither pinning again nor removing brings the old one back.
func TestAnEditedImageStays(t *testing.T) {
	t.Parallel()
	once, _ := try(t, pins(digestA), v1alpha1.ModeInject, strings.Replace(ownImages, "GATE", "on", 1))
	edited := strings.Replace(once, `"app:1@`+digestA+`"`, `"app:2"`, 1)
	edited = strings.Replace(edited, "image: mirror.example/init:1@", "image: mirror.example/init:2@", 1)
	for _, mode := range []v1alpha1.Mode{v1alpha1.ModeInject, v1alpha1.ModeRemove} {
		got, _ := try(t, pins(digestA), mode, edited)
		if !strings.Contains(got, `"app:2"`) || !strings.Contains(got, "mirror.example/init:2@"+digestA) || strings.Contains(got, `"app:1`) {
			t.Errorf("%s gives\n%s", mode, got)
		}
	}
}

// TestABarePodsOwnImagesArePinned has no workload around the pod to keep the record.
func TestABarePodsOwnImagesArePinned(t *testing.T) {
	t.Parallel()
	const original = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\nspec:\n  containers:\n  - name: app\n    image: app:1\n"
	once, _ := try(t, pins(digestA), v1alpha1.ModeInject, original)
	if !strings.Contains(once, "image: app:1@"+digestA+"\n") {
		t.Errorf("got\n%s", once)
	}
	want, _ := try(t, pins(digestB), v1alpha1.ModeInject, original)
	if moved, _ := try(t, pins(digestB), v1alpha1.ModeInject, once); moved != want {
		t.Errorf("other digests give\n%s", moved)
	}
	if back, _ := try(t, pins(digestA), v1alpha1.ModeRemove, once); back != original {
		t.Errorf("removing gives\n%s", back)
	}
}
