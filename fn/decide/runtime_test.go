// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/fn/workload"
)

func object(t testing.TB, src string) map[string]any {
	t.Helper()
	var obj map[string]any
	if err := yaml.Unmarshal([]byte(src), &obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

const (
	withInit   = "{metadata: {labels: {app: a}}, spec: {initContainers: [{name: istio-init}], containers: [{name: istio-proxy}]}}"
	withPlugin = "{metadata: {labels: {app: a}}, spec: {initContainers: [{name: istio-validation}], containers: [{name: istio-proxy}]}}"
)

// never is the neverInjectSelector that the messages recommend.
func never(l map[string]string) int {
	if labels.Set(l).Get(LabelInjected) == "true" {
		return 0
	}
	return -1
}

func TestMarkFor(t *testing.T) {
	enabled := pod("istio-injection=enabled", "app=a")
	asks := pod("istio-injection=enabled", "app=a sidecar.istio.io/inject=true")
	asksByAnnotation := pod("istio-injection=enabled", "app=a")
	asksByAnnotation.Annotations = set("sidecar.istio.io/inject=true")
	nowhere := Pod{Labels: set("app=a"), Namespace: Namespace{Name: "shop"}}
	ownWebhook := []v1alpha1.Webhook{{Name: "mine", Webhooks: []v1alpha1.WebhookRule{newWebhookRule("r", selectorRequiringAll(keyInValues(labelInjection, "enabled")), selectorRequiringAll(keyDoesNotExist(LabelInjected)))}}}
	for _, tc := range []struct {
		name         string
		o            Options
		p            Pod
		injected     string
		mark         string
		needed, safe bool
	}{
		{"1.31", Options{Release: release.Newest(31)}, enabled, withInit, "label sidecar.istio.io/inject=false", true, true},
		{"1.12", Options{Release: release.Newest(12)}, enabled, withInit, "label sidecar.istio.io/inject=false", true, true},
		{"1.9 keeps the webhook away by the label", Options{Release: release.Newest(9)}, enabled, withInit, "label sidecar.istio.io/inject=false", true, true},
		{"1.9 with an annotation that asks", Options{Release: release.Newest(9)}, asksByAnnotation, withInit, "label sidecar.istio.io/inject=false", true, true},
		{"1.10, legacy selectors: only the annotation is read", Options{Release: release.Newest(10), Settings: Settings{LegacySelectors: true}}, enabled, withInit, "annotation sidecar.istio.io/inject=false", true, true},
		{"1.8", Options{Release: release.Newest(8)}, enabled, withInit, "annotation sidecar.istio.io/inject=false", true, true},
		{"1.0", Options{Release: release.Newest(0)}, enabled, withInit, "annotation sidecar.istio.io/inject=false", true, true},
		{"the pod asked", Options{Release: release.Newest(31)}, asks, withInit, "label sidecar.istio.io/inject=false", true, true},
		{"the webhook is not called", Options{Release: release.Newest(31)}, pod("", "app=a"), withInit, "", false, true},
		{"the namespace is not known", Options{Release: release.Newest(31)}, nowhere, withInit, "label sidecar.istio.io/inject=false", true, true},
		{"CNI", Options{Release: release.Newest(31), CNI: true}, enabled, withPlugin, "", true, false},
		{"CNI that the values do not tell of", Options{Release: release.Newest(31)}, enabled, withPlugin, "", true, false},
		{"CNI, but the pod redirects by itself", Options{Release: release.Newest(31), CNI: true}, enabled, withInit, "label sidecar.istio.io/inject=false", true, true},
		{"CNI, not called", Options{Release: release.Newest(31), CNI: true}, pod("", "app=a"), withPlugin, "", false, true},
		{"CNI, with the selector", Options{Release: release.Newest(31), CNI: true, Never: never}, enabled, withPlugin, "label prerig.dev/injected=true", true, true},
		{"CNI, with the selector, but the pod asks", Options{Release: release.Newest(31), CNI: true, Never: never}, asks, withPlugin, "", true, false},
		{"CNI, with an object selector", Options{Release: release.Newest(31), CNI: true, Webhooks: ownWebhook}, enabled, withPlugin, "label prerig.dev/injected=true", true, true},
		{"CNI in 1.8, with the selector", Options{Release: release.Newest(8), CNI: true, Never: never}, enabled, withPlugin, "label prerig.dev/injected=true", true, true},
		{"CNI, the webhook of another revision", Options{Release: release.Newest(31), CNI: true, Webhooks: []v1alpha1.Webhook{{Name: "o", Revision: "canary", Webhooks: []v1alpha1.WebhookRule{newWebhookRule("r", nil, nil)}}}}, enabled, withPlugin, "", true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := decider(t, tc.o).MarkFor(tc.p, object(t, tc.injected))
			if got.String() != tc.mark || got.Needed != tc.needed || got.Safe != tc.safe || got.Message == "" {
				t.Errorf("got %+v", got)
			}
		})
	}
	got := decider(t, Options{Release: release.Newest(31), CNI: true}).MarkFor(enabled, object(t, withPlugin))
	if want := `Istio's CNI plugin redirects the pod's traffic and would stop with sidecar.istio.io/inject=false, so the pod is not marked; to keep the cluster's webhook away take ` +
		`the label istio-injection=enabled off namespace shop, or put neverInjectSelector [{matchLabels: {prerig.dev/injected: "true"}}] into the injector's configuration, of the cluster and of the policy`; got.Message != want {
		t.Errorf("got %s", got.Message)
	}
	// What is said must hold: another label than the namespace's may call the webhook.
	for _, tc := range []struct {
		name   string
		p      Pod
		want   []string
		refuse string
	}{
		{"the pod's label calls it", pod("", "sidecar.istio.io/inject=true"), []string{"it comes for the pod's own label sidecar.istio.io/inject=true", "an objectSelector that leaves out prerig.dev/injected=true"}, "off namespace"},
		{"the pod's label would call it still", pod("istio-injection=enabled", "sidecar.istio.io/inject=true"), []string{"an objectSelector that leaves out prerig.dev/injected=true"}, "off namespace"},
		{"the pod's revision calls it", pod("", "istio.io/rev=default"), []string{"it comes for the pod's own label istio.io/rev=default", "put neverInjectSelector"}, "off namespace"},
		{"nothing is known of the namespace", nowhere, []string{"see that namespace shop has no injection label", "put neverInjectSelector"}, "take the label"},
	} {
		got := decider(t, Options{Release: release.Newest(31), CNI: true}).MarkFor(tc.p, object(t, withPlugin)).Message
		for _, want := range tc.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %s, want %q in it", tc.name, got, want)
			}
		}
		if strings.Contains(got, tc.refuse) {
			t.Errorf("%s: got %s, with %q", tc.name, got, tc.refuse)
		}
	}
}

