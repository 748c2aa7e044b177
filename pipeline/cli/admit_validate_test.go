// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestAdmitRejectsWhatTheAPIServerRejects: the admission plugins accept these, and Kubernetes' own validation does not.
func TestAdmitRejectsWhatTheAPIServerRejects(t *testing.T) {
	t.Parallel()
	bin, dir := installed(t), t.TempDir()
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nspec: {containers: [{name: web, image: \"example.com/web:1\"}]}\n"
	for name, c := range map[string]struct{ text, want string }{
		"selector": {strings.Replace(initWeb, "labels: {app: web}", "labels: {app: wbe}", 1),
			"selector.yaml:7: Deployment shop/web spec.template.metadata.labels: Invalid value: {\"app\":\"wbe\"}: `selector` does not match template `labels`"},
		"mount": {strings.Replace(initWeb, "name: web, image", "name: web, volumeMounts: [{name: data, mountPath: /data}], image", 1),
			`mount.yaml:8: Deployment shop/web spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"`},
		"image": {strings.Replace(initWeb, "web:1", "web:1 ", 1), `# rejected: Kubernetes' own validation: spec.containers[0].image: Invalid value: "example.com/web:1 "`},
		"pod":   {strings.Replace(pod, "web:1", "web:1 ", 1), `# rejected: Kubernetes' own validation: spec.containers[0].image: Invalid value: "example.com/web:1 "`},
		"cron": {"apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: web, namespace: shop}\nspec:\n  schedule: '* * * *'\n  jobTemplate: {spec: {template: " +
			"{spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}\n", "cron.yaml:5: CronJob shop/web spec.schedule: Invalid value"},
		"right":     {initWeb + "---\n" + pod, ""},
		"two-alike": {initWeb + "---\n" + strings.ReplaceAll(initWeb, "name: web", "name: shop"), ""},
	} {
		file := filepath.Join(dir, name+".yaml")
		writeFiles(t, map[string]string{file: c.text})
		for _, flags := range [][]string{{"admit"}, {"admit", "--as-is"}} {
			code, stdout, stderr := runInstalled(t, bin, append(flags, file)...)
			if want := 1; c.want == "" && code != 0 || c.want != "" && code != want || !strings.Contains(stdout+stderr, c.want) {
				t.Errorf("%s of %s: exit code %d, want %q\n%s", flags, name, code, c.want, stderr)
			}
		}
	}
	if _, stderr := ok(t, "", "admit", filepath.Join(dir, "right.yaml")); strings.Count(stderr, "Kubernetes' own validation") != 1 {
		t.Errorf("without the program: %s", stderr)
	}
}
