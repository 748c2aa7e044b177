// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/internal/defaulter"
)

// quotaCase is a pod in a namespace with a quota, and perhaps a LimitRange.
type quotaCase struct{ container, pod, hard, limits, list string }

// quotaCases are all combinations of what a container and a pod request, of quotas, and of LimitRanges.
func quotaCases() (out []quotaCase) {
	for _, container := range []string{
		"{}", "{requests: {cpu: 100m}}", "{limits: {memory: 1Gi}}", "{requests: {cpu: 0, memory: 1Gi}, limits: {cpu: 0}}",
		"{requests: {ephemeral-storage: 1Gi}}",
	} {
		for _, pod := range []string{"{}", "{limits: {}}", "{requests: {cpu: 4}}", "{limits: {memory: 8Gi}}"} {
			for _, hard := range []string{
				"limits.cpu: 10", "requests.memory: 1Ti", "cpu: 10, memory: 1Ti", "limits.memory: 1Ti, requests.cpu: 10",
				"pods: 7", "requests.ephemeral-storage: 1Ti",
			} {
				for _, limits := range []string{
					"", "type: Container, default: {cpu: 1}", "type: Container, defaultRequest: {memory: 1Mi}",
					"type: Container, max: {cpu: 9}", "type: Container, min: {memory: 1Mi}", "type: Pod, max: {cpu: 9}",
				} {
					for _, list := range []string{"containers", "initContainers"} {
						out = append(out, quotaCase{container, pod, hard, limits, list})
					}
				}
			}
		}
	}
	return out
}

// objects returns the LimitRange, the quota and the pod as YAML.
func (c quotaCase) objects() []string {
	object := func(kind, annotations, spec string) string {
		const format = "{apiVersion: v1, kind: %s, metadata: {name: one, namespace: shop, annotations: {%s}}, spec: {%s}}"
		return fmt.Sprintf(format, kind, annotations, spec)
	}
	var out []string
	if c.limits != "" {
		out = append(out, object("LimitRange", "", "limits: [{"+c.limits+"}]"))
	}
	app := "{name: app, image: a, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {cpu: 1, memory: 1Gi}}}"
	proxy := "{name: istio-proxy, image: 'istio/proxyv2:1.31.0', args: [proxy, sidecar], resources: " + c.container
	lists := "containers: [" + app + "], initContainers: [" + proxy + ", restartPolicy: Always}]"
	if c.list == "containers" {
		lists = "containers: [" + app + ", " + proxy + "}]"
	}
	status := fmt.Sprintf(`sidecar.istio.io/status: '{"%s":["istio-proxy"]}'`, c.list)
	out = append(out, object("ResourceQuota", "", "hard: {"+c.hard+"}"))
	return append(out, object("Pod", status, "resources: "+c.pod+", "+lists))
}

// missing returns the resources that a message wants of the proxy, in order.
func missing(message string) string {
	var out []string
	for _, key := range []string{"limits.cpu", "limits.memory", "requests.cpu", "requests.memory", "cpu", "memory"} {
		for _, end := range []string{" for: istio-proxy", " and ", ", as it has to by "} {
			if strings.Contains(message, " "+key+end) {
				out = append(out, key)
			}
		}
	}
	return strings.Join(out, " ")
}

// TestQuotasAreKubernetes compares what PR408 finds with what Kubernetes' own admission demands of the same pods.
func TestQuotasAreKubernetes(t *testing.T) {
	command := slices.MaxFunc(defaulter.Find(t, "../.."), func(a, b defaulter.Command) int { return a.Minor - b.Minor })
	cases := quotaCases()
	var lists []map[string]any
	for _, c := range cases {
		var items []any
		for _, text := range c.objects() {
			var obj map[string]any
			if err := yaml.Unmarshal([]byte(text), &obj); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			items = append(items, obj)
		}
		lists = append(lists, map[string]any{"items": items})
	}
	rejected, different := 0, 0
	for i, answer := range command.Quotas(t, lists) {
		message, _ := answer["message"].(string)
		if message != "" && !strings.HasPrefix(message, "failed quota: one: must specify ") {
			t.Fatalf("%+v: %s", cases[i], message)
		}
		if message != "" {
			rejected++
		}
		text := []byte(strings.Join(cases[i].objects(), "\n---\n"))
		found := caseFindings(t, header{Istio: "1.31", Kubernetes: command.Version}, "PR408", text, nil, nil)
		if want, got := missing(message), missing(found); want != got {
			if different++; different <= 5 {
				t.Errorf("%+v: Kubernetes wants %q, the rule %q: %s", cases[i], want, got, message)
			}
		}
	}
	if rejected == 0 || rejected == len(cases) {
		t.Errorf("Kubernetes rejects %d of %d pods", rejected, len(cases))
	}
	t.Logf("%d pods, %d rejected, %d different", len(cases), rejected, different)
}
