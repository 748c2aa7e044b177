// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/istio/release"
)

// set reads "a=b c=d".
func set(s string) map[string]string {
	m := map[string]string{}
	for _, pair := range strings.Fields(s) {
		k, v, _ := strings.Cut(pair, "=")
		m[k] = v
	}
	return m
}

var (
	namespaces = []string{"", "istio-injection=enabled", "istio-injection=disabled", "istio.io/rev=default", "istio.io/rev=canary",
		"istio-injection=enabled istio.io/rev=canary", "istio-injection=disabled istio.io/rev=canary"}
	pods = []string{"", "sidecar.istio.io/inject=true", "sidecar.istio.io/inject=false", "istio.io/rev=default", "istio.io/rev=canary",
		"sidecar.istio.io/inject=true istio.io/rev=canary", "sidecar.istio.io/inject=false istio.io/rev=canary"}
)

// TestWebhookTables has for each version and installation a grid: a row for each entry of namespaces, a column for each of
// pods, y where the webhook is called.
func TestWebhookTables(t *testing.T) {
	const (
		all  = "yyyyyyy"
		none = "......."
		not2 = "yy.yyy." // all but sidecar.istio.io/inject=false
	)
	onlyEnabled := []string{none, all, none, none, none, all, none}
	for _, tc := range []struct {
		name     string
		from, to int
		revision string
		settings Settings
		tags     []string
		want     []string
	}{
		{"default", 0, 4, "", Settings{}, nil, onlyEnabled},
		{"by default", 0, 4, "", Settings{EnableNamespacesByDefault: true}, nil, []string{all, all, none, all, all, all, none}},
		{"revisions are not known", 0, 4, "canary", Settings{}, nil, onlyEnabled},

		{"default", 5, 8, "", Settings{}, nil, onlyEnabled},
		{"by default", 5, 8, "", Settings{EnableNamespacesByDefault: true}, nil, []string{all, all, none, none, none, none, none}},
		{"revision", 5, 5, "canary", Settings{}, nil, []string{none, none, none, none, all, all, none}},
		{"revision", 6, 8, "canary", Settings{}, nil, []string{none, none, none, none, all, none, none}},
		{"object selector, automatic", 5, 8, "", Settings{ObjectSelector: true, AutoInject: true}, nil, []string{none, not2, none, none, none, not2, none}},
		{"object selector, on request", 5, 8, "", Settings{ObjectSelector: true}, nil, []string{none, ".y...y.", none, none, none, ".y...y.", none}},
		{"object selector, on request, revision", 6, 8, "canary", Settings{ObjectSelector: true}, nil, []string{none, none, none, none, "....y..", none, none}},

		{"legacy selectors", 9, 10, "", Settings{LegacySelectors: true}, nil, onlyEnabled},
		{"legacy selectors, revision", 9, 10, "canary", Settings{LegacySelectors: true}, nil, []string{none, none, none, none, all, none, none}},
		{"legacy selectors, object selector", 9, 10, "", Settings{LegacySelectors: true, ObjectSelector: true, AutoInject: true}, nil, []string{none, not2, none, none, none, not2, none}},
		{"legacy selectors are gone", 11, 31, "", Settings{LegacySelectors: true}, nil, []string{".y.y...", not2, none, not2, none, not2, none}},

		{"default", 9, 9, "", Settings{}, nil, []string{".y.....", not2, none, none, none, not2, none}},
		{"by default", 9, 9, "", Settings{EnableNamespacesByDefault: true}, nil, []string{"yy.....", not2, none, none, none, not2, none}},
		{"revision", 9, 9, "canary", Settings{}, nil, []string{"....yy.", none, none, none, not2, none, none}},

		{"default", 10, 32, "", Settings{}, nil, []string{".y.y...", not2, none, not2, none, not2, none}},
		{"default by its name", 10, 31, "default", Settings{}, nil, []string{".y.y...", not2, none, not2, none, not2, none}},
		{"by default", 10, 31, "", Settings{EnableNamespacesByDefault: true}, nil, []string{"yy.y...", not2, none, not2, none, not2, none}},
		{"object selector has no say", 11, 31, "", Settings{ObjectSelector: true}, nil, []string{".y.y...", not2, none, not2, none, not2, none}},
		{"revision", 10, 31, "canary", Settings{}, nil, []string{"....yy.", none, none, none, not2, none, none}},
		{"revision with a tag", 10, 31, "1-31-0", Settings{}, []string{"canary"}, []string{"....yy.", none, none, none, not2, none, none}},
		{"revision with the tag default", 10, 31, "canary", Settings{}, []string{"default"}, []string{".y.yyy.", not2, none, not2, not2, not2, none}},
		{"revision with the tag default, by default", 10, 31, "canary", Settings{EnableNamespacesByDefault: true}, []string{"default"}, []string{"yy.yyy.", not2, none, not2, not2, not2, none}},
		{"the pod's revision first", 31, 32, "canary", Settings{PreferPod: true}, nil, []string{"....yy.", none, none, "....yy.", not2pod("yy..yy."), none, none}},
		{"a tag before the charts had them", 8, 8, "1-8-0", Settings{}, []string{"canary"}, []string{none, none, none, none, all, none, none}},
	} {
		for minor := tc.from; minor <= tc.to; minor++ {
			t.Run(fmt.Sprintf("1.%d %s", minor, tc.name), func(t *testing.T) {
				d, err := New(Options{Release: release.Newest(minor), Revision: tc.revision, Settings: tc.settings, RevisionTags: tc.tags, Policy: "enabled"})
				if err != nil {
					t.Fatal(err)
				}
				for i, ns := range namespaces {
					got := ""
					for _, pod := range pods {
						p := Pod{Labels: set(pod), Namespace: Namespace{Name: "shop", Labels: set(ns), Known: true}}
						if c := d.hooks.evaluateCall(selectorViewForPod(p), nil); c.answer == Yes {
							got += "y"
						} else {
							got += "."
						}
					}
					if got != tc.want[i] {
						t.Errorf("namespace %q: got %s, want %s", ns, got, tc.want[i])
					}
				}
			})
		}
	}
}

