// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDiffAsReview compares a change of an application with what was rendered before.
func TestDiffAsReview(t *testing.T) {
	pipelines, source, rendered := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "rendered")
	write := func(dir, name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(pipelines, "web.yaml", "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: web, namespace: shop}\nspec:\n"+
		"  source: {git: {url: https://git.example.com/apps.git, ref: {branch: main}}}\n  build: {path: apps/web}\n  policies: [{builtIn: istio}]\n"+
		"  publish: [{git: {url: https://git.example.com/rendered.git, branch: main}}]\n")
	write(source, "apps/web/app.yaml", application("web", "app:1"))
	write(source, "apps/web/claim.yaml", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n")
	if code, out, problems := prerig(t, "render", "--pipelines", pipelines, "--source", source, "--to", rendered); code != 0 {
		t.Fatal(out, problems)
	}
	diff := func(want int, more ...string) string {
		t.Helper()
		args := append([]string{"diff", "--pipelines", pipelines, "--source", source, "--against", rendered, "-o", "review"}, more...)
		code, out, problems := prerig(t, args...)
		if code != want {
			t.Fatalf("exit code %d, want %d\n%s%s", code, want, out, problems)
		}
		return out
	}
	if got := diff(0); !strings.HasPrefix(got, "**Nothing changes** in 1 pipeline.") {
		t.Error(got)
	}
	write(source, "apps/web/app.yaml", application("web", "app:2"))
	if err := os.Remove(filepath.Join(source, "apps/web/claim.yaml")); err != nil {
		t.Fatal(err)
	}
	got := diff(1)
	for _, want := range []string{
		"**1 pipeline: 0 objects added, 1 changed, 1 deleted**", "**1 PersistentVolumeClaim would be deleted, maybe with the data of the volume:**",
		"#### What the source changed\n\n**Changed:** `Deployment", "-        image: app:1\n+        image: app:2\n", "- `app:1` → `app:2` in 1 workload\n", "`prerig render shop/web --source .`",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "What the injection changed") || strings.Contains(got, "New findings") {
		t.Errorf("it tells what does not change:\n%s", got)
	}
	if small := diff(0, "--exit-code=false", "--limit", "500"); len(small) > 500 || !strings.Contains(small, "Not all is here") {
		t.Errorf("%d bytes:\n%s", len(small), small)
	}
	if code, _, problems := prerig(t, "diff", "--pipelines", pipelines, "-o", "review", "--limit", "few"); code != 2 || !strings.Contains(problems, "--limit") {
		t.Errorf("exit code %d: %s", code, problems)
	}
}
