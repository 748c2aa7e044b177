// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/engine"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
)

const ownJob = `apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  namespace: shop
spec:
  backoffLimit: 3
  template:
    metadata:
      labels:
        app: migrate
    spec:
      restartPolicy: Never
      containers:
      - name: c
        image: registry.example.com/migrate:1
        livenessProbe:
          httpGet:
            port: 8080
`

const ownPod = `apiVersion: v1
kind: Pod
metadata:
  name: debug
  namespace: shop
  labels:
    app: debug
spec:
  containers:
  - name: c
    image: registry.example.com/c:1
    ports:
    - name: http
      containerPort: 80
    readinessProbe:
      httpGet:
        path: /
        port: 80
`

// ofTag is the built-in policy with a tag of the proxy, and jobs as it is said.
func ofTag(tag string, jobs v1alpha1.Jobs) *v1alpha1.InjectionPolicy {
	p := builtIn(v1alpha1.ModeInject)
	p.Spec.Jobs = jobs
	p.Spec.Istio.Injector.Overrides = map[string]any{"global": map[string]any{"tag": tag}}
	return p
}

// publishedRun injects with what is published known.
func publishedRun(t *testing.T, p *v1alpha1.InjectionPolicy, published, source string) (string, *engine.Report) {
	t.Helper()
	r := apply(t, compiled(t, p).WithPublished(documents(t, published)), parse(t, "a.yaml", []byte(source)))
	return string(text(r)), r
}

