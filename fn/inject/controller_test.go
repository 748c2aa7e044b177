// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

const controllerTemplate = `metadata:
  annotations:
    prefix: "{{ .ObjectMeta.GenerateName }}"
    owners: "{{ range .ObjectMeta.OwnerReferences }}{{ .APIVersion }} {{ .Kind }}/{{ .Name }} {{ .Controller }}{{ end }}"
`

// injectorWith returns an injector of 1.31 with a configuration.
func injectorWith(t *testing.T, config string) *istio.Injector {
	t.Helper()
	return newInjector(t, istio.Options{Version: "1.31", Config: config, Values: "{}", Native: istio.NativeDisabled})
}

// TestTemplatesSeeTheController checks what templates see of the metadata that a pod's controller sets, and that what only a
// cluster knows is warned of.
func TestTemplatesSeeTheController(t *testing.T) {
	in := smallInjector(t, "1.31", controllerTemplate)
	owner := func(apiVersion, kind string) Controller {
		return Controller{Owner: workload.Owner{APIVersion: apiVersion, Kind: kind, Name: "web"}}
	}
	indexed, generated := owner("batch/v1", "Job"), owner("batch/v1", "Job")
	indexed.Indexed, generated.NameGenerated = true, true
	tests := []struct {
		controller             Controller
		prefix, owners, warned string
	}{
		{owner("batch/v1", "Job"), "web-", "batch/v1 Job/web true", ""},
		{owner("apps/v1", "StatefulSet"), "web-", "apps/v1 StatefulSet/web true", ""},
		{owner("apps/v1", "DaemonSet"), "web-", "apps/v1 DaemonSet/web true", ""},
		{owner("apps/v1", "ReplicaSet"), "web-", "apps/v1 ReplicaSet/web true", ""},
		{owner("v1", "ReplicationController"), "web-", "v1 ReplicationController/web true", ""},
		{indexed, "", "batch/v1 Job/web true", ".ObjectMeta.GenerateName"},
		{generated, "", "", ".ObjectMeta.GenerateName"},
		{owner("apps/v1", "Deployment"), "", "", ".ObjectMeta.GenerateName"},
		{owner("batch/v1", "CronJob"), "", "", ".ObjectMeta.GenerateName"},
		{owner("argoproj.io/v1alpha1", "Rollout"), "", "", ".ObjectMeta.GenerateName"},
		{owner("apps.kruise.io/v1beta1", "StatefulSet"), "", "", ".ObjectMeta.GenerateName"},
		{Controller{}, "", "", ""},
	}
	for _, test := range tests {
		t.Run(fmt.Sprint(test.controller.APIVersion, " ", test.controller.Kind), func(t *testing.T) {
			res, err := Istio(in, Request{Pod: podOf(t, `{spec: {containers: [{name: web, image: web}]}}`), Controller: test.controller})
			if err != nil {
				t.Fatal(err)
			}
			meta, _ := res.Pod["metadata"].(map[string]any)
			annotations := podmap.StringMap(meta["annotations"])
			if annotations["prefix"] != test.prefix || annotations["owners"] != test.owners {
				t.Errorf("templates see %q and %q, want %q and %q", annotations["prefix"], annotations["owners"], test.prefix, test.owners)
			}
			if warned := strings.Join(res.Warnings, "\n"); test.warned == "" && warned != "" || !strings.Contains(warned, test.warned) {
				t.Errorf("the warnings are %q, want one of %q", warned, test.warned)
			}
		})
	}
}

