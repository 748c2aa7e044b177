// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

func mustRender(t *testing.T, files map[string]string, r render.Request) (*render.Response, tree.Record) {
	t.Helper()
	response, record, err := renderFiles(t, files, r)
	if err != nil {
		t.Fatal(err)
	}
	return response, record
}

func ids(r *render.Response) string {
	var out []string
	for _, object := range r.Objects {
		out = append(out, object.ID())
	}
	return strings.Join(out, "\n")
}

func TestPlain(t *testing.T) {
	files := map[string]string{
		"app/b/web.yaml": "# the shop's own\n" + deployment, "app/a.yml": strings.Replace(configMap, "NAME", "a", 1) + "---\n---\n" + others,
		"app/list.yaml": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: s}\n", "app/j.json": `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`,
		"app/.hidden/x.yaml": "not yaml: [", "app/README.md": "text", "app/mesh.yaml": extra, "app/kustomization.yml": "->none",
	}
	r := request("app")
	r.Policies = []render.Policy{{Origin: "mesh.yaml", YAML: extra}}
	response, record := mustRender(t, files, r)
	want := "v1 ConfigMap ca\nv1 ServiceAccount web\nv1 Service web\nv1 Pod bare\napps/v1 Deployment web\nv1 Namespace n\nv1 Secret s"
	if got := ids(response); got != want || response.Type != v1alpha1.BuildPlain {
		t.Errorf("got %s", got)
	}
	for i, want := range map[int]string{4: "app/b/web.yaml:2", 6: "app/list.yaml:1"} {
		source := response.Objects[i].Source
		if got := fmt.Sprint(source.Path, ":", source.Line); got != want {
			t.Errorf("%s is from %s, want %s", response.Objects[i].ID(), got, want)
		}
	}
	web := string(response.Objects[4].YAML)
	if !strings.HasPrefix(web, "# the shop's own\n") || !strings.Contains(web, "- name: logger") || !strings.Contains(web, `args: ["--flag=yes", "on", "0123"]`) {
		t.Errorf("got %s", web)
	}
	if len(response.Decisions) != 2 || response.Decisions[1].Object.Kind != "Deployment" || response.Decisions[1].Action != "injected" || response.Decisions[1].Reason == "" {
		t.Errorf("got %+v", response.Decisions)
	}
	// What was looked for counts: the same file elsewhere does not.
	delete(files, "app/README.md")
	files["other"] = "x"
	if reason, affected := record.Affected(build(t, files)); !affected || !strings.Contains(reason, "app") {
		t.Errorf("%q, %t: a directory that is read in full notices every file", reason, affected)
	}
}

