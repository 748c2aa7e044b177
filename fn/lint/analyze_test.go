// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/result"
)

// analyzerCase is a file of the test data of istioctl analyze.
type analyzerCase struct {
	file string
	// rules are those that answer the analyzer of the case.
	rules []string
	// found is what istioctl analyze and lint both find there, by lint's codes.
	found []string
	// missing is what lint does not find, with the reason.
	missing map[string]string
}

// analyzerCases are the cases of analyzers_test.go, in Istio at 1.31, whose analyzers rules of lint answer. The expectations there are
// by message; here they are by rule and object.
var analyzerCases = []analyzerCase{
	{"injection.yaml", []string{"PR701", "PR703"}, []string{"PR701 Namespace busted", "PR701 Namespace multi-ns-1", "PR703 Namespace multi-ns-2"}, map[string]string{
		"IST0102 Namespace bar":              "a namespace without a label is decided by prerig explain",
		"IST0103 Pod default/noninjectedpod": "lint injects the pod",
		"IST0123 Namespace multi-ns-3":       "with ambient mode istio.io/rev also names the revision of waypoints",
	}},
	{"image-auto.yaml", []string{"PR601"}, []string{"PR601 Deployment not-injected/non-injected-gateway-deployment", "PR601 Pod default/injected-pod"}, nil},
	{"pod-sec-uid.yaml", []string{"PR503"}, []string{"PR503 Pod pod-sec-uid"}, nil},
	{"pod-con-sec-uid.yaml", []string{"PR503"}, []string{"PR503 Pod con-sec-uid"}, nil},
	{"deployment-pod-sec-uid.yaml", []string{"PR503"}, []string{"PR503 Deployment deploy-pod-sec-uid"}, nil},
	{"deployment-con-sec-uid.yaml", []string{"PR503"}, []string{"PR503 Deployment deploy-con-sec-uid"}, nil},
	{"service-port-name.yaml", []string{"PR801"}, nil, nil},
	{"service-no-port-name-system-namespace.yaml", []string{"PR801"}, nil, nil},
	{"service-no-port-name.yaml", []string{"PR801"}, nil, map[string]string{
		"IST0118 Service my-namespace1/my-service1": "no pod with a proxy is among the files",
		"IST0118 Service my-namespace2/my-service2": "no pod with a proxy is among the files",
	}},
	{"sidecar-default-selector.yaml", []string{"PR809"}, []string{"PR809 Sidecar ns2/has-conflict-2"}, map[string]string{
		"IST0111 Sidecar ns2/has-conflict-1":          "a conflict is said once",
		"IST0167 Sidecar ns-ambient/namespace-scoped": "no rule looks at Sidecars in ambient mode",
		"IST0167 Sidecar ns-ambient/pod-scoped":       "no rule looks at Sidecars in ambient mode",
	}},
	{"sidecar-selector.yaml", []string{"PR809"}, []string{"PR809 Sidecar default/dupe-2", "PR809 Sidecar default/overlap-2"}, map[string]string{
		"IST0110 Sidecar default/dupe-1":              "a conflict is said once",
		"IST0110 Sidecar default/overlap-1":           "a conflict is said once",
		"IST0101 Sidecar default/maps-to-nonexistent": "the workload may be in other files",
		"IST0101 Sidecar other/maps-to-different-ns":  "the workload may be in other files",
	}},
	{"virtualservice_destinationrules.yaml", []string{"PR807"}, []string{"PR807 VirtualService default/reviews-bogussubset", "PR807 VirtualService default/reviews-mirror-bogussubset"}, nil},
	{"destinationrule-subsets-with-topology-labels.yaml", []string{"PR808"}, nil, nil},
	{"destinationrule-subsets-not-select-pods.yaml", []string{"PR808"}, nil, map[string]string{
		"IST0173 DestinationRule default/subsets-not-select-pods": "no workload of the host is among the files",
	}},
	{"destinationrule-empty-topology-labels.yaml", []string{"PR808"}, nil, map[string]string{
		"IST0173 DestinationRule default/empty-topology-labels": "where pods run is not in manifests",
	}},
	{"virtualservice_gateways.yaml", []string{"PR811"}, []string{"PR811 VirtualService httpbin-bogus"}, nil},
	{"virtualservice_host_not_found_gateway.yaml", []string{"PR812"}, []string{"PR812 VirtualService default/testing-service-02-test-01", "PR812 VirtualService default/testing-service-02-test-02", "PR812 VirtualService default/testing-service-02-test-03", "PR812 VirtualService default/testing-service-03-test-04"}, nil},
	{"virtualservice_host_not_found_gateway_with_ns_prefix.yaml", []string{"PR812"}, []string{"PR812 VirtualService default/testing-service-01-test-01"}, nil},
	{"conflicting-gateways.yaml", []string{"PR813"}, nil, map[string]string{
		"IST0145 Gateway alpha": "servers without TLS are merged, and both work",
		"IST0145 Gateway beta":  "servers without TLS are merged, and both work",
	}},
	{"conflicting-gateways-invalid-port.yaml", []string{"PR813"}, nil, nil},
	{"conflicting-gateways-multiple-ports.yaml", []string{"PR813"}, nil, map[string]string{
		"IST0145 Gateway alpha": "no rule compares TCP servers without TLS",
		"IST0145 Gateway beta":  "no rule compares TCP servers without TLS",
	}},
	{"gateway-correct-port.yaml", []string{"PR814"}, nil, nil},
	{"gateway-custom-ingressgateway-badport-notarget.yaml", []string{"PR814"}, []string{"PR814 Gateway httpbin-gateway"}, nil},
	{"gateway-custom-ingressgateway-badport.yaml", []string{"PR814"}, []string{"PR814 Gateway httpbin-gateway"}, nil},
	{"gateway-custom-ingressgateway-svcselector.yaml", []string{"PR814"}, []string{"PR814 Gateway httpbin8002-gateway"}, nil},
	{"gateway-custom-ingressgateway-translation.yaml", []string{"PR814"}, nil, nil},
	{"gateway-custom-ingressgateway.yaml", []string{"PR814"}, nil, nil},
	{"gateway-different-port.yaml", []string{"PR814"}, nil, nil},
	{"gateway-no-port.yaml", []string{"PR814"}, nil, map[string]string{
		"IST0162 Gateway httpbin-gateway": "no Service of the gateway is among the files",
	}},
	{"gateway-no-workload.yaml", []string{"PR814"}, nil, map[string]string{
		"IST0101 Gateway httpbin-gateway": "the gateway may be in other files",
	}},
}

