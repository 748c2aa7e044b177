// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/workload"
)

// verifyObjects compares the one pod among objects of a cluster with a committed workload of the namespace shop.
func verifyObjects(t *testing.T, version, committed string, objects ...string) Pod {
	t.Helper()
	return verifyAll(t, version, []string{committed}, objects...)
}

// verifyAll does it with several committed workloads.
func verifyAll(t *testing.T, version string, committed []string, objects ...string) Pod {
	t.Helper()
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	heads := map[Ref]*Workload{}
	for _, c := range committed {
		w, err := NewWorkload(registry, parse(t, c), "shop", "f")
		if err != nil || w == nil {
			t.Fatal(w, err)
		}
		heads[w.Ref] = w
	}
	s := &Snapshot{KubernetesVersion: version}
	for _, o := range objects {
		s.Add(parse(t, o))
	}
	r, err := Verify(t.Context(), s, commits{heads}, Options{Registry: registry})
	if err != nil || len(r.Pods) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	return r.Pods[0]
}

const (
	webTemplate   = `{metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: "a:1"}]}}`
	webDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {template: ` + webTemplate + `}}`
	webSpec       = `containers: [{name: a, image: "a:1"}]`
)

// webPod is a pod of a ReplicaSet of the Deployment web; more are further lines of its metadata.
func webPod(owner, more, spec string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {name: web-abc-x2x7k, generateName: web-abc-, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z",
labels: {app: web, pod-template-hash: abc}, ownerReferences: [` + owner + `]` + more + `}, spec: {` + spec + `}}`
}

const (
	webOwner = `{apiVersion: apps/v1, kind: ReplicaSet, name: web-abc, controller: true, uid: u}`
	before   = `"2025-01-01T00:00:00Z"`
	after    = `"2026-02-01T00:00:00Z"`
)

// webReplicaSet is the owner as the cluster has it, with some template.
func webReplicaSet(template string) string {
	return `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-abc, namespace: shop, uid: u,
ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, controller: true, uid: d}]}, spec: {template: ` + template + `}}`
}

// TestForgedOwners has pods that say that a controller of a group that does not exist, or of a committed kind, made them.
func TestForgedOwners(t *testing.T) {
	forged := strings.Replace(webOwner, "apps/v1", "x.io/v1", 1)
	pod := verifyObjects(t, "", webDeployment, webPod(forged, `, managedFields: [{manager: kubectl-create, operation: Update, time: "2026-01-01T00:00:00Z",
fieldsV1: {"f:metadata": {"f:labels": {"f:app": {}, "f:role": {}}}, "f:spec": {"f:restartPolicy": {}}}}]`, webSpec))
	if pod.State != Foreign {
		t.Errorf("a pod of an invented owner is %s", pod.State)
	}
	if pod := verifyObjects(t, "", webDeployment, webPod(webOwner, "", webSpec)); pod.State != Current {
		t.Errorf("a pod whose ReplicaSet was not read is %s: %s", pod.State, fieldsOf(pod))
	}
}

// TestLimitRangersWords believes what LimitRanger says in a pod, and not in a template, where people write it.
func TestLimitRangersWords(t *testing.T) {
	const words = `"kubernetes.io/limit-ranger": "LimitRanger plugin set: memory request for container a; memory limit for container a"`
	const limited = `containers: [{name: a, image: "a:1", resources: {limits: {memory: 8Gi}, requests: {memory: 8Gi}}}]`
	pod := webPod(webOwner, `, annotations: {`+words+`}`, limited)
	limitRange := func(changed string) string {
		return `{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: shop, creationTimestamp: ` + before + `, managedFields: [{time: ` + changed + `}]},
spec: {limits: [{type: Container, default: {memory: 1Gi}, defaultRequest: {memory: 1Gi}}]}}`
	}
	for name, c := range map[string]struct {
		template, limits string
		state            State
	}{
		"none is left":              {webTemplate, "", Current},
		"changed since":             {webTemplate, limitRange(after), Current},
		"as it was":                 {webTemplate, limitRange(before), Changed},
		"written into the template": {`{metadata: {labels: {app: web}, annotations: {` + words + `}}, spec: {` + limited + `}}`, "", Changed},
		"limits in the template":    {`{metadata: {labels: {app: web}}, spec: {` + limited + `}}`, "", Changed},
	} {
		objects := []string{pod, webReplicaSet(c.template), `{apiVersion: v1, kind: LimitRange, metadata: {name: other, namespace: other}}`}
		if c.limits != "" {
			objects = append(objects, c.limits)
		}
		if got := verifyObjects(t, "", webDeployment, objects...); got.State != c.state {
			t.Errorf("%s: %s, %s", name, got.State, fieldsOf(got))
		}
	}
	// One that was made after the pod has filled in nothing.
	if got := verifyObjects(t, "", webDeployment, webPod(webOwner, "", webSpec), limitRange(after)); got.State != Current {
		t.Errorf("a LimitRange that is younger than the pod: %s, %s", got.State, fieldsOf(got))
	}
}

