// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReviewWithoutAnySetUp reviews changes of a repository that has no pipelines.
func TestReviewWithoutAnySetUp(t *testing.T) {
	dir, git, write := reviewedRepository(t)
	git("init", "--quiet", "--initial-branch=main")
	write("base/web.yaml", application("web", "app:1"))
	write("base/kustomization.yaml", "resources: [web.yaml]\n")
	for _, cluster := range []string{"eu", "us", "ap"} {
		write("overlays/"+cluster+"/kustomization.yaml", "resources: [../../base]\nnamespace: shop-"+cluster+"\n")
	}
	write("old/claim.yaml", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n")
	write("broken/kustomization.yaml", "resources: [gone.yaml]\n")
	git("add", "-A")
	git("commit", "--quiet", "-m", "first")
	review := func(want int, args ...string) (string, string) {
		t.Helper()
		code, out, problems := prerig(t, append([]string{"review", "-C", dir, "--cache", t.TempDir()}, args...)...)
		if code != want {
			t.Fatalf("exit code %d, want %d\n%s%s", code, want, out, problems)
		}
		return out, problems
	}
	contains := func(text string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("it lacks %q:\n%s", want, text)
			}
		}
	}
	write(".gitignore", "/build/\n*.tmp.yaml\n")
	write("build/secret.yaml", application("ignored", "app:1"))
	write("base/x.tmp.yaml", "a: [\n")
	write("forced/app.tmp.yaml", application("committed-although-ignored", "app:1"))
	git("add", "--force", ".gitignore", "forced")
	git("commit", "--quiet", "-m", "ignored")
	out, problems := review(0)
	contains(out, "nothing would change")
	if strings.Contains(problems, "broken") {
		t.Errorf("a build that reads nothing that differs is rendered:\n%s", problems)
	}

	git("checkout", "--quiet", "-b", "feature")
	write("base/web.yaml", application("web", "app:2"))
	must(t, os.RemoveAll(filepath.Join(dir, "old")))
	write("new/job.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n")
	write("broken/kustomization.yaml", "resources: [gone.yaml]\n# a comment\n")
	out, problems = review(1)
	contains(problems, "info: broken cannot be rendered, as before: ")
	contains(out, "== deleted: PersistentVolumeClaim data (old)", "modified: the same in 3 Deployments of 3 builds", "-        image: app:1\n", "added: ConfigMap settings (new)",
		"compared with the commit ")
	if strings.Contains(out, "pipeline") {
		t.Errorf("it mentions pipelines:\n%s", out)
	}
	git("add", "-A")
	git("commit", "--quiet", "-m", "second")
	committed, _ := review(1, "main..feature")
	contains(committed, "modified: the same in 3 Deployments of 3 builds")
	markdown, _ := review(0, "main", "-o", "markdown", "--exit-code=false")
	contains(markdown, "**5 builds: 1 object added, 3 changed, 1 deleted**", "**1 PersistentVolumeClaim would be deleted", "#### What the source changed")

	write("overlays/us/kustomization.yaml", "resources: [../../gone]\n")
	out, _ = review(2, "main")
	contains(out, "error: overlays/us: ", "the same in 2 Deployments of 2 builds")
	must(t, os.RemoveAll(filepath.Join(dir, "overlays/us")))
	write("prerig.yaml", "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec: {unknownNamespace: Inject, istio: {injector: {builtIn: istio}}}\n")
	markdown, _ = review(1, "feature", "-o", "markdown")
	contains(markdown, "#### What the injection changed", "istio-proxy")

	for _, wrong := range [][]string{{"nothing-like-this"}, {"main.."}, {"main...feature"}, {"a", "b"}, {"-o", "review"}, {"--kubernetes-version", "1.5"}} {
		review(2, wrong...)
	}
}

// reviewedRepository is an empty repository, with what runs git in it and what writes a file.
func reviewedRepository(t *testing.T) (dir string, git func(args ...string), write func(name, text string)) {
	t.Helper()
	dir = t.TempDir()
	git = func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write = func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return dir, git, write
}

