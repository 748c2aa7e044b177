// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/ambient"
)

var update = flag.Bool("update", false, "write the expected files")

// parse reads the files of a case.
func parse(t *testing.T, archive *txtar.Archive) (files []ambient.File) {
	t.Helper()
	for _, f := range archive.Files {
		name, ok := strings.CutPrefix(f.Name, "in/")
		if !ok {
			continue
		}
		m, err := manifest.Parse(name, f.Data)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, ambient.File{Path: name, Docs: m.Docs})
	}
	return files
}

func contents(files []ambient.File) map[string][]byte {
	out := map[string][]byte{}
	for _, f := range files {
		out[f.Path] = f.Bytes()
	}
	return out
}

// steps makes all steps, and records them. Notes and what each step changed are lines of the log.
func steps(t *testing.T, files []ambient.File) (after []ambient.File, record *ambient.Record, log string) {
	t.Helper()
	record = &ambient.Record{}
	var b strings.Builder
	for _, step := range ambient.Steps {
		next, notes, err := ambient.Apply(files, ambient.Options{}, step.Name)
		if err != nil {
			t.Fatal(err)
		}
		record.Add(step.Name, contents(files), contents(next))
		for _, n := range notes {
			fmt.Fprintf(&b, "%s: %s\n", step.Name, n)
		}
		files = next
	}
	return files, record, b.String()
}

