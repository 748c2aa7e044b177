// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	kubeambient "github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/ambient"
)

// request is one request, as the three proxies see it.
type request struct {
	principal, method, path string
	pod                     map[string]string
	service                 string
	podPort, servicePort    string
}

// sees is what one proxy sees of a request.
type sees struct {
	principal, port string
	layer7          bool // whether the proxy reads requests
	request
}

// TestEnforcement compares what sidecars allow with what ztunnel and the waypoint allow after all steps, for random policies and all of the
// requests below. A difference is an error unless a note names the policy. The semantics follow pilot/pkg/security/authz/builder and
// pilot/pkg/serviceregistry/ambient/authorization.go of Istio 1.31: ztunnel leaves ALLOW rules with layer 7 out, and ignores these
// conditions in DENY rules.
func TestEnforcement(t *testing.T) {
	noted, moved := 0, 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 39))
		text := randomSet(r)
		m, err := manifest.Parse("all.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		files := []ambient.File{{Path: "all.yaml", Docs: m.Docs}}
		after, record, log := steps(t, files)
		if log != "" {
			noted++
			continue
		}
		if len(record.Steps) > 2 {
			moved++
		}
		before, then := objectsOf(t, files), objectsOf(t, after)
		for _, q := range requests() {
			was := sidecarAllows(before, q)
			is := ambientAllows(then, q)
			if was != is {
				t.Fatalf("seed %d: %+v: a sidecar allows it: %v, ambient mode: %v\n%s\n---- after\n%s", seed, q, was, is, text, after[0].Bytes())
			}
		}
	}
	t.Logf("%d of 200 sets have notes, %d needed more than labels", noted, moved)
	if noted > 100 || moved < 50 {
		t.Errorf("the sets are too easy or too hard: %d with notes, %d with policies that move", noted, moved)
	}
}

// pods are the workloads of the sets: web and api have a Service each, worker has none.
const fixture = `apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web, tier: a}}
spec: {containers: [{name: app, image: app, ports: [{containerPort: 8080}, {containerPort: 9090}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: api, namespace: shop, labels: {app: api, tier: a}}
spec: {containers: [{name: app, image: app, ports: [{containerPort: 8080}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}, {name: http-admin, port: 90, targetPort: 9090}]}
---
apiVersion: v1
kind: Service
metadata: {name: api, namespace: shop}
spec: {selector: {app: api}, ports: [{name: http, port: 81, targetPort: 8080}]}
`

func requests() (out []request) {
	for _, principal := range []string{"cluster.local/ns/front/sa/a", "cluster.local/ns/shop/sa/b"} {
		for _, method := range []string{"GET", "POST"} {
			for _, path := range []string{"/", "/admin"} {
				for _, to := range []struct {
					service, target, port string
				}{{"web", "8080", "80"}, {"web", "9090", "90"}, {"api", "8080", "81"}} {
					out = append(out, request{
						principal: principal, method: method, path: path, service: to.service, podPort: to.target, servicePort: to.port,
						pod: map[string]string{"app": to.service, "tier": "a"},
					})
				}
			}
		}
	}
	return out
}

