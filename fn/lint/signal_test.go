// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/result"
)

// several returns what is found in pods like risky with these names, one after the other.
func several(t *testing.T, names ...string) result.Results {
	var out result.Results
	for i, name := range names {
		in := input(t, strings.Replace(risky, "name: shop\n", "name: "+name+"\n", 1))
		in.File = &result.File{Path: name + ".yaml", Line: i + 1}
		out = append(out, found(in, lint.Severities{})...)
	}
	return out
}

// TestMeshFindingsAreSaidOnce: one setting of the mesh is one finding, with all workloads, and a workload with a setting of its own
// has its own.
func TestMeshFindingsAreSaidOnce(t *testing.T) {
	rs := several(t, "web", "api", "db")
	own := input(t, strings.Replace(risky, "    spec:\n", "    spec:\n      terminationGracePeriodSeconds: 90\n", 1))
	rs = append(rs, found(own, lint.Severities{})...)
	var got []string
	for _, r := range lint.JoinMesh(rs) {
		line := r.Tags[result.TagCode]
		if r.ResourceRef != nil {
			line += " " + r.ResourceRef.String()
		}
		for _, p := range r.Places {
			line += fmt.Sprintf(" [%s %s]", p, p.Field.Path)
		}
		got = append(got, line)
	}
	const field = " spec.template.spec.containers[1]"
	three := " [Deployment web/web (web.yaml:1)" + field + "] [Deployment web/api (api.yaml:2)" + field + "] [Deployment web/db (db.yaml:3)" + field + "]"
	want := []string{"PR107" + three, "PR201" + three + " [Deployment web/shop" + field + "]", "PR107 Deployment web/shop"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOwnFindingsStayApart: what a workload itself does wrong is not joined, though the message may be the same.
func TestOwnFindingsStayApart(t *testing.T) {
	var rs result.Results
	for _, name := range []string{"web", "api"} {
		text := strings.NewReplacer("name: shop\n", "name: "+name+"\n", "image: registry.example/app:1", "image: registry.example/app:1\n        securityContext: {runAsUser: 1337}").Replace(risky)
		for _, r := range found(input(t, text), lint.Severities{}) {
			if r.Tags[result.TagCode] == "PR503" {
				rs = append(rs, r)
			}
		}
	}
	if joined := lint.JoinMesh(rs); len(rs) != 2 || cmp.Diff(rs, joined) != "" {
		t.Errorf("found %v, joined %v", rs, joined)
	}
	if one := several(t, "web"); cmp.Diff(one, lint.JoinMesh(one)) != "" {
		t.Errorf("a single workload: %v", lint.JoinMesh(one))
	}
}

// TestSuppressions: an annotation and a policy suppress with a reason, which is told, and only what they name.
func TestSuppressions(t *testing.T) {
	annotated := strings.Replace(risky, "        sidecar", "        prerig.dev/lint-ignore.PR107: it stops by itself\n        sidecar", 1)
	policy := func(s v1alpha1.LintSuppression) *v1alpha1.Lint {
		s.Reason = "accepted"
		return &v1alpha1.Lint{Suppress: []v1alpha1.LintSuppression{s}}
	}
	for _, c := range []struct {
		name, text             string
		lint                   *v1alpha1.Lint
		found, suppressed, why string
	}{
		{"annotation", annotated, &v1alpha1.Lint{}, "PR201=warning", "PR107=info", "it stops by itself"},
		{"policy, by rule", risky, policy(v1alpha1.LintSuppression{Rules: []string{"PR201"}}), "PR107=info", "PR201=warning", "accepted"},
		{"policy, by pattern", risky, policy(v1alpha1.LintSuppression{Kind: "Deployment", Namespace: "web", Name: "sh*"}), "", "PR107=info PR201=warning", "accepted"},
		{"policy, another kind", risky, policy(v1alpha1.LintSuppression{Kind: "StatefulSet"}), "PR107=info PR201=warning", "", ""},
		{"policy, another namespace", risky, policy(v1alpha1.LintSuppression{Namespace: "we"}), "PR107=info PR201=warning", "", ""},
	} {
		sev, err := lint.NewPolicySeverities(c.lint)
		if err != nil {
			t.Fatal(err)
		}
		rs, suppressed := lint.Check(input(t, c.text), sev)
		if codes(rs) != c.found || codes(suppressed) != c.suppressed {
			t.Errorf("%s: found %s, suppressed %s", c.name, codes(rs), codes(suppressed))
		}
		for _, r := range suppressed {
			if got := r.Tags[lint.TagReason]; got != c.why {
				t.Errorf("%s: the reason is %q", c.name, got)
			}
		}
	}
}

func TestWrongSuppressions(t *testing.T) {
	for want, s := range map[string]v1alpha1.LintSuppression{
		`spec.lint.suppress[0].rules: there is no rule "PR999"`: {Rules: []string{"PR999"}, Reason: "so"},
		`spec.lint.suppress[0]: it has no reason`:               {Rules: []string{"PR201"}, Reason: " "},
		`spec.lint.suppress[0]: the pattern "[" cannot be read`: {Name: "[", Reason: "so"},
	} {
		if _, err := lint.NewPolicySeverities(&v1alpha1.Lint{Suppress: []v1alpha1.LintSuppression{s}}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestSuppressedServices: the rules on a set are suppressed as those on a pod are.
func TestSuppressedServices(t *testing.T) {
	in := input(t, strings.Replace(risky, "      annotations:", "      labels: {app: shop}\n      annotations:", 1))
	pod, _ := lint.Summarize(in)
	service := decode(t, []byte("apiVersion: v1\nkind: Service\nmetadata: {name: shop, namespace: web, annotations: {prerig.dev/lint-ignore.PR801: old clients}}\nspec: {selector: {app: shop}, ports: [{port: 8080}]}\n"))[0]
	around := lint.Surroundings{Objects: []lint.Object{objectOf(service)}}
	rs, suppressed := lint.CheckSet([]lint.Summary{pod}, around, lint.Severities{})
	if len(rs) != 0 || codes(suppressed) != "PR801=info" || suppressed[0].Tags[lint.TagReason] != "old clients" {
		t.Errorf("found %v, suppressed %v", rs, suppressed)
	}
}

// TestSuppressedNamespaces: so are those on a namespace.
func TestSuppressedNamespaces(t *testing.T) {
	ns := lint.Namespace{
		Name:        "shop",
		Labels:      map[string]string{"istio-injection": "enabled", "istio.io/rev": "canary", "istio.io/dataplane-mode": "ambient"},
		Annotations: map[string]string{"prerig.dev/lint-ignore.PR701": "until Friday", "galley.istio.io/analyze-suppress": "IST0123"},
	}
	rs, suppressed := lint.CheckSet(nil, lint.Surroundings{Namespaces: []lint.Namespace{ns}}, lint.Severities{})
	if len(rs) != 0 || codes(suppressed) != "PR701=warning PR703=warning" || suppressed[0].Tags[lint.TagReason] != "until Friday" {
		t.Errorf("found %v, suppressed %v", rs, suppressed)
	}
}

// TestProfiles: each profile has rules that the other has not, and both together are all.
func TestProfiles(t *testing.T) {
	count := map[string]int{}
	for _, r := range lint.Rules() {
		for _, profile := range lint.Profiles {
			if r.In(profile) {
				count[profile]++
			}
		}
		if !r.In("operator") && !r.In("application") {
			t.Errorf("%s is in no profile", r.Code)
		}
	}
	if all := len(lint.Rules()); count["all"] != all || count["operator"] == all || count["application"] == all {
		t.Errorf("rules by profile: %v of %d", count, all)
	}
	for code, want := range map[string]string{"PR107": "operator", "PR604": "application"} {
		if r, _ := lint.Lookup(code); !r.In(want) || r.In(map[string]string{"operator": "application", "application": "operator"}[want]) {
			t.Errorf("%s is not for %s alone", code, want)
		}
	}
}
