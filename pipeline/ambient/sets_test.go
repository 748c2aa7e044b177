// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// cluster is what all sets of policies have in common: web has two Services and api one, and worker has none. Ports of Services and pods differ.
const cluster = `apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {istio-injection: enabled}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web, tier: a}}
spec: {containers: [{name: app, image: app, ports: [{name: main, containerPort: 8080}, {containerPort: 9090}, {containerPort: 7070}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: api, namespace: shop, labels: {app: api, tier: a}}
spec: {containers: [{name: app, image: app, ports: [{containerPort: 8080}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: main}, {name: http-admin, port: 90, targetPort: 9090}, {name: tcp, port: 70, targetPort: 7070}]}
---
apiVersion: v1
kind: Service
metadata: {name: api, namespace: shop}
spec: {selector: {app: api}, ports: [{name: http, port: 81, targetPort: 8080}]}
`

// worker is a pod that no Service selects, and shared a Service that selects the pods of two applications; few sets have them.
const (
	worker = `---
apiVersion: v1
kind: Pod
metadata: {name: worker, namespace: shop, labels: {app: worker}}
spec: {containers: [{name: app, image: app, ports: [{containerPort: 8080}]}]}
`
	shared = `---
apiVersion: v1
kind: Service
metadata: {name: shared, namespace: shop}
spec: {selector: {tier: a}, ports: [{name: http, port: 8080}]}
`
)

// surroundings are the other objects of the cluster, which do not move.
const surroundings = `---
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: v1
kind: Service
metadata: {name: ext, namespace: tools}
spec: {selector: {app: ext}, ports: [{name: http, port: 8000}]}
`

const meshConfig = `extensionProviders:
- name: ext
  envoyExtAuthzHttp: {service: ext.tools.svc.cluster.local, port: 8000}
`

