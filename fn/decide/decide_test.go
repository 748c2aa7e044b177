// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package decide

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/istio/release"
)

func decider(t testing.TB, o Options) *Decider {
	t.Helper()
	if o.Policy == "" {
		o.Policy = "enabled"
	}
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func pod(ns, podLabels string) Pod {
	return Pod{Labels: set(podLabels), Namespace: Namespace{Name: "shop", Labels: set(ns), Known: true, Source: "namespace.yaml"}}
}

// TestSeed002LabelTable has every row of the two label tables in 002_1bdd0570f75a890c.txt, its precedence of
// istio-injection over istio.io/rev, and its three rules.
func TestSeed002LabelTable(t *testing.T) {
	stock := decider(t, Options{Release: release.Newest(31)})
	canary := decider(t, Options{Release: release.Newest(31), Revision: "canary"})
	byDefault := decider(t, Options{Release: release.Newest(31), Settings: Settings{EnableNamespacesByDefault: true}})
	for _, tc := range []struct {
		row      string
		d        *Decider
		ns, pod  string
		want     bool
		deciding string
	}{
		{"namespace, enabled", stock, "istio-injection=enabled", "", true, "namespace label istio-injection=enabled"},
		{"namespace, disabled", stock, "istio-injection=disabled", "", false, "namespace label istio-injection=disabled"},
		{"pod, enabled", stock, "", "sidecar.istio.io/inject=true", true, "pod label sidecar.istio.io/inject=true"},
		{"pod, disabled", stock, "istio-injection=enabled", "sidecar.istio.io/inject=false", false, "pod label sidecar.istio.io/inject=false"},
		{"revision: namespace, enabled", canary, "istio.io/rev=canary", "", true, "namespace label istio.io/rev=canary"},
		{"revision: namespace, disabled", canary, "istio.io/rev=canary istio-injection=disabled", "", false, "namespace label istio-injection=disabled"},
		{"revision: pod, enabled", canary, "", "istio.io/rev=canary", true, "pod label istio.io/rev=canary"},
		{"revision: pod, disabled", canary, "istio.io/rev=canary", "sidecar.istio.io/inject=false", false, "pod label sidecar.istio.io/inject=false"},
		{"both labels: istio-injection wins, the default revision injects", stock, "istio-injection=enabled istio.io/rev=canary", "", true, "namespace label istio-injection=enabled"},
		{"both labels: istio-injection wins, the other revision does not", canary, "istio-injection=enabled istio.io/rev=canary", "", false, "namespace label istio-injection=enabled"},
		{"rule 1: a label that disables wins on the namespace", stock, "istio-injection=disabled", "sidecar.istio.io/inject=true", false, "namespace label istio-injection=disabled"},
		{"rule 1: and on the pod", byDefault, "", "sidecar.istio.io/inject=false", false, "pod label sidecar.istio.io/inject=false"},
		{"rule 3: nothing set, by default", byDefault, "", "", true, ""},
		{"rule 3: nothing set", stock, "", "", false, "no namespace label istio-injection"},
	} {
		t.Run(tc.row, func(t *testing.T) {
			got := tc.d.Decide(pod(tc.ns, tc.pod))
			deciding := ""
			if got.Deciding != nil {
				deciding = got.Deciding.String()
			}
			if got.Inject != tc.want || deciding != tc.deciding {
				t.Errorf("got %v, deciding %q, because %s", got.Inject, deciding, got.Reason)
			}
		})
	}
}

// TestSeed004 has its namespace labelled istio.io/rev=default, with an installation that has no revision.
func TestSeed004(t *testing.T) {
	got := decider(t, Options{Release: release.Newest(23)}).Decide(pod("istio.io/rev=default", ""))
	if !got.Inject || got.Webhook == nil || got.Webhook.Rule != "rev.namespace.sidecar-injector.istio.io" || got.Revision != "default" {
		t.Errorf("got %+v", got)
	}
}

func TestReasons(t *testing.T) {
	stock := Options{Release: release.Newest(31)}
	own := Options{Release: release.Newest(31), WebhookSource: "webhooks.yaml", Webhooks: []v1alpha1.Webhook{
		{Name: "mine", Webhooks: []v1alpha1.WebhookRule{newWebhookRule("pods", selectorRequiringAll(keyInValues("team", "a", "b")), selectorRequiringAll(keyDoesNotExist("batch")))}},
		{Name: "theirs", Revision: "canary", Webhooks: []v1alpha1.WebhookRule{newWebhookRule("pods", selectorRequiringAll(keyInValues("team", "c")), nil)}},
	}}
	nowhere := pod("", "")
	nowhere.Namespace = Namespace{}
	host := pod("istio-injection=enabled", "")
	host.HostNetwork = true
	hostUnlabelled := pod("", "")
	hostUnlabelled.HostNetwork = true
	annotated := pod("istio-injection=enabled", "")
	annotated.Annotations = set("sidecar.istio.io/inject=false")
	annotationOnly := pod("", "")
	annotationOnly.Annotations = set("sidecar.istio.io/inject=true")
	for _, tc := range []struct {
		name   string
		o      Options
		p      Pod
		inject bool
		code   Code
		reason string
	}{
		{"called", stock, pod("istio-injection=enabled", ""), true, CodeWebhook,
			"the webhook rule istio-sidecar-injector namespace.sidecar-injector.istio.io matches the pod (namespace label istio-injection=enabled)"},
		{"called, and the pod asks", stock, pod("istio-injection=enabled", "sidecar.istio.io/inject=true"), true, CodePodAsks,
			"the webhook rule istio-sidecar-injector namespace.sidecar-injector.istio.io matches the pod (namespace label istio-injection=enabled), and the pod has the label sidecar.istio.io/inject=true"},
		{"by default", Options{Release: release.Newest(31), Settings: Settings{EnableNamespacesByDefault: true}}, pod("", ""), true, CodeWebhook,
			"the webhook rule istio-sidecar-injector auto.sidecar-injector.istio.io matches the pod (no label excludes it)"},
		{"no label", stock, pod("", ""), false, CodeNoLabel,
			"namespace shop lacks the label istio-injection=enabled, and the pod does not ask for injection by a label"},
		{"no label, of a revision", Options{Release: release.Newest(31), Revision: "canary"}, pod("", ""), false, CodeNoLabel,
			"namespace shop lacks the label istio.io/rev=canary, and the pod does not ask for injection by a label"},
		{"an annotation alone never reaches the webhook", stock, annotationOnly, false, CodeNoLabel,
			"namespace shop lacks the label istio-injection=enabled, and the pod does not ask for injection by a label"},
		{"disabled", stock, pod("istio-injection=disabled", "sidecar.istio.io/inject=true"), false, CodeNamespaceLabel, "namespace shop is labelled istio-injection=disabled"},
		{"another revision's namespace", Options{Release: release.Newest(31), RevisionTags: []string{"prod"}}, pod("istio.io/rev=canary", ""), false, CodeNamespaceLabel,
			"namespace shop is labelled istio.io/rev=canary, which is not the policy's revision default or one of its tags (prod)"},
		{"another revision's pod", stock, pod("", "istio.io/rev=canary"), false, CodePodLabel, "the pod is labelled istio.io/rev=canary, which is not the policy's revision default"},
		{"the pod's label", stock, pod("istio-injection=enabled", "sidecar.istio.io/inject=false"), false, CodePodLabel, "the pod is labelled sidecar.istio.io/inject=false"},
		{"the pod's annotation", stock, annotated, false, CodePodRefuses, "the pod has the annotation sidecar.istio.io/inject=false"},
		{"host network", stock, host, false, CodeHostNetwork, "the pod is on the host's network"},
		{"host network where nothing asks", stock, hostUnlabelled, false, CodeNoLabel,
			"namespace shop lacks the label istio-injection=enabled, and the pod does not ask for injection by a label"},
		{"policy disabled", Options{Release: release.Newest(31), Policy: "disabled"}, pod("istio-injection=enabled", ""), false, CodePolicyDisabled,
			"the injector's policy is disabled, and the pod does not ask for injection"},
		{"own webhooks", own, pod("team=a", ""), true, CodeWebhook, "the webhook rule mine pods matches the pod (namespace label team=a)"},
		{"own webhooks, not this namespace", own, pod("team=d istio-injection=enabled", ""), false, CodeSelector,
			"no rule of the webhooks (mine, theirs, from webhooks.yaml) matches the pod"},
		{"own webhooks, not this pod", own, pod("team=a", "batch=x"), false, CodeSelector, "no rule of the webhooks (mine, theirs, from webhooks.yaml) matches the pod"},
		{"own webhooks, of another revision", own, pod("team=c", ""), false, CodeOtherRevision,
			"the webhook rule theirs pods matches the pod for revision canary, and the policy injects revision default"},
		{"nothing known", stock, nowhere, true, CodeNamespaceNotAsked,
			"the policy sets no namespaces, so all are injected, and the pod does not opt out"},
		{"unknown, fail", Options{Release: release.Newest(31), UnknownNamespace: v1alpha1.UnknownNamespaceFail}, nowhere, false, CodeNamespaceUnknownFail,
			"the workload names no namespace; give it with -n NAMESPACE, or add defaultNamespace: NAMESPACE, or unknownNamespace: Inject (or Skip), to the policy's spec"},
		{"unknown, skip", Options{Release: release.Newest(31), UnknownNamespace: v1alpha1.UnknownNamespaceSkip}, nowhere, false, CodeNamespaceUnknownSkip,
			"the workload names no namespace, and the policy skips such workloads"},
		{"unknown, inject", Options{Release: release.Newest(31), UnknownNamespace: v1alpha1.UnknownNamespaceInject}, nowhere, true, CodeNamespaceUnknownInject,
			"the workload names no namespace; the policy injects such workloads, and the pod does not opt out"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := decider(t, tc.o).Decide(tc.p)
			if got.Inject != tc.inject || got.Code != tc.code || got.Reason != tc.reason {
				t.Errorf("got %v %s %q", got.Inject, got.Code, got.Reason)
			}
			if got.Failed != (tc.code == CodeNamespaceUnknownFail) {
				t.Errorf("Failed is %v", got.Failed)
			}
		})
	}
}