// TestNamesThatAreNotUTF8: what is read is refused by its name, what is only listed does no harm.
func TestNamesThatAreNotUTF8(t *testing.T) {
	one := strings.Replace(configMap, "NAME", "a", 1)
	for name, tc := range map[string]struct {
		files map[string]string
		want  string // "" where it renders
	}{
		"a manifest":              {map[string]string{"app/w\xe9b.yaml": one}, `reading "app/w\xe9b.yaml": the name is not UTF-8`},
		"a directory":             {map[string]string{"app/caf\xe9/a.yaml": one}, `reading "app/caf\xe9": the name is not UTF-8`},
		"a link that has it":      {map[string]string{"app/l\xe9.yaml": "->a.yaml"}, `reading "app/l\xe9.yaml": the name is not UTF-8`},
		"a link to it":            {map[string]string{"app/link.yaml": "->../w\xe9b.txt", "w\xe9b.txt": strings.Replace(one, "name: ca", "name: linked", 1)}, ""},
		"what is no manifest":     {map[string]string{"app/LIS-MOI-\xe9.md": "text"}, ""},
		"a kpt package's":         {map[string]string{"app/Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: app}\n", "app/w\xe9b.yaml": one}, `reading "app/w\xe9b.yaml": the name is not UTF-8`},
		"beside a kustomize's":    {map[string]string{"app/kustomization.yaml": "resources: [a.yaml]\n", "app/w\xe9b.yaml": one}, ""},
		"a kustomize's by link":   {map[string]string{"app/kustomization.yaml": "resources: [base]\n", "app/base": "->../b\xe9", "b\xe9/kustomization.yaml": "resources: [x.yaml]\n", "b\xe9/x.yaml": one}, `reading "b\xe9/kustomization.yaml": the name is not UTF-8`},
		"UTF-8 that is not ASCII": {map[string]string{"app/wéb.yaml": strings.Replace(one, "name: ca", "name: accent", 1)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.files["app/a.yaml"] = one
			response, _, err := renderFiles(t, tc.files, request("app"))
			switch {
			case tc.want == "" && (err != nil || !strings.Contains(ids(response), "v1 ConfigMap ca")):
				t.Errorf("got %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "\ufffd")):
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestKpt(t *testing.T) {
	kptfile := "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: app}\npipeline:\n  mutators:\n"
	files := map[string]string{
		"app/Kptfile":  kptfile + "  - image: registry.example.com/tools/prerig-fn:v1\n    configPath: mesh.yaml\n    selectors:\n    - kind: Deployment\n    exclude:\n    - name: quiet\n",
		"app/web.yaml": deployment, "app/quiet.yaml": strings.Replace(deployment, "name: web\n  labels", "name: quiet\n  labels", 1), "app/mesh.yaml": extra,
		"app/sub/Kptfile":  strings.Replace(kptfile, "name: app", "name: sub", 1) + "  - {exec: prerig-fn, configPath: mesh.yaml}\n  validators:\n  - {exec: /usr/local/bin/prerig-fn, configPath: mesh.yaml}\n",
		"app/sub/pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: app, image: x}]}\n", "app/sub/mesh.yaml": extra,
	}
	response, _ := mustRender(t, files, request("app"))
	if response.Type != v1alpha1.BuildKpt {
		t.Errorf("got %s", response.Type)
	}
	injected := map[string]bool{}
	for _, object := range response.Objects {
		injected[object.ID()] = strings.Contains(string(object.YAML), "name: logger")
	}
	want := map[string]bool{"apps/v1 Deployment web": true, "apps/v1 Deployment quiet": false, "v1 Pod p": true}
	if len(injected) != len(want) {
		t.Errorf("got %v", injected)
	}
	for id, is := range want {
		if injected[id] != is {
			t.Errorf("%s: injected %t", id, injected[id])
		}
	}
	for _, bad := range []string{"  - {exec: prerig-fn --force, configPath: mesh.yaml}\n", "  - {exec: prerig-fn}\n", "  - {exec: prerig-fn, configPath: ../mesh.yaml}\n", "  - {configPath: mesh.yaml}\n"} {
		files["app/Kptfile"] = kptfile + bad
		if _, _, err := renderFiles(t, files, request("app")); err == nil || !strings.Contains(err.Error(), "pipeline.mutators[0]") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}

// The policies of the pipeline see the result of the build, and a failing one names what it is about.
func TestPoliciesAfterTheBuild(t *testing.T) {
	files := map[string]string{"app/kustomization.yaml": "resources: [web.yaml]\nnamePrefix: x-\n", "app/web.yaml": deployment}
	r := request("app")
	r.Policies = []render.Policy{{Origin: "policies/mesh.yaml", YAML: istio}}
	response, _ := mustRender(t, files, r)
	if got := text(response); !strings.Contains(got, "istio-proxy") || !strings.Contains(got, "name: x-web") || len(response.Decisions) != 1 {
		t.Errorf("got %s", got)
	}
	if source := response.Objects[0].Source; source != (render.Place{}) {
		t.Errorf("kustomize makes the object, and it is from %v", source)
	}
	r.Policies[0].YAML = strings.Replace(istio, "istio: {", "istoi: {", 1)
	if _, _, err := renderFiles(t, files, r); err == nil || !strings.Contains(err.Error(), "policies/mesh.yaml") || !strings.Contains(err.Error(), "istoi") {
		t.Errorf("got %v", err)
	}
	if response.Results.Worst() == result.Error {
		t.Errorf("got %v", response.Results)
	}
}

// What a build has looked for decides whether a later commit matters to it.
func TestRecordOfABuild(t *testing.T) {
	files := map[string]string{
		"app/kustomization.yaml": "resources: [../base]\ntransformers: [../policy]\n", "base/kustomization.yaml": "resources: [cm.yaml]\n",
		"base/cm.yaml": strings.Replace(configMap, "NAME", "a", 1), "policy/kustomization.yaml": "resources: [mesh.yaml]\n", "policy/mesh.yaml": extra,
		"other/kustomization.yaml": "resources: []\n",
	}
	_, record := mustRender(t, files, request("app"))
	for name, affects := range map[string]bool{
		"base/cm.yaml": true, "base/kustomization.yaml": true, "policy/mesh.yaml": true, "app/kustomization.yml": true, "base/Kustomization": true,
		"other/kustomization.yaml": false, "base/unused.yaml": false, "README.md": false, "app/unused.yaml": false,
	} {
		changed := map[string]string{name: "changed"}
		for k, v := range files {
			if k != name {
				changed[k] = v
			}
		}
		if reason, affected := record.Affected(build(t, changed)); affected != affects {
			t.Errorf("%s: affected %t (%s)", name, affected, reason)
		}
	}
	r := request("app")
	one := render.Fingerprint(record, &r, "v1")
	if one == render.Fingerprint(record, &r, "v2") {
		t.Error("the version is not part of the fingerprint")
	}
	r.Policies = []render.Policy{{YAML: "x"}}
	if one == render.Fingerprint(record, &r, "v1") {
		t.Error("the policies are not part of the fingerprint")
	}
	r.Policies, r.Limits.Timeout = nil, time.Hour
	if one != render.Fingerprint(record, &r, "v1") {
		t.Error("the limits are part of the fingerprint")
	}
}

func TestLimitsOfAPipelineOnlyLower(t *testing.T) {
	limits, err := render.DefaultLimits().Lower(&v1alpha1.RenderLimits{
		Timeout: &metav1.Duration{Duration: time.Hour}, Memory: "512Mi", Output: "1Ti", Files: 10,
	})
	if err != nil || limits.Timeout != 2*time.Minute || limits.Memory != 512<<20 || limits.Output != 64<<20 || limits.Read.Files != 10 {
		t.Errorf("%+v, %v", limits, err)
	}
}

func BenchmarkRender(b *testing.B) {
	files := map[string]string{"app/kustomization.yaml": "resources: [web.yaml, others.yaml]\ntransformers: [mesh.yaml]\n" + settings, "app/web.yaml": deployment, "app/others.yaml": others, "app/mesh.yaml": istio}
	source := build(b, files)
	for name, options := range map[string]render.Options{"warm": {Warm: 2}, "cold": {}, "cold without namespaces": {NoSandbox: true}} {
		b.Run(name, func(b *testing.B) {
			p := pool(b, options)
			time.Sleep(200 * time.Millisecond)
			for b.Loop() {
				if _, err := p.Render(ctx, tree.NewView(source, tree.Limits{}), request("app")); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestPodsThatTheAPIServerWouldNotTake(t *testing.T) {
	files := map[string]string{
		"app/field.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: field}\nspec: {containers: [{name: app, imgae: x}]}\n",
		"app/type.yaml":  "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: type}\nspec: {template: {spec: {containers: [{name: app, image: x, ports: [{containerPort: \"80\"}]}]}}}\n",
	}
	response, _ := mustRender(t, files, request("app"))
	var got []string
	for _, r := range response.Results {
		got = append(got, r.String())
	}
	want := []string{`warning: Pod field spec: the pod has an unknown field "spec.containers[0].imgae" [pod-field]`, "error: Deployment type spec.template: the API server would refuse the pod"}
	if len(got) != 2 || got[0] != want[0] || !strings.HasPrefix(got[1], want[1]) {
		t.Errorf("got %q", got)
	}
}

func TestWarningsOfKustomize(t *testing.T) {
	response, _ := mustRender(t, map[string]string{"app/kustomization.yaml": "bases: [../base]\n", "base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": deployment}, request("app"))
	if len(response.Warnings) != 1 || !strings.Contains(response.Warnings[0], "'bases' is deprecated") {
		t.Errorf("got %q", response.Warnings)
	}
}