// TestAnalyzers compares with what istioctl analyze finds in its own test data: PRERIG_ANALYZERS is the directory pkg/config/analysis/analyzers
// of Istio's source. Pods get a proxy first, as lint sees them after injection.
func TestAnalyzers(t *testing.T) {
	dir := os.Getenv("PRERIG_ANALYZERS")
	if dir == "" {
		t.Skip("PRERIG_ANALYZERS does not name Istio's analyzers")
	}
	for _, c := range analyzerCases {
		t.Run(c.file, func(t *testing.T) {
			var got []string
			for _, r := range findingsOf(t, read(t, filepath.Join(dir, "testdata", c.file)), !slices.Contains(c.rules, "PR601")) {
				if code := r.Tags[result.TagCode]; slices.Contains(c.rules, code) {
					got = append(got, code+" "+r.ResourceRef.String())
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.found, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// findingsOf returns what lint finds in objects.
func findingsOf(t *testing.T, objects []map[string]any, inject bool) result.Results {
	var out result.Results
	var pods []lint.Summary
	var around lint.Surroundings
	for _, obj := range objects {
		o := objectOf(obj)
		switch {
		case lint.ReadsKind(o.APIVersion, o.Kind):
			around.Objects = append(around.Objects, o)
			continue
		case o.Kind == "Namespace":
			around.Namespaces = append(around.Namespaces, lint.Namespace{Name: o.Name, Labels: labels(obj)})
			continue
		}
		in, ok := inputOf(t, nil, obj, lint.Facts{})
		if !ok {
			continue
		}
		if spec, _ := in.After["spec"].(map[string]any); inject && spec != nil {
			list, _ := spec["containers"].([]any)
			spec["containers"] = append(list, map[string]any{"name": "istio-proxy", "image": "docker.io/istio/proxyv2:1.31.0", "args": []any{"proxy", "sidecar"}})
		}
		out = append(out, found(in, lint.Severities{})...)
		if s, ok := lint.Summarize(in); ok {
			pods = append(pods, s)
		}
	}
	ofSet, _ := lint.CheckSet(pods, around, lint.Severities{})
	return append(out, ofSet...)
}

// TestAnalyzerCodes holds that each rule of the cases says which analyzer it answers, and what is missing has a reason.
func TestAnalyzerCodes(t *testing.T) {
	for _, c := range analyzerCases {
		for _, code := range c.rules {
			if r, ok := lint.Lookup(code); !ok || len(r.Analyzers) == 0 {
				t.Errorf("%s: rule %s names no analyzer", c.file, code)
			}
		}
		for finding, reason := range c.missing {
			if !strings.HasPrefix(finding, "IST") || reason == "" {
				t.Errorf("%s: %q is missing because %q", c.file, finding, reason)
			}
		}
	}
}