// TestUnknownNamespace has the default that depends on what the policy knows, and what is certain whatever the namespace.
func TestUnknownNamespace(t *testing.T) {
	unknown := func(name, labels string) Pod { return Pod{Labels: set(labels), Namespace: Namespace{Name: name}} }
	host := unknown("shop", "")
	host.HostNetwork = true
	everyone := []v1alpha1.Webhook{{Name: "all", Webhooks: []v1alpha1.WebhookRule{newWebhookRule("all", nil, nil)}}}
	byName := []v1alpha1.Webhook{{Name: "named", Webhooks: []v1alpha1.WebhookRule{newWebhookRule("named", selectorRequiringAll(keyInValues(labelNamespaceName, "shop")), nil)}}}
	for _, tc := range []struct {
		name string
		o    Options
		p    Pod
		code Code
	}{
		{"nothing is known at all", Options{Release: release.Newest(31)}, unknown("shop", ""), CodeNamespaceNotAsked},
		{"the policy knows other namespaces", Options{Release: release.Newest(31), NamesNamespaces: true}, unknown("shop", ""), CodeNamespaceUnknownFail},
		{"the policy has webhooks", Options{Release: release.Newest(31), Webhooks: BuiltIn(release.Newest(31), "", nil, Settings{})}, unknown("shop", ""), CodeNamespaceUnknownFail},
		{"the pod refuses", Options{Release: release.Newest(31), NamesNamespaces: true}, unknown("shop", "sidecar.istio.io/inject=false"), CodePodLabel},
		{"the pod refuses, before the injector read the label", Options{Release: release.Newest(9)}, unknown("shop", "sidecar.istio.io/inject=false"), CodePodLabel},
		{"the label means nothing yet", Options{Release: release.Newest(8)}, unknown("shop", "sidecar.istio.io/inject=false"), CodeNamespaceNotAsked},
		{"the system's namespace", Options{Release: release.Newest(31), NamesNamespaces: true}, unknown("kube-system", ""), CodeIgnoredNamespace},
		{"host network", Options{Release: release.Newest(31), NamesNamespaces: true}, host, CodeHostNetwork},
		{"the webhook takes everything", Options{Release: release.Newest(31), Webhooks: everyone}, unknown("shop", ""), CodeWebhook},
		{"the webhook goes by the name", Options{Release: release.Newest(31), Webhooks: byName}, unknown("shop", ""), CodeWebhook},
		{"the webhook goes by another name", Options{Release: release.Newest(31), Webhooks: byName}, unknown("pay", ""), CodeSelector},
	} {
		if got := decider(t, tc.o).Decide(tc.p); got.Code != tc.code {
			t.Errorf("%s: got %s (%s)", tc.name, got.Code, got.Reason)
		}
	}
}