// TestClassesAndSecretsOfBefore compares with what admission knew when the pod was made.
func TestClassesAndSecretsOfBefore(t *testing.T) {
	class := func(name, isDefault, changed string) string {
		return `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: ` + name + `, creationTimestamp: ` + before + `, managedFields: [{time: ` + changed + `}]},
globalDefault: ` + isDefault + `, value: 5}`
	}
	account := func(changed string) string {
		return `{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: shop, creationTimestamp: ` + before + `, managedFields: [{time: ` + changed + `}]},
imagePullSecrets: [{name: new}]}`
	}
	for name, c := range map[string]struct {
		spec    string
		objects []string
		state   State
	}{
		"made the default since":              {`priority: 0, `, []string{class("a", "true", after)}, Current},
		"the default of that time":            {`priority: 5, priorityClassName: a, `, []string{class("a", "true", before)}, Current},
		"without the default of that time":    {`priority: 0, `, []string{class("a", "true", before)}, Changed},
		"not the default any more":            {`priority: 5, priorityClassName: a, `, []string{class("a", "false", after)}, Current},
		"never the default":                   {`priority: 5, priorityClassName: a, `, []string{class("a", "false", before)}, Changed},
		"classes were not read":               {`priority: 5, priorityClassName: a, `, nil, Current},
		"a secret that the account had":       {`imagePullSecrets: [{name: old}], `, []string{account(after)}, Current},
		"a secret that the account never had": {`imagePullSecrets: [{name: old}], `, []string{account(before)}, Changed},
	} {
		objects := append([]string{webPod(webOwner, "", c.spec+webSpec), webReplicaSet(webTemplate)}, c.objects...)
		if got := verifyObjects(t, "", webDeployment, objects...); got.State != c.state {
			t.Errorf("%s: %s, %s", name, got.State, fieldsOf(got))
		}
	}
	// What the workload itself was changed to is no word of admission.
	named := strings.Replace(webTemplate, "spec: {", "spec: {priorityClassName: a, ", 1)
	if got := verifyObjects(t, "", webDeployment, webPod(webOwner, "", "priorityClassName: a, priority: 5, "+webSpec), webReplicaSet(named)); got.State != Changed {
		t.Errorf("a class that the workload was given: %s", got.State)
	}
}

// TestLabelKeys expects in selectors what the API server writes there.
func TestLabelKeys(t *testing.T) {
	const spread = `topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [pod-template-hash, none], labelSelector: {matchLabels: {app: web}%s}}], `
	const apart = `affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone, matchLabelKeys: [app], mismatchLabelKeys: [pod-template-hash], labelSelector: {matchLabels: {app: web}%s}}]}}, `
	const hash, own = `{key: pod-template-hash, operator: In, values: [abc]}`, `{key: app, operator: In, values: [web]}, {key: pod-template-hash, operator: NotIn, values: [abc]}`
	write := func(of, expressions string) string {
		if expressions != "" {
			expressions = ", matchExpressions: [" + expressions + "]"
		}
		return strings.Replace(of, "%s", expressions, 1)
	}
	for name, c := range map[string]struct {
		of, found, version string
		state              State
	}{
		"spread":                 {spread, hash, "v1.34.0", Current},
		"spread, before 1.34":    {spread, "", "v1.34.0", Current},
		"spread, something else": {spread, hash + `, {key: x, operator: Exists}`, "v1.34.0", Changed},
		"spread, twice":          {spread, hash + ", " + hash, "v1.34.0", Changed},
		"spread, of 1.33":        {spread, "", "v1.33.0", Current},
		"spread, another value":  {spread, strings.Replace(hash, "abc", "def", 1), "v1.34.0", Changed},
		"apart":                  {apart, own, "v1.31.0", Current},
		"apart, of 1.30":         {apart, "", "v1.30.0", Current},
		"apart, something added": {apart, own + `, {key: x, operator: Exists}`, "v1.34.0", Changed},
	} {
		committed := strings.Replace(webDeployment, webSpec, write(c.of, "")+webSpec, 1)
		if got := verifyObjects(t, c.version, committed, webPod(webOwner, "", write(c.of, c.found)+webSpec)); got.State != c.state {
			t.Errorf("%s: %s, %s", name, got.State, fieldsOf(got))
		}
	}
}

