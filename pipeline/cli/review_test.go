// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReviewWithoutAnySetUp reviews changes of a repository that has no pipelines.
func TestReviewWithoutAnySetUp(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(text), 0o600))
	}
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
	out, problems := review(0)
	contains(out, "nothing would change")
	contains(problems, "info: broken cannot be rendered, as before: ")

	git("checkout", "--quiet", "-b", "feature")
	write("base/web.yaml", application("web", "app:2"))
	must(t, os.RemoveAll(filepath.Join(dir, "old")))
	write("new/job.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n")
	out, _ = review(1)
	contains(out, "== deleted: PersistentVolumeClaim data (old)", "modified: the same in 3 Deployments of 3 builds", "-        image: app:1\n", "added: ConfigMap settings (new)",
		"compared with the")
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