// TestSeveral has rules of two configurations that take one pod.
func TestSeveral(t *testing.T) {
	d := decider(t, Options{Release: release.Newest(31), RevisionTags: []string{"default"}})
	got := d.Decide(pod("istio-injection=enabled", ""))
	if !got.Inject || len(got.Others) != 1 || got.Others[0].Tag != "default" || len(got.Warnings) != 1 ||
		got.Warnings[0] != "2 webhook rules match the pod (istio-sidecar-injector namespace.sidecar-injector.istio.io, istio-revision-tag-default namespace.sidecar-injector.istio.io); the cluster would inject it more than once" {
		t.Errorf("got %+v", got)
	}
	got = decider(t, Options{Release: release.Newest(31)}).Decide(pod("istio-injection=enabled istio.io/rev=canary", ""))
	if len(got.Warnings) != 1 || got.Warnings[0] != "namespace shop has both labels, istio-injection=enabled and istio.io/rev=canary; the first one wins" {
		t.Errorf("got %q", got.Warnings)
	}
}

// TestControllersLabels has the well-known way to keep Jobs out: neverInjectSelector with job-name, which only the pods
// have.
func TestControllersLabels(t *testing.T) {
	selector, err := labels.Parse("job-name")
	if err != nil {
		t.Fatal(err)
	}
	d := decider(t, Options{Release: release.Newest(31), Never: func(l map[string]string) int {
		if selector.Matches(labels.Set(l)) {
			return 0
		}
		return -1
	}})
	for kind, want := range map[string]bool{"Job": false, "CronJob": false, "Deployment": true, "Pod": true} {
		p := pod("istio-injection=enabled", "app=a")
		p.Workload, p.Name = kind, "migrate"
		if got := d.Decide(p); got.Inject != want {
			t.Errorf("%s: got %v, %s", kind, got.Inject, got.Reason)
		}
	}
	p := Pod{Workload: "Job", Name: "migrate", Labels: set("app=a job-name=given")}
	if got := podLabels(p); got["job-name"] != "given" || got["batch.kubernetes.io/job-name"] != "migrate" || len(p.Labels) != 2 {
		t.Errorf("got %v", got)
	}
}