func documents(t *testing.T, text string) []*manifest.Document {
	t.Helper()
	f, err := manifest.Parse("published.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f.Docs
}

// injectedOnce injects into what was not injected before.
func injectedOnce(t *testing.T, p *v1alpha1.InjectionPolicy, source string) string {
	t.Helper()
	return string(text(run(t, p, parse(t, "a.yaml", []byte(source)))))
}

// actionsOf are the actions of a report, in order, and warned its warnings about what must be replaced or cannot change.
func actionsOf(r *engine.Report) (actions []engine.Action, warned string) {
	for _, o := range r.Outcomes {
		actions = append(actions, o.Action)
	}
	for _, one := range r.Results {
		if one.Severity == result.Warning && strings.Contains(one.Message, "immutable") {
			warned += one.String() + "\n"
		}
	}
	return actions, warned
}

// TestJobsKeepTheirPublishedInjection upgrades the mesh: in place, and from a source with the published state beside it.
func TestJobsKeepTheirPublishedInjection(t *testing.T) {
	t.Parallel()
	old, next := ofTag("1.31.1", ""), ofTag("1.31.2", "")
	for name, source := range map[string]string{"Job": ownJob, "Pod": ownPod, "list": "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSuffix(ownJob, "\n"), "\n", "\n  ") + "\n"} {
		published := injectedOnce(t, old, source)
		if !strings.Contains(published, ":1.31.1") {
			t.Fatalf("%s is not injected:\n%s", name, published)
		}
		inPlace := run(t, next, parse(t, "a.yaml", []byte(published)))
		known, report := publishedRun(t, next, published, source)
		for way, r := range map[string]*engine.Report{"in place": inPlace, "published": report} {
			if diff := cmp.Diff(published, string(text(r))); diff != "" {
				t.Errorf("%s %s changes: %s", name, way, diff)
			}
			actions, warned := actionsOf(r)
			if len(actions) != 1 || actions[0] != engine.Kept || warned != "" {
				t.Errorf("%s %s: %v, %s", name, way, actions, warned)
			}
			if !strings.Contains(results(r), "immutable") || !strings.Contains(results(r), "kept: a ") {
				t.Errorf("%s %s: nothing tells why: %s", name, way, results(r))
			}
		}
		checked := ofTag("1.31.2", "")
		checked.Spec.Mode = v1alpha1.ModeCheck
		run(t, checked, parse(t, "a.yaml", []byte(known)))
		if back := string(text(run(t, builtIn(v1alpha1.ModeRemove), parse(t, "a.yaml", []byte(known))))); back != source && name != "Pod" {
			t.Errorf("%s: removing: %s", name, cmp.Diff(source, back))
		}
	}
}

// TestJobsWithAnotherSpecAreInjectedAgain changes what the API server does not let change, in place and in the source.
func TestJobsWithAnotherSpecAreInjectedAgain(t *testing.T) {
	t.Parallel()
	old, next := ofTag("1.31.1", ""), ofTag("1.31.2", "")
	for name, edit := range map[string][2]string{
		"image":      {"migrate:1", "migrate:2"},
		"label":      {"app: migrate", "app: other"},
		"command":    {"      - name: c\n", "      - name: c\n        command: [sh]\n"},
		"completion": {"backoffLimit: 3", "completionMode: Indexed\n  completions: 2"},
	} {
		published := injectedOnce(t, old, ownJob)
		source := strings.Replace(ownJob, edit[0], edit[1], 1)
		want := injectedOnce(t, next, source)
		got, r := publishedRun(t, next, published, source)
		if _, warned := actionsOf(r); got != want || !strings.Contains(warned, "must be replaced") {
			t.Errorf("%s: %s\n%s", name, warned, cmp.Diff(want, got))
		}
		r = run(t, next, parse(t, "a.yaml", []byte(strings.Replace(published, edit[0], edit[1], 1))))
		if _, warned := actionsOf(r); string(text(r)) != want && name == "image" || !strings.Contains(warned, "must be replaced") {
			t.Errorf("%s in place: %s\n%s", name, warned, cmp.Diff(want, string(text(r))))
		}
		again := run(t, next, parse(t, "a.yaml", text(r)))
		if _, warned := actionsOf(again); warned != "" || string(text(again)) != string(text(r)) {
			t.Errorf("%s: a second time it is told again: %s", name, warned)
		}
	}
}

// TestWhatMayChangeOfAKeptObjectFollowsTheSource changes fields that the API server lets change.
func TestWhatMayChangeOfAKeptObjectFollowsTheSource(t *testing.T) {
	t.Parallel()
	old, next := ofTag("1.31.1", ""), ofTag("1.31.2", "")
	source := strings.NewReplacer("backoffLimit: 3", "backoffLimit: 5\n  suspend: true", "  name: migrate\n", "  name: migrate\n  labels:\n    team: a\n").Replace(ownJob)
	want := injectedOnce(t, old, source)
	got, r := publishedRun(t, next, injectedOnce(t, old, ownJob), source)
	if actions, warned := actionsOf(r); got != want || actions[0] != engine.Kept || warned != "" {
		t.Errorf("Job: %v %s\n%s", actions, warned, cmp.Diff(want, got))
	}
	source = strings.NewReplacer("c:1", "c:2", "app: debug", "app: debug\n    team: a").Replace(ownPod)
	got, r = publishedRun(t, next, injectedOnce(t, old, ownPod), source)
	actions, warned := actionsOf(r)
	if actions[0] != engine.Kept || warned != "" || !strings.Contains(got, ":1.31.1") || !strings.Contains(got, "c:2") || !strings.Contains(got, "team: a") {
		t.Errorf("Pod: %v %s\n%s", actions, warned, got)
	}
	source = strings.Replace(ownPod, "containerPort: 80", "containerPort: 81", 1)
	if _, r = publishedRun(t, next, injectedOnce(t, old, ownPod), source); !strings.Contains(results(r), "must be replaced") {
		t.Errorf("another port of a Pod: %s", results(r))
	}
}

// TestAJobPublishedWithoutInjectionStaysSo turns the injection on, and off, for a namespace with published Jobs.
func TestAJobPublishedWithoutInjectionStaysSo(t *testing.T) {
	t.Parallel()
	on, off := ofTag("1.31.1", ""), ofTag("1.31.1", "")
	off.Spec.Namespaces = []v1alpha1.Namespace{{Name: "shop", Labels: map[string]string{"istio-injection": "disabled"}}}
	for _, source := range []string{ownJob, ownPod} {
		got, r := publishedRun(t, on, source, source)
		if actions, _ := actionsOf(r); got != source || actions[0] != engine.Kept || !strings.Contains(results(r), "published without an injection") {
			t.Errorf("turned on: %v %s\n%s", actions, results(r), cmp.Diff(source, got))
		}
		published := injectedOnce(t, on, source)
		if published == source {
			t.Fatal("it is not injected")
		}
		got, r = publishedRun(t, off, published, source)
		if actions, warned := actionsOf(r); got != published || actions[0] != engine.Kept || warned != "" {
			t.Errorf("turned off: %v %s\n%s", actions, warned, cmp.Diff(published, got))
		}
	}
}

// madeAnew are objects that are created anew rather than updated, by what makes them so.
func madeAnew() map[string]string {
	annotated := func(text string) string {
		return strings.Replace(ownJob, "  name: migrate\n", "  name: migrate\n  annotations: {"+text+"}\n", 1)
	}
	return map[string]string{
		"Flux":         annotated("kustomize.toolkit.fluxcd.io/force: enabled"),
		"Argo CD":      annotated("'argocd.argoproj.io/sync-options': 'Prune=false, Force=true,Replace=true'"),
		"Argo CD hook": annotated("argocd.argoproj.io/hook: PreSync"),
		"Helm hook":    annotated("helm.sh/hook: pre-upgrade"),
		"generateName": strings.Replace(ownJob, "  name: migrate\n", "  generateName: migrate-\n", 1),
		"CronJob": "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: migrate, namespace: shop}\nspec: {schedule: '@daily', jobTemplate: " +
			"{spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}}}\n",
	}
}

// TestObjectsThatMayBeReplacedHaveNoDigest: a digest of a Job's own fields serves only Jobs that are kept.
func TestObjectsThatMayBeReplacedHaveNoDigest(t *testing.T) {
	t.Parallel()
	for name, source := range madeAnew() {
		if got := injectedOnce(t, ofTag("1.31.1", ""), source); !strings.Contains(got, ":1.31.1") || strings.Contains(got, "(own)") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
	if got := injectedOnce(t, ofTag("1.31.1", ""), ownJob); !strings.Contains(got, "(own)") {
		t.Errorf("a Job that is kept:\n%s", got)
	}
}

// TestObjectsThatMayBeReplacedFollowThePolicy has objects that are made anew, a CronJob, and a policy that wants none to be kept.
func TestObjectsThatMayBeReplacedFollowThePolicy(t *testing.T) {
	t.Parallel()
	old, next := ofTag("1.31.1", ""), ofTag("1.31.2", "")
	for name, source := range madeAnew() {
		published, want := injectedOnce(t, old, source), injectedOnce(t, next, source)
		got, r := publishedRun(t, next, published, source)
		if actions, warned := actionsOf(r); got != want || actions[0] != engine.Injected || warned != "" {
			t.Errorf("%s: %v %s\n%s", name, actions, warned, cmp.Diff(want, got))
		}
		if again := injectedOnce(t, next, published); again != want {
			t.Errorf("%s in place: %s", name, cmp.Diff(want, again))
		}
	}
	follow := ofTag("1.31.2", v1alpha1.JobsFollow)
	got, r := publishedRun(t, follow, injectedOnce(t, old, ownJob), ownJob)
	if _, warned := actionsOf(r); got != injectedOnce(t, follow, ownJob) || !strings.Contains(warned, "kustomize.toolkit.fluxcd.io/force: enabled") {
		t.Errorf("Follow: %s\n%s", warned, got)
	}
}

// TestPublishedObjectsAreFoundByName has objects of the same name elsewhere, and one that has another name now.
func TestPublishedObjectsAreFoundByName(t *testing.T) {
	t.Parallel()
	old, next := ofTag("1.31.1", ""), ofTag("1.31.2", "")
	other := strings.ReplaceAll(ownJob, "namespace: shop", "namespace: bank")
	renamed := strings.ReplaceAll(ownJob, "name: migrate\n  namespace", "name: migrate-7d4f\n  namespace")
	published := injectedOnce(t, old, ownJob+"---\n"+strings.ReplaceAll(other, "migrate:1", "migrate:7"))
	got, r := publishedRun(t, next, published, ownJob+"---\n"+renamed+"---\n"+other)
	actions, warned := actionsOf(r)
	want := []engine.Action{engine.Kept, engine.Injected, engine.Injected}
	if diff := cmp.Diff(want, actions); diff != "" || strings.Count(warned, "must be replaced") != 1 || !strings.Contains(warned, "bank/migrate") {
		t.Errorf("%s\n%s\n%s", diff, warned, got)
	}
}

// TestPinsDoNotDefeatKeptJobs has other digests for a Job's own images and the proxy's, and a sidecar that is not Istio's.
func TestPinsDoNotDefeatKeptJobs(t *testing.T) {
	t.Parallel()
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      containers:\n      - name: app\n        image: app:1\n"
	once, _ := try(t, pins(digestA), v1alpha1.ModeInject, job)
	if !strings.Contains(once, "image: app:1@"+digestA) {
		t.Fatalf("it is not pinned:\n%s", once)
	}
	in := compiled(t, policy(t, pins(digestB))).WithPublished(documents(t, once))
	if got := string(text(apply(t, in, parse(t, "a.yaml", []byte(job))))); got != once {
		t.Errorf("other digests: %s", cmp.Diff(once, got))
	}
}

// TestSidecarsOfKeptJobs has a policy without the sidecar that a Job carries, and with another one. The object that its pod mounts stays.
func TestSidecarsOfKeptJobs(t *testing.T) {
	t.Parallel()
	const objects = `
apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: objects}
spec:
  sidecars:
  - name: gate
    select: {default: Inject}
    template: "spec: {containers: [{name: gate, image: 'example.com/gate:1', envFrom: [{configMapRef: {name: gate}}]}]}"
    objects: |
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: gate}
      data: {level: high}
`
	const job = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\nspec:\n  template:\n    spec:\n      restartPolicy: Never\n      containers:\n      - name: app\n        image: app:1\n"
	once, _ := try(t, objects, v1alpha1.ModeInject, job)
	none := strings.NewReplacer("name: gate\n", "name: other\n", "select: {default: Inject}", "select: {rules: [{annotations: {matchLabels: {gate: \"on\"}}, action: Inject}]}").Replace(objects)
	for name, next := range map[string]string{"none": none, "another image": strings.Replace(objects, "gate:1", "gate:2", 1)} {
		if got, _ := try(t, next, v1alpha1.ModeInject, once); got != once {
			t.Errorf("%s in place: %s", name, cmp.Diff(once, got))
		}
		r := apply(t, compiled(t, policy(t, next)).WithPublished(documents(t, once)), parse(t, "a.yaml", []byte(job)))
		if got := string(stream(r)); !strings.Contains(got, "gate:1") || !strings.Contains(got, "level: high") {
			t.Errorf("%s: %s\n%s", name, results(r), got)
		}
	}
}

// TestAKeeperKeepsWhatOthersInjected gives what was published of a Job to input that a build has injected, and nothing else.
func TestAKeeperKeepsWhatOthersInjected(t *testing.T) {
	t.Parallel()
	deployment := strings.NewReplacer("batch/v1", "apps/v1", "kind: Job", "kind: Deployment", "  backoffLimit: 3\n", "", "      restartPolicy: Never\n", "").Replace(ownJob)
	old := injectedOnce(t, ofTag("1.31.1", ""), ownJob+"---\n"+deployment+"---\n"+strings.ReplaceAll(ownJob, "name: migrate\n  n", "name: b\n  n"))
	next := injectedOnce(t, ofTag("1.31.2", ""), ownJob+"---\n"+deployment+"---\n"+strings.ReplaceAll(strings.ReplaceAll(ownJob, "name: migrate\n  n", "name: b\n  n"), "migrate:1", "migrate:2"))
	keeper, err := engine.NewKeeper(documents(t, old), v1alpha1.JobsKeepPublished)
	if err != nil {
		t.Fatal(err)
	}
	r := apply(t, keeper, parse(t, "a.yaml", []byte(next)))
	before, now, got := documents(t, old), documents(t, next), documents(t, string(text(r)))
	for i, want := range []*manifest.Document{before[0], now[1], now[2]} {
		if diff := cmp.Diff(string(want.Raw()), string(got[i].Raw())); diff != "" {
			t.Errorf("document %d: %s", i, diff)
		}
	}
	if actions, warned := actionsOf(r); len(actions) != 1 || actions[0] != engine.Kept || strings.Count(warned, "must be replaced") != 1 {
		t.Errorf("%v %s", actions, warned)
	}
}

// TestAKeptPodKeepsTheMetadataOfItsTemplates: a custom template's annotation, which looks like the Pod's own in what is published, stays.
func TestAKeptPodKeepsTheMetadataOfItsTemplates(t *testing.T) {
	t.Parallel()
	with := func(tag string) *v1alpha1.InjectionPolicy {
		p := ofTag(tag, "")
		p.Spec.Istio.Injector.Overrides["sidecarInjectorWebhook"] = map[string]any{
			"defaultTemplates": []any{"sidecar", "own"},
			"templates": map[string]any{
				"own": "metadata: {annotations: {example.com/own: \"1\", container.apparmor.security.beta.kubernetes.io/istio-proxy: runtime/default}}",
			},
		}
		return p
	}
	published := injectedOnce(t, with("1.31.1"), ownPod)
	if !strings.Contains(published, `example.com/own: "1"`) {
		t.Fatal(published)
	}
	if got, r := publishedRun(t, with("1.31.2"), published, ownPod); got != published {
		t.Errorf("%s\n%s", results(r), cmp.Diff(published, got))
	}
}

// TestAKeeperLeavesPinsOfAPod keeps the images of a Pod's own containers as the build has pinned them.
func TestAKeeperLeavesPinsOfAPod(t *testing.T) {
	t.Parallel()
	const pod = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  namespace: shop\nspec:\n  containers:\n  - name: app\n    image: app:1\n"
	with := func(digest, tag string) string {
		p := ofTag(tag, "")
		p.Spec.Images = policy(t, pins(digest)).Spec.Images
		return injectedOnce(t, p, pod)
	}
	keeper, err := engine.NewKeeper(documents(t, with(digestA, "1.31.1")), v1alpha1.JobsKeepPublished)
	if err != nil {
		t.Fatal(err)
	}
	r := apply(t, keeper, parse(t, "a.yaml", []byte(with(digestB, "1.31.2"))))
	got := string(text(r))
	if !strings.Contains(got, "app:1@"+digestB) || !strings.Contains(got, "proxyv2:1.31.1") || strings.Contains(got, "proxyv2:1.31.2") {
		t.Errorf("%s\n%s", results(r), got)
	}
	if back := string(text(run(t, builtIn(v1alpha1.ModeRemove), parse(t, "a.yaml", []byte(got))))); back != pod {
		t.Errorf("removing: %s", cmp.Diff(pod, back))
	}
}
