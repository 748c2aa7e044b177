// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/decide"
	"github.com/prerig/prerig/fn/result"
)

func ref(kind, namespace, name string) result.ResourceRef {
	return result.ResourceRef{APIVersion: "apps/v1", Kind: kind, Namespace: namespace, Name: name}
}

func report() *fn.Report {
	hook := decide.Match{Config: "istio-sidecar-injector", Rule: "namespace.sidecar-injector.istio.io", Revision: "default", Source: "Istio 1.31"}
	return &fn.Report{
		Outcomes: []fn.Outcome{
			{
				Ref: ref("Deployment", "shop", "web"), File: result.File{Path: "a.yaml", Line: 1}, Field: "spec.template", Action: fn.Injected,
				Templates: []string{"sidecar", "custom"}, Policy: "mesh", Version: "1.31",
				Decision: &decide.Decision{
					Inject: true, Reason: "the label asks", Webhook: &hook, Others: []decide.Match{hook}, Revision: "default",
					Deciding: &decide.Fact{Level: decide.LevelNamespace, Kind: "label", Key: "istio-injection", Value: "enabled", Source: "ns.yaml"},
				},
				Sidecars: []fn.SidecarOutcome{{Name: "vault", Inject: true, Reason: "its annotation asks"}, {Name: "other", Reason: "nothing asks"}},
			},
			{Ref: ref("StatefulSet", "", "db"), File: result.File{Path: "b.yaml", Line: 7}, Action: fn.Failed, Reason: "broken\nin two lines"},
			{Ref: ref("TFJob", "ml", "train"), File: result.File{Path: "c.yaml", Line: 1}, Field: "spec.a", Action: fn.Skipped, Reason: "no"},
			{Ref: ref("TFJob", "ml", "train"), File: result.File{Path: "c.yaml", Line: 1}, Field: "spec.b", Action: fn.Removed, Reason: "taken out"},
		},
		Results: result.Results{
			{Severity: result.Warning, Message: "take care", ResourceRef: &result.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, File: &result.File{Path: "a.yaml"}, Field: &result.Field{Path: "spec"}},
			{Severity: result.Info, Message: "not shown", ResourceRef: &result.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web"}, File: &result.File{Path: "a.yaml"}},
		},
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := Of(report()).Table(&b); err != nil {
		t.Fatal(err)
	}
	want := `WORKLOAD               INJECTED  WEBHOOK/RULE                      REVISION  TEMPLATES       REASON
Deployment shop/web    yes       istio-sidecar-injector/namespace  default   sidecar,custom  the label asks [ns.yaml]; sidecar vault: its annotation asks
StatefulSet db         error     -                                 -         -               broken in two lines
TFJob ml/train spec.a  no        -                                 -         -               no
TFJob ml/train spec.b  removed   -                                 -         -               taken out
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestDetail(t *testing.T) {
	t.Parallel()
	e, err := Of(report()).Select([]Reference{{Kind: "deploy", Name: "web"}})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := e.Detail(&b); err != nil {
		t.Fatal(err)
	}
	want := `Deployment shop/web (a.yaml:1)
  injected:    yes
  reason:      the label asks
  decided by:  namespace label istio-injection=enabled (from ns.yaml)
  webhook:     istio-sidecar-injector namespace.sidecar-injector.istio.io (from Istio 1.31)
  also:        istio-sidecar-injector namespace.sidecar-injector.istio.io (from Istio 1.31)
  revision:    default
  templates:   sidecar, custom
  pod at:      spec.template
  namespace:   not named, labels unknown
  policy:      mesh
  Istio:       1.31
  sidecar:     vault: yes: its annotation asks
  sidecar:     other: no: nothing asks
  note:        warning: spec: take care
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"deployment/web":       "Deployment shop/web",
		"Deployments/shop/web": "Deployment shop/web",
		"deploy/web":           "Deployment shop/web",
		"deployment.apps/web":  "Deployment shop/web",
		"sts/db":               "StatefulSet db",
		"tfjob/ml/train":       "TFJob ml/train, TFJob ml/train",
		"deployment/wep":       "finding deployment/wep: no such workload; similar ones: Deployment shop/web (a.yaml:1)",
		"deployment/other/web": "finding deployment/other/web: no such workload; similar ones: Deployment shop/web (a.yaml:1)",
		"job/web":              "finding job/web: no such workload; similar ones: Deployment shop/web (a.yaml:1)",
		"job/x":                "finding job/x: no such file, and no such workload among the 4 in the input; prerig explain without names lists them",
	} {
		r, ok := ParseReference(s)
		if !ok {
			t.Errorf("%s is no reference", s)
			continue
		}
		var got []string
		e, err := Of(report()).Select([]Reference{r})
		for _, w := range e.Workloads {
			got = append(got, w.Name())
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: got %v, want %s", s, got, want)
		}
	}
	for _, s := range []string{"web", "", "a/", "/a", "a/b/c/d", "a b/c"} {
		if _, ok := ParseReference(s); ok {
			t.Errorf("%q is taken for a reference", s)
		}
	}
}