// TestMatchConditions are said not to be evaluated.
func TestMatchConditions(t *testing.T) {
	r := newWebhookRule("r", nil, nil)
	r.MatchConditions = []any{map[string]any{"name": "c", "expression": "false"}}
	got := decider(t, Options{Release: release.Newest(31), Webhooks: []v1alpha1.Webhook{{Name: "w", Webhooks: []v1alpha1.WebhookRule{r}}}}).Decide(pod("", ""))
	if !got.Inject || len(got.Warnings) != 1 || got.Warnings[0] != "the webhook rule w r has matchConditions, which are not evaluated; it counts as if they held" {
		t.Errorf("got %+v", got)
	}
}

func TestBadSelector(t *testing.T) {
	_, err := New(Options{Release: release.Newest(31), Webhooks: []v1alpha1.Webhook{{Name: "w", Webhooks: []v1alpha1.WebhookRule{
		newWebhookRule("r", &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: "a", Operator: "In"}}}, nil)}}}})
	if err == nil || !strings.HasPrefix(err.Error(), "reading namespaceSelector of webhook w r: ") {
		t.Errorf("got %v", err)
	}
}

// TestExplain has the whole trace of one pod.
func TestExplain(t *testing.T) {
	d := decider(t, Options{Release: release.Newest(31), RevisionTags: []string{"prod"}})
	p := pod("istio-injection=enabled", "istio.io/rev=canary")
	got := d.Explain(p)
	want := []Step{
		{"webhook", "istio-sidecar-injector rev.namespace.sidecar-injector.istio.io", No, "the namespace must not have the label istio-injection; it has istio-injection=enabled"},
		{"webhook", "istio-sidecar-injector rev.object.sidecar-injector.istio.io", No, "the namespace must not have the label istio-injection; it has istio-injection=enabled"},
		{"webhook", "istio-sidecar-injector namespace.sidecar-injector.istio.io", Yes, "namespace label istio-injection=enabled"},
		{"webhook", "istio-sidecar-injector object.sidecar-injector.istio.io", No, "the namespace must not have the label istio-injection; it has istio-injection=enabled"},
		{"webhook", "istio-revision-tag-prod rev.namespace.sidecar-injector.istio.io", No, "the namespace must not have the label istio-injection; it has istio-injection=enabled"},
		{"webhook", "istio-revision-tag-prod rev.object.sidecar-injector.istio.io", No, "the namespace must not have the label istio-injection; it has istio-injection=enabled"},
		{"injector", "host network", Undecided, "the pod has its own network"},
		{"injector", "ignored namespaces", Undecided, "shop is not ignored"},
		{"injector", "sidecar.istio.io/inject", Undecided, "the pod does not set it to true or false"},
		{"injector", "neverInjectSelector", Undecided, "no selector matches"},
		{"injector", "alwaysInjectSelector", Undecided, "no selector matches"},
		{"injector", "policy", Yes, "it is enabled"},
	}
	if diff := cmp.Diff(want, got.Trace); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	got.Trace = nil
	if diff := cmp.Diff(d.Decide(p), got); diff != "" {
		t.Errorf("Decide and Explain differ (-Decide +Explain)\n%s", diff)
	}
}

