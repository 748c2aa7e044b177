// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// meshOf is a policy with the built-in sidecar.
func meshOf(istio string) string {
	return "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec:\n  istio: {" + istio + "}\n"
}

// TestNoMixedMesh: a version, a tag or an image of another Istio than the built-in sidecar's is an error of each command, which says
// what to do.
func TestNoMixedMesh(t *testing.T) {
	const covers, importing = "the built-in policy covers Istio 1.28 to 1.32", "| prerig import"
	for name, tc := range map[string]struct {
		policy string
		flags  []string
		want   []string
	}{
		"an old tag":              {meshOf(`injector: {builtIn: istio, overrides: {global: {tag: "1.20.0"}}}`), nil, []string{`injector.overrides.global.tag "1.20.0" is of Istio 1.20`, covers, importing}},
		"a tag of the future":     {meshOf(`injector: {builtIn: istio, overrides: {global: {tag: "1.33.0"}}}`), nil, []string{"is of Istio 1.33", covers, importing}},
		"an old version":          {meshOf(`version: "1.27", injector: {builtIn: istio}`), nil, []string{"the version is 1.27", covers, importing}},
		"an old image":            {meshOf(`injector: {builtIn: istio, overrides: {global: {proxy: {image: "registry.example.com/proxyv2:1.26.1"}}}}`), nil, []string{"is of Istio 1.26", covers, importing}},
		"a tag of another minor":  {meshOf(`version: "1.31", injector: {builtIn: istio, overrides: {global: {tag: "1.30.3"}}}`), nil, []string{"is of Istio 1.30, and the version is 1.31", `set istio.version to "1.30"`}},
		"a hub of another minor":  {meshOf(`version: "1.31", injector: {builtIn: istio, overrides: {global: {hub: registry.example.com/istio/1.29.1}}}`), nil, []string{"is of Istio 1.29, and the version is 1.31"}},
		"the flag":                {meshOf(`injector: {builtIn: istio}`), []string{"--istio-version", "1.20"}, []string{"the version is 1.20", covers, importing}},
		"the flag against a tag":  {meshOf(`injector: {builtIn: istio, overrides: {global: {tag: "1.30.3"}}}`), []string{"--istio-version", "1.29"}, []string{"is of Istio 1.30, and the version is 1.29"}},
		"the flag without policy": {"", []string{"--istio-version", "1.99"}, []string{"the version is 1.99", covers, "a newer release of Prerig"}},
	} {
		t.Run(name, func(t *testing.T) {
			arrange(t)
			writeFiles(t, map[string]string{"w.yaml": deployment("web", "shop")})
			commands := [][]string{{"inject", "w.yaml"}, {"inject", "--check", "w.yaml"}, {"explain", "w.yaml"}, {"lint", "w.yaml"}}
			if tc.policy != "" {
				writeFiles(t, map[string]string{"prerig.yaml": tc.policy})
			}
			if tc.policy != "" && tc.flags == nil {
				commands = append(commands, []string{"doctor", "prerig.yaml"}, []string{"gate", "w.yaml"})
			}
			for _, args := range commands {
				if args[0] == "lint" && tc.flags != nil {
					continue // there the flag is for --as-is
				}
				code, out, stderr := command(t, "", append(args, tc.flags...)...)
				if code == ExitOK || args[0] == "inject" && out != "" {
					t.Errorf("%v: exit code %d\n%s", args, code, out)
				}
				for _, want := range tc.want {
					if !strings.Contains(stderr+out, want) {
						t.Errorf("%v: want %q:\n%s%s", args, want, out, stderr)
					}
				}
			}
		})
	}
}

// TestRenderRejectsAMixedMesh, as it injects on the renderer's side.
func TestRenderRejectsAMixedMesh(t *testing.T) {
	repository, pipelines := fleet(t, "web")
	text := readFile(t, filepath.Join(pipelines, "web.yaml"))
	must(t, os.WriteFile(filepath.Join(pipelines, "web.yaml"), []byte(strings.Replace(text, "{builtIn: istio}", "{path: mesh.yaml}", 1)), 0o600))
	repository.Commit("policy", map[string]string{"mesh.yaml": meshOf(`injector: {builtIn: istio, overrides: {global: {tag: "1.27.3"}}}`)})
	code, out, stderr := prerig(t, "render", "--pipelines", pipelines, "--cache", t.TempDir())
	for _, want := range []string{`injector.overrides.global.tag "1.27.3" is of Istio 1.27, and the built-in policy covers Istio 1.28 to 1.32`, "| prerig import"} {
		if code == ExitOK || !strings.Contains(stderr, want) {
			t.Errorf("exit code %d, want %q:\n%s%s", code, want, out, stderr)
		}
	}
}