// call is a request of the program authorizer.
type call struct {
	Client  client            `json:"client"`
	Pod     string            `json:"pod"`
	Service string            `json:"service,omitempty"`
	Port    int               `json:"port"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Host    string            `json:"host"`
	Headers map[string]string `json:"headers,omitempty"`
	Claims  map[string]any    `json:"claims,omitempty"`
}

type client struct {
	Mode           string `json:"mode,omitempty"`
	Namespace      string `json:"namespace"`
	ServiceAccount string `json:"serviceAccount"`
	IP             string `json:"ip"`
}

// randomCalls are calls of each Service and pod, from two clients of the mesh.
func randomCalls(r *rand.Rand, text string) (out []call) {
	targets := []call{
		{Pod: "shop/web", Service: "shop/web", Port: 80}, {Pod: "shop/web", Service: "shop/web", Port: 90},
		{Pod: "shop/web", Service: "shop/web", Port: 70}, {Pod: "shop/api", Service: "shop/api", Port: 81},
	}
	if strings.Contains(text, worker) {
		targets = append(targets, call{Pod: "shop/worker", Port: 8080})
	}
	if strings.Contains(text, shared) {
		targets = append(targets, call{Pod: "shop/web", Service: "shop/shared", Port: 8080}, call{Pod: "shop/api", Service: "shop/shared", Port: 8080})
	}
	for _, c := range targets {
		for range 12 {
			c.Client = client{"sidecar", "front", "a", "10.9.0.1"}
			if r.IntN(2) == 0 {
				c.Client = client{"sidecar", "shop", "b", "10.8.0.1"}
			}
			c.Method, c.Path = pick(r, "GET", "GET", "POST"), pick(r, "/", "/admin", "/admin/x")
			c.Host = pick(r, "web.shop", "example.com")
			c.Headers, c.Claims = nil, nil
			if r.IntN(3) == 0 {
				c.Headers = map[string]string{"x-team": pick(r, "red", "blue")}
			}
			if r.IntN(3) == 0 {
				c.Claims = map[string]any{"iss": pick(r, "issuer", "issuer", "stranger"), "sub": "me", "group": pick(r, "dev", "ops")}
			}
			out = append(out, c)
		}
	}
	return out
}

func pick(r *rand.Rand, of ...string) string { return of[r.IntN(len(of))] }

// randomSet are the objects of a namespace with policies. Few have a policy of the root namespace.
func randomSet(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString(cluster)
	if r.IntN(6) == 0 {
		b.WriteString(worker)
	}
	if r.IntN(6) == 0 {
		b.WriteString(shared)
	}
	for i := range 1 + r.IntN(3) {
		b.WriteString(randomPolicy(r, fmt.Sprintf("p%d", i), pick(r, append(slices.Repeat([]string{"shop"}, 12), "istio-system")...)))
	}
	if r.IntN(3) == 0 {
		b.WriteString("---\napiVersion: security.istio.io/v1\nkind: RequestAuthentication\nmetadata: {name: jwt, namespace: shop}\nspec:\n")
		b.WriteString(randomSelector(r))
		b.WriteString("  jwtRules: [{issuer: issuer, jwks: '{\"keys\":[]}'}]\n")
	}
	if r.IntN(4) == 0 {
		b.WriteString("---\napiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {name: mtls, namespace: shop}\nspec: {mtls: {mode: STRICT}}\n")
	}
	return b.String()
}

func randomSelector(r *rand.Rand) string {
	return pick(r, "", "", "  selector: {matchLabels: {app: web}}\n", "  selector: {matchLabels: {app: api}}\n", "  selector: {matchLabels: {tier: a}}\n")
}

func randomPolicy(r *rand.Rand, name, namespace string) string {
	var b strings.Builder
	action := pick(r, "", "  action: ALLOW\n", "  action: ALLOW\n", "  action: DENY\n", "  action: DENY\n", "  action: AUDIT\n", "  action: CUSTOM\n  provider: {name: ext}\n")
	custom := strings.Contains(action, "CUSTOM")
	annotations := ""
	if r.IntN(15) == 0 && !custom && !strings.Contains(action, "AUDIT") {
		annotations = `, annotations: {istio.io/dry-run: "true"}`
	}
	fmt.Fprintf(&b, "---\napiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: %s, namespace: %s%s}\nspec:\n", name, namespace, annotations)
	if namespace == "shop" || r.IntN(3) == 0 {
		b.WriteString(randomSelector(r))
	}
	b.WriteString(action)
	if action == "" && r.IntN(4) == 0 {
		b.WriteString(pick(r, "  rules: []\n", "  rules: [{}]\n"))
		return b.String()
	}
	b.WriteString("  rules:\n")
	for range 1 + r.IntN(2) {
		rule := randomRule(r, custom)
		if rule == "" {
			rule = "    to:\n    - operation: {methods: [GET]}\n"
		}
		b.WriteString("  -" + rule[3:])
	}
	return b.String()
}

// randomRule draws a part of each sort. Istio refuses conditions on principals and tokens in CUSTOM policies.
func randomRule(r *rand.Rand, custom bool) string {
	var b strings.Builder
	from := []string{"ipBlocks: [10.9.0.0/16]", "notIpBlocks: [10.9.0.1]", "remoteIpBlocks: [10.8.0.0/16]"}
	to := []string{
		"methods: [GET]", `paths: [/admin*], ports: ["8080"]`, `ports: ["9090"]`, `notPorts: ["9090"], notMethods: [POST]`, `notPorts: ["7070"]`,
		"notPaths: [/admin]", "hosts: [web.shop]", `ports: ["8080", "7070"]`, `methods: [POST], paths: ["*/x"]`,
	}
	when := []string{
		"{key: 'request.headers[x-team]', values: [red]}", "{key: 'request.headers[x-team]', notValues: [red]}", "{key: source.ip, values: [10.9.0.1]}",
		`{key: destination.port, values: ["9090"]}`, `{key: destination.port, notValues: ["8080"]}`,
	}
	if !custom {
		from = append(from, "principals: [cluster.local/ns/front/sa/a]", "principals: [cluster.local/ns/front/*]", "notPrincipals: [cluster.local/ns/front/sa/a]",
			"namespaces: [shop]", "notNamespaces: [shop]", "serviceAccounts: [front/a]", "principals: ['*']", "namespaces: [front], notPrincipals: ['*/sa/b']",
			"requestPrincipals: ['*']", "notRequestPrincipals: ['issuer/me']", "requestPrincipals: [issuer/me]")
		when = append(when, "{key: source.namespace, notValues: [shop]}", "{key: source.principal, values: ['*/sa/b']}",
			"{key: 'request.auth.claims[group]', values: [dev]}", "{key: 'request.auth.claims[group]', notValues: [dev]}")
	}
	for _, part := range []struct {
		key, item string
		of        []string
	}{{"from", "source", from}, {"to", "operation", to}} {
		if r.IntN(2) == 0 {
			continue
		}
		fmt.Fprintf(&b, "    %s:\n", part.key)
		for range 1 + r.IntN(2) {
			fmt.Fprintf(&b, "    - %s: {%s}\n", part.item, pick(r, part.of...))
		}
	}
	if r.IntN(3) == 0 {
		fmt.Fprintf(&b, "    when:\n    - %s\n", pick(r, when...))
	}
	return b.String()
}

// randomRoutes are a VirtualService and a DestinationRule for the Service api, and a NetworkPolicy.
func randomRoutes(r *rand.Rand) string {
	match := pick(r, "", "match: [{uri: {exact: /a}}], ", "match: [{uri: {prefix: /a/}, headers: {x-team: {exact: red}}}], ", "match: [{queryParams: {q: {regex: '[a-z]+'}}}], ",
		"match: [{method: {exact: GET}, headers: {x: {prefix: a.b}}}], ")
	more := pick(r, "", "timeout: 1500ms, ", "headers: {request: {set: {a: b}, remove: [c]}}, ", "mirror: {host: web, port: {number: 80}}, ", "timeout: 2s, ")
	to := pick(r, "route: [{destination: {host: api}}]", "route: [{destination: {host: api, subset: v1}, weight: 90}, {destination: {host: api, subset: v2}, weight: 10}]",
		"redirect: {uri: /b, redirectCode: 302}", "redirect: {authority: example.com, scheme: https}")
	if strings.HasPrefix(to, "redirect") {
		more = ""
	}
	ports := pick(r, "", ", ports: [{port: 8080}]", ", ports: [{port: 8080}, {port: 53, protocol: UDP}]")
	return `---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: api, namespace: shop}
spec: {host: api, subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}, trafficPolicy: {connectionPool: {http: {maxRetries: 1}}}}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: api, namespace: shop}
spec: {hosts: [api], http: [{` + match + more + to + `}]}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: api, namespace: shop}
spec: {podSelector: {matchLabels: {app: api}}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]` + ports + `}]}
`
}