// TestReviewOfAPathThatLeadsNowhere: Flux deletes nothing if the only Kustomization of a cluster has a path that does not exist any more.
func TestReviewOfAPathThatLeadsNowhere(t *testing.T) {
	dir, git, write := reviewedRepository(t)
	kustomization := func(at string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps, namespace: flux-system}\n" +
			"spec: {interval: 1h, prune: true, path: " + at + ", sourceRef: {kind: GitRepository, name: flux-system}}\n"
	}
	git("init", "--quiet", "--initial-branch=main")
	write("clusters/prod/apps.yaml", kustomization("./apps/prod"))
	write("apps/prod/app.yaml", application("web", "app:v1"))
	git("add", "-A")
	git("commit", "--quiet", "-m", "first")
	write("clusters/prod/apps.yaml", kustomization("./apps/prd"))
	code, out, problems := prerig(t, "review", "-C", dir, "main")
	if code != 2 || strings.Contains(out, "== deleted") || !strings.Contains(out+problems, "apps/prd") {
		t.Errorf("exit code %d\n%s%s", code, out, problems)
	}
}

// TestReviewOfAFluxCluster: a unit that fails at both ends hides nothing of the others, and one that the change breaks deletes nothing.
func TestReviewOfAFluxCluster(t *testing.T) {
	dir, git, write := reviewedRepository(t)
	kustomization := func(name, more string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + ", namespace: flux-system}\n" +
			"spec: {interval: 1h, prune: true, path: ./apps/" + name + ", targetNamespace: shop, sourceRef: {kind: GitRepository, name: flux-system}" + more + "}\n"
	}
	secret := ", postBuild: {substituteFrom: [{kind: Secret, name: only-there}]}"
	git("init", "--quiet", "--initial-branch=main")
	for _, name := range []string{"web", "db", "old"} {
		write("clusters/prod/"+name+".yaml", kustomization(name, ", postBuild: {substitute: {tag: v1}}"))
		write("apps/"+name+"/app.yaml", application(name, "app:${tag}"))
	}
	write("clusters/prod/key.yaml", kustomization("key", secret))
	write("clusters/prod/wrong.yaml", kustomization("gone", ""))
	write("apps/key/app.yaml", application("key", "app:${tag}"))
	git("add", "-A")
	git("commit", "--quiet", "-m", "first")

	write("clusters/prod/web.yaml", kustomization("web", ", postBuild: {substitute: {tag: v2}}"))
	must(t, os.RemoveAll(filepath.Join(dir, "apps/old")))
	must(t, os.Remove(filepath.Join(dir, "clusters/prod/old.yaml")))
	args := []string{"review", "-C", dir, "--cache", t.TempDir(), "main"}
	code, out, problems := prerig(t, args...)
	for _, want := range []string{"modified: Deployment shop/web (clusters/prod)", "-        image: app:v1\n+        image: app:v2\n", "deleted: Deployment shop/old"} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, without %q\n%s%s", code, want, out, problems)
		}
	}
	if !strings.Contains(problems, "info: Kustomization flux-system/gone of clusters/prod cannot be rendered, as before: ") || strings.Count(problems, "\n") != 2 {
		t.Errorf("the unit without a directory is not named, in one line:\n%s", problems)
	}
	if strings.Contains(out, "Deployment shop/key") || !strings.Contains(problems, "only the cluster or a key has the values: the variables tag\n") {
		t.Errorf("the variable of the cluster is not named:\n%s%s", out, problems)
	}
	write("clusters/prod/db.yaml", kustomization("db", ", postBuild: {substitute: {other: v1}}"))
	code, out, problems = prerig(t, args...)
	if code != 2 || !strings.Contains(out, "the variable tag of the Kustomization flux-system/db: it has no value and no default") {
		t.Errorf("a variable that the change leaves without a value: exit code %d\n%s%s", code, out, problems)
	}
	write("apps/db/kustomization.yaml", "resources: [gone.yaml]\n")
	code, out, problems = prerig(t, args...)
	if code != 2 || strings.Contains(out, "deleted: Deployment") || !strings.Contains(out, "flux-system/db") {
		t.Errorf("a unit that the change breaks: exit code %d\n%s%s", code, out, problems)
	}
}

// TestReviewKeepsJobs upgrades the mesh below a Deployment and a Job, which an upgrade leaves as it is.
func TestReviewKeepsJobs(t *testing.T) {
	dir, git, write := reviewedRepository(t)
	policy := func(tag string) {
		write("prerig.yaml", "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\n"+
			"spec: {unknownNamespace: Inject, istio: {injector: {builtIn: istio, overrides: {global: {tag: "+tag+"}}}}}\n")
	}
	git("init", "--quiet", "--initial-branch=main")
	policy("1.31.0")
	write("apps/web.yaml", application("web", "app:1"))
	write("apps/job.yaml", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: backup}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: \"a:1\"}]}}}\n")
	git("add", "-A")
	git("commit", "--quiet", "-m", "first")
	policy("1.31.1")
	code, out, problems := prerig(t, "review", "-C", dir, "--cache", t.TempDir(), "main")
	if code != 1 || !strings.Contains(out, "modified: Deployment shop/web") || !strings.Contains(out, "1.31.1") || strings.Contains(out, "Job") {
		t.Errorf("exit code %d\n%s%s", code, out, problems)
	}
}