// not2pod only gives the row a name: a pod of another revision is left to that one.
func not2pod(row string) string { return row }

// TestSystemNamespaces are left out of the rule that takes everything, from 1.16.
func TestSystemNamespaces(t *testing.T) {
	for minor, want := range map[int]bool{10: true, 15: true, 16: false, 31: false} {
		d, err := New(Options{Release: release.Newest(minor), Settings: Settings{EnableNamespacesByDefault: true}, Policy: "enabled"})
		if err != nil {
			t.Fatal(err)
		}
		p := Pod{Namespace: Namespace{Name: "kube-node-lease", Known: true}}
		if got := d.hooks.evaluateCall(selectorViewForPod(p), nil).answer == Yes; got != want {
			t.Errorf("1.%d: called is %v", minor, got)
		}
		if d.Decide(p).Inject {
			t.Errorf("1.%d: it is injected", minor)
		}
	}
}

func TestNamespaceOfTheControlPlane(t *testing.T) {
	d, err := New(Options{Release: release.Newest(8), Settings: Settings{EnableNamespacesByDefault: true, Namespace: "mesh"}, Policy: "enabled"})
	if err != nil {
		t.Fatal(err)
	}
	for labels, want := range map[string]bool{"name=mesh": false, "name=istio-system": true, "": true, "istio-env=mesh": false} {
		if got := d.Decide(Pod{Namespace: Namespace{Name: "mesh", Labels: set(labels), Known: true}}).Inject; got != want {
			t.Errorf("%q: got %v", labels, got)
		}
	}
	d, err = New(Options{Release: release.Newest(5), Settings: Settings{InjectLabel: "istio-env", Namespace: "mesh"}, Policy: "enabled"})
	if err != nil {
		t.Fatal(err)
	}
	for labels, want := range map[string]bool{"istio-env=mesh": true, "istio-env=other": false, "istio-injection=enabled": false} {
		if got := d.Decide(Pod{Namespace: Namespace{Name: "shop", Labels: set(labels), Known: true}}).Inject; got != want {
			t.Errorf("injectLabel istio-env, %q: got %v", labels, got)
		}
	}
}

