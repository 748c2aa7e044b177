// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/prerig/prerig/pipeline/internal/gittest"
)

// secretForms are files of a source with Secrets whose values hold "c4nary".
var secretForms = map[string]string{
	"many.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: one, namespace: shop}\nstringData: {password: c4nary}\ntype: Opaque\n---\n" +
		"apiVersion: v1\nkind: Secret\nmetadata: {name: two, namespace: shop}\ndata: {password: YzRuYXJ5, bin: AAEC/w==}\n",
	"list.yaml":  "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: three}\n  stringData: {password: c4nary}\n",
	"typed.yaml": "apiVersion: v1\nkind: SecretList\nitems:\n- apiVersion: v1\n  kind: Secret\n  metadata: {name: four}\n  stringData:\n    password: |\n      c4nary\n      c4nary\n",
	"json.json":  `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "five"}, "stringData": {"password": "c4nary"}}` + "\n",
}

// TestEncryptedSecrets renders, publishes and compares Secrets in many forms, of files and of a chart.
func TestEncryptedSecrets(t *testing.T) {
	images := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(images.Close)
	repository := gittest.New(t).Repository(t, "config")
	identity, err := age.GenerateX25519Identity()
	must(t, err)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(name), 0o700))
		must(t, os.WriteFile(name, []byte(text), 0o600))
	}
	write("secrets/seed/seed", "0123456789abcdef0123456789abcdef")
	encrypt := fmt.Sprintf("secrets: Encrypt, encryption: {age: [%s], secretRef: {name: seed}}", identity.Recipient())
	places := func(name string) string {
		return fmt.Sprintf("  publish:\n  - {git: {branch: rendered}, %s}\n  - {oci: {url: \"oci://%s/%s\", insecure: true, layout: Single, style: Preserve}, %[1]s}\n",
			encrypt, strings.TrimPrefix(images.URL, "http://"), name)
	}
	head := "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: %s}\nspec:\n  source: {git: {url: " + repository.URL + ", ref: {branch: main}}}\n"
	write("pipelines/plain.yaml", fmt.Sprintf(head, "plain")+"  build: {path: plain}\n"+places("plain"))
	write("pipelines/chart.yaml", fmt.Sprintf(head, "chart")+"  build: {helm: {chart: chart, namespace: shop, kubeVersion: 1.33.4}}\n"+places("chart"))
	files := map[string]string{
		"chart/Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n", "chart/values.yaml": "password: c4nary\n",
		"chart/templates/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  password: {{ .Values.password | b64enc }}\n",
	}
	for name, text := range secretForms {
		files["plain/"+name] = text
	}
	repository.Commit("first", files)
	t.Chdir(dir)
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, problems := prerig(t, append(args, "--cache", filepath.Join(dir, "cache"))...)
		if code != want {
			t.Fatalf("prerig %s: exit code %d\n%s%s", strings.Join(args, " "), code, out, problems)
		}
		for _, value := range []string{"c4nary", "YzRuYXJ5", "0123456789abcdef"} {
			if strings.Contains(out+problems, value) {
				t.Errorf("prerig %s shows %s:\n%s%s", strings.Join(args, " "), value, out, problems)
			}
		}
		return out
	}
	out := run(0, "render")
	if got := strings.Count(out, "\nsops:\n"); got != 6 || run(0, "render") != out {
		t.Errorf("%d Secrets are encrypted, or others the second time:\n%s", got, out)
	}
	state, _ := serve(t, filepath.Join(dir, "pipelines"))
	if code, out, problems := prerig(t, "daemon", "reconcile", "--all", "--wait", "--state", state); code != 0 {
		t.Fatal(out, problems)
	}
	if out := run(0, "diff", "--exit-code"); !strings.Contains(out, "2 pipelines compared: nothing would change") {
		t.Errorf("what is published as it is rendered differs:\n%s", out)
	}
	repository.Commit("second", map[string]string{"chart/values.yaml": "password: other-c4nary\n"})
	if out := run(1, "diff", "--exit-code"); !strings.Contains(out, "password: *** (before)") || !strings.Contains(out, "password: *** (after)") || strings.Contains(out, "ENC[") {
		t.Errorf("a change reads as\n%s", out)
	}
	must(t, os.Remove(filepath.Join(dir, "secrets/seed/seed")))
	if code, _, problems := prerig(t, "render", "--cache", filepath.Join(dir, "cache")); code == 0 || !strings.Contains(problems, "encrypting Secrets: reading secret seed: secret seed has no keys") {
		t.Errorf("without a seed: exit code %d: %s", code, problems)
	}
}

// TestRefusedResultIsNotWritten: what a gate refuses does not come into a directory either, and other pipelines do.
func TestRefusedResultIsNotWritten(t *testing.T) {
	t.Chdir(t.TempDir())
	pipeline := func(name string) string {
		return "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: " + name + "}\nspec:\n" +
			"  source: {git: {url: https://example.com/r, ref: {branch: main}}}\n  build: {path: " + name + "}\n  publish: [{git: {branch: rendered, path: " + name + "}}]\n"
	}
	writeFiles(t, map[string]string{
		"pipelines/a.yaml": pipeline("a"), "pipelines/b.yaml": pipeline("b"),
		"src/a/secret.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: c4nary}\n",
		"src/b/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n",
	})
	code, _, stderr := prerig(t, "render", "--source", "src", "-o", "out")
	if code != ExitError || !strings.Contains(stderr, "has values that can be read") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	if _, err := os.Stat("out/a"); err == nil {
		t.Error("what was refused is written")
	}
	if !exists("out/b/configmap-b.yaml") {
		t.Error("the other pipeline is not written")
	}
}
