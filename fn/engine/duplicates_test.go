// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/policies"
)

// TestOneEntryOfEachKey injects what sets a variable or a port twice, which server-side apply rejects: by an annotation, the mesh, the values, a
// custom template and a sidecar's template. The last entry is left, a result names it, injecting again changes nothing, and removing gives
// the workload back.
func TestOneEntryOfEachKey(t *testing.T) {
	builtIn, _ := policies.Get("istio")
	istio := string(builtIn)
	const app = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  namespace: shop\nspec:\n  template:\n    metadata:\n" +
		"      labels:\n        app: web\n      annotations:\n        a: b\nANNOTATIONS    spec:\n      containers:\n      - name: web\n        image: web:1\n"
	const metadata = "        proxy.istio.io/config: '{proxyMetadata: {ISTIO_META_CLUSTER_ID: east, TRUST_DOMAIN: td, NEW: \"1\"}}'\n"
	const log = "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: log}\nspec:\n  sidecars:\n  - name: log\n    select: {default: Inject}\n" +
		"    template: |\n      spec:\n        imagePullSecrets: [{name: a}, {name: a}]\n        containers:\n        - name: log\n          image: log:1\n" +
		"          env: [{name: A, value: \"1\"}, {name: B, value: $(A)}, {name: A, value: \"2\"}]\n          ports: [{containerPort: 1}, {containerPort: 1, protocol: TCP}]\n"
	for _, test := range []struct {
		name, policy, annotations string
		// twice are the keys of which the result tells, and left is what is there.
		twice, left []string
	}{
		{"annotation", istio, metadata, []string{"ISTIO_META_CLUSTER_ID", "TRUST_DOMAIN"}, []string{"name: ISTIO_META_CLUSTER_ID\n          value: east\n", "name: NEW\n"}},
		{"annotation, ordinary proxy", istio, metadata + "        sidecar.istio.io/nativeSidecar: \"false\"\n", []string{"ISTIO_META_CLUSTER_ID", "TRUST_DOMAIN"}, []string{"name: ISTIO_META_CLUSTER_ID\n          value: east\n"}},
		{"mesh", strings.Replace(istio, "      defaultConfig:\n", "      defaultConfig:\n        proxyMetadata: {TRUST_DOMAIN: td}\n", 1), "", []string{"TRUST_DOMAIN"}, []string{"name: TRUST_DOMAIN\n          value: td\n"}},
		{"sidecar", log, "", []string{"A", "1/TCP", "a"}, []string{"name: B\n          value: \"1\"\n", "name: A\n          value: \"2\"\n", "containerPort: 1\n"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			input := strings.Replace(app, "ANNOTATIONS", test.annotations, 1)
			out, r := try(t, test.policy, v1alpha1.ModeInject, input)
			if r.Failed() {
				t.Fatal(r.Results)
			}
			for _, key := range test.twice {
				found := false
				for _, one := range r.Results {
					found = found || one.Severity == result.Info && strings.Contains(one.Message, "sets "+key+" 2 times, and only the last is written")
				}
				if !found {
					t.Errorf("no result names %s: %v", key, r.Results)
				}
			}
			for _, text := range test.left {
				if !strings.Contains(out, text) {
					t.Errorf("%q is not there:\n%s", text, out)
				}
			}
			obj, err := manifest.Decode([]byte(out))
			if err != nil {
				t.Fatal(err)
			}
			deployment, _ := obj.(map[string]any)
			spec, _ := deployment["spec"].(map[string]any)
			template, _ := spec["template"].(map[string]any)
			if _, twice := podmap.WithLast(nil, template); twice {
				t.Errorf("a key is there twice:\n%s", out)
			}
			if again, _ := try(t, test.policy, v1alpha1.ModeInject, out); again != out {
				t.Errorf("injecting again gives\n%s\nnot\n%s", again, out)
			}
			if back, _ := try(t, test.policy, v1alpha1.ModeRemove, out); back != input {
				t.Errorf("removing gives\n%s", back)
			}
		})
	}
}