// TestReviewLeavesOutEarlierFindings changes an image below a finding that both ends have, and adds one that only the second has.
func TestReviewLeavesOutEarlierFindings(t *testing.T) {
	dir, git, write := reviewedRepository(t)
	git("init", "--quiet", "--initial-branch=main")
	write("prerig.yaml", "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\n"+
		"spec: {unknownNamespace: Skip, istio: {injector: {builtIn: istio}}}\n")
	namespace := "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {istio-injection: enabled}}\n"
	write("apps/web.yaml", application("web", "app:1")+namespace)
	git("add", "-A")
	git("commit", "--quiet", "-m", "first")
	write("apps/web.yaml", application("web", "app:2")+namespace)
	args := []string{"review", "-C", dir, "--cache", t.TempDir(), "-o", "markdown", "main"}
	code, out, problems := prerig(t, args...)
	if code != 1 || !strings.Contains(out, "app:2") || strings.Contains(out, "New findings") {
		t.Errorf("exit code %d\n%s%s", code, out, problems)
	}
	write("apps/cart.yaml", application("cart", "app:2"))
	_, out, problems = prerig(t, args...)
	if _, after, _ := strings.Cut(out, "#### New findings\n"); !strings.HasPrefix(after, "- **warning** ") ||
		!strings.Contains(strings.SplitN(after, "\n", 2)[0], "`: `Deployment shop/cart (apps/cart.yaml") {
		t.Errorf("the finding about the new workload is missing\n%s%s", out, problems)
	}
}

// TestReviewTextIsBounded adds one object with a thousand lines beside a change of one line.
func TestReviewTextIsBounded(t *testing.T) {
	dir, git, write := reviewedRepository(t)
	git("init", "--quiet", "--initial-branch=main")
	write("apps/web.yaml", application("web", "app:1"))
	git("add", "-A")
	git("commit", "--quiet", "-m", "first")
	write("apps/web.yaml", application("web", "app:2"))
	long := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: long, namespace: shop}\ndata:\n"
	for i := range 1000 {
		long += fmt.Sprintf("  key-%04d: value\n", i)
	}
	write("apps/long.yaml", long)
	args := []string{"review", "-C", dir, "--cache", t.TempDir(), "main"}
	_, out, problems := prerig(t, args...)
	if lines := strings.Count(out, "\n"); lines > 2*linesPerChange || !strings.Contains(out, " more lines; --limit 0 shows all\n") ||
		!strings.Contains(out, "+        image: app:2\n") {
		t.Errorf("%d lines\n%s%s", lines, out, problems)
	}
	if _, out, _ = prerig(t, append(args, "--limit", "0")...); strings.Count(out, "+  key-") != 1000 || strings.Contains(out, "more lines") {
		t.Errorf("without a limit, %d of 1000 keys are shown", strings.Count(out, "+  key-"))
	}
}

// TestReviewWithLinksThatLeadOutOfTheRepository: only the build that reads such a link fails, and the review names it.
func TestReviewWithLinksThatLeadOutOfTheRepository(t *testing.T) {
	dir, git, write := reviewedRepository(t)
	git("init", "--quiet", "--initial-branch=main")
	write("shop/web.yaml", application("web", "app:1"))
	write("pay/web.yaml", application("pay", "app:1"))
	write("pay/kustomization.yaml", "resources: [web.yaml, link.yaml]\n")
	for link, target := range map[string]string{"escape": "/etc/passwd", "shop/notes": "../../outside", "pay/link.yaml": "../../../outside.yaml"} {
		must(t, os.Symlink(target, filepath.Join(dir, link)))
	}
	git("add", "-A")
	git("commit", "--quiet", "-m", "first")
	write("shop/web.yaml", application("web", "app:2"))
	write("pay/web.yaml", application("pay", "app:2"))
	code, out, problems := prerig(t, "review", "-C", dir, "--cache", t.TempDir())
	if code != 1 || !strings.Contains(out, "-        image: app:1") || !strings.Contains(problems, "pay cannot be rendered, as before") {
		t.Fatalf("exit code %d\n%s%s", code, out, problems)
	}
	if !strings.Contains(problems, "link.yaml") || strings.Contains(out+problems, "shop cannot") {
		t.Errorf("the link is not named:\n%s%s", out, problems)
	}
}
