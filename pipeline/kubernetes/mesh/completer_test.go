// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/cli/importer"
)

const asked = `{"apiVersion":"prerig.dev/v1alpha1","kind":"InjectionPolicy","metadata":{"name":"mesh","namespace":"shop"},"spec":{"from":"Cluster","istio":{}}}`

// plane is a control plane of a revision, "" for the default one.
func plane(revision string) string {
	suffix, label := "", "default"
	if revision != "" {
		suffix, label = "-"+revision, revision
	}
	return strings.NewReplacer("SUFFIX", suffix, "LABEL", label).Replace(`
apiVersion: v1
kind: ConfigMap
metadata: {name: istio-sidecar-injectorSUFFIX, namespace: istio-system, labels: {istio.io/rev: LABEL}}
data: {config: "templates: {sidecar: 'spec: {}'}", values: '{"global": {"tag": "1.31.1"}}'}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: istioSUFFIX, namespace: istio-system, labels: {istio.io/rev: LABEL}}
data: {mesh: "trustDomain: LABEL.example.com"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injectorSUFFIX, labels: {istio.io/rev: LABEL}}
webhooks:
- name: namespace.sidecar-injector.istio.io
  namespaceSelector: {matchLabels: {istio-injection: enabled}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
---
`)
}

const namespaces = `
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Namespace
metadata: {name: billing}
---
`

// fakeCluster is a cluster as a test wants it.
type fakeCluster struct {
	objects []importer.Object
	version uint64
	err     error
}

func (f *fakeCluster) Objects() ([]importer.Object, uint64, error) {
	return f.objects, f.version, f.err
}

