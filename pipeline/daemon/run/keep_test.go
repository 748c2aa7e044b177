// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// injecting is a renderer in this process that injects PATH/app.yaml by the policy in PATH/policy.yaml.
type injecting struct{}

func (injecting) Render(ctx context.Context, files tree.Reader, request render.Request) (*render.Response, error) {
	text, err := files.Read(request.Path + "/policy.yaml")
	if err != nil {
		return nil, err
	}
	policy, err := v1alpha1.Parse(text)
	if err != nil {
		return nil, err
	}
	app, err := files.Read(request.Path + "/app.yaml")
	if err != nil {
		return nil, err
	}
	file, err := manifest.Parse("app.yaml", app)
	if err != nil {
		return nil, err
	}
	injector, err := fn.New([]*v1alpha1.InjectionPolicy{policy})
	if err != nil {
		return nil, err
	}
	var items []fn.Item
	for _, doc := range file.Docs {
		items = append(items, fn.Item{Doc: doc})
	}
	report, err := injector.WithPublished(nil).Run(ctx, items)
	if err != nil {
		return nil, err
	}
	response := &render.Response{FollowJobs: injector.FollowsJobs(), Results: report.Results}
	for _, o := range report.Outcomes {
		response.Decisions = append(response.Decisions, render.Decision{Object: o.Ref, Action: string(o.Action), Reason: o.Reason})
	}
	for _, item := range report.Items {
		meta, _ := item.Doc.Peek()
		response.Objects = append(response.Objects, render.Object{
			APIVersion: meta.APIVersion, Kind: meta.Kind, Namespace: meta.Namespace, Name: meta.Name, YAML: item.Doc.Raw(),
		})
	}
	return response, nil
}

const jobAndDeployment = `apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  namespace: shop
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: c
        image: registry.example.com/migrate:1
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: registry.example.com/web:1
---
apiVersion: v1
kind: Pod
metadata:
  name: debug
  namespace: shop
spec:
  containers:
  - name: c
    image: registry.example.com/c:1
`

func meshPolicy(tag string) string {
	return "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec: {istio: {injector: {builtIn: istio, overrides: {global: {tag: " + tag + "}}}}}\n"
}

// TestMeshUpgradeKeepsPublishedJobs upgrades the mesh: of what is published only the Deployment changes. Then the Job's own image
// changes: it is injected again, and the run says that it must be replaced.
func TestMeshUpgradeKeepsPublishedJobs(t *testing.T) {
	w := newWorks(t, "shop")
	w.runner.Builder.Renderer = injecting{}
	published := func(name string) string {
		all := w.repository.Git("ls-tree", "-r", "--name-only", "rendered")
		for path := range strings.FieldsSeq(all) {
			if strings.Contains(strings.ToLower(path), name) {
				return w.repository.Git("show", "rendered:"+path)
			}
		}
		t.Fatalf("%s is not among %s", name, all)
		return ""
	}
	step := func(subject string, files map[string]string) {
		t.Helper()
		w.repository.Commit(subject, files)
		if err := w.do("shop", subject, 0); err != nil {
			t.Fatal(err)
		}
		if c := w.state("shop").Condition(); c == nil || c.Status != "True" {
			t.Fatalf("%s: %+v", subject, c)
		}
	}
	step("first", map[string]string{"shop/app.yaml": jobAndDeployment, "shop/policy.yaml": meshPolicy("1.31.1")})
	job, pod := published("migrate"), published("debug")
	if !strings.Contains(job, ":1.31.1") || !strings.Contains(pod, ":1.31.1") {
		t.Fatalf("they are not injected:\n%s%s", job, pod)
	}
	step("upgrade", map[string]string{"shop/policy.yaml": meshPolicy("1.31.2")})
	if got := published("migrate"); got != job {
		t.Errorf("the Job has changed:\n%s", got)
	}
	if got := published("debug"); got != pod {
		t.Errorf("the Pod has changed:\n%s", got)
	}
	if got := published("web"); !strings.Contains(got, ":1.31.2") {
		t.Errorf("the Deployment has not changed:\n%s", got)
	}
	step("another image", map[string]string{"shop/app.yaml": strings.Replace(jobAndDeployment, "migrate:1", "migrate:2", 1)})
	got := published("migrate")
	if !strings.Contains(got, ":1.31.2") || !strings.Contains(got, "migrate:2") {
		t.Errorf("the Job is not injected again:\n%s", got)
	}
	if findings := strings.Join(w.state("shop").Runs[0].Findings, "\n"); !strings.Contains(findings, "must be replaced") {
		t.Errorf("the run tells nothing of it: %q", findings)
	}
	step("follow", map[string]string{"shop/policy.yaml": strings.Replace(meshPolicy("1.31.1"), "spec: {", "spec: {jobs: Follow, ", 1)})
	if findings := strings.Join(w.state("shop").Runs[0].Findings, "\n"); !strings.Contains(published("migrate"), ":1.31.1") || !strings.Contains(findings, "Follow") {
		t.Errorf("it does not follow the policy, or nothing tells what that means: %q", findings)
	}
}
