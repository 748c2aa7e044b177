// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
)

var update = flag.Bool("update", false, "write the golden files")

// inject returns manifests as a policy makes them, each a file of its own.
func inject(t *testing.T, spec string, texts ...string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	var items []fn.Item
	for i, text := range texts {
		file, err := manifest.Parse("f.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, fn.Item{Doc: file.Docs[0], Index: i})
	}
	docs := items
	if spec != "" {
		p, err := v1alpha1.Parse([]byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec:\n" + spec))
		if err != nil {
			t.Fatal(err)
		}
		injector, err := fn.New([]*v1alpha1.InjectionPolicy{p})
		if err != nil {
			t.Fatal(err)
		}
		report, err := injector.Run(t.Context(), items)
		if err != nil || report.Failed() {
			t.Fatal(err, report.Results)
		}
		docs = report.Items
	}
	for i, item := range docs {
		files[fmt.Sprintf("%04d.yaml", i)] = item.Doc.Raw()
	}
	return files
}

// mesh is a policy of the built-in Istio with a tag of the proxy.
func mesh(tag, more string) string {
	return fmt.Sprintf("  istio: {injector: {builtIn: istio, overrides: {global: {tag: %s%s}}}}\n", tag, more)
}

// deployment is one of an application.
func deployment(namespace, name, image string, replicas int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[2]s
  namespace: %[1]s
spec:
  replicas: %[4]d
  selector:
    matchLabels:
      app: %[2]s
  template:
    metadata:
      labels:
        app: %[2]s
        sidecar.istio.io/inject: "true"
    spec:
      containers:
      - name: app
        image: registry.example.com/%[2]s:%[3]s
        ports:
        - containerPort: 8080
        resources:
          requests:
            cpu: 100m
            memory: 64Mi
        livenessProbe:
          httpGet:
            path: /live
            port: 8080
`, namespace, name, image, replicas)
}

func body(t *testing.T, c Change, limit int) (string, bool) {
	t.Helper()
	text, whole, err := Body(t.Context(), c, limit)
	if err != nil {
		t.Fatal(err)
	}
	if limit != Unlimited && len(text) > limit {
		t.Errorf("%d bytes, of %d at most", len(text), limit)
	}
	return text, whole
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got):\n%s", file, d)
	}
}

// upgrade is one of Istio over Deployments of 40 namespaces, each a pipeline's.
func upgrade(t *testing.T, n int) Change {
	t.Helper()
	perNamespace := make([][]string, 40)
	for i := range n {
		namespace := fmt.Sprintf("team-%02d", i%40)
		perNamespace[i%40] = append(perNamespace[i%40], deployment(namespace, fmt.Sprintf("app-%03d", i), "1.4", 1+i%3))
	}
	var c Change
	for i, texts := range perNamespace {
		old, now := mesh("1.29.0", ""), mesh("1.30.0", ", proxy: {resources: {requests: {cpu: 120m, memory: 160Mi}}}")
		c.Pipelines = append(c.Pipelines, Pipeline{
			Name: fmt.Sprintf("team-%02d/apps", i), Before: inject(t, old, texts...), After: inject(t, now, texts...),
			Sources: []Source{{
				URL:    "https://git.example.com/mesh/apps.git",
				Before: Revision{Revision: "main@sha1:1111111111111111111111111111111111111111"},
				After:  Revision{Revision: "main@sha1:2222222222222222222222222222222222222222", Author: "Jo Mesh", Subject: "Upgrade Istio to 1.30.0 (#123)"},
			}},
			Command:      fmt.Sprintf("prerig render team-%02d/apps --revision main@sha1:2222222222222222222222222222222222222222", i),
			PolicyBefore: "sha256:" + strings.Repeat("a", 64), PolicyAfter: "sha256:" + strings.Repeat("b", 64), ToolBefore: "v0.9.0", ToolAfter: "v0.9.0",
			Findings: Findings{BeforeKnown: true},
		})
	}
	return c
}

func TestUpgradeOfAFleet(t *testing.T) {
	c := upgrade(t, 412)
	text, whole := body(t, c, LimitGitHub)
	if !whole {
		t.Error("an upgrade does not fit")
	}
	golden(t, "upgrade.md", text)
	small, _ := body(t, c, LimitAzureDevOps)
	golden(t, "upgrade-4000.md", small)
}

func TestChangeOfAnApplication(t *testing.T) {
	old := strings.Replace(deployment("shop", "cart", "1.4", 3), "/live", "/healthz", 1)
	config := func(level string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: cart\n  namespace: shop\ndata:\n  level: " + level + "\n"
	}
	scaler := "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata:\n  name: cart\n  namespace: shop\nspec:\n" +
		"  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: cart}\n  minReplicas: 4\n  maxReplicas: 9\n"
	secret := func(value string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata:\n  name: cart\n  namespace: shop\nstringData:\n  password: " + value + "\n"
	}
	finding := func(code, message string) result.Result {
		return result.Result{Severity: result.Warning, Message: message, Tags: map[string]string{result.TagCode: code},
			ResourceRef: &result.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "cart"}}
	}
	c := Change{Whole: "https://prerig.example.com/p/shop/cart", Pipelines: []Pipeline{{
		Name: "shop/cart", Before: inject(t, mesh("1.30.0", ""), old, config("info"), scaler, secret("hunter2")),
		After: inject(t, mesh("1.30.0", ""), strings.Replace(deployment("shop", "cart", "1.5", 3), "100m", "150m", 1), config("debug"), scaler, secret("hunter3"),
			deployment("shop", "worker", "1.5", 2)),
		Sources:  []Source{{URL: "https://bot:token@git.example.com/shop/cart.git", After: Revision{Revision: "main@sha1:" + strings.Repeat("2", 40), Author: "Sam", Subject: "Faster cart"}}},
		Findings: Findings{Before: result.Results{finding("PR201", "an old one")}, After: result.Results{finding("PR201", "an old one"), finding("PR404", "no limit is set")}, BeforeKnown: true},
		Command:  "prerig render shop/cart",
	}}}
	text, whole := body(t, c, LimitGitHub)
	if !whole {
		t.Error("it does not fit")
	}
	for _, bad := range []string{"hunter", "token", "an old one"} {
		if strings.Contains(text, bad) {
			t.Errorf("it shows %q", bad)
		}
	}
	golden(t, "application.md", text)
}

// TestWhatIsNotCompared is not counted as unchanged, nor as new.
func TestWhatIsNotCompared(t *testing.T) {
	away := Pipeline{Name: "shop/away", NotCompared: "reading the branch: no such host"}
	same := Pipeline{Name: "shop/same"}
	changed := Pipeline{Name: "shop/new", After: map[string][]byte{"a.yaml": []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n")}}
	for want, pipelines := range map[string][]Pipeline{
		"**Nothing could be compared** of 1 pipeline.\n":                                                          {away},
		"**Nothing changes** in 1 pipeline; **1 pipeline not compared**.\n":                                       {away, same},
		"**1 of 2 pipelines: 1 object added, 0 changed, 0 deleted**; 0 unchanged; **1 pipeline not compared**.\n": {away, same, changed},
	} {
		text, _ := body(t, Change{Pipelines: pipelines}, LimitGitHub)
		if !strings.HasPrefix(text, want) || !strings.Contains(text, "#### Not compared\n- `shop/away`: `reading the branch: no such host`\n") ||
			strings.Contains(text, "Would be refused") {
			t.Errorf("want %q, got\n%s", want, text)
		}
	}
}

func TestDeletions(t *testing.T) {
	object := func(apiVersion, kind, name string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n", apiVersion, kind, name)
	}
	c := Change{Pipelines: []Pipeline{{
		Name: "data/db", Refused: "gate maxDeleted: 4 of 5 published objects would be deleted (80%), more than 50%",
		Before: inject(t, "", deployment("data", "db", "1", 1), object("v1", "Service", "db"), object("v1", "PersistentVolumeClaim", "db"),
			object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "backups.example.com"), object("v1", "ConfigMap", "kept")),
		After: map[string][]byte{"elsewhere.yaml": []byte(object("v1", "ConfigMap", "kept"))},
	}}}
	text, _ := body(t, c, LimitGitHub)
	golden(t, "deletions.md", text)
}