func TestNamesOfConfigurations(t *testing.T) {
	for _, tc := range []struct {
		minor     int
		revision  string
		namespace string
		tags      []string
		want      string
	}{
		{4, "", "", nil, "istio-sidecar-injector"},
		{31, "", "", nil, "istio-sidecar-injector"},
		{31, "default", "", nil, "istio-sidecar-injector"},
		{31, "canary", "", []string{"prod", "default"}, "istio-sidecar-injector-canary istio-revision-tag-prod istio-revision-tag-default"},
		{31, "canary", "mesh", nil, "istio-sidecar-injector-canary-mesh"},
		{7, "", "", []string{"prod"}, "istio-sidecar-injector"},
	} {
		var names []string
		for _, w := range BuiltIn(release.Newest(tc.minor), tc.revision, tc.tags, Settings{Namespace: tc.namespace}) {
			names = append(names, w.Name)
		}
		if got := strings.Join(names, " "); got != tc.want {
			t.Errorf("1.%d %s: got %s, want %s", tc.minor, tc.revision, got, tc.want)
		}
	}
}

// TestInjectRequired is the injector's own decision, version by version, for a pod that the webhook was called for.
func TestInjectRequired(t *testing.T) {
	type in struct{ label, annotation string }
	const unset = "-"
	values := func(v in) (labels, annotations map[string]string) {
		labels, annotations = map[string]string{}, map[string]string{}
		if v.label != unset {
			labels[labelInject] = v.label
		}
		if v.annotation != unset {
			annotations[labelInject] = v.annotation
		}
		return labels, annotations
	}
	for _, tc := range []struct {
		in       in
		from, to int
		// enabled and disabled are the decisions with these policies.
		enabled, disabled bool
	}{
		{in{unset, unset}, 0, 31, true, false},
		{in{unset, "true"}, 0, 31, true, true},
		{in{unset, "false"}, 0, 31, false, false},
		{in{unset, ""}, 0, 31, true, false},
		{in{unset, "yes"}, 0, 26, true, true},
		{in{unset, "yes"}, 27, 31, true, false},
		{in{unset, "Y"}, 0, 26, true, true},
		{in{unset, "On"}, 0, 26, true, true},
		{in{unset, "TRUE"}, 0, 26, true, true},
		{in{unset, "TRUE"}, 27, 31, true, false},
		{in{unset, "no"}, 0, 26, false, false},
		{in{unset, "no"}, 27, 31, true, false},
		{in{unset, "banana"}, 0, 26, false, false},
		{in{unset, "banana"}, 27, 31, true, false},
		{in{unset, "False"}, 27, 31, true, false},
		// The label is not read before 1.12, and wins from then on.
		{in{"true", unset}, 0, 11, true, false},
		{in{"true", unset}, 12, 31, true, true},
		{in{"false", unset}, 0, 11, true, false},
		{in{"false", unset}, 12, 31, false, false},
		{in{"true", "false"}, 0, 11, false, false},
		{in{"true", "false"}, 12, 31, true, true},
		{in{"false", "true"}, 0, 11, true, true},
		{in{"false", "true"}, 12, 31, false, false},
		{in{"", "false"}, 12, 31, true, false},
		{in{"banana", "false"}, 27, 31, true, false},
		{in{"banana", "true"}, 12, 26, false, false},
	} {
		for minor := tc.from; minor <= tc.to; minor++ {
			for policy, want := range map[string]bool{"enabled": tc.enabled, "disabled": tc.disabled, "": false, "Enabled": false} {
				d, err := New(Options{Release: release.Newest(minor), Policy: policy})
				if err != nil {
					t.Fatal(err)
				}
				p := Pod{Namespace: Namespace{Name: "shop"}}
				p.Labels, p.Annotations = values(tc.in)
				if got := d.injectRequired(p, selectorViewForPod(p), nil).inject; got != want {
					t.Errorf("1.%d, policy %q, label %q, annotation %q: got %v, want %v", minor, policy, tc.in.label, tc.in.annotation, got, want)
				}
			}
		}
	}
}

