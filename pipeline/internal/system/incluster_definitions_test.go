// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/runtime/schema"

	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// TestInClusterTakesTheExamples has the API server take every RenderPipeline and InjectionPolicy of the examples, strictly.
func TestInClusterTakesTheExamples(t *testing.T) {
	c := newInCluster(t, "examples")
	all := c.examples()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		o := c.parse(all[name])
		o.SetNamespace("examples")
		o.SetName(strings.ToLower(o.GetName()))
		gvr := renderPipelines
		if o.GetKind() == policyv1alpha1.Kind {
			gvr = policyObjects
		}
		if _, err := c.tryApply(gvr, o); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.dynamic.Resource(gvr).Namespace("examples").Delete(t.Context(), o.GetName(), deleteNow); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(all) < 20 {
		t.Errorf("only %d examples were found", len(all))
	}
}

// TestInClusterRefuses has the API server refuse what the schema or a rule can tell, as the decoders do.
func TestInClusterRefuses(t *testing.T) {
	c := newInCluster(t, "examples")
	const good = "source: {git: {url: 'https://git.example.com/org/apps'}}"
	for name, tc := range map[string]struct{ kind, spec, want string }{
		"two sources":           {"", "source: {git: {url: 'https://git.example.com/a'}, oci: {url: 'oci://r.example.com/a'}}", "exactly one of git, oci, dir"},
		"no source":             {"", "source: {}", "exactly one of git, oci, dir"},
		"none at all":           {"", "interval: 1m", "spec.source"},
		"a mounted one of none": {"", good + "\n  sources: [{mountPath: x}]", "exactly one of git, oci, dir"},
		"a branch and a tag":    {"", "source: {git: {url: 'https://git.example.com/a', ref: {branch: a, tag: b}}}", "at most one of branch, tag, name"},
		"two policies in one":   {"", good + "\n  policies: [{builtIn: istio, name: mesh}]", "exactly one of path, file, builtIn, name"},
		"nowhere to publish":    {"", good + "\n  publish: [{}]", "exactly one of externalArtifact, git, oci"},
		"two places in one":     {"", good + "\n  publish: [{git: {branch: a}, externalArtifact: {}}]", "exactly one of externalArtifact, git, oci"},
		"nobody to tell":        {"", good + "\n  notify: [{}]", "exactly one of fluxReceiver"},
		"an odd enum":           {"", good + "\n  deletionPolicy: Keep", "spec.deletionPolicy"},
		"an odd interval":       {"", good + "\n  interval: often", "spec.interval"},
		"a key of nobody":       {"", good + "\n  intervall: 1m", "spec.intervall"},
		"a number for a text":   {"", good + "\n  build: {path: 1}", "spec.build.path"},
		"two configurations":    {"InjectionPolicy", "istio: {injector: {config: a, builtIn: istio}}", "at most one of config, configMap, builtIn"},
		"values alone":          {"InjectionPolicy", "istio: {injector: {values: '{}'}}", "values belong to config"},
		"an odd mode":           {"InjectionPolicy", "mode: Maybe", "spec.mode"},
		"two ConfigMaps":        {"InjectionPolicy", "from: Cluster\n  istio: {injector: {configMap: {name: a}}}", "excludes istio.injector.configMap"},
	} {
		t.Run(name, func(t *testing.T) {
			kind, gvr := v1alpha1.Kind, renderPipelines
			if tc.kind != "" {
				kind, gvr = tc.kind, policyObjects
			}
			text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: %s\nmetadata: {name: wrong, namespace: examples}\nspec:\n  %s\n", kind, tc.spec)
			_, err := c.tryApply(gvr, c.parse(text))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the API server says %v", err)
			}
			parsed := error(nil)
			if gvr == policyObjects {
				_, parsed = policyv1alpha1.Parse([]byte(text))
			} else {
				_, parsed = v1alpha1.Parse([]byte(text))
			}
			if parsed == nil {
				t.Error("the same as a file is accepted")
			}
		})
	}
}

// TestInClusterNobodyHasLooked has kstatus not take objects for ready while no daemon is there.
func TestInClusterNobodyHasLooked(t *testing.T) {
	c := newInCluster(t, "unseen")
	for gvr, text := range map[schema.GroupVersionResource]string{
		renderPipelines: "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: new, namespace: unseen}\nspec: {source: {git: {url: 'https://git.example.com/a'}}}\n",
		policyObjects:   "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: new, namespace: unseen}\nspec: {istio: {injector: {builtIn: istio}}}\n",
	} {
		o, err := c.tryApply(gvr, c.parse(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := kstatus.Compute(o); err != nil || got.Status != kstatus.InProgressStatus {
			t.Errorf("a new object is %+v, %v: %v", got, err, o.Object["status"])
		}
	}
}

// TestInClusterColumns has kubectl show pipelines and explain their fields.
func TestInClusterColumns(t *testing.T) {
	c := newInCluster(t, "columns")
	c.apply(renderPipelines, c.parse("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: web, namespace: columns}\nspec: {source: {git: {url: 'https://git.example.com/a'}}}\n"))
	out := c.kubectl("get", "rp", "-n", "columns", "-o", "wide")
	if want := []string{"NAME", "READY", "STATUS", "REVISION", "SUSPENDED", "AGE"}; !slices.Equal(strings.Fields(strings.SplitN(out, "\n", 2)[0]), want) {
		t.Errorf("kubectl shows\n%s", out)
	}
	if out := c.kubectl("explain", "renderpipeline.spec.deletionPolicy"); !strings.Contains(out, "deletionPolicy <string>") || !strings.Contains(out, "Orphan") {
		t.Errorf("kubectl explains\n%s", out)
	}
}

// TestInClusterTakesEmptyTexts has the API server take an empty text where the decoders take it for none.
func TestInClusterTakesEmptyTexts(t *testing.T) {
	c := newInCluster(t, "examples")
	for name, tc := range map[string]struct{ kind, spec string }{
		"values":         {"InjectionPolicy", "istio: {injector: {builtIn: istio, values: ''}}"},
		"a tag":          {v1alpha1.Kind, "source: {git: {url: 'https://git.example.com/a', ref: {branch: main, tag: ''}}}"},
		"a policy's key": {v1alpha1.Kind, "source: {git: {url: 'https://git.example.com/a'}}\n  policies: [{builtIn: istio, file: ''}]"},
	} {
		t.Run(name, func(t *testing.T) {
			gvr := renderPipelines
			if tc.kind != v1alpha1.Kind {
				gvr = policyObjects
			}
			text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: %s\nmetadata: {name: empty, namespace: examples}\nspec:\n  %s\n", tc.kind, tc.spec)
			parsed := error(nil)
			if gvr == policyObjects {
				_, parsed = policyv1alpha1.Parse([]byte(text))
			} else {
				_, parsed = v1alpha1.Parse([]byte(text))
			}
			if _, err := c.tryApply(gvr, c.parse(text)); err != nil || parsed != nil {
				t.Errorf("the API server says %v, and the decoder %v", err, parsed)
			}
		})
	}
}
