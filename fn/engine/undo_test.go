// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/engine"
	"github.com/prerig/prerig/fn/result"
)

// builtIn is the policy that comes with the command, with a mode.
func builtIn(mode v1alpha1.Mode) *v1alpha1.InjectionPolicy {
	p := &v1alpha1.InjectionPolicy{Spec: v1alpha1.InjectionPolicySpec{Mode: mode, Istio: &v1alpha1.Istio{Injector: v1alpha1.Injector{BuiltIn: "istio"}}}}
	p.SetDefaults()
	return p
}

// ownFields are fields of a pod that look like an injection's and are the user's.
var ownFields = map[string]string{
	"empty security context":   "spec: {securityContext: {}, containers: [{name: web, image: nginx}]}",
	"fsGroup":                  "spec: {securityContext: {fsGroup: 1337}, containers: [{name: web, image: nginx}]}",
	"fsGroup among others":     "spec: {securityContext: {fsGroup: 1337, runAsUser: 5}, containers: [{name: web, image: nginx}]}",
	"sysctl for low ports":     "spec: {securityContext: {runAsUser: 5, sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: '0'}]}, containers: [{name: web, image: nginx}]}",
	"search domains":           "spec: {dnsConfig: {searches: [corp.global]}, containers: [{name: web, image: nginx}]}",
	"default container":        "metadata: {annotations: {kubectl.kubernetes.io/default-container: web}}\nspec: {containers: [{name: web, image: nginx}]}",
	"labels of Istio's":        "metadata: {labels: {security.istio.io/tlsMode: istio, service.istio.io/canonical-name: web}}\nspec: {containers: [{name: web, image: nginx}]}",
	"empty collections":        "metadata: {labels: {}, annotations: {}}\nspec: {volumes: [], containers: [{name: web, image: nginx}]}",
	"bare keys":                "spec:\n  initContainers:\n  volumes:\n  containers: [{name: web, image: nginx}]",
	"probe by number":          "spec: {containers: [{name: web, image: nginx, ports: [{name: http, containerPort: 80}], readinessProbe: {httpGet: {path: /, port: 80}}}]}",
	"probe by name":            "spec: {containers: [{name: web, image: nginx, ports: [{name: http, containerPort: 80}], readinessProbe: {httpGet: {path: /, port: http}}}]}",
	"probe by a missing name":  "spec: {containers: [{name: web, image: nginx, readinessProbe: {httpGet: {path: /ready, port: http}}}]}",
	"TCP probe":                "spec:\n  containers:\n  - name: web\n    image: nginx\n    livenessProbe:\n      initialDelaySeconds: 5\n      tcpSocket:\n        port: 80\n      timeoutSeconds: 5",
	"gRPC probe":               "spec:\n  containers:\n  - name: web\n    image: nginx\n    livenessProbe:\n      grpc: {port: 1}\n      periodSeconds: 5",
	"alias":                    "spec:\n  containers:\n  - name: web\n    image: nginx\n    livenessProbe: &p\n      httpGet: {path: /, port: 80}\n    readinessProbe: *p",
	"quantity as written":      "spec: {containers: [{name: web, image: nginx}, {name: istio-proxy, image: auto, resources: {limits: {cpu: 3000m}}}]}",
	"place of the proxy":       "spec:\n  containers:\n  - name: istio-proxy\n    image: auto\n    env:\n    - name: A\n      value: b\n  - name: web\n    image: nginx",
	"volume of Istio's name":   "spec: {containers: [{name: web, image: nginx}], volumes: [{name: istio-data, emptyDir: {}}]}",
	"pull secret":              "spec: {containers: [{name: web, image: nginx}], imagePullSecrets: [{name: own}]}",
	"merged metrics":           "metadata: {annotations: {prometheus.io/port: '15020', prometheus.io/path: /stats/prometheus, prometheus.io/scrape: 'true'}}\nspec: {containers: [{name: web, image: nginx}]}",
	"values that are null":     "metadata:\n  labels:\n    app:\n    istio.io/rev: null\n    security.istio.io/tlsMode: null\n  annotations:\n    note:\n    prometheus.io/port: null\nspec: {nodeSelector: {disk: }, containers: [{name: web, image: nginx}]}",
	"status that is null":      "metadata: {annotations: {sidecar.istio.io/status: null}}\nspec: {containers: [{name: web, image: nginx}]}",
	"merging that is null":     "metadata: {annotations: {prometheus.io/scrape: null, sidecar.istio.io/rewriteAppHTTPProbers: null}}\nspec: {containers: [{name: web, image: nginx}]}",
	"status that nobody wrote": "metadata: {annotations: {sidecar.istio.io/status: '{}'}}\nspec: {containers: [{name: web, image: nginx}]}",
}