// TestInjectRequiredOrder has each question win over the ones behind it.
func TestInjectRequiredOrder(t *testing.T) {
	match := func(key string) func(map[string]string) int {
		return func(labels map[string]string) int {
			if _, ok := labels[key]; ok {
				return 1
			}
			return -1
		}
	}
	pod := func(ns string, host bool, labels, annotations string) Pod {
		return Pod{Labels: set(labels), Annotations: set(annotations), HostNetwork: host, Namespace: Namespace{Name: ns}}
	}
	ask := "sidecar.istio.io/inject=true"
	for _, tc := range []struct {
		name     string
		from, to int
		pod      Pod
		policy   string
		code     Code
		inject   bool
	}{
		{"host network beats a request", 0, 31, pod("shop", true, ask, ask), "enabled", CodeHostNetwork, false},
		{"host network beats the namespace", 0, 31, pod("kube-system", true, "", ""), "enabled", CodeHostNetwork, false},
		{"namespace beats a request", 0, 31, pod("kube-system", false, ask, ask), "enabled", CodeIgnoredNamespace, false},
		{"kube-public", 0, 31, pod("kube-public", false, "", ""), "enabled", CodeIgnoredNamespace, false},
		{"kube-node-lease", 0, 8, pod("kube-node-lease", false, "", ""), "enabled", CodeWebhook, true},
		{"kube-node-lease", 9, 31, pod("kube-node-lease", false, "", ""), "enabled", CodeIgnoredNamespace, false},
		{"local-path-storage", 0, 8, pod("local-path-storage", false, "", ""), "enabled", CodeWebhook, true},
		{"local-path-storage", 9, 31, pod("local-path-storage", false, "", ""), "enabled", CodeIgnoredNamespace, false},
		{"a request beats never", 1, 31, pod("shop", false, "never=x", ask), "enabled", CodePodAsks, true},
		{"a refusal beats always", 1, 31, pod("shop", false, "always=x", "sidecar.istio.io/inject=false"), "enabled", CodePodRefuses, false},
		{"never beats always", 1, 31, pod("shop", false, "never=x always=x", ""), "enabled", CodeNeverSelector, false},
		{"never beats the policy", 1, 31, pod("shop", false, "never=x", ""), "enabled", CodeNeverSelector, false},
		{"always beats the policy", 1, 31, pod("shop", false, "always=x", ""), "disabled", CodeAlwaysSelector, true},
		{"an unknown policy beats always", 1, 31, pod("shop", false, "always=x", ""), "", CodePolicyDisabled, false},
		{"an unknown policy beats a request", 1, 31, pod("shop", false, "", ask), "on", CodePolicyDisabled, false},
		{"1.0 has no selectors", 0, 0, pod("shop", false, "never=x", ""), "enabled", CodeWebhook, true},
		{"nonsense goes on to never", 27, 31, pod("shop", false, "never=x", "sidecar.istio.io/inject=maybe"), "enabled", CodeNeverSelector, false},
	} {
		for minor := tc.from; minor <= tc.to; minor++ {
			d, err := New(Options{Release: release.Newest(minor), Policy: tc.policy, Never: match("never"), Always: match("always")})
			if err != nil {
				t.Fatal(err)
			}
			got := d.injectRequired(tc.pod, selectorViewForPod(tc.pod), nil)
			if got.code != tc.code || got.inject != tc.inject {
				t.Errorf("1.%d, %s: got %v %s", minor, tc.name, got.inject, got.code)
			}
		}
	}
}

// TestWellFormedRules has every built-in selector compile, for every version.
func TestWellFormedRules(t *testing.T) {
	for minor := 0; minor <= 33; minor++ {
		for _, revision := range []string{"", "default", "canary"} {
			for _, w := range BuiltIn(release.Newest(minor), revision, []string{"prod", "default"}, Settings{EnableNamespacesByDefault: true, ObjectSelector: true}) {
				names := map[string]bool{}
				for _, r := range w.Webhooks {
					if names[r.Name] {
						t.Errorf("1.%d %s: %s is there twice", minor, w.Name, r.Name)
					}
					names[r.Name] = true
					for _, s := range []*v1alpha1.LabelSelector{r.NamespaceSelector, r.ObjectSelector} {
						if _, err := compileSelector(s); err != nil {
							t.Errorf("1.%d %s %s: %v", minor, w.Name, r.Name, err)
						}
					}
				}
			}
		}
	}
}
