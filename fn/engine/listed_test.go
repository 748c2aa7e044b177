// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/engine"
)

// injectedWith injects into the first document of a stream, by a policy with these namespaces, and returns it and what is said.
func injectedWith(t *testing.T, annotations, namespaces, stream string) (string, string) {
	t.Helper()
	return injectedInMesh(t, annotations, "", namespaces, stream)
}

// injectedInMesh is injectedWith with discoverySelectors in the mesh config, or none.
func injectedInMesh(t *testing.T, annotations, selectors, namespaces, stream string) (string, string) {
	t.Helper()
	p, err := v1alpha1.Parse([]byte(`apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: mesh, annotations: {` + annotations + `}}
spec:
  istio:
    injector: {builtIn: istio, overrides: {global: {imagePullSecrets: [of-istio]}}}
    meshConfig: "{rootNamespace: istio-system, discoverySelectors: [` + selectors + `]}"
  namespaces:
  - name: shop
    labels: {istio-injection: enabled}
` + namespaces))
	if err != nil {
		t.Fatal(err)
	}
	in, err := engine.New([]*v1alpha1.InjectionPolicy{p})
	if err != nil {
		t.Fatal(err)
	}
	report := runStream(t, in, stream)
	var said []string
	for _, one := range report.Results {
		said = append(said, one.Message)
	}
	return string(report.Items[0].Doc.Raw()), strings.Join(said, "\n")
}

// TestObjectsThatAPolicyLists has the same come of ServiceAccounts, LimitRanges and ProxyConfigs in a policy as of those among the items,
// which go before them.
func TestObjectsThatAPolicyLists(t *testing.T) {
	const pod = `apiVersion: v1
kind: Pod
metadata: {name: a, namespace: shop, labels: {app: a}}
spec:
  serviceAccountName: web
  containers:
  - {name: a, image: a}
  - {name: istio-proxy, image: auto}
`
	for name, tc := range map[string]struct{ listed, item, shows string }{
		"ServiceAccount": {
			"    serviceAccounts: [{name: web, imagePullSecrets: [of-account]}]\n",
			"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web, namespace: shop}\nimagePullSecrets: [{name: of-account}]\n", "of-account",
		},
		"LimitRange": {
			"    limitRanges: [{name: all, limits: [{type: Container, default: {memory: 777Mi, cpu: 1500m}}]}]\n",
			"apiVersion: v1\nkind: LimitRange\nmetadata: {name: all, namespace: shop}\nspec: {limits: [{type: Container, default: {memory: 777Mi, cpu: 1500m}}]}\n", "777Mi",
		},
		"ProxyConfig": {
			"    proxyConfigs: [{name: own, spec: {environmentVariables: {WHENCE: of-the-namespace}}}]\n",
			"apiVersion: networking.istio.io/v1beta1\nkind: ProxyConfig\nmetadata: {name: own, namespace: shop}\nspec: {environmentVariables: {WHENCE: of-the-namespace}}\n",
			"of-the-namespace",
		},
		"ProxyConfig of the mesh": {
			"  - name: istio-system\n    proxyConfigs: [{name: own, spec: {environmentVariables: {WHENCE: of-the-mesh}}}]\n",
			"apiVersion: networking.istio.io/v1beta1\nkind: ProxyConfig\nmetadata: {name: own, namespace: istio-system}\nspec: {environmentVariables: {WHENCE: of-the-mesh}}\n",
			"of-the-mesh",
		},
	} {
		t.Run(name, func(t *testing.T) {
			plain, _ := injectedWith(t, "", "", pod)
			want, _ := injectedWith(t, "", "", pod+"---\n"+tc.item)
			if plain == want || !strings.Contains(want, tc.shows) {
				t.Fatalf("the item changes nothing:\n%s", want)
			}
			if got, _ := injectedWith(t, "", tc.listed, pod); got != want {
				t.Errorf("listed in the policy it gives something else:\n%s", cmp.Diff(want, got))
			}
			other := strings.NewReplacer("of-account", "other", "777Mi", "888Mi", "of-the-namespace", "other", "of-the-mesh", "other").Replace(tc.item)
			want, _ = injectedWith(t, "", "", pod+"---\n"+other)
			if got, _ := injectedWith(t, "", tc.listed, pod+"---\n"+other); got != want {
				t.Errorf("the item does not go before what is listed:\n%s", cmp.Diff(want, got))
			}
		})
	}
	t.Run("oldest first", func(t *testing.T) {
		listed := "    proxyConfigs: [{name: z, spec: {environmentVariables: {WHENCE: old}}}, {name: b, spec: {environmentVariables: {WHENCE: newer}}}]\n"
		item := "apiVersion: networking.istio.io/v1beta1\nkind: ProxyConfig\nmetadata: {name: a, namespace: shop}\nspec: {environmentVariables: {WHENCE: newest}}\n"
		if got, _ := injectedWith(t, "", listed, pod+"---\n"+item); !strings.Contains(got, "value: old") || strings.Contains(got, "newe") {
			t.Errorf("not the oldest counts:\n%s", got)
		}
		item = strings.Replace(item, "name: a", "name: z", 1) // as it is in Git, and still the oldest
		if got, _ := injectedWith(t, "", listed, pod+"---\n"+item); !strings.Contains(got, "value: newest") {
			t.Errorf("one that the items change has lost its age:\n%s", got)
		}
	})
	t.Run("many pods at once", func(t *testing.T) { // with the race detector
		stream := pod
		for i := range 40 {
			stream += "---\n" + strings.Replace(pod, "name: a,", fmt.Sprintf("name: a%d,", i), 1)
		}
		injectedWith(t, "", "    limitRanges: [{name: all, limits: [{type: Container, default: {memory: 1024Mi, cpu: 1500m}}]}]\n", stream)
	})
	t.Run("an account without pull secrets", func(t *testing.T) {
		const completed = "prerig.dev/completed-from: Cluster"
		for _, known := range []struct{ annotations, listed string }{{completed, ""}, {"", "    serviceAccounts: [{name: other, imagePullSecrets: [x]}]\n"}} {
			if _, said := injectedWith(t, known.annotations, known.listed, pod); strings.Contains(said, "service account") {
				t.Errorf("with %+v it is said:\n%s", known, said)
			}
		}
		if _, said := injectedWith(t, "", "", pod); !strings.Contains(said, "no longer adds those of its service account web") {
			t.Errorf("nothing is said of an account that is not known:\n%s", said)
		}
	})
}

