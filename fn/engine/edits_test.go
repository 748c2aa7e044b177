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

// editedApp is a Deployment whose probes give the number of a port that has a name, which only its record tells.
const editedApp = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    metadata:
      labels:
        app: web
        version: v1
    spec:
      containers:
      - name: web
        image: nginx:1
        ports:
        - name: http
          containerPort: 80
        readinessProbe:
          httpGet:
            path: /ready
            port: 80
      - name: helper
        image: helper:1
        ports:
        - name: adm
          containerPort: 8081
        livenessProbe:
          httpGet:
            path: /live
            port: 8081
`

const (
	helper = `      - name: helper
        image: helper:1
        ports:
        - name: adm
          containerPort: 8081
        livenessProbe:
          httpGet:
            path: PATH
            port: PORT
`
	webProbe = `          httpGet:
            path: PATH
            port: PORT
`
)

// filled fills a path and a port into a text.
func filled(text, path, port string) string {
	return strings.NewReplacer("PATH", path, "PORT", port).Replace(text)
}

// replacedIn replaces the one place of a text that there has to be.
func replacedIn(t *testing.T, text, old, by string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q is there %d times in\n%s", old, strings.Count(text, old), text)
	}
	return strings.Replace(text, old, by, 1)
}

// annotated is the built-in policy with records in the pods.
func annotated(mode v1alpha1.Mode) *v1alpha1.InjectionPolicy {
	p := builtIn(mode)
	p.Spec.Record = v1alpha1.RecordAnnotation
	return p
}

// warningsOf are the warnings that earlier injections gave rise to.
func warningsOf(r *engine.Report) string {
	var out []string
	for _, one := range r.Results {
		if one.Severity == result.Warning && strings.Contains(one.String(), "earlier injection") {
			out = append(out, one.String())
		}
	}
	return strings.Join(out, "\n")
}

// TestEditedProbesAndContainersStay edits injected workloads: removing the injection gives the original with the same edit, and injecting
// again what injecting that gives.
func TestEditedProbesAndContainersStay(t *testing.T) {
	agents := filled(helper, "/app-health/helper/livez", "15020")
	agentsProbe := filled(webProbe, "/app-health/web/readyz", "15020")
	for name, tc := range map[string]struct {
		injected, by string // in the injected text
		want, wantBy string // in the original text
	}{
		"container deleted": {agents, "", filled(helper, "/live", "8081"), ""},
		"container renamed": {agents, strings.Replace(agents, "name: helper", "name: aide", 1),
			filled(helper, "/live", "8081"), strings.Replace(filled(helper, "/live", "adm"), "name: helper", "name: aide", 1)},
		"probe changed":          {agentsProbe, filled(webProbe, "/healthz", "9090"), filled(webProbe, "/ready", "80"), filled(webProbe, "/healthz", "9090")},
		"probe to the same port": {agentsProbe, filled(webProbe, "/healthz", "http"), filled(webProbe, "/ready", "80"), filled(webProbe, "/healthz", "http")},
		"handler of another kind": {agentsProbe, "          exec:\n            command:\n            - \"true\"\n",
			filled(webProbe, "/ready", "80"), "          exec:\n            command:\n            - \"true\"\n"},
		"probe deleted": {"        readinessProbe:\n" + agentsProbe, "", "        readinessProbe:\n" + filled(webProbe, "/ready", "80"), ""},
		"image":         {"nginx:1", "nginx:2", "nginx:1", "nginx:2"},
	} {
		for record, policy := range map[string]func(v1alpha1.Mode) *v1alpha1.InjectionPolicy{"Workload": builtIn, "Annotation": annotated} {
			t.Run(name+" "+record, func(t *testing.T) {
				want := replacedIn(t, editedApp, tc.want, tc.wantBy)
				once := string(text(run(t, policy(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(editedApp)))))
				edited := []byte(replacedIn(t, once, tc.injected, tc.by))
				removed := run(t, policy(v1alpha1.ModeRemove), parse(t, "a.yaml", edited))
				got := string(text(removed))
				if record == "Annotation" && name == "container renamed" { // which has no place for what the proxy knows
					if !strings.Contains(warningsOf(removed), "[aide].livenessProbe") {
						t.Errorf("nothing warns of a probe that still points to the agent: %s", warningsOf(removed))
					}
					return
				}
				if got != want {
					t.Errorf("removing: %s", cmp.Diff(want, got))
				}
				if w := warningsOf(removed); w != "" {
					t.Errorf("removing warns of what is known: %s", w)
				}
				again := string(text(run(t, policy(v1alpha1.ModeInject), parse(t, "a.yaml", edited))))
				anew := string(text(run(t, policy(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(want)))))
				if again != anew {
					t.Errorf("injecting again: %s", cmp.Diff(anew, again))
				}
			})
		}
	}
}

// TestEditedMetadataStays edits labels, annotations and a group of which a record has the values of before.
func TestEditedMetadataStays(t *testing.T) {
	const original = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  template:\n    metadata:\n" +
		"      labels:\n        security.istio.io/tlsMode: istio\n      annotations:\n        kubectl.kubernetes.io/default-container: web\n" +
		"        prometheus.io/path: /stats/prometheus\n        prometheus.io/port: \"15020\"\n        prometheus.io/scrape: \"true\"\n" +
		"    spec:\n      containers:\n      - name: web\n        image: nginx\n      - name: helper\n        image: helper\n"
	once := string(text(run(t, builtIn(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(original)))))
	for _, edit := range [][2]string{
		{"tlsMode: istio", "tlsMode: disabled"},
		{"default-container: web", "default-container: helper"},
		{"prometheus.io/path: /stats/prometheus", "prometheus.io/path: /metrics"},
	} {
		edited := replacedIn(t, once, edit[0], edit[1])
		got := string(text(run(t, builtIn(v1alpha1.ModeRemove), parse(t, "a.yaml", []byte(edited)))))
		if diff := cmp.Diff(replacedIn(t, original, edit[0], edit[1]), got); diff != "" {
			t.Errorf("%s: %s", edit[1], diff)
		}
	}
}

// TestOverwrittenMetadataComesBack has an injection change what the pod has itself. Nobody has edited it, so that it comes back, and is injected
// in the same way again.
func TestOverwrittenMetadataComesBack(t *testing.T) {
	const original = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  template:\n    metadata:\n      annotations:\n        KEY: VALUE\n" +
		"    spec:\n      containers:\n      - name: web\n        image: nginx\n      - name: helper\n        image: helper\n"
	const cni = "pilot: {cni: {enabled: true}}\n"
	for name, tc := range map[string]struct{ key, value, overrides string }{
		"ports with a blank":         {"traffic.sidecar.istio.io/excludeInboundPorts", `80, 81`, cni},
		"ports with the agent's":     {"traffic.sidecar.istio.io/excludeInboundPorts", `9090,15020`, cni},
		"ports and another agent's":  {"traffic.sidecar.istio.io/excludeInboundPorts", `"80"`, cni + "global: {proxy: {statusPort: 16000}}\n"},
		"annotations to be injected": {"prometheus.io/path", "/own", "sidecarInjectorWebhook: {injectedAnnotations: {prometheus.io/path: /theirs}}\n"},
		"the first container":        {"kubectl.kubernetes.io/default-container", "helper", "sidecarInjectorWebhook: {injectedAnnotations: {kubectl.kubernetes.io/default-container: web}}\n"},
	} {
		for record, how := range map[string]v1alpha1.Record{"Workload": v1alpha1.RecordWorkload, "Annotation": v1alpha1.RecordAnnotation} {
			t.Run(name+" "+record, func(t *testing.T) {
				policy := func(mode v1alpha1.Mode) *v1alpha1.InjectionPolicy {
					p := builtIn(mode)
					overrides, err := manifest.Decode([]byte(tc.overrides))
					if err != nil {
						t.Fatal(err)
					}
					p.Spec.Istio.Injector.Overrides = overrides.(map[string]any)
					p.Spec.Record = how
					return p
				}
				text0 := strings.NewReplacer("KEY", tc.key, "VALUE", tc.value).Replace(original)
				once := string(text(run(t, policy(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(text0)))))
				if twice := string(text(run(t, policy(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(once))))); twice != once {
					t.Errorf("injecting again: %s", cmp.Diff(once, twice))
				}
				if got := string(text(run(t, policy(v1alpha1.ModeRemove), parse(t, "a.yaml", []byte(once))))); got != text0 {
					t.Errorf("removing: %s", cmp.Diff(text0, got))
				}
			})
		}
	}
}

// TestFirstContainerChangesAfterInjection has the annotations that name the first container follow it, with a record and without, but not
// those that were the pod's own.
func TestFirstContainerChangesAfterInjection(t *testing.T) {
	for name, original := range map[string]string{
		"record":    editedApp,
		"no record": strings.NewReplacer("port: 80\n", "port: http\n", "port: 8081\n", "port: adm\n").Replace(editedApp),
	} {
		once := string(text(run(t, builtIn(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(original)))))
		if had := strings.Contains(once, "prerig.dev/undo"); had != (name == "record") {
			t.Fatalf("%s: there is a record: %t", name, had)
		}
		const before, after = "      containers:\n", "      containers:\n      - name: front\n        image: front:1\n"
		again := string(text(run(t, builtIn(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(replacedIn(t, once, before, after))))))
		anew := string(text(run(t, builtIn(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(replacedIn(t, original, before, after))))))
		if again != anew {
			t.Errorf("%s: a container before the first: %s", name, cmp.Diff(anew, again))
		}
	}
	own := replacedIn(t, editedApp, "        version: v1\n", "        version: v1\n      annotations:\n        kubectl.kubernetes.io/default-container: web\n")
	once := string(text(run(t, builtIn(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(own)))))
	edited := replacedIn(t, once, "      containers:\n", "      containers:\n      - name: front\n        image: front:1\n")
	if again := string(text(run(t, builtIn(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(edited))))); !strings.Contains(again, "default-container: web\n") {
		t.Errorf("the pod's own annotation is gone:\n%s", again)
	}
}

// TestStaleCanonicalRevisionIsNamed changes the version of an injected workload. The label that injection made of it looks like one of the
// pod's own, which no record tells, so that it stays, with a warning also where nothing changes. One of the pod's own stays too.
func TestStaleCanonicalRevisionIsNamed(t *testing.T) {
	named := strings.NewReplacer("port: 80\n", "port: http\n", "port: 8081\n", "port: adm\n").Replace(editedApp)
	for name, original := range map[string]string{"record": editedApp, "no record": named} {
		once := string(text(run(t, builtIn(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(original)))))
		edited := []byte(replacedIn(t, once, "        version: v1\n", "        version: v2\n"))
		for _, mode := range []v1alpha1.Mode{v1alpha1.ModeInject, v1alpha1.ModeCheck, v1alpha1.ModeRemove} {
			r := run(t, builtIn(mode), parse(t, "a.yaml", edited))
			if w := warningsOf(r); strings.Count(w, "canonical-revision") != 1 {
				t.Errorf("%s, %s: the warnings are %q", name, mode, w)
			}
		}
		if r := run(t, builtIn(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(once))); warningsOf(r) != "" {
			t.Errorf("%s: unedited, it warns: %s", name, warningsOf(r))
		}
	}
	own := replacedIn(t, editedApp, "        version: v1\n", "        version: v1\n        service.istio.io/canonical-revision: blue\n        service.istio.io/canonical-name: shop\n")
	once := run(t, builtIn(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(own)))
	removed := run(t, builtIn(v1alpha1.ModeRemove), parse(t, "a.yaml", text(once)))
	if got := string(text(removed)); got != own {
		t.Errorf("labels of the pod's own: %s", cmp.Diff(own, got))
	}
	if w := warningsOf(removed); strings.Contains(w, "canonical-name") {
		t.Errorf("a name of the pod's own is no reason for a warning: %s", w)
	}
}

// TestChangedPortOfAProbe changes the number of a port after the injection: a probe that names it follows, and where the name is gone, too,
// a warning tells.
func TestChangedPortOfAProbe(t *testing.T) {
	named := strings.NewReplacer("port: 80\n", "port: http\n", "port: 8081\n", "port: adm\n").Replace(editedApp)
	once := string(text(run(t, builtIn(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(named)))))
	const port = "        - name: http\n          containerPort: 80\n"
	number := strings.Replace(port, "80\n", "8080\n", 1)
	r := run(t, builtIn(v1alpha1.ModeRemove), parse(t, "a.yaml", []byte(replacedIn(t, once, port, number))))
	if diff := cmp.Diff(replacedIn(t, named, port, number), string(text(r))); diff != "" {
		t.Errorf("another number: %s", diff)
	}
	both := strings.Replace(number, "http", "web", 1)
	r = run(t, builtIn(v1alpha1.ModeRemove), parse(t, "a.yaml", []byte(replacedIn(t, once, port, both))))
	if w := warningsOf(r); !strings.Contains(w, "[web].readinessProbe.httpGet.port") {
		t.Errorf("another number and another name: the warnings are %q", w)
	}
	recorded := string(text(run(t, builtIn(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(editedApp)))))
	r = run(t, builtIn(v1alpha1.ModeRemove), parse(t, "a.yaml", []byte(replacedIn(t, recorded, port, number))))
	if w := warningsOf(r); !strings.Contains(w, "[web].readinessProbe.httpGet.port") {
		t.Errorf("a number that is recorded: the warnings are %q", w)
	}
}

// TestRecordDoesNotHideALostProxy takes the proxy out of an injected workload by hand. What its probes were is gone with it, and the record
// does not tell it.
func TestRecordDoesNotHideALostProxy(t *testing.T) {
	once := string(text(run(t, builtIn(v1alpha1.ModeInject), parse(t, "a.yaml", []byte(editedApp)))))
	start := strings.Index(once, "      - name: istio-proxy\n")
	end := strings.Index(once, "      volumes:\n")
	if start < 0 || end < start || !strings.Contains(once, "prerig.dev/undo") {
		t.Fatal(once)
	}
	r := run(t, builtIn(v1alpha1.ModeRemove), parse(t, "a.yaml", []byte(once[:start]+once[end:])))
	for _, field := range []string{"[web].readinessProbe.httpGet", "[helper].livenessProbe.httpGet"} {
		if w := warningsOf(r); !strings.Contains(w, field) {
			t.Errorf("nothing warns of %s: %q", field, w)
		}
	}
	if got := string(text(r)); !strings.Contains(got, filled(webProbe, "/app-health/web/readyz", "15020")) {
		t.Errorf("the probe is neither the agent's nor the application's:\n%s", got)
	}
}
