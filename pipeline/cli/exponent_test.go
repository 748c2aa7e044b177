// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/internal/cputime"
)

// A few characters of a manifest or of a pipeline, which Kubernetes' own code computes for minutes, keep no command busy.
func TestHugeExponentsEnd(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return at
	}
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop, labels: {sidecar.istio.io/inject: \"true\"}}\nspec:\n" +
		"  containers:\n  - {name: app, image: web:1, resources: {limits: {memory: AMOUNT}, requests: {memory: AMOUNT}}}\n" +
		"  - {name: other, image: web:1, resources: {limits: {memory: 1Mi, cpu: 1m}}}\n  volumes:\n  - {name: v, emptyDir: {sizeLimit: AMOUNT}}\n"
	const pipeline = "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: web, namespace: team}\nspec:\n" +
		"  source: {git: {url: https://git.example.com/a.git}}\n  build: {path: x, limits: {memory: AMOUNT}}\n" +
		"  policies: [{builtIn: istio}]\n  publish: [{git: {branch: rendered}}]\n"
	for _, amount := range []string{"1e-999999999", "1e999999999", "-1E-2147483648"} {
		of := func(text string) string { return strings.ReplaceAll(text, "AMOUNT", `"`+amount+`"`) }
		manifest := write("pod.yaml", of(pod))
		for _, args := range [][]string{{"inject", "-f", manifest}, {"explain", manifest}, {"lint", manifest}, {"gate", manifest}} {
			end := cputime.Begin(t)
			if code, out, err := prerig(t, args...); code == 0 {
				t.Errorf("%s: %s passes\n%s%s", amount, args[0], out, err)
			}
			end(time.Minute)
		}
		write("web.yaml", of(pipeline))
		code, _, err := prerig(t, "render", "--pipelines", dir, "--source", dir, "--cache", t.TempDir())
		if code != 2 || !strings.Contains(err, "spec.build.limits.memory: must be a quantity such as 512Mi") {
			t.Errorf("%s: render: exit code %d, %s", amount, code, err)
		}
	}
}
