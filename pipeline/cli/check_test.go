// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// checkInput has findings of every part: a field that no schema has, a proxy's user, a Job that does not complete, an injection of
// another version, and a workload that cannot be injected.
func checkInput(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, "k8s/old.yaml", deployment("old", "shop"))
	ok(t, "", "inject", "-q", "-i", "-p", "istio", "k8s/old.yaml")
	writeFile(t, "k8s/old.yaml", strings.ReplaceAll(readFile(t, "k8s/old.yaml"), "proxyv2:1.32.0", "proxyv2:1.30.0"))
	web := strings.Replace(deployment("web", "shop"), "image:", "prots: [], securityContext: {runAsUser: 1337}, image:", 1)
	writeFile(t, "k8s/web.yaml", web)
	writeFile(t, "k8s/job.yaml", `apiVersion: batch/v1
kind: Job
metadata: {name: migrate, namespace: shop}
spec:
  template:
    metadata: {annotations: {sidecar.istio.io/nativeSidecar: "false"}}
    spec:
      restartPolicy: Never
      containers: [{name: m, image: "example.com/m:1"}]
`)
}

const uninjectable = `apiVersion: v1
kind: Pod
metadata: {name: bad, namespace: shop, annotations: {sidecar.istio.io/proxyCPU: x y z}}
spec: {containers: [{name: bad, image: "example.com/bad:1"}]}
`

type finding struct {
	Code, Severity, Message, File string
	Line                          int
}

// findings runs a part with -o json.
func findings(t *testing.T, args ...string) []finding {
	t.Helper()
	_, out, stderr := command(t, "", append(args, "-q", "-o", "json", "--fail-on", "never")...)
	var read struct{ Results []finding }
	if err := json.Unmarshal([]byte(out), &read); err != nil {
		t.Fatalf("%q: %v\n%s%s", args, err, out, stderr)
	}
	return read.Results
}

// TestCheckHasWhatItsPartsFind: each finding of lint and of gate is one of check, and only the injection adds others.
func TestCheckHasWhatItsPartsFind(t *testing.T) {
	checkInput(t)
	for _, flags := range [][]string{nil, {"--as-is"}, {"--profile", "all"}} {
		all := findings(t, append([]string{"check", "k8s"}, flags...)...)
		parts := findings(t, append([]string{"lint", "k8s"}, flags...)...)
		if !slices.Contains(flags, "--profile") {
			parts = append(parts, findings(t, append([]string{"gate", "k8s"}, flags...)...)...)
		}
		if len(parts) == 0 {
			t.Errorf("%q: the parts find nothing", flags)
		}
		for _, one := range parts {
			if !slices.Contains(all, one) {
				t.Errorf("%q: check lacks %+v", flags, one)
			}
		}
		for _, one := range all {
			part, _, _ := strings.Cut(one.Code, "-")
			if part != "injection" && !slices.Contains(parts, one) && len(flags) == 0 {
				t.Errorf("%q: only check has %+v", flags, one)
			}
		}
		if !slices.IsSortedFunc(all, func(a, b finding) int {
			rank := []string{"error", "warning", "info"}
			return slices.Index(rank, a.Severity) - slices.Index(rank, b.Severity)
		}) {
			t.Errorf("%q: not by severity: %v", flags, all)
		}
	}
}

func TestCheckFindsWhatTheInjectionFinds(t *testing.T) {
	checkInput(t)
	writeFile(t, "k8s/bad.yaml", uninjectable)
	code, out, stderr := command(t, "", "check", "k8s")
	for _, want := range []string{
		"error: k8s/bad.yaml:3: Pod shop/bad metadata.annotations[sidecar.istio.io/proxyCPU]: \"x y z\" is not valid: want a quantity such as 100m or 128Mi [injection-failed]\n",
		"the file has the proxy docker.io/istio/proxyv2:1.30.0, and the policy injects docker.io/istio/proxyv2:1.32.0 [injection-outdated]\n",
		"[schema-unknown-field]\n", "[PR503]\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("lacks %q:\n%s", want, out)
		}
	}
	if code != ExitFindings {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	off := []string{"--rule", "injection-failed=Off", "--rule", "injection-outdated=Info", "--rule", "schema-unknown-field=Off"}
	code, out, stderr = command(t, "", append([]string{"check", "k8s"}, off...)...)
	if code != ExitOK || strings.Contains(out, "injection-failed") || !strings.Contains(out, "info: k8s/old.yaml:1: Deployment shop/old: the file has the proxy") {
		t.Errorf("exit code %d\n%s%s", code, out, stderr)
	}
	writeFile(t, "k8s/broken.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: [\n")
	if code, _, stderr := command(t, "", "check", "k8s"); code != ExitError || !strings.Contains(stderr, "not everything was checked, because of 1 error") {
		t.Errorf("a broken file: exit code %d\n%s", code, stderr)
	}
}