func (f *fakeCluster) has(t *testing.T, text string) {
	t.Helper()
	found, err := importer.Read("cluster", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	f.objects, f.version = found, f.version+1
}

type memory map[string][]byte

func (m memory) Load(_ context.Context, name string) ([]byte, uint64, bool, error) {
	data, ok := m[name]
	return data, 1, ok, nil
}

func (m memory) Save(_ context.Context, name string, data []byte) error { m[name] = data; return nil }

func (m memory) Forget(_ context.Context, name string) error { delete(m, name); return nil }

// ids are those of the policies that are remembered.
func (m memory) ids() (out []string) {
	for name := range m {
		out = append(out, strings.TrimPrefix(name, MemoryPrefix))
	}
	slices.Sort(out)
	return out
}

func mustComplete(t *testing.T, c *Completer, text string) *Completed {
	t.Helper()
	one, err := c.Complete("InjectionPolicy shop/mesh", []byte(text))
	if err != nil || one == nil {
		t.Fatalf("completed to %v, %v", one, err)
	}
	return one
}

// TestComplete fills in what the cluster has, and leaves what the policy says itself.
func TestComplete(t *testing.T) {
	f := &fakeCluster{}
	f.has(t, plane("")+namespaces)
	c := &Completer{Cluster: f, Memory: memory{}}
	one := mustComplete(t, c, asked)
	p, err := v1alpha1.Parse(one.Text())
	if err != nil {
		t.Fatal(err)
	}
	s := p.Spec
	if s.From != "" || len(s.Namespaces) != 2 || s.Istio.MeshConfig != "trustDomain: default.example.com" || len(s.Istio.Webhooks) != 1 || s.Istio.Injector.Config == "" {
		t.Errorf("completed to\n%s", one.Text())
	}
	own := strings.Replace(asked, `"istio":{}`, `"istio":{"meshConfig":"trustDomain: own","injector":{"overrides":{"a":"b"}}},"namespaces":[{"name":"billing","labels":{"x":"y"}}]`, 1)
	p, err = v1alpha1.Parse(mustComplete(t, c, own).Text())
	if err != nil {
		t.Fatal(err)
	}
	if s := p.Spec; s.Istio.MeshConfig != "trustDomain: own" || s.Istio.Injector.Overrides["a"] != "b" || s.Istio.Injector.Config == "" || s.Namespaces[0].Labels["x"] != "y" || len(s.Namespaces) != 2 {
		t.Errorf("what the policy says itself is lost:\n%+v", s)
	}
	if one, err := c.Complete("other", []byte(strings.Replace(asked, `"from":"Cluster",`, "", 1))); one != nil || err != nil {
		t.Errorf("a policy that does not ask for it was completed to %v, %v", one, err)
	}
}

// TestCompleteRevisionOrTag takes the control plane of a revision, and the one that a revision tag points to.
func TestCompleteRevisionOrTag(t *testing.T) {
	f := &fakeCluster{}
	tag := func(name, revision string) string {
		return strings.NewReplacer("TAG", name, "REV", revision).Replace(`
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-revision-tag-TAG, labels: {istio.io/rev: REV, istio.io/tag: TAG}}
webhooks:
- name: rev.namespace.sidecar-injector.istio.io
  namespaceSelector: {matchLabels: {istio.io/rev: TAG}}
---
`)
	}
	f.has(t, plane("one")+plane("two")+tag("prod", "one")+tag("default", "two")+namespaces)
	c := &Completer{Cluster: f}
	for revision, want := range map[string]string{"one": "one", "two": "two", "prod": "one", "": "two"} {
		text := strings.Replace(asked, `"istio":{}`, `"istio":{"revision":"`+revision+`"}`, 1)
		p, err := v1alpha1.Parse(mustComplete(t, c, text).Text())
		if err != nil {
			t.Fatal(err)
		}
		if p.Spec.Istio.Revision != want || p.Spec.Istio.MeshConfig != "trustDomain: "+want+".example.com" {
			t.Errorf("%q is completed from %q, %s", revision, p.Spec.Istio.Revision, p.Spec.Istio.MeshConfig)
		}
	}
	f.has(t, plane("one")+plane("two")+tag("prod", "two")+namespaces)
	p, err := v1alpha1.Parse(mustComplete(t, c, strings.Replace(asked, `"istio":{}`, `"istio":{"revision":"prod"}`, 1)).Text())
	if err != nil || p.Spec.Istio.Revision != "two" {
		t.Errorf("after the tag has moved it is %q, %v", p.Spec.Istio.Revision, err)
	}
}

// TestNothingIsNotBelieved keeps what there was where a cluster lists nothing of it any more or cannot be read, also after a restart.
func TestNothingIsNotBelieved(t *testing.T) {
	f, kept := &fakeCluster{}, memory{}
	f.has(t, plane("")+namespaces)
	c := &Completer{Cluster: f, Memory: kept}
	want := mustComplete(t, c, asked).Digest
	withoutWebhooks := strings.Split(plane(""), "apiVersion: admission")[0]
	for name, tc := range map[string]struct{ objects, says string }{
		"an empty answer":                  {"", "no namespaces"},
		"no namespaces":                    {plane(""), "no namespaces"},
		"no ConfigMaps":                    {namespaces, "no ConfigMap"},
		"no webhooks":                      {withoutWebhooks + namespaces, "no MutatingWebhookConfigurations"},
		"only another revision's webhooks": {withoutWebhooks + plane("two") + namespaces, "no MutatingWebhookConfigurations of the revision default"},
	} {
		t.Run(name, func(t *testing.T) {
			f.has(t, tc.objects)
			for _, c := range []*Completer{c, {Cluster: f, Memory: kept}} {
				one := mustComplete(t, c, asked)
				if one.Digest != want || !strings.Contains(one.Stale, tc.says) {
					t.Errorf("completed to %s, which is said to be %q; want %s", one.Digest, one.Stale, want)
				}
			}
		})
	}
	f.has(t, plane("")+namespaces)
	if one := mustComplete(t, c, asked); one.Digest != want || one.Stale != "" {
		t.Errorf("when it is there again: %s, %q", one.Digest, one.Stale)
	}
	f.err = errors.New("connection refused")
	if one := mustComplete(t, c, asked); one.Digest != want || !strings.Contains(one.Stale, "connection refused") {
		t.Errorf("when it cannot be read: %s, %q", one.Digest, one.Stale)
	}
	f.err, f.objects, f.version = nil, nil, f.version+1
	if _, err := (&Completer{Cluster: f, Memory: memory{}}).Complete("x", []byte(asked)); err == nil {
		t.Error("nothing is completed without anything to remember")
	}
}

// TestOwnWebhooksAreMissed tells that a policy has lost the webhooks of its own revision, also where those of another are left.
func TestOwnWebhooksAreMissed(t *testing.T) {
	with := func(revisions ...string) *v1alpha1.InjectionPolicy {
		p := &v1alpha1.InjectionPolicy{Spec: v1alpha1.InjectionPolicySpec{Istio: &v1alpha1.Istio{Revision: "one"}}}
		for _, r := range revisions {
			p.Spec.Istio.Webhooks = append(p.Spec.Istio.Webhooks, v1alpha1.Webhook{Name: "w" + r, Revision: r})
		}
		return p
	}
	for name, tc := range map[string]struct {
		before, now *v1alpha1.InjectionPolicy
		missing     bool
	}{
		"its own are gone":        {with("", "two"), with("two"), true},
		"its own had a name":      {with("one"), with("two"), true},
		"another's are gone":      {with("", "two"), with(""), false},
		"there were none before":  {with("two"), with("two"), false},
		"its own have a name now": {with(""), with("one"), false},
	} {
		if got := describeLostCompletion(tc.before, tc.now); (got != "") != tc.missing {
			t.Errorf("%s: missing is %q", name, got)
		}
	}
}

// TestALabelIsNoOtherPolicy keeps what there was where a policy gets labels and annotations, or is written in another way, while the cluster
// lists nothing, also after a restart. One that says something else is another policy.
func TestALabelIsNoOtherPolicy(t *testing.T) {
	for name, tc := range map[string]struct {
		from, to string
		lost     bool
	}{
		"a label":       {`"name":"mesh"`, `"name":"mesh","labels":{"team":"shop"}`, false},
		"an annotation": {`"name":"mesh"`, `"name":"mesh","annotations":{"seen":"by-a-controller"}`, false},
		"a comment":     {`{"apiVersion"`, "# of the shop\n{\"apiVersion\"", false},
		"the spec":      {`"istio":{}`, `"istio":{"revision":"prod"}`, true},
		"the namespace": {`"namespace":"shop"`, `"namespace":"billing"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, kept := &fakeCluster{}, memory{}
			f.has(t, plane("")+namespaces)
			c := &Completer{Cluster: f, Memory: kept}
			want := mustComplete(t, c, asked).Digest
			f.has(t, "")
			for which, c := range map[string]*Completer{"the same process": c, "another one": {Cluster: f, Memory: kept}} {
				one, err := c.Complete("InjectionPolicy shop/mesh", []byte(strings.Replace(asked, tc.from, tc.to, 1)))
				if (err != nil) != tc.lost || err == nil && (one.Digest != want || one.Stale == "") {
					t.Errorf("%s completes it to %+v, %v", which, one, err)
				}
			}
		})
	}
}

// TestSweep lets go of policies that are gone, also of those that only another process knew, once they are missed twice.
func TestSweep(t *testing.T) {
	f, kept := &fakeCluster{}, memory{}
	f.has(t, plane("")+namespaces)
	there := map[string]bool{"shop/there": true, "shop/back": true}
	c := &Completer{Cluster: f, Memory: kept}
	for id, by := range map[string]*Completer{
		ObjectID("shop", "there"): c, ObjectID("shop", "gone"): c, ObjectID("shop", "back"): c, "/etc/prerig/mesh.yaml": c,
		ObjectID("shop", "of-before"): {Cluster: f, Memory: kept},
	} {
		if _, err := by.Complete(id, []byte(asked)); err != nil {
			t.Fatal(err)
		}
	}
	sweep := func(want ...string) {
		t.Helper()
		if err := c.Sweep(t.Context(), kept.ids(), func(namespace, name string) bool { return there[namespace+"/"+name] }); err != nil {
			t.Error(err)
		}
		if got := kept.ids(); !slices.Equal(got, want) {
			t.Errorf("it is remembered of %q, want %q", got, want)
		}
	}
	left := []string{"/etc/prerig/mesh.yaml", ObjectID("shop", "back"), ObjectID("shop", "there")}
	all := append(slices.Clone(left), ObjectID("shop", "gone"), ObjectID("shop", "of-before"))
	slices.Sort(all)
	sweep(all...)
	there["shop/back"] = false
	sweep(left...)
	there["shop/back"] = true
	sweep(left...)
	there["shop/back"] = false
	sweep(left...)
	if got := len(c.known); got != len(left) {
		t.Errorf("%d policies are known", got)
	}
}

// TestSnapshot cuts a policy down to what was looked at: it is the same whatever other namespaces say, and gives the policy again.
func TestSnapshot(t *testing.T) {
	f := &fakeCluster{}
	f.has(t, plane("")+namespaces)
	c := &Completer{Cluster: f}
	before := mustComplete(t, c, asked)
	first, err := before.Snapshot(before.Homes([]string{"shop", ""}))
	if err != nil {
		t.Fatal(err)
	}
	f.has(t, plane("")+strings.Replace(namespaces, "{name: billing}", "{name: billing, labels: {a: b}}", 1))
	after := mustComplete(t, c, asked)
	second, err := after.Snapshot(after.Homes([]string{"shop"}))
	if err != nil {
		t.Fatal(err)
	}
	if first.Digest != second.Digest || strings.Contains(string(first.Text), "billing") {
		t.Errorf("another namespace is in it:\n%s", first.Text)
	}
	if before.Base != after.Base || before.Digest == after.Digest || before.Namespace("billing") == after.Namespace("billing") || before.Namespace("shop") != after.Namespace("shop") {
		t.Error("which namespace has changed is not told")
	}
	given := Given{}
	if err := given.Add(first.Text); err != nil {
		t.Fatal(err)
	}
	again, err := given.Complete("", []byte(asked))
	if err != nil || string(again.Text()) != string(first.Text) || DigestOf(again.Text()) != first.Digest {
		t.Errorf("the snapshot gives %s, %v", again.Text(), err)
	}
}

// slowMemory answers about one policy only when it is told to.
type slowMemory struct {
	memory
	slow    string
	entered chan struct{}
	answer  chan struct{}
}

func (m slowMemory) Load(ctx context.Context, name string) ([]byte, uint64, bool, error) {
	if name == memoryName(m.slow) {
		close(m.entered)
		<-m.answer
	}
	return m.memory.Load(ctx, name)
}

// TestAPolicyDoesNotWaitForAnother completes one while what is remembered of another cannot be read.
func TestAPolicyDoesNotWaitForAnother(t *testing.T) {
	f := &fakeCluster{}
	f.has(t, plane("")+namespaces)
	kept := slowMemory{memory: memory{}, slow: "slow", entered: make(chan struct{}), answer: make(chan struct{})}
	c := &Completer{Cluster: f, Memory: kept}
	done := make(chan error, 1)
	go func() {
		_, err := c.Complete("slow", []byte(asked))
		done <- err
	}()
	<-kept.entered
	mustComplete(t, c, asked)
	select {
	case err := <-done:
		t.Errorf("the slow one is done: %v", err)
	default:
	}
	close(kept.answer)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestContentsOfNamespaces: a render is of the namespaces that it looks at, with what counts in them, and of the ProxyConfigs for all. What is
// in another namespace changes neither its snapshot nor what it depends on.
func TestContentsOfNamespaces(t *testing.T) {
	const config = "apiVersion: networking.istio.io/v1beta1\nkind: ProxyConfig\nmetadata: {name: NAME, namespace: IN}\nspec: {concurrency: 3}\n---\n"
	in := func(namespace, name string) string {
		return strings.NewReplacer("NAME", name, "IN", namespace).Replace(config)
	}
	of := func(more string) *Completed {
		f := &fakeCluster{}
		f.has(t, plane("")+namespaces+"apiVersion: v1\nkind: Namespace\nmetadata: {name: istio-system, labels: {seen: by-few}}\n---\n"+more)
		return mustComplete(t, &Completer{Cluster: f, Memory: memory{}}, asked)
	}
	snapshot := func(c *Completed) string {
		s, err := c.Snapshot([]string{"shop"})
		if err != nil {
			t.Fatal(err)
		}
		return string(s.Text)
	}
	own := strings.Replace(asked, `"istio":{}`, `"istio":{},"namespaces":[{"name":"shop","labels":{"x":"y"}}]`, 1)
	f := &fakeCluster{}
	f.has(t, plane("")+namespaces+in("shop", "of-the-cluster"))
	if text := string(mustComplete(t, &Completer{Cluster: f, Memory: memory{}}, own).Text()); !strings.Contains(text, "of-the-cluster") || !strings.Contains(text, "x: \"y\"") {
		t.Errorf("a namespace that the policy gives other labels is\n%s", text)
	}
	plain := of("")
	for name, tc := range map[string]struct {
		more              string
		base, shop, shows bool
	}{
		"in the namespace":       {in("shop", "own"), false, true, true},
		"in another one":         {in("billing", "own"), false, false, false},
		"in the root namespace":  {in("istio-system", "own"), true, false, true},
		"a LimitRange":           {"apiVersion: v1\nkind: LimitRange\nmetadata: {name: own, namespace: shop}\nspec: {limits: []}\n", false, true, true},
		"a ServiceAccount":       {"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: own, namespace: shop}\nimagePullSecrets: [{name: x}]\n", false, true, true},
		"an account without any": {"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: own, namespace: shop}\n", false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := of(tc.more)
			if (got.Base != plain.Base) != tc.base {
				t.Errorf("what holds for all is different: %v", !tc.base)
			}
			if (got.Namespace("shop") != plain.Namespace("shop")) != tc.shop {
				t.Errorf("the namespace is different: %v", !tc.shop)
			}
			if text := snapshot(got); strings.Contains(text, "name: own") != tc.shows || (text != snapshot(plain)) != tc.shows || strings.Contains(text, "by-few") {
				t.Errorf("the snapshot is\n%s", text)
			}
		})
	}
}