// TestMarkEverywhere marks in every version and every combination of the tables: afterwards no webhook injects, and the
// pod comes back as it was.
func TestMarkEverywhere(t *testing.T) {
	marked := 0
	for minor := 0; minor <= 32; minor++ {
		for _, s := range []Settings{{}, {EnableNamespacesByDefault: true}, {LegacySelectors: true}, {ObjectSelector: true, AutoInject: true}} {
			for _, cni := range []bool{false, true} {
				d := decider(t, Options{Release: release.Newest(minor), Settings: s, RevisionTags: []string{"prod"}, CNI: cni, Never: never})
				for _, ns := range namespaces {
					for _, l := range pods {
						where := fmt.Sprintf("1.%d %+v CNI %v %q %q", minor, s, cni, ns, l)
						before := object(t, withPlugin)
						if l != "" {
							for k, v := range set(l) {
								before["metadata"].(map[string]any)["labels"].(map[string]any)[k] = v
							}
						}
						p, err := PodOf(before, workload.Owner{Kind: "Deployment"}, Namespace{Name: "shop", Labels: set(ns), Known: true})
						if err != nil {
							t.Fatal(err)
						}
						answer, warning := d.Reinjects(p)
						mark := d.MarkFor(p, object(t, map[bool]string{false: withInit, true: withPlugin}[cni]))
						if mark.Needed != (answer != No) || (warning == "") != (answer == No) {
							t.Fatalf("%s: needed %v, reinjects %v, warning %q", where, mark.Needed, answer, warning)
						}
						after, err := mark.Apply(before)
						if err != nil {
							t.Fatal(err)
						}
						checkMarked(t, where, d, mark, p.Namespace, before, after)
						if mark.Needed && mark.Safe {
							marked++
						}
						if cni && strings.Contains(mark.String(), labelInject) {
							t.Fatalf("%s: marked with %s", where, mark)
						}
					}
				}
			}
		}
	}
	if marked == 0 {
		t.Error("nothing was marked")
	}
}

