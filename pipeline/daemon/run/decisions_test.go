// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/render"
)

func workloadRef(name string) result.ResourceRef {
	return result.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: name}
}

// TestStatesKnowWhatWasDecided has workloads that are injected, skipped and decided about twice, with findings.
func TestStatesKnowWhatWasDecided(t *testing.T) {
	response := &render.Response{
		Objects: []render.Object{
			{
				APIVersion: "apps/v1",
				Kind:       "Deployment",
				Namespace:  "shop",
				Name:       "web",
				YAML:       []byte("image: docker.io/istio/proxyv2:1.31.2-distroless\n"),
			},
			{
				APIVersion: "apps/v1",
				Kind:       "Deployment",
				Namespace:  "shop",
				Name:       "cart",
				YAML:       []byte("image: istio/proxyv2@sha256:aa\n"),
			},
			{
				APIVersion: "v1",
				Kind:       "ConfigMap",
				Namespace:  "shop",
				Name:       "doc",
				YAML:       []byte("see docker.io/istio/proxyv2:1.20.0\n"),
			},
		},
		Decisions: []render.Decision{
			{Object: workloadRef("web"), Action: "skipped", Reason: "no policy", Layer: "base"},
			{Object: workloadRef("web"), Action: "injected", Code: "webhook", Reason: "asked", Version: "1.31"},
			{Object: workloadRef("cart"), Action: "injected", Code: "webhook", Reason: "asked", Version: "1.31"},
			{Object: workloadRef("web"), Action: "skipped", Reason: "already"},
			{
				Object: workloadRef("host"),
				Action: "skipped",
				Code:   "host-network",
				Reason: "on the host's\u202e network",
			},
		},
		Results: result.Results{
			{
				Severity:    result.Warning,
				ResourceRef: &result.ResourceRef{APIVersion: "v1", Kind: "Service", Name: "web"},
				Tags:        map[string]string{result.TagCode: "PR801"},
			},
			{
				Severity:    result.Info,
				ResourceRef: ptr(workloadRef("host")),
				Tags:        map[string]string{result.TagCode: "PR100"},
			},
			{
				Severity:    result.Warning,
				ResourceRef: ptr(workloadRef("cart")),
				Tags:        map[string]string{result.TagCode: "PR201"},
			},
			{
				Severity: result.Error,
				Places:   []result.Place{{ResourceRef: workloadRef("web")}},
				Tags:     map[string]string{result.TagCode: "schema-required"},
			},
			{
				Severity:    result.Warning,
				ResourceRef: ptr(workloadRef("cart")),
				Tags:        map[string]string{result.TagCode: "PR102"},
			},
		},
	}
	want := &status.Mesh{
		Decided: []status.Decided{
			{
				Action:    "injected",
				Code:      "webhook",
				Reason:    "asked",
				Version:   "1.31.2",
				Workloads: []string{"Deployment shop/web"},
			},
			{
				Action:    "injected",
				Code:      "webhook",
				Reason:    "asked",
				Version:   "1.31",
				Workloads: []string{"Deployment shop/cart"},
			},
			{
				Action:    "skipped",
				Code:      "host-network",
				Reason:    "on the host's network",
				Workloads: []string{"Deployment shop/host"},
			},
		},
		Findings: []status.WorkloadFinding{
			{Workload: "Deployment shop/web", Codes: []string{"schema-required"}, Rejected: true},
			{Workload: "Deployment shop/cart", Codes: []string{"PR102", "PR201"}},
		},
	}
	if diff := cmp.Diff(want, meshOf(response, v1alpha1.Gates{}, true)); diff != "" {
		t.Error(diff)
	}
	if got := meshOf(response, v1alpha1.Gates{}, false); got.Findings[0].Rejected || got.Findings[1].Rejected {
		t.Errorf("what was published is rejected: %+v", got.Findings)
	}
}

func ptr[T any](v T) *T { return &v }

// TestDecisionsAreBounded, as a state that is too large cannot be saved.
func TestDecisionsAreBounded(t *testing.T) {
	response := &render.Response{}
	for i := range 20_000 {
		ref := workloadRef(fmt.Sprintf("%s-%d", strings.Repeat("a", 1000), i))
		response.Decisions = append(
			response.Decisions,
			render.Decision{Object: ref, Action: "skipped", Reason: strings.Repeat("b", 1000) + fmt.Sprint(i)},
		)
		response.Results = append(
			response.Results,
			result.Result{
				Severity:    result.Warning,
				ResourceRef: &ref,
				Tags:        map[string]string{result.TagCode: fmt.Sprint(i)},
			},
		)
	}
	got := meshOf(response, v1alpha1.Gates{}, false)
	n, size := 0, 0
	for _, d := range got.Decided {
		n += d.N()
		size += len(d.Reason) + len(strings.Join(d.Workloads, ""))
	}
	if n != 20_000 || size > 300_000 || len(got.Findings) != maxWithFindings {
		t.Errorf("%d workloads in %d bytes, %d with findings", n, size, len(got.Findings))
	}
}
