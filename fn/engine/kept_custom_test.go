// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/engine"
)

// customOnly is a policy whose only template is a user's own: it names containers in flow and block style, and sets what no status lists.
func customOnly(t *testing.T, tag string) *v1alpha1.InjectionPolicy {
	t.Helper()
	p, err := v1alpha1.Parse([]byte(`apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: mesh}
spec:
  namespaces: [{name: shop, labels: {istio-injection: enabled}}]
  istio:
    injector:
      config: |
        policy: enabled
        defaultTemplates: [custom]
        templates:
          custom: |
            spec:
              initContainers:
              - {name: first, image: busybox}
              containers:
              - {"image": "{{ .ProxyImage }}", "name": "agent", "readinessProbe": {"httpGet": {"path": "/", "port": 99}}}
              - name: other # in block style
                image: busybox
              securityContext: {fsGroup: 1337}
              dnsConfig: {searches: [a.b]}
      values: '{"global": {"hub": "docker.io/istio", "tag": "` + tag + `"}}'
`))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestJobsKeepThePublishedInjectionOfACustomTemplate upgrades what a user's own template has injected, which has no container of Istio's.
func TestJobsKeepThePublishedInjectionOfACustomTemplate(t *testing.T) {
	t.Parallel()
	old, next := customOnly(t, "1.31.1"), customOnly(t, "1.31.2")
	for name, source := range map[string]string{"Job": ownJob, "Pod": ownPod} {
		published := injectedOnce(t, old, source)
		if !strings.Contains(published, ":1.31.1") || !strings.Contains(published, "first") {
			t.Fatalf("%s is not injected:\n%s", name, published)
		}
		_, known := publishedRun(t, next, published, source)
		inPlace := run(t, next, parse(t, "a.yaml", []byte(published)))
		for way, r := range map[string]*engine.Report{"in place": inPlace, "published": known} {
			if diff := cmp.Diff(published, string(text(r))); diff != "" {
				t.Errorf("%s %s changes: %s", name, way, diff)
			}
			if actions, warned := actionsOf(r); len(actions) != 1 || actions[0] != engine.Kept || warned != "" {
				t.Errorf("%s %s: %v, %s", name, way, actions, warned)
			}
		}
		edited := strings.Replace(source, "port: 80", "port: 90", 1)
		_, changed := publishedRun(t, next, published, edited)
		if _, warned := actionsOf(changed); !strings.Contains(warned, "must be replaced") {
			t.Errorf("%s with another probe: %s", name, results(changed))
		}
	}
	removing := customOnly(t, "1.31.2")
	removing.Spec.Mode = v1alpha1.ModeRemove
	if back := string(text(run(t, removing, parse(t, "a.yaml", []byte(injectedOnce(t, old, ownJob)))))); back != ownJob {
		t.Errorf("removing: %s", cmp.Diff(ownJob, back))
	}
}

// TestContainersThatATemplateDeletesComeBack takes out the injection of a template that deletes a container and an init container of a bare
// Pod. The Pod alone does not tell that they existed.
func TestContainersThatATemplateDeletesComeBack(t *testing.T) {
	t.Parallel()
	p := customOnly(t, "1.31.1")
	p.Spec.Istio.Injector.Config = strings.Replace(p.Spec.Istio.Injector.Config, "- name: other #", "- {name: app, $patch: delete}\n      - name: other #", 1)
	const source = `apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: shop
spec:
  containers:
  - name: app
    image: app:1
    ports:
    - containerPort: 80
  securityContext:
    fsGroup: 7
`
	published := injectedOnce(t, p, source)
	if strings.Contains(published, "- name: app") || !strings.Contains(published, "agent") {
		t.Fatalf("the template does not delete the container:\n%s", published)
	}
	if again := text(run(t, p, parse(t, "a.yaml", []byte(published)))); string(again) != published {
		t.Errorf("a second injection changes it:\n%s", cmp.Diff(published, string(again)))
	}
	edited := strings.Replace(source, "containerPort: 80", "containerPort: 81", 1)
	if _, report := publishedRun(t, p, published, edited); strings.Contains(fmt.Sprint(report.Results), "must be replaced") {
		t.Errorf("the API server accepts an edit of what is deleted, and the report is %v", report.Results)
	}
	p.Spec.Mode = v1alpha1.ModeRemove
	if diff := cmp.Diff(source, string(text(run(t, p, parse(t, "a.yaml", []byte(published)))))); diff != "" {
		t.Error(diff)
	}
}