func checkMarked(t *testing.T, where string, d *Decider, mark Mark, ns Namespace, before, after map[string]any) {
	t.Helper()
	q, err := PodOf(after, workload.Owner{Kind: "Deployment"}, ns)
	if err != nil {
		t.Fatal(err)
	}
	if mark.Safe && d.clusterInjects(q) != No {
		t.Fatalf("%s: injected although marked with %s", where, mark)
	}
	back, unmarked, err := Unmark(after)
	if err != nil || unmarked != (mark.String() != "") {
		t.Fatalf("%s: unmarked %v, %v", where, unmarked, err)
	}
	if diff := cmp.Diff(before, back); diff != "" {
		t.Fatalf("%s: unmarking gives another pod\n%s", where, diff)
	}
	again, err := mark.Apply(back)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, again); diff != "" {
		t.Fatalf("%s: marking again gives another pod\n%s", where, diff)
	}
}

// TestUnmarkOfNull marks a pod whose label is null: it comes back as the empty string, which means the same. A pod without the label
// would be another one to a selector.
func TestUnmarkOfNull(t *testing.T) {
	mark := Mark{Labels: map[string]string{labelInject: "false"}}
	after, err := mark.Apply(object(t, "{metadata: {labels: {sidecar.istio.io/inject: null}}, spec: {}}"))
	if err != nil {
		t.Fatal(err)
	}
	back, _, err := Unmark(after)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(object(t, "{metadata: {labels: {sidecar.istio.io/inject: ''}}, spec: {}}"), back); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestApplyAndUnmark(t *testing.T) {
	mark := Mark{Labels: map[string]string{labelInject: "false"}, Annotations: map[string]string{labelInject: "false"}}
	for name, tc := range map[string]struct{ src, kept string }{
		"nothing there":  {"{spec: {}}", `{"labels":{"sidecar.istio.io/inject":null},"annotations":{"sidecar.istio.io/inject":null}}`},
		"empty maps":     {"{metadata: {labels: {}, annotations: {}}, spec: {}}", `{"labels":{"sidecar.istio.io/inject":null},"annotations":{"sidecar.istio.io/inject":null},"empty":["labels","annotations"]}`},
		"a value before": {"{metadata: {labels: {sidecar.istio.io/inject: 'true', a: b}}, spec: {}}", `{"labels":{"sidecar.istio.io/inject":"true"},"annotations":{"sidecar.istio.io/inject":null}}`},
		"false before":   {"{metadata: {annotations: {sidecar.istio.io/inject: 'false'}}, spec: {}}", `{"labels":{"sidecar.istio.io/inject":null},"annotations":{"sidecar.istio.io/inject":"false"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			before := object(t, tc.src)
			after, err := mark.Apply(before)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(object(t, tc.src), before); diff != "" {
				t.Errorf("the pod itself changed\n%s", diff)
			}
			meta := after["metadata"].(map[string]any)
			if got := meta["annotations"].(map[string]any)[AnnotationMark]; got != tc.kept {
				t.Errorf("kept %s", got)
			}
			if meta["labels"].(map[string]any)[labelInject] != "false" {
				t.Errorf("labels are %v", meta["labels"])
			}
			back, ok, err := Unmark(after)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			want := object(t, tc.src)
			if want["metadata"] == nil {
				want["metadata"] = map[string]any{}
			}
			if diff := cmp.Diff(want, back); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	// Somebody has changed the label since, and named a key that no mark sets.
	edited := object(t, `{metadata: {labels: {sidecar.istio.io/inject: "true", app: "false"}, annotations: {prerig.dev/runtime-webhook: '{"labels":{"sidecar.istio.io/inject":null,"app":"x"}}'}}}`)
	back, ok, err := Unmark(edited)
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if diff := cmp.Diff(object(t, `{metadata: {labels: {sidecar.istio.io/inject: "true", app: "false"}}}`), back); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, _, err := Unmark(object(t, "{metadata: {annotations: {prerig.dev/runtime-webhook: x}}}")); err == nil || !strings.HasPrefix(err.Error(), "reading the annotation prerig.dev/runtime-webhook: ") {
		t.Errorf("got %v", err)
	}
	plain := object(t, withInit)
	if out, ok, err := Unmark(plain); ok || err != nil || !cmp.Equal(plain, out) {
		t.Error("a pod without a mark changed")
	}
}

func TestReinjects(t *testing.T) {
	answer, message := decider(t, Options{Release: release.Newest(31)}).Reinjects(pod("istio-injection=enabled", ""))
	if want := "the cluster's webhook istio-sidecar-injector namespace.sidecar-injector.istio.io also matches the injected pod, and then renders its own template over it at admission; runtimeWebhook: Disable stops that"; answer != Yes || message != want {
		t.Errorf("got %s %q", answer, message)
	}
	answer, message = decider(t, Options{Release: release.Newest(31)}).Reinjects(Pod{Namespace: Namespace{Name: "shop"}})
	if answer != Unknown || !strings.HasPrefix(message, "the cluster's webhook may also match the injected pod, and then ") {
		t.Errorf("got %s %q", answer, message)
	}
	if answer, message = decider(t, Options{Release: release.Newest(31)}).Reinjects(pod("", "")); answer != No || message != "" {
		t.Errorf("got %s %q", answer, message)
	}
}

func TestSettingsOf(t *testing.T) {
	for _, tc := range []struct {
		minor  int
		values string
		want   Settings
	}{
		{31, "{}", Settings{AutoInject: true}},
		{9, "{}", Settings{AutoInject: true, LegacySelectors: true}},
		{10, "{}", Settings{AutoInject: true}},
		{9, "{sidecarInjectorWebhook: {useLegacySelectors: false}}", Settings{AutoInject: true}},
		{5, "{sidecarInjectorWebhook: {injectLabel: istio-env, objectSelector: {enabled: true, autoInject: false}}, global: {istioNamespace: mesh}}",
			Settings{InjectLabel: "istio-env", ObjectSelector: true, Namespace: "mesh"}},
		{31, "{sidecarInjectorWebhook: {enableNamespacesByDefault: true, revisionLabelPreference: pod}}", Settings{AutoInject: true, EnableNamespacesByDefault: true, PreferPod: true}},
		{31, "{sidecarInjectorWebhook: [], global: 3}", Settings{AutoInject: true}},
	} {
		if diff := cmp.Diff(tc.want, SettingsOf(release.Newest(tc.minor), object(t, tc.values))); diff != "" {
			t.Errorf("1.%d %s (-want +got)\n%s", tc.minor, tc.values, diff)
		}
	}
}

// TestOptionsFor goes from a policy and its injector to decisions.
func TestOptionsFor(t *testing.T) {
	inj, err := istio.New(istio.Options{
		Version: "1.31",
		Config:  "policy: enabled\ntemplates: {sidecar: 'spec: {}'}\nneverInjectSelector: [{matchExpressions: [{key: job-name, operator: Exists}]}]\n",
		Values:  `{"revision": "canary", "revisionTags": ["prod"], "pilot": {"cni": {"enabled": true}}, "global": {"proxy": {}}, "sidecarInjectorWebhook": {"enableNamespacesByDefault": true}}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	spec := &v1alpha1.InjectionPolicySpec{Istio: &v1alpha1.Istio{RevisionTags: []string{"stable", "prod"}}, Namespaces: []v1alpha1.Namespace{{Name: "x"}}}
	o := OptionsFor(inj, spec)
	if o.Release != release.Newest(31) || o.Revision != "canary" || !o.CNI || !o.NamesNamespaces || strings.Join(o.RevisionTags, ",") != "prod,stable" || !o.Settings.EnableNamespacesByDefault {
		t.Errorf("got %+v", o)
	}
	d := decider(t, o)
	job := pod("istio.io/rev=stable", "")
	job.Workload = "Job"
	for _, tc := range []struct {
		p    Pod
		code Code
	}{{pod("istio.io/rev=stable", ""), CodeWebhook}, {job, CodeNeverSelector}, {pod("istio-injection=enabled", ""), CodeNamespaceLabel}, {Pod{}, CodeNamespaceUnknownFail}} {
		if got := d.Decide(tc.p); got.Code != tc.code {
			t.Errorf("%+v: got %s, want %s", tc.p, got.Code, tc.code)
		}
	}
	spec.Istio.Revision = "default"
	if o := OptionsFor(inj, spec); o.Revision != "default" {
		t.Errorf("the policy's revision does not win: %s", o.Revision)
	}
}

func TestPodOf(t *testing.T) {
	p, err := PodOf(object(t, "{metadata: {labels: {a: b}, annotations: {c: d}}, spec: {hostNetwork: true}}"), workload.Owner{Kind: "Job", Name: "j"}, Namespace{Name: "shop"})
	want := Pod{Labels: set("a=b"), Annotations: set("c=d"), HostNetwork: true, Workload: "Job", Name: "j", Namespace: Namespace{Name: "shop"}}
	if diff := cmp.Diff(want, p); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for _, src := range []string{"{metadata: {labels: {a: 1}}}", "{metadata: {annotations: {a: true}}}"} {
		if _, err := PodOf(object(t, src), workload.Owner{}, Namespace{}); err == nil || !strings.Contains(err.Error(), "quote it") {
			t.Errorf("%s: got %v", src, err)
		}
	}
}