// TestIrrelevantLabels changes what no table names, or names as irrelevant, on every version, and nothing changes.
func TestIrrelevantLabels(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(list []string) string { return list[random.IntN(len(list))] }
	kinds := []string{"", "Deployment", "Job", "StatefulSet"}
	for range 20000 {
		minor := random.IntN(33)
		o := Options{Release: release.Newest(minor), Revision: pick([]string{"", "canary"}), Policy: pick([]string{"enabled", "disabled"})}
		o.Settings.EnableNamespacesByDefault = random.IntN(2) == 0
		if random.IntN(2) == 0 {
			o.RevisionTags = []string{"prod"}
		}
		d := decider(t, o)
		ns, labels := set(pick(namespaces)), set(pick(pods))
		p := Pod{Labels: labels, Namespace: Namespace{Name: "shop", Labels: ns, Known: true}}
		if random.IntN(2) == 0 {
			p.Annotations = map[string]string{labelInject: pick([]string{"true", "false", "maybe"})}
		}
		want := d.Decide(p)

		q := p
		what := ""
		switch random.IntN(6) {
		case 0:
			what = "other labels of the namespace"
			q.Namespace.Labels = mergeLabels(ns, map[string]string{"team": "a", "istio-injection-x": "enabled", "pod-security.kubernetes.io/enforce": "restricted", "topology.istio.io/network": "n"})
		case 1:
			what = "other labels of the pod"
			q.Labels = mergeLabels(labels, map[string]string{"app": "a", "istio-injection": "disabled", "version": "v1", "istio.io/dataplane-mode": "none"})
		case 2:
			what = "other annotations"
			q.Annotations = mergeLabels(p.Annotations, map[string]string{"istio-injection": "disabled", "istio.io/rev": "canary", "sidecar.istio.io/status": "{}"})
		case 3:
			what = "the kind of the workload"
			q.Workload, q.Name = pick(kinds), "web"
		case 4:
			what = "the pod's revision, where the namespace has a label, from 1.9 on"
			if minor < 9 || len(ns) == 0 {
				continue
			}
			q.Labels = mergeLabels(labels, map[string]string{labelRevision: pick([]string{"canary", "default", "other"})})
		case 5:
			what = "the pod's own annotation, where the webhook is not called"
			if want.Webhook != nil {
				continue
			}
			q.Annotations = mergeLabels(p.Annotations, map[string]string{labelInject: "true"})
		}
		got := d.Decide(q)
		if got.Inject != want.Inject || (got.Webhook == nil) != (want.Webhook == nil) {
			t.Fatalf("1.%d %+v: %s changed the decision\n%+v -> %v (%s)\n%+v -> %v (%s)", minor, o, what, p, want.Inject, want.Reason, q, got.Inject, got.Reason)
		}
	}
}