// TestPodsOfControllers allows what controllers of Jobs and Rollouts add beside.
func TestPodsOfControllers(t *testing.T) {
	const job = `{apiVersion: batch/v1, kind: Job, metadata: {%s, namespace: shop}, spec: {template: {spec: {restartPolicy: Never, ` + webSpec + `}}}}`
	jobPod := func(job, annotations string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: shop, annotations: {` + annotations + `}, labels: {job-name: ` + job + `},
ownerReferences: [{apiVersion: batch/v1, kind: Job, name: ` + job + `, controller: true, uid: u}]}, spec: {restartPolicy: Never, ` + webSpec + `}}`
	}
	rollout := `{apiVersion: argoproj.io/v1alpha1, kind: Rollout, metadata: {name: web, namespace: shop}, spec: {strategy: {canary: {canaryMetadata: {labels: {role: canary}}}}, template: ` + webTemplate + `}}`
	rolloutPod := func(role string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: x, generateName: web-abc-, namespace: shop, labels: {app: web, rollouts-pod-template-hash: abc, role: ` + role + `},
ownerReferences: [` + webOwner + `]}, spec: {` + webSpec + `}}`
	}
	for name, c := range map[string]struct {
		committed, pod string
		state          State
	}{
		"failures of an index":        {strings.Replace(job, "%s", "name: j", 1), jobPod("j", `batch.kubernetes.io/job-index-failure-count: "1", batch.kubernetes.io/job-index-ignored-failure-count: "2"`), Current},
		"a generated name":            {strings.Replace(job, "%s", "generateName: j-", 1), jobPod("j-x2x7k", ""), Current},
		"a name that is not":          {strings.Replace(job, "%s", "generateName: j-", 1), jobPod("j-longer-one", ""), Foreign},
		"the canary of a Rollout":     {rollout, rolloutPod("canary"), Current},
		"another label of a Rollouts": {rollout, rolloutPod("other"), Changed},
	} {
		if got := verifyObjects(t, "", c.committed, c.pod); got.State != c.state {
			t.Errorf("%s: %s, %s %s", name, got.State, fieldsOf(got), got.Message)
		}
	}
}

// unreadable is a history of which an older commit cannot be read.
type unreadable struct{ commits }

func (u unreadable) Versions(ref Ref) iter.Seq2[*Workload, error] {
	return func(yield func(*Workload, error) bool) {
		if !yield(nil, errors.New("reading f of c1: it is no YAML")) {
			return
		}
		for w, err := range u.commits.Versions(ref) {
			if !yield(w, err) {
				return
			}
		}
	}
}

// TestUnreadableOlderCommits tells of all pods also where an older commit cannot be read.
func TestUnreadableOlderCommits(t *testing.T) {
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &Snapshot{}
	bare := func(name, image string) map[string]any {
		return parse(t, `{apiVersion: v1, kind: Pod, metadata: {name: `+name+`, namespace: shop}, spec: {containers: [{name: a, image: "`+image+`"}]}}`)
	}
	versions := commits{{}, {}}
	for name, images := range map[string][3]string{"current": {"a:2", "a:1", "a:2"}, "older": {"a:2", "a:1", "a:1"}, "changed": {"a:2", "a:1", "b:1"}} {
		for i := range versions {
			w, err := NewWorkload(registry, bare(name, images[i]), "", "f")
			if err != nil {
				t.Fatal(err)
			}
			versions[i][w.Ref] = w
		}
		s.Add(bare(name, images[2]))
	}
	s.Add(bare("foreign", "a:1"))
	r, err := Verify(t.Context(), s, unreadable{versions}, Options{Registry: registry})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]State{"current": Current, "older": Older, "changed": Changed, "foreign": Unreadable}
	for _, pod := range r.Pods {
		if pod.State != want[pod.Name] || (pod.State == Changed || pod.State == Unreadable) != strings.Contains(pod.Message, "no YAML") {
			t.Errorf("%s: %s, %q", pod.Name, pod.State, pod.Message)
		}
	}
}
