// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/internal/corpustest"
)

// notTwice says why the webhook itself changes a case when it injects again; it is empty for the others.
func notTwice(c *Case) string {
	switch {
	case c.Name == "merge-probers" && c.version.Minor >= 17:
		return "its input has a proxy of another version, which the first injection takes for the user's own"
	case c.Name == "hello-2" && c.Path == "kube-inject" && c.version.Minor <= lastLeft:
		return "istioctl kube-inject leaves its input alone, so the first injection is the second one here"
	default:
		return ""
	}
}

// withoutMetaJSON is a value without the variables that print a pod's annotations: those that an injection itself adds are
// among them when the webhook injects again.
func withoutMetaJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = withoutMetaJSON(e)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, e := range v {
			if m, ok := e.(map[string]any); ok {
				if name, _ := m["name"].(string); strings.HasPrefix(name, "ISTIO_METAJSON_") {
					continue
				}
			}
			out = append(out, withoutMetaJSON(e))
		}
		return out
	default:
		return v
	}
}

// TestCorpusTwiceIsOnce injects what was injected again, as the webhook does, and wants the same.
func TestCorpusTwiceIsOnce(t *testing.T) {
	versions, err := Load(corpustest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		t.Run(v.Version.String(), func(t *testing.T) {
			for _, c := range v.Cases {
				if c.ExpectError != "" || notTwice(c) != "" {
					continue
				}
				once, err := c.Inject()
				if err != nil {
					t.Fatalf("%s: %v", c.Name, err)
				}
				in, err := c.Injector()
				if err != nil {
					t.Fatalf("%s: %v", c.Name, err)
				}
				w := worker{c: c, in: in, registry: registry, again: true}
				for i, obj := range once.Objects {
					twice, err := w.injectObject(obj)
					if err != nil {
						t.Errorf("%s: injecting again: %v", c.Name, err)
						continue
					}
					if d := cmp.Diff(withoutMetaJSON(obj), withoutMetaJSON(twice)); d != "" {
						t.Errorf("%s, object %d: injecting again changes it (-once +twice):\n%s", c.Name, i, d)
					}
				}
			}
		})
	}
}
