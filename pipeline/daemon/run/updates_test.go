// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/render/gate/validation"
)

// checkingRenderer injects, and checks objects in this process.
type checkingRenderer struct{ injecting }

func (checkingRenderer) CheckObjects(ctx context.Context, request render.GateRequest) (result.Results, error) {
	return apiserver.CheckRequest(ctx, &request)
}

// templateValidator rejects other templates of Jobs, and Jobs whose container is called wrong.
type templateValidator struct{ asked []map[string]any }

func (v *templateValidator) Ask(_ context.Context, requests []validation.Request) ([]validation.Answer, error) {
	out := make([]validation.Answer, len(requests))
	for i, r := range requests {
		out[i].Known = true
		spec, _ := r.Object["spec"].(map[string]any)
		old, _ := r.Old["spec"].(map[string]any)
		switch {
		case r.Object["kind"] != "Job":
		case r.Operation == validation.Update && !reflect.DeepEqual(spec["template"], old["template"]):
			out[i].Problems = []validation.Problem{{Field: "spec.template", Type: validation.TypeImmutable, Message: "field is immutable"}}
		case r.Operation == validation.Create:
			v.asked = append(v.asked, r.Object)
		}
	}
	return out, nil
}

// TestRejectedUpdatesKeepWhatIsPublished changes a Job's own template, which closes the gate; then it is annotated so that Flux replaces it.
func TestRejectedUpdatesKeepWhatIsPublished(t *testing.T) {
	w := newWorks(t, "shop")
	w.runner.Builder.Renderer, w.runner.Builder.Validator = checkingRenderer{}, &templateValidator{}
	step := func(subject, app string) (message string) {
		t.Helper()
		w.repository.Commit(subject, map[string]string{"shop/app.yaml": app, "shop/policy.yaml": meshPolicy("1.31.1")})
		_ = w.do("shop", subject, 0)
		c := w.state("shop").Condition()
		if c == nil {
			t.Fatalf("%s: no condition", subject)
		}
		if c.Status == "True" {
			return ""
		}
		return c.Message
	}
	if message := step("first", jobAndDeployment); message != "" {
		t.Fatal(message)
	}
	before := w.repository.Git("rev-parse", "rendered")
	changed := strings.Replace(jobAndDeployment, "migrate:1", "migrate:2", 1)
	message := step("job", changed)
	for _, want := range []string{"gate severity", "Job shop/migrate spec.template", "the API server rejects the change: field is immutable", "update-rejected", "rendered:"} {
		if !strings.Contains(message, want) {
			t.Errorf("the message lacks %q: %s", want, message)
		}
	}
	if after := w.repository.Git("rev-parse", "rendered"); after != before {
		t.Error("something was published")
	}
	replaced := strings.Replace(changed, "  name: migrate\n", "  name: migrate\n  annotations: {kustomize.toolkit.fluxcd.io/force: enabled}\n", 1)
	if message := step("replaced", replaced); message != "" {
		t.Errorf("an object that is replaced: %s", message)
	}
	if w.repository.Git("rev-parse", "rendered") == before {
		t.Error("nothing was published")
	}
}

// withSchemas is a pipeline of the repository at a URL whose gates check schemas.
func withSchemas(url string) string {
	return "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: shop}\nspec:\n  source: {git: {url: " + url +
		", ref: {branch: main}}}\n  build: {path: shop}\n  gates: {schemas: {}}\n  publish: [{git: {branch: rendered}}]\n"
}

// TestRunsNameAMissingValidation: without the program that validates, each run of a pipeline that asks for it has one warning.
func TestRunsNameAMissingValidation(t *testing.T) {
	w := newWorks(t, "shop")
	w.run(map[string]string{"shop": withSchemas(w.repository.URL)})
	for _, validator := range []gate.Validator{nil, &templateValidator{}} {
		w.runner.Builder.Renderer, w.runner.Builder.Validator = checkingRenderer{}, validator
		image := "migrate:1"
		if validator != nil {
			image = "migrate:2"
		}
		app := strings.Replace(jobAndDeployment, "migrate:1", image, 1)
		app = strings.Replace(app, "  name: migrate\n", "  name: migrate\n  annotations: {kustomize.toolkit.fluxcd.io/force: enabled}\n", 1)
		w.repository.Commit(image, map[string]string{"shop/app.yaml": app, "shop/policy.yaml": meshPolicy("1.31.1")})
		if err := w.do("shop", image, 0); err != nil {
			t.Fatal(err)
		}
		findings := strings.Join(w.state("shop").Runs[0].Findings, "\n")
		want := 1
		if validator != nil {
			want = 0
		}
		if strings.Count(findings, gate.NotInstalled) != want {
			t.Errorf("%s: want %d warnings: %s", image, want, findings)
		}
	}
}

// TestGatesSeeTheKeptJob upgrades the mesh with spec.gates.schemas: Kubernetes' own validation is asked about the Job as it stays published.
func TestGatesSeeTheKeptJob(t *testing.T) {
	w := newWorks(t, "shop")
	w.run(map[string]string{"shop": withSchemas(w.repository.URL)})
	validator := &templateValidator{}
	w.runner.Builder.Renderer, w.runner.Builder.Validator = checkingRenderer{}, validator
	for _, tag := range []string{"1.31.1", "1.31.2"} {
		validator.asked = nil
		w.repository.Commit(tag, map[string]string{"shop/app.yaml": jobAndDeployment, "shop/policy.yaml": meshPolicy(tag)})
		if err := w.do("shop", tag, 0); err != nil {
			t.Fatal(err)
		}
		if c := w.state("shop").Condition(); c == nil || c.Status != "True" {
			t.Fatalf("%s: %+v", tag, c)
		}
		if len(validator.asked) != 1 {
			t.Fatalf("%s: asked about %d Jobs", tag, len(validator.asked))
		}
		if images := imagesOf(validator.asked[0]); !strings.Contains(images, ":1.31.1") || strings.Contains(images, ":1.31.2") {
			t.Errorf("%s: asked about a Job with %s", tag, images)
		}
	}
}

func imagesOf(value any) (out string) {
	switch v := value.(type) {
	case map[string]any:
		for key, item := range v {
			if text, ok := item.(string); ok && key == "image" {
				out += " " + text
			}
			out += imagesOf(item)
		}
	case []any:
		for _, item := range v {
			out += imagesOf(item)
		}
	}
	return out
}