func randomSet(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString(fixture)
	for i := range 1 + r.IntN(3) {
		fmt.Fprintf(&b, "---\napiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p%d, namespace: shop}\nspec:\n", i)
		b.WriteString(pick(r, "", "", "  selector: {matchLabels: {app: web}}\n", "  selector: {matchLabels: {app: api}}\n", "  selector: {matchLabels: {tier: a}}\n"))
		b.WriteString(pick(r, "  action: ALLOW\n", "  action: DENY\n", ""))
		if r.IntN(8) == 0 {
			b.WriteString("  rules: []\n")
			continue
		}
		b.WriteString("  rules:\n")
		for range 1 + r.IntN(2) {
			b.WriteString("  - when: []\n")
			b.WriteString(pick(r, "", "    from:\n    - source: {principals: [cluster.local/ns/front/sa/a]}\n", "    from:\n    - source: {namespaces: [shop]}\n",
				"    from:\n    - source: {notPrincipals: [cluster.local/ns/front/sa/a]}\n"))
			b.WriteString(pick(r, "", "    to:\n    - operation: {methods: [GET]}\n", "    to:\n    - operation: {paths: [/admin*], ports: [\"8080\"]}\n",
				"    to:\n    - operation: {ports: [\"9090\"]}\n", "    to:\n    - operation: {notPorts: [\"9090\"], notMethods: [POST]}\n"))
		}
	}
	return b.String()
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

func objectsOf(t *testing.T, files []ambient.File) (out []map[string]any) {
	t.Helper()
	for _, f := range files {
		for _, d := range f.Docs {
			o, err := d.Object()
			if err != nil {
				t.Fatal(err)
			}
			if o["kind"] == "AuthorizationPolicy" {
				out = append(out, o)
			}
		}
	}
	return out
}

func specOf(o map[string]any) map[string]any {
	spec, _ := o["spec"].(map[string]any)
	return spec
}

// selects reports whether a policy without targetRefs is for the pod.
func selects(o map[string]any, pod map[string]string) bool {
	selector, _ := specOf(o)["selector"].(map[string]any)
	labels, _ := selector["matchLabels"].(map[string]any)
	for k, v := range labels {
		if pod[k] != v {
			return false
		}
	}
	return len(kubeambient.Targets(specOf(o))) == 0
}

func sidecarAllows(policies []map[string]any, q request) bool {
	var own []map[string]any
	for _, p := range policies {
		if selects(p, q.pod) {
			own = append(own, p)
		}
	}
	return decide(own, sees{principal: q.principal, port: q.podPort, layer7: true, request: q})
}

// ambientAllows asks the waypoint for the Service, and ztunnel at the pod, which sees the waypoint.
func ambientAllows(policies []map[string]any, q request) bool {
	var waypoint, ztunnel []map[string]any
	for _, p := range policies {
		if selects(p, q.pod) {
			ztunnel = append(ztunnel, p)
		}
		for _, target := range kubeambient.Targets(specOf(p)) {
			if target.Kind == "Gateway" || target.Name == q.service {
				waypoint = append(waypoint, p)
				break
			}
		}
	}
	caller := q.principal
	if hasWaypoint(policies) {
		caller = "cluster.local/ns/shop/sa/waypoint"
	}
	return decide(waypoint, sees{principal: q.principal, port: q.servicePort, layer7: true, request: q}) &&
		decide(ztunnel, sees{principal: caller, port: q.podPort, request: q})
}

// hasWaypoint reports whether policies were moved: only then the steps add a waypoint.
func hasWaypoint(policies []map[string]any) bool {
	return slices.ContainsFunc(policies, func(p map[string]any) bool { return len(kubeambient.Targets(specOf(p))) > 0 })
}

func decide(policies []map[string]any, s sees) bool {
	allow, allowed := false, false
	for _, p := range policies {
		matches := false
		rules, _ := specOf(p)["rules"].([]any)
		deny := kubeambient.Action(specOf(p)) == "DENY"
		for _, rule := range rules {
			matches = matches || s.matchesRule(rule.(map[string]any), deny)
		}
		if deny && matches {
			return false
		}
		if !deny {
			allow, allowed = true, allowed || matches
		}
	}
	return !allow || allowed
}

func (s sees) matchesRule(rule map[string]any, deny bool) bool {
	if !s.layer7 && !deny && len(kubeambient.Layer7Fields(map[string]any{"rules": []any{rule}})) > 0 {
		return false
	}
	return s.anyOf(rule["from"], "source") && s.anyOf(rule["to"], "operation")
}

func (s sees) anyOf(list any, key string) bool {
	items, _ := list.([]any)
	for _, item := range items {
		fields, _ := item.(map[string]any)[key].(map[string]any)
		matches := true
		for name, values := range fields {
			matches = matches && s.matchesField(name, values)
		}
		if matches {
			return true
		}
	}
	return len(items) == 0
}

func (s sees) matchesField(name string, values any) bool {
	bare, negative := strings.CutPrefix(name, "not")
	bare = strings.ToLower(bare)
	var have string
	switch bare {
	case "principals":
		have = s.principal
	case "namespaces":
		have = strings.Split(s.principal, "/")[2]
	case "ports":
		have = s.port
	case "methods":
		have = s.method
	case "paths":
		have = s.path
	default:
		panic("no meaning for " + strconv.Quote(name))
	}
	if !s.layer7 && (bare == "methods" || bare == "paths") {
		return true
	}
	found := slices.ContainsFunc(values.([]any), func(v any) bool {
		pattern, _ := v.(string)
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(have, prefix)
		}
		return have == pattern
	})
	return found != negative
}