// TestTemplatesDoNotNameThePod checks that a name, a status and a namespace in a template are not written, and not silently.
func TestTemplatesDoNotNameThePod(t *testing.T) {
	pod := podOf(t, `{metadata: {name: own}, spec: {containers: [{name: web, image: web}]}}`)
	request := Request{Pod: pod, Namespace: Namespace{Name: "shop"}}
	res, err := Istio(smallInjector(t, "1.31", "metadata: {name: other, namespace: shop, labels: {a: b}}\nstatus: {phase: Running}\n"), request)
	if err != nil {
		t.Fatal(err)
	}
	meta, _ := res.Pod["metadata"].(map[string]any)
	if meta["name"] != "own" || meta["namespace"] != nil || res.Pod["status"] != nil || podmap.StringMap(meta["labels"])["a"] != "b" {
		t.Errorf("the pod is %v", res.Pod)
	}
	if warned := strings.Join(res.Warnings, "\n"); !strings.Contains(warned, "metadata.name") {
		t.Errorf("the warnings are %q", warned)
	}
	_, err = Istio(smallInjector(t, "1.31", "metadata: {namespace: elsewhere}\n"), request)
	var at *gotemplate.Error
	if !errors.As(err, &at) || !strings.Contains(err.Error(), "elsewhere") {
		t.Errorf("for another namespace the error is %v", err)
	}
}

// TestOrderOfElementsInTemplates checks what $setElementOrder in a second template does to the pod and to the status, as the
// webhook of 1.31.1 does: it refuses the order of containers where the templates have injected none.
func TestOrderOfElementsInTemplates(t *testing.T) {
	const order = "spec: {$setElementOrder/containers: [{name: istio-proxy}, {name: web}], containers: [{name: web, imagePullPolicy: Always}]}"
	template := func(list string) string {
		return "policy: enabled\ndefaultTemplates: [sidecar, order]\ntemplates:\n  sidecar: |\n    spec: {" + list + ": [{name: istio-proxy, image: proxy}]}\n  order: |\n    " + order + "\n"
	}
	request := Request{Pod: podOf(t, `{spec: {containers: [{name: web, image: web}]}}`)}
	res, err := Istio(injectorWith(t, template("containers")), request)
	if err != nil {
		t.Fatal(err)
	}
	meta, _ := res.Pod["metadata"].(map[string]any)
	if status := podmap.StringMap(meta["annotations"])[statusAnnotation]; !strings.Contains(status, `"containers":["istio-proxy","web"]`) {
		t.Errorf("the status is %s", status)
	}
	if _, err = Istio(injectorWith(t, template("initContainers")), request); err == nil {
		t.Error("the order of containers is accepted where the templates inject none, which the webhook refuses")
	}
}

// TestPullSecretsWithoutAName checks pull secrets whose names are empty, as charts print a value that is not set. Kubernetes'
// types leave an empty name out, without which the webhook cannot merge the pod's list with the template's.
func TestPullSecretsWithoutAName(t *testing.T) {
	template := func(names string) string {
		return "spec:\n  containers: [{name: istio-proxy, image: proxy}]\n  imagePullSecrets: " + names + "\n"
	}
	const none = "spec: {containers: [{name: istio-proxy, image: proxy}]}\n"
	tests := []struct{ name, template, own, want string }{
		{"empty in the pod", template("[{name: regcred}]"), `[{name: ""}]`, "error"},
		{"null in the pod", template("[{name: regcred}]"), `[{name: null}]`, "error"},
		{"nothing in the pod", template("[{name: regcred}]"), `[{}]`, "error"},
		{"one of the pod's", template("[{name: regcred}]"), `[{name: good}, {name: ""}]`, "error"},
		{"no secrets in the template", none, `[{name: ""}, {name: good}]`, " good"},
		{"empty in the template", template(`[{name: ""}]`), `[{name: good}]`, " good"},
		{"null in the template", template("[{name: null}]"), `[{name: good}]`, " good"},
		{"null and none in the pod", template("[{name: null}]"), `[]`, ""},
		{"named in both", template("[{name: regcred}]"), `[{name: good}]`, "good regcred"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			res, err := Istio(smallInjector(t, "1.31", test.template), Request{Pod: podOf(t, `{spec: {imagePullSecrets: `+test.own+`, containers: [{name: web, image: web}]}}`)})
			if test.want == "error" {
				var at *podmap.FieldError
				if !errors.As(err, &at) || !strings.HasPrefix(at.Field, "spec.imagePullSecrets[") {
					t.Errorf("the error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			typed, err := podmap.Typed(res.Pod)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, s := range typed.Spec.ImagePullSecrets {
				names = append(names, s.Name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); got != test.want {
				t.Errorf("the pull secrets are %q, want %q", got, test.want)
			}
		})
	}
}