// TestPrecedence has, for every version that knows revisions, a namespace with both labels go by istio-injection, but for
// 1.5, where istio.io/rev holds unless injection is disabled.
func TestPrecedence(t *testing.T) {
	for minor := 5; minor <= 31; minor++ {
		for injection, want := range map[string][2]bool{"enabled": {true, minor == 5}, "disabled": {false, false}} {
			for i, revision := range []string{"", "canary"} {
				d := decider(t, Options{Release: release.Newest(minor), Revision: revision})
				if got := d.Decide(pod("istio.io/rev=canary istio-injection="+injection, "")); got.Inject != want[i] {
					t.Errorf("1.%d, revision %q, istio-injection=%s: got %v (%s)", minor, revision, injection, got.Inject, got.Reason)
				}
			}
		}
	}
}

// TestReasonAlways has a code, a sentence and no full stop for every combination of the tables.
func TestReasonAlways(t *testing.T) {
	for minor := 0; minor <= 31; minor++ {
		for _, revision := range []string{"", "canary"} {
			d := decider(t, Options{Release: release.Newest(minor), Revision: revision})
			for _, ns := range namespaces {
				for _, labels := range pods {
					got := d.Decide(pod(ns, labels))
					where := fmt.Sprintf("1.%d %q %q %q", minor, revision, ns, labels)
					if got.Code == "" || got.Reason == "" || strings.HasSuffix(got.Reason, ".") {
						t.Errorf("%s: code %q, reason %q", where, got.Code, got.Reason)
					}
					if got.Inject != (got.Webhook != nil && got.Code == CodeWebhook || got.Code == CodePodAsks) {
						t.Errorf("%s: inject %v with code %s", where, got.Inject, got.Code)
					}
					if !got.Inject && got.Code == CodeSelector {
						t.Errorf("%s: no label was found on which it hangs", where)
					}
				}
			}
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	d := decider(b, Options{Release: release.Newest(31), RevisionTags: []string{"prod"}})
	yes, no := pod("istio-injection=enabled", "app=a"), pod("", "app=a")
	b.Run("injected", func(b *testing.B) {
		for b.Loop() {
			d.Decide(yes)
		}
	})
	b.Run("not injected", func(b *testing.B) {
		for b.Loop() {
			d.Decide(no)
		}
	})
	b.Run("explain", func(b *testing.B) {
		for b.Loop() {
			d.Explain(yes)
		}
	})
}

// TestAnotherRevisionIsAsked warns of a pod that asks for another revision where no webhook decided about the label, and not of the policy's own
// revision and tags.
func TestAnotherRevisionIsAsked(t *testing.T) {
	const want = "the pod's label istio.io/rev asks for the revision 1-10-1, and the policy injects the proxy of revision "
	pod := Pod{Labels: set("istio.io/rev=1-10-1"), Namespace: Namespace{Name: "shop"}}
	for _, tc := range []struct {
		name string
		o    Options
		p    Pod
		want string
	}{
		{"default", Options{Release: release.Newest(31)}, pod, want + "default"},
		{"another", Options{Release: release.Newest(31), Revision: "canary"}, pod, want + "canary"},
		{"its own", Options{Release: release.Newest(31), Revision: "1-10-1"}, pod, ""},
		{"its tag", Options{Release: release.Newest(31), RevisionTags: []string{"1-10-1"}}, pod, ""},
		{"no label", Options{Release: release.Newest(31)}, Pod{Namespace: Namespace{Name: "shop"}}, ""},
	} {
		got := decider(t, tc.o).Decide(tc.p)
		warnings := strings.Join(got.Warnings, "\n")
		if !got.Inject || !strings.Contains(warnings, tc.want) || tc.want == "" && warnings != "" {
			t.Errorf("%s: injected %t with %q, want %q", tc.name, got.Inject, warnings, tc.want)
		}
	}
}
