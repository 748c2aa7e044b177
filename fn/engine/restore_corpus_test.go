// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
)

// TestOneOwnFieldOfABarePodOfTheCorpus injects twice into Pods with a field that an injection may set, where templates see more of the Pod than
// this field: all that may be its own, left in place together, gives another Pod, and so does nothing of it.
func TestOneOwnFieldOfABarePodOfTheCorpus(t *testing.T) {
	probe := map[string]any{"initialDelaySeconds": int64(0), "httpGet": map[string]any{"path": "/healthz/ready", "port": int64(15021)}}
	for _, tc := range []struct {
		version, policy string
		field           string
		value           any
	}{
		{"1.10.6", "hello-no-seccontext", "securityContext", map[string]any{"fsGroup": int64(1337)}},
		{"1.10.6", "hello-image-secrets-in-values", "imagePullSecrets", []any{map[string]any{"name": "barSecret", "own": "x"}}},
		{"1.31.0-rc.0", "hello-otel-semconv", "initContainers", []any{map[string]any{"name": "istio-proxy", "image": "auto"}}},
		{"1.24.6", "traffic-params", "containers", []any{map[string]any{"name": "istio-proxy", "image": "auto", "readinessProbe": probe}}},
	} {
		t.Run(tc.policy, func(t *testing.T) {
			p := corpusPolicy(t, tc.version, tc.policy)
			doc := minimalPodWith(t, tc.field, tc.value)
			_, once := runAll(t, p, v1alpha1.ModeInject, []*manifest.Document{doc})
			if bytes.Equal(once[0].Raw(), doc.Raw()) {
				t.Fatal("it is not injected")
			}
			if _, again := runAll(t, p, v1alpha1.ModeInject, once); !bytes.Equal(again[0].Raw(), once[0].Raw()) {
				t.Errorf("injecting twice is not injecting once:\n%s", cmp.Diff(string(once[0].Raw()), string(again[0].Raw())))
			}
			if checks, _ := runAll(t, p, v1alpha1.ModeCheck, once); len(checks[0].errors) > 0 {
				t.Errorf("checking: %v", checks[0].errors)
			}
		})
	}
}

// TestKeptFieldOfTheCorpusIsNamed injects a Pod, and again with settings by which nothing sets fsGroup any more. The Pod looks like one that
// was injected with these settings and has the group of its own, so that it stays as it is, and a warning says what may be left over.
func TestKeptFieldOfTheCorpusIsNamed(t *testing.T) {
	doc := minimalPodWith(t, "restartPolicy", "Always")
	for _, version := range []string{"1.10.6", "1.12.9"} { // by the Pod it is known, and not known, that the version sets it
		t.Run(version, func(t *testing.T) {
			first := corpusPolicy(t, version, "hello-probes-proxyHoldApplication-ProxyConfig")
			_, once := runAll(t, first, v1alpha1.ModeInject, []*manifest.Document{doc})
			if results, _ := runAll(t, first, v1alpha1.ModeInject, once); results[0].doubts() {
				t.Errorf("with the same settings there is a warning: %v", results[0].warnings)
			}
			results, again := runAll(t, corpusPolicy(t, version, "hello-no-seccontext"), v1alpha1.ModeInject, once)
			if !bytes.Contains(once[0].Raw(), []byte("fsGroup")) || !bytes.Equal(once[0].Raw(), again[0].Raw()) {
				t.Fatalf("the Pod changes:\n%s", cmp.Diff(string(once[0].Raw()), string(again[0].Raw())))
			}
			if !results[0].doubts() {
				t.Errorf("nothing warns of the group: %v", results[0].warnings)
			}
		})
	}
}

// corpusPolicy returns the policy of a case of the corpus.
func corpusPolicy(t *testing.T, version, name string) *v1alpha1.InjectionPolicy {
	t.Helper()
	for _, v := range corpus(t) {
		for _, c := range v.Cases {
			if v.Version.String() != version || c.Name != name {
				continue
			}
			p, err := c.Policy()
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
	}
	t.Skipf("the corpus has no case %s of Istio %s", name, version)
	return nil
}

// minimalPodWith returns the minimal Pod with one more field of its spec.
func minimalPodWith(t *testing.T, field string, value any) *manifest.Document {
	t.Helper()
	var pod map[string]any
	if err := json.Unmarshal([]byte(minimalPod), &pod); err != nil {
		t.Fatal(err)
	}
	return workloadOf("Pod", withField(pod, []string{"spec", field}, value))
}
