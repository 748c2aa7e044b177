// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
)

// release is a request for the chart in apps/shop.
func release(change func(*v1alpha1.Helm)) render.Request {
	r := request(".")
	r.Type = v1alpha1.BuildHelm
	r.Helm = &v1alpha1.Helm{
		Chart: "apps/shop", ReleaseName: "web", Namespace: "shop", KubeVersion: "1.33.4",
		Hooks: v1alpha1.HooksKeep, Lookup: v1alpha1.ImpureRefuse, Impure: v1alpha1.ImpureRefuse,
	}
	if change != nil {
		change(r.Helm)
	}
	return r
}

// shopChart is a chart with a workload, one that is a hook, and more.
func shopChart() map[string]string {
	return map[string]string{
		"apps/shop/Chart.yaml":            "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
		"apps/shop/values.yaml":           "replicas: 1\n",
		"apps/shop/templates/web.yaml":    strings.Replace(deployment, "spec:\n", "spec:\n  replicas: {{ .Values.replicas }}\n", 1),
		"apps/shop/templates/hook.yaml":   "apiVersion: batch/v1\nkind: Job\nmetadata: {name: prepare, annotations: {helm.sh/hook: pre-install}}\nspec:\n  template:\n    metadata: {labels: {app: web}}\n    spec:\n      restartPolicy: Never\n      containers: [{name: main, image: x}]\n",
		"apps/shop/templates/list.yaml":   "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: s}\n",
		"apps/shop/templates/config.yaml": "# only a comment\n---\n{{ if .Values.no }}x{{ end }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
		"apps/shop/crds/c.yaml":           "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: b}\n",
	}
}

// TestHelm renders a chart in the isolated process and injects into what it makes, hooks too.
func TestHelm(t *testing.T) {
	r := release(func(h *v1alpha1.Helm) { h.Values = map[string]any{"replicas": 3} })
	r.Policies = []render.Policy{{Origin: "mesh.yaml", YAML: extra}}
	response, record := mustRender(t, shopChart(), r)
	want := "apiextensions.k8s.io/v1 CustomResourceDefinition a\napiextensions.k8s.io/v1 CustomResourceDefinition b\n" +
		"v1 ConfigMap c\napps/v1 Deployment web\nv1 Secret s\nbatch/v1 Job prepare"
	if got := ids(response); got != want || response.Type != v1alpha1.BuildHelm {
		t.Errorf("got %s %s", response.Type, got)
	}
	for _, i := range []int{3, 5} {
		if !strings.Contains(string(response.Objects[i].YAML), "name: logger") {
			t.Errorf("nothing is injected into %s", response.Objects[i].YAML)
		}
	}
	if !strings.Contains(string(response.Objects[3].YAML), "replicas: 3") || len(response.Warnings) > 0 {
		t.Errorf("got %s, %q", response.Objects[3].YAML, response.Warnings)
	}
	again, _ := mustRender(t, shopChart(), r)
	if response.Digest() != again.Digest() {
		t.Error("the second render gives something else")
	}
	if _, affected := record.Affected(build(t, shopChart())); affected {
		t.Error("the same files have an effect")
	}
	other := release(nil)
	if render.Fingerprint(record, &r, "v1") == render.Fingerprint(record, &other, "v1") {
		t.Error("other values have the same fingerprint")
	}
}

// TestHelmNamespaceIsThatOfTheProxy: Helm installs objects without a namespace into that of the release.
func TestHelmNamespaceIsThatOfTheProxy(t *testing.T) {
	for _, of := range []string{"shop", "other"} {
		r := release(func(h *v1alpha1.Helm) { h.Namespace = of })
		r.Policies = []render.Policy{{Origin: "mesh.yaml", YAML: "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\n" +
			"spec: {istio: {injector: {builtIn: istio}}}\n"}}
		response, _ := mustRender(t, shopChart(), r)
		web := string(response.Objects[3].YAML)
		if !strings.Contains(web, "namespaces/"+of+"/deployments/web") {
			t.Errorf("the proxy has another namespace than %s:\n%s", of, web)
		}
		for _, one := range response.Results {
			if strings.Contains(one.Message, "so default is written for the proxy") {
				t.Error(one.Message)
			}
		}
	}
}

// TestHelmWarnsWithoutTime checks that what Helm's packages log is a warning, and the same each time.
func TestHelmWarnsWithoutTime(t *testing.T) {
	files := shopChart()
	files["apps/shop/templates/odd.yaml"] = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: o, annotations: {helm.sh/hook: before-lunch}}\n"
	response, _ := mustRender(t, files, release(nil))
	if len(response.Warnings) != 1 || response.Warnings[0] != `level=INFO msg="skipping unknown hooks" hookTypes=before-lunch` {
		t.Errorf("got %q", response.Warnings)
	}
}

// TestHostileCharts checks that charts without an end are stopped, with an error that says why.
func TestHostileCharts(t *testing.T) {
	aliases := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for _, c := range "bcdefgh" {
		previous := string(c - 1)
		aliases += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+previous+", ", 9) + "]\n"
	}
	for name, test := range map[string]struct{ template, values, want string }{
		"tpl in itself":      {template: `{{ define "a" }}{{ tpl "{{ include \"b\" . }}" . }}{{ end }}{{ define "b" }}{{ tpl "{{ include \"a\" . }}" . }}{{ end }}{{ include "a" . }}`, want: "memory"},
		"template in itself": {template: `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}`, want: "exceeded maximum template depth"},
		"text without end":   {template: `{{ $x := "x" }}{{ range until 60 }}{{ $x = print $x $x }}{{ end }}`, want: "memory"},
		"a huge list":        {template: `{{ range until 2000000000 }}x{{ end }}`, want: "memory"},
		"aliases":            {template: "x", values: aliases, want: "apps/shop/values.yaml: line"},
		"no YAML":            {template: "a: b: c", want: "templates/bad.yaml"},
		"no object":          {template: "a: b", want: "an object needs apiVersion and kind"},
	} {
		t.Run(name, func(t *testing.T) {
			files := shopChart()
			files["apps/shop/templates/bad.yaml"] = test.template
			files["apps/shop/values.yaml"] += test.values
			r := release(nil)
			r.Limits.Memory = 1 << 30 // the race detector alone takes more than a quarter of it
			if test.want == "memory" {
				r.Limits.Memory = 512 << 20 // a chart without an end reaches it in half the time
			}
			r.Limits.Timeout = 10 * time.Minute // memory is to end it, however slow the machine is
			_, _, err := renderFiles(t, files, r)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