// TestCheckBaseline: one baseline holds the findings of all parts, and a part ignores the entries of the others.
func TestCheckBaseline(t *testing.T) {
	checkInput(t)
	writeFile(t, "k8s/bad.yaml", uninjectable)
	ok(t, "", "check", "--write-baseline", "known.yaml", "k8s")
	known := readFile(t, "known.yaml")
	for _, code := range []string{"injection-failed", "injection-outdated", "schema-unknown-field", "PR503"} {
		if !strings.Contains(known, "code: "+code+"\n") {
			t.Errorf("lacks %s:\n%s", code, known)
		}
	}
	if out, stderr := ok(t, "", "check", "--baseline", "known.yaml", "--fail-on", "info", "k8s"); !strings.Contains(out, "0 errors, 0 warnings, 0 notes") {
		t.Errorf("%s%s", out, stderr)
	}
	for _, part := range []string{"lint", "gate"} {
		_, out, stderr := command(t, "", part, "--baseline", "known.yaml", "k8s/web.yaml", "k8s/old.yaml", "k8s/job.yaml")
		if strings.Contains(stderr, "no longer found") || !strings.Contains(out, "0 errors, 0 warnings") {
			t.Errorf("%s: %s%s", part, out, stderr)
		}
	}
	writeFile(t, "k8s/web.yaml", deployment("web", "shop"))
	if _, stderr := ok(t, "", "check", "--baseline", "known.yaml", "k8s"); !strings.Contains(stderr, "known.yaml: no longer found: schema-unknown-field: Deployment shop/web") {
		t.Error(stderr)
	}
}

// TestCheckSARIF: one log has the rules and the findings of all parts.
func TestCheckSARIF(t *testing.T) {
	checkInput(t)
	_, out, _ := command(t, "", "check", "-q", "-o", "sarif", "k8s")
	var log struct {
		Runs []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID    string
				RuleIndex *int
			}
		}
	}
	must(t, json.Unmarshal([]byte(out), &log))
	if len(log.Runs) != 1 || len(log.Runs[0].Results) != len(findings(t, "check", "k8s")) {
		t.Fatalf("%+v", log)
	}
	for _, r := range log.Runs[0].Results {
		if r.RuleIndex == nil || log.Runs[0].Tool.Driver.Rules[*r.RuleIndex].ID != r.RuleID {
			t.Errorf("%s is of no rule", r.RuleID)
		}
	}
}

// TestCheckUpdates: --against adds what an update of the cluster would do.
func TestCheckUpdates(t *testing.T) {
	checkInput(t)
	writeFile(t, "live/web.yaml", deployment("web", "shop")+"---\napiVersion: v1\nkind: Namespace\nmetadata: {name: till}\n")
	all := findings(t, "check", "--against", "live", "k8s/web.yaml")
	if !slices.ContainsFunc(all, func(f finding) bool { return f.Code == "update-deletes" && f.Severity == "warning" }) {
		t.Errorf("%+v", all)
	}
}

// TestExplainEveryCode: each part explains the codes of all, in any case, and suggests a similar one.
func TestExplainEveryCode(t *testing.T) {
	rules := allParts.rules()
	if len(rules) < 50 {
		t.Errorf("%d rules", len(rules))
	}
	for _, r := range rules {
		for _, part := range []string{"check", "lint", "gate"} {
			if out, _ := ok(t, "", part, "--explain", strings.ToLower(r.Code)); !strings.HasPrefix(out, r.Code+"  "+r.Title) || !strings.Contains(out, "What to change: ") {
				t.Errorf("%s --explain %s: %s", part, r.Code, out)
			}
		}
	}
	if _, _, stderr := command(t, "", "check", "--explain", "schema-unknwn-field"); !strings.Contains(stderr, "did you mean schema-unknown-field?") {
		t.Error(stderr)
	}
	out, _ := ok(t, "", "check", "--list-rules")
	if strings.Count(out, "\n") != len(rules) {
		t.Error(out)
	}
}