// TestOwnFieldsStay injects pods that have fields of their own which look injected: a second injection and a check find
// nothing to do, and removing the injection gives the manifest back, or warns.
func TestOwnFieldsStay(t *testing.T) {
	kinds := map[string]string{
		"Deployment": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  template:\n",
		"Pod":        "apiVersion: v1\nkind: Pod\n",
		// Such a workload is refused by a cluster and may be completed by what comes after.
		"without metadata":   "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n",
		"with bare metadata": "apiVersion: apps/v1\nkind: Deployment\nmetadata:\nspec:\n  template:\n",
	}
	for kind, head := range kinds {
		for name, pod := range ownFields {
			t.Run(kind+"/"+name, func(t *testing.T) {
				original := head
				for line := range strings.Lines(pod + "\n") {
					if kind != "Pod" {
						line = "    " + line
					}
					original += line
				}
				once := text(run(t, builtIn(v1alpha1.ModeInject), parse(t, "web.yaml", []byte(original))))
				if twice := text(run(t, builtIn(v1alpha1.ModeInject), parse(t, "web.yaml", once))); !bytes.Equal(once, twice) {
					t.Errorf("injecting twice is not injecting once:\n%s", cmp.Diff(string(once), string(twice)))
				}
				run(t, builtIn(v1alpha1.ModeCheck), parse(t, "web.yaml", once))
				removed := run(t, builtIn(v1alpha1.ModeRemove), parse(t, "web.yaml", once))
				if got := string(text(removed)); got != original && (kind != "Pod" || !warns(removed)) {
					t.Errorf("removing gives something else, without a warning (%v):\n%s", removed.Results, cmp.Diff(original, got))
				}
			})
		}
	}
}

// warns reports whether there is a warning among the results.
func warns(r *engine.Report) bool {
	for _, r := range r.Results {
		if r.Severity == result.Warning {
			return true
		}
	}
	return false
}

// TestRecordIsOnTheWorkload sees that the record never reaches the pods, and that it is there only where it is needed.
func TestRecordIsOnTheWorkload(t *testing.T) {
	const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web%s}\nspec:\n  template:\n    metadata: {labels: {app: web%s}}\n    spec: {containers: [{name: web, image: nginx}]}\n"
	for want, own := range map[int]string{0: "", 1: ", security.istio.io/tlsMode: istio"} {
		out := string(text(run(t, builtIn(v1alpha1.ModeInject), parse(t, "web.yaml", fmt.Appendf(nil, deployment, "", own)))))
		if got := strings.Count(out, "prerig.dev/undo"); got != want {
			t.Errorf("%d records, want %d, in\n%s", got, want, out)
		}
		if at := strings.Index(out, "prerig.dev/undo"); at > strings.Index(out, "spec:") {
			t.Errorf("the record is in the pod:\n%s", out)
		}
	}
	none := builtIn(v1alpha1.ModeInject)
	none.Spec.Record = v1alpha1.RecordNone
	if out := text(run(t, none, parse(t, "web.yaml", fmt.Appendf(nil, deployment, "", ", security.istio.io/tlsMode: istio")))); bytes.Contains(out, []byte("prerig.dev")) {
		t.Errorf("a policy that wants no record gets one:\n%s", out)
	}
	for name, annotations := range map[string]string{"empty": ", annotations: {}", "null": ", annotations: null", "own": ", annotations: {a: b}"} {
		original := fmt.Appendf(nil, deployment, annotations, ", security.istio.io/tlsMode: istio")
		once := run(t, builtIn(v1alpha1.ModeInject), parse(t, "web.yaml", original))
		if got := text(run(t, builtIn(v1alpha1.ModeRemove), parse(t, "web.yaml", text(once)))); !bytes.Equal(got, original) {
			t.Errorf("%s annotations of the workload: %s", name, cmp.Diff(string(original), string(got)))
		}
	}
}

// TestRecordOutlivesEdits sees that what is edited in an injected workload stays when its record is read.
func TestRecordOutlivesEdits(t *testing.T) {
	const original = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  template:\n    metadata:\n      labels:\n        security.istio.io/tlsMode: istio\n    spec:\n      containers:\n      - name: web\n        image: nginx:1\n"
	once := string(text(run(t, builtIn(v1alpha1.ModeInject), parse(t, "web.yaml", []byte(original)))))
	edited := strings.Replace(once, "nginx:1", "nginx:2", 1)
	got := string(text(run(t, builtIn(v1alpha1.ModeRemove), parse(t, "web.yaml", []byte(edited)))))
	if want := strings.Replace(original, "nginx:1", "nginx:2", 1); got != want {
		t.Error(cmp.Diff(want, got))
	}
}