// TestSteps makes all steps of each archive, and compares the files, the notes and the plan with the expected ones.
func TestSteps(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files := parse(t, archive)
			plan, err := ambient.New(files, ambient.Options{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			if err := plan.WriteText(&text); err != nil {
				t.Fatal(err)
			}
			after, record, log := steps(t, files)
			out := &txtar.Archive{Comment: archive.Comment}
			want := &txtar.Archive{Comment: archive.Comment}
			for _, f := range archive.Files {
				if strings.HasPrefix(f.Name, "in/") {
					out.Files = append(out.Files, f)
				}
				want.Files = append(want.Files, f)
			}
			for _, f := range after {
				out.Files = append(out.Files, txtar.File{Name: "out/" + f.Path, Data: f.Bytes()})
			}
			out.Files = append(out.Files, txtar.File{Name: "notes", Data: []byte(log)}, txtar.File{Name: "plan", Data: []byte(text.String())})
			if *update {
				if err := os.WriteFile(name, txtar.Format(out), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if diff := cmp.Diff(string(txtar.Format(want)), string(txtar.Format(out))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			back := contents(after)
			for range ambient.Steps {
				if err := record.Undo(back); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(contents(files), back); diff != "" {
				t.Errorf("there and back (-before +after):\n%s", diff)
			}
			again, second, _ := steps(t, after)
			if len(second.Steps) > 0 {
				t.Errorf("a second run changes files: %s", cmp.Diff(contents(after), contents(again)))
			}
		})
	}
}

// TestBackBesideOtherChanges takes a step back after another change of the same file.
func TestBackBesideOtherChanges(t *testing.T) {
	record := &ambient.Record{}
	before := "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\nf: 6\ng: 7\n"
	after := "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\nnew: x\nf: 6\n"
	record.Add("label", map[string][]byte{"x": []byte(before)}, map[string][]byte{"x": []byte(after)})
	data, err := record.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	read, err := ambient.ReadRecord(data)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"x": []byte("first: 0\n" + after)}
	if err := read.Undo(files); err != nil {
		t.Fatal(err)
	}
	if got := string(files["x"]); got != "first: 0\n"+before {
		t.Errorf("got %q", got)
	}
	files = map[string][]byte{"x": []byte(strings.Replace(after, "new: x", "new: y", 1))}
	if read, err = ambient.ReadRecord(data); err != nil {
		t.Fatal(err)
	}
	if err := read.Undo(files); err == nil || !strings.Contains(err.Error(), "have changed since") {
		t.Errorf("error %v, want one about changed lines", err)
	}
}

// applied returns the only file after some steps.
func applied(t *testing.T, text string, names ...string) string {
	t.Helper()
	m, err := manifest.Parse("all.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	files := []ambient.File{{Path: "all.yaml", Docs: m.Docs}}
	for _, name := range names {
		if files, _, err = ambient.Apply(files, ambient.Options{}, name); err != nil {
			t.Fatal(err)
		}
	}
	return string(files[0].Bytes())
}

// TestCopyHasNoEmptyOperation: a condition on ports that the Service does not have leaves an operation empty, which Istio refuses.
func TestCopyHasNoEmptyOperation(t *testing.T) {
	got := applied(t, cluster+`---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: all, namespace: shop}
spec:
  action: DENY
  rules:
  - from: [{source: {namespaces: [front]}}]
    to: [{operation: {notPorts: ["7070"]}}, {operation: {methods: [POST]}}]
`, "policies")
	_, copied, ok := strings.Cut(got, "name: all-waypoint-2") // for Service api
	if !ok || strings.Contains(copied, "operation") {
		t.Errorf("the copy for api has an operation:\n%s", got)
	}
}

// TestEnforceCoversTokens: without a policy for ztunnel, calls that do not pass the waypoint would skip a RequestAuthentication.
func TestEnforceCoversTokens(t *testing.T) {
	got := applied(t, cluster+`---
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {name: jwt, namespace: shop}
spec: {selector: {matchLabels: {app: api}}, jwtRules: [{issuer: issuer, jwks: '{"keys":[]}'}]}
`, ambient.StepNames()...)
	if !strings.Contains(got, "name: api-waypoint-only") {
		t.Errorf("no policy lets only the waypoint call the pods of api:\n%s", got)
	}
}

// TestLimitBesideServiceAccounts: Istio refuses principals beside serviceAccounts in one source.
func TestLimitBesideServiceAccounts(t *testing.T) {
	got := applied(t, cluster+`---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: some, namespace: shop}
spec:
  selector: {matchLabels: {app: api}}
  action: DENY
  rules:
  - from: [{source: {serviceAccounts: [front/a]}}, {source: {notServiceAccounts: [front/a]}}]
    to: [{operation: {methods: [POST]}}]
`, "policies", "limit")
	if strings.Contains(got, "notPrincipals") || !strings.Contains(got, "shop/waypoint") {
		t.Errorf("the source has both kinds of identities, or no exception for the waypoint:\n%s", got)
	}
}

// planOf plans the move of one namespace over some files.
func planOf(t *testing.T, texts ...string) *ambient.Namespace {
	t.Helper()
	return &plansOf(t, texts...).Namespaces[0]
}

func plansOf(t *testing.T, texts ...string) *ambient.Plan {
	t.Helper()
	var files []ambient.File
	for i, text := range texts {
		m, err := manifest.Parse(fmt.Sprintf("%d.yaml", i), []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, ambient.File{Path: fmt.Sprintf("%d.yaml", i), Docs: m.Docs})
	}
	plan, err := ambient.New(files, ambient.Options{Namespaces: []string{"shop"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

const getOnly = `apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: get, namespace: shop}
spec:
  selector: {matchLabels: {app: api}}
  rules: [{to: [{operation: {methods: [GET]}}]}]
`

// TestNamespaceElsewhere: a Namespace that is not among the files gets its labels elsewhere, and all of them are named once. Objects for the
// waypoint are no findings then. Seen in istioinaction/book-source-code and redhat-scholars/istio-tutorial.
func TestNamespaceElsewhere(t *testing.T) {
	_, rest, _ := strings.Cut(cluster, "---\n")
	n := planOf(t, rest, getOnly)
	if len(n.Open) != 1 || !strings.Contains(n.Open[0].Message, "istio.io/use-waypoint=waypoint") {
		t.Errorf("open: %v", n.Open)
	}
}

// TestServiceInTwoFiles: a copy names a Service once. Seen in istioinaction/book-source-code.
func TestServiceInTwoFiles(t *testing.T) {
	_, api, _ := strings.Cut(cluster, "targetPort: 7070}]}\n")
	got := applied(t, cluster+api+"---\n"+getOnly, "policies")
	if n := strings.Count(got, "  - name: api"); n != 1 {
		t.Errorf("the copy names Service api %d times:\n%s", n, got)
	}
}

// TestRouteInTwoFiles: variants of one VirtualService are no two of them. Seen in redhat-scholars/istio-tutorial.
func TestRouteInTwoFiles(t *testing.T) {
	const route = `apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: api, namespace: shop}
spec: {hosts: [api], http: [{route: [{destination: {host: api}}]}]}
`
	for _, n := range planOf(t, cluster, route, route).Open {
		if n.Level == ambient.Stays && !strings.Contains(n.Message, "more than once") {
			t.Errorf("note %v", n)
		}
	}
}

// TestRootPolicyWithSelector: no waypoint follows such a policy, so that the namespaces whose pods it selects get copies.
func TestRootPolicyWithSelector(t *testing.T) {
	root := strings.Replace(strings.Replace(getOnly, "namespace: shop", "namespace: istio-system", 1), "GET", "POST", 1)
	for _, texts := range [][]string{{cluster, getOnly, root}, {cluster, root}} {
		n := planOf(t, texts...)
		if len(n.Open) > 0 || n.Waypoint == "" || n.Solved["PR903"] != len(texts)-1 {
			t.Errorf("waypoint %q, open %v, solved %v", n.Waypoint, n.Open, n.Solved)
		}
	}
	got := applied(t, cluster+"---\n"+getOnly+"---\n"+root, ambient.StepNames()...)
	for _, want := range []string{"name: get-waypoint,", "get-root-waypoint", "prerig.dev/ambient-copy-of: istio-system/get", "*/sa/waypoint"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestRootPoliciesEndForPodsWithoutService: what no waypoint and no ztunnel enforces for a pod is named. Seen by the oracle, seed 1003.
func TestRootPoliciesEndForPodsWithoutService(t *testing.T) {
	deny := strings.NewReplacer("namespace: shop", "namespace: istio-system", "  selector: {matchLabels: {app: api}}\n", "  action: DENY\n").Replace(getOnly)
	n := planOf(t, cluster+worker+"---\n"+deny)
	if !slices.ContainsFunc(n.Open, func(o ambient.Note) bool {
		return o.Object == "AuthorizationPolicy istio-system/get" && strings.Contains(o.Message, "Pod shop/worker has no Service")
	}) {
		t.Errorf("open: %v", n.Open)
	}
}

// TestEgressToTheWaypoint: a client that may call pods has to reach the waypoint that it calls in their place. Seen in
// ryanwelchtech/service-mesh-observatory.
func TestEgressToTheWaypoint(t *testing.T) {
	for peer, want := range map[string]bool{
		"{podSelector: {matchLabels: {app: api}}}": true, "{podSelector: {matchLabels: {app: gone}}}": false, "{podSelector: {}}": false,
		"{ipBlock: {cidr: 10.0.0.0/8}}": false, "{podSelector: {matchLabels: {app: api}}, namespaceSelector: {matchLabels: {a: b}}}": false,
	} {
		policy := "---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: front, namespace: shop}\nspec:\n  podSelector: {matchLabels: {app: front}}\n" +
			"  policyTypes: [Egress]\n  egress:\n  - to:\n    - " + peer + "\n"
		got := applied(t, cluster+"---\n"+getOnly+policy, "network")
		if strings.Contains(got, "gateway.networking.k8s.io/gateway-name: waypoint") != want {
			t.Errorf("%s: the waypoint is among the peers: %t\n%s", peer, !want, got)
		}
		if again := applied(t, got, "network"); again != got {
			t.Errorf("%s: a second time changes it:\n%s", peer, again)
		}
	}
}

// TestDryRunsStay: a policy that only logs what it would deny denies nothing at other pods either. Seen by the oracle, seed 7020.
func TestDryRunsStay(t *testing.T) {
	const deny = "---\napiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: dry, namespace: shop, annotations: {istio.io/dry-run: \"true\"}}\n" +
		"spec: {action: DENY, rules: [{from: [{source: {namespaces: [shop]}}]}]}\n"
	_, kept, ok := strings.Cut(applied(t, cluster+worker+deny+"---\n"+getOnly, "policies"), "  annotations:\n    istio.io/dry-run: \"true\"\n")
	if !ok || !strings.HasPrefix(kept, "  name: dry-worker\n") {
		t.Errorf("the policy of the pod has lost the annotation:\n%s", kept)
	}
	if enforced := applied(t, cluster+worker+deny+"---\n"+getOnly, "policies", "enforce"); strings.Contains(enforced, "name: shop-waypoint-only") {
		t.Errorf("only the waypoint may call, although the policy enforces nothing:\n%s", enforced)
	}
}

// TestLaterNamespacesGetRootPolicies: a policy of the root namespace that the move of one namespace has limited to sidecars is still one of the next.
func TestLaterNamespacesGetRootPolicies(t *testing.T) {
	for name, root := range map[string]string{
		"selector": strings.Replace(getOnly, "namespace: shop", "namespace: istio-system", 1),
		"ports": strings.NewReplacer("namespace: shop", "namespace: istio-system", "  selector: {matchLabels: {app: api}}\n", "",
			"methods: [GET]", `methods: [GET], ports: ["8080"]`).Replace(getOnly),
		"mesh": strings.NewReplacer("namespace: shop", "namespace: istio-system", "  selector: {matchLabels: {app: api}}\n", "").Replace(getOnly),
	} {
		next := strings.NewReplacer("namespace: shop", "namespace: bank", "name: shop,", "name: bank,").Replace(cluster)
		text := applied(t, cluster+"---\n"+root, ambient.StepNames()...) + "---\n" + next
		m, err := manifest.Parse("0.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		files, o := []ambient.File{{Path: "0.yaml", Docs: m.Docs}}, ambient.Options{Namespaces: []string{"bank"}}
		plan, err := ambient.New(files, o, nil)
		if err != nil || plan.Namespaces[0].Waypoint == "" {
			t.Errorf("%s: %v, no waypoint in the second namespace", name, err)
		}
		for _, step := range ambient.StepNames() {
			if files, _, err = ambient.Apply(files, o, step); err != nil {
				t.Fatal(err)
			}
		}
		if got := string(files[0].Bytes()); name != "mesh" && strings.Count(got, "ambient-copy-of: istio-system/get") < 2 || strings.Count(got, "waypoint-for: service") != 2 {
			t.Errorf("%s: a copy or a waypoint is missing\n%s", name, got)
		}
	}
}

// TestPodsWithoutServiceKeepTheirPolicies: requests to them pass no waypoint, and ztunnel enforces what needs no waypoint from the start. Seen in
// mathieu-benoit/my-kubernetes-deployments, where nothing denied anything to the load generator after the removal of the old policies.
func TestPodsWithoutServiceKeepTheirPolicies(t *testing.T) {
	const deny = "---\napiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: deny-all, namespace: %s}\nspec: {}\n"
	for _, namespace := range []string{"shop", "istio-system"} {
		text := cluster + worker + "---\n" + getOnly + fmt.Sprintf(deny, namespace)
		if n := planOf(t, text); len(n.Open) > 0 {
			t.Errorf("%s: open %v", namespace, n.Open)
		}
		got := applied(t, text, ambient.StepNames()...)
		_, kept, ok := strings.Cut(got, "name: deny-all-worker\n")
		if !ok || strings.Count(got, "name: deny-all-worker\n") != 1 {
			t.Fatalf("%s: no policy for the pod alone:\n%s", namespace, got)
		}
		if n := planOf(t, text, strings.Replace(getOnly, "selector: {matchLabels: {app: api}}", "selector: {matchLabels: {app: worker}}", 1)); !slices.ContainsFunc(n.Gaps, func(gap string) bool {
			return strings.HasPrefix(gap, "Pod shop/worker has no Service") && strings.Contains(gap, "nothing enforces get for it")
		}) {
			t.Errorf("%s: gaps %q", namespace, n.Gaps)
		}
		kept, _, _ = strings.Cut(kept, "---")
		if !strings.Contains(kept, "app: worker") || strings.Contains(kept, "tlsMode") {
			t.Errorf("%s: the policy is\n%s", namespace, kept)
		}
	}
}