// TestProxyConfigsThatIstiodDoesNotRead has ProxyConfigs that are of another revision, or in a namespace that discoverySelectors leave out.
func TestProxyConfigsThatIstiodDoesNotRead(t *testing.T) {
	const (
		pod    = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop}\nspec:\n  containers:\n  - {name: a, image: a}\n"
		listed = "    proxyConfigs: [{name: own, spec: {environmentVariables: {WHENCE: of-the-config}}}]\n"
		shops  = "{matchLabels: {istio-injection: enabled}}"
		others = "{matchLabels: {istio-discovery: enabled}}"
	)
	item := func(namespace, labels string) string {
		return "---\napiVersion: networking.istio.io/v1beta1\nkind: ProxyConfig\nmetadata: {name: own, namespace: " + namespace + ", labels: {" + labels +
			"}}\nspec: {environmentVariables: {WHENCE: of-the-config}}\n"
	}
	for name, tc := range map[string]struct {
		selectors, listed, items string
		read                     bool
	}{
		"own revision":                     {"", "", item("shop", "istio.io/rev: default"), true},
		"another revision":                 {"", "", item("shop", "istio.io/rev: canary"), false},
		"own revision, listed":             {"", strings.Replace(listed, "spec:", "revision: default, spec:", 1), "", true},
		"another revision, listed":         {"", strings.Replace(listed, "spec:", "revision: canary, spec:", 1), "", false},
		"a namespace that is selected":     {others + ", " + shops, "", item("shop", ""), true},
		"a namespace that is left out":     {others, "", item("shop", ""), false},
		"listed in a namespace left out":   {others, listed, "", false},
		"the root namespace, selected":     {shops, "  - {name: istio-system, labels: {istio-injection: enabled}}\n", item("istio-system", ""), true},
		"the root namespace, left out":     {shops, "  - {name: istio-system, labels: {a: b}}\n", item("istio-system", ""), false},
		"a namespace of which none knows":  {shops, "", item("istio-system", ""), true},
		"a namespace selected by its name": {"{matchLabels: {kubernetes.io/metadata.name: shop}}", "", item("shop", ""), true},
		"a namespace left out by its name": {"{matchLabels: {kubernetes.io/metadata.name: other}}", "", item("shop", ""), false},
		"an unknown one, by its name":      {"{matchLabels: {kubernetes.io/metadata.name: istio-system}}", "", item("istio-system", ""), true},
		"a selector that is broken":        {others + ", {matchExpressions: [{key: a, operator: Nor}]}", "", item("shop", ""), true},
	} {
		t.Run(name, func(t *testing.T) {
			got, said := injectedInMesh(t, "", tc.selectors, tc.listed, pod+tc.items)
			if !strings.Contains(got, "name: istio-proxy") || strings.Contains(got, "value: of-the-config") != tc.read {
				t.Errorf("the ProxyConfig is read: %t, want %t\n%s\n%s", !tc.read, tc.read, got, said)
			}
			if unknown := strings.Contains(name, "none knows"); strings.Contains(said, "labels of the namespace are not known") != unknown {
				t.Errorf("said:\n%s", said)
			}
		})
	}
}