// TestTheSidecarOfTheVersion: the built-in policy makes the sidecar of the version or the tag that is asked for.
func TestTheSidecarOfTheVersion(t *testing.T) {
	const divisor, processors = "divisor: \"1\"", "GOMAXPROCS"
	for name, tc := range map[string]struct {
		policy      string
		flags       []string
		follows     string
		image       string
		has, hasNot []string
	}{
		"the default":         {meshOf(`injector: {builtIn: istio}`), nil, "following Istio 1.32, by the built-in policy", "proxyv2:1.32.0", []string{divisor}, []string{processors}},
		"a version":           {meshOf(`version: "1.28", injector: {builtIn: istio}`), nil, "following Istio 1.28, by the policy", "proxyv2:1.28.10", []string{processors}, []string{divisor}},
		"a tag":               {meshOf(`injector: {builtIn: istio, overrides: {global: {tag: "1.28.4"}}}`), nil, `following Istio 1.28.4, by injector.overrides.global.tag "1.28.4"`, "proxyv2:1.28.4", nil, []string{divisor}},
		"a version and a tag": {meshOf(`version: "1.30", injector: {builtIn: istio, overrides: {global: {tag: "1.30.3"}}}`), nil, "following Istio 1.30.3, by the policy", "proxyv2:1.30.3", []string{divisor}, nil},
		"the newest":          {meshOf(`version: "1.32", injector: {builtIn: istio}`), nil, "following Istio 1.32, by the policy", "proxyv2:1.32.0", []string{divisor}, []string{processors}},
		"the flag":            {"", []string{"--istio-version", "1.29"}, "following Istio 1.29, by --istio-version", "proxyv2:1.29.6", []string{divisor}, nil},
		"the flag and a name": {"", []string{"-p", "istio", "--istio-version", "1.28.2"}, "following Istio 1.28.2, by --istio-version", "proxyv2:1.28.2", nil, []string{divisor}},
	} {
		t.Run(name, func(t *testing.T) {
			arrange(t)
			writeFiles(t, map[string]string{"w.yaml": deployment("web", "shop")})
			if tc.policy != "" {
				writeFiles(t, map[string]string{"prerig.yaml": tc.policy})
			}
			out, stderr := ok(t, "", append([]string{"inject", "w.yaml"}, tc.flags...)...)
			if !strings.Contains(stderr, tc.follows) {
				t.Errorf("want %q:\n%s", tc.follows, stderr)
			}
			for _, want := range append(tc.has, tc.image) {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing:\n%s", want, out)
				}
			}
			for _, other := range tc.hasNot {
				if strings.Contains(out, other) {
					t.Errorf("%q is there:\n%s", other, out)
				}
			}
		})
	}
}

// TestAConfigMapWithoutKeysIsNoPolicy: naming one is a slip, and never means Istio's defaults.
func TestAConfigMapWithoutKeysIsNoPolicy(t *testing.T) {
	const head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
	for name, text := range map[string]string{
		"no data": head, "empty data": head + "data: {}\n", "null": head + "data:\n", "binary data": head + "binaryData: {a: YQ==}\n",
		"keys of something else": head + "data: {log_level: info}\n",
	} {
		t.Run(name, func(t *testing.T) {
			arrange(t)
			writeFiles(t, map[string]string{"cm.yaml": text, "w.yaml": deployment("web", "shop")})
			for _, args := range [][]string{{"inject", "-p", "cm.yaml", "w.yaml"}, {"lint", "-p", "cm.yaml", "w.yaml"}, {"doctor", "cm.yaml"}} {
				code, out, stderr := command(t, "", args...)
				if code == ExitOK || !strings.Contains(stderr+out, "builtIn, cluster, configMap") {
					t.Errorf("%v: exit code %d\n%s%s", args, code, out, stderr)
				}
			}
		})
	}
}
