// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
)

// kptfile returns a Kptfile with a pipeline, whose entries are written in flow style.
func kptfile(mutators ...string) string { return kptfileWith(mutators, nil) }

func kptfileWith(mutators, validators []string) string {
	text := "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n  annotations: {config.kubernetes.io/local-config: \"true\"}\npipeline:\n"
	for name, entries := range map[string][]string{"mutators": mutators, "validators": validators} {
		if len(entries) > 0 {
			text += "  " + name + ":\n"
		}
		for _, entry := range entries {
			text += "  - {" + entry + "}\n"
		}
	}
	return text
}

// policies as kpt reads them: without the annotation that is for kustomize.
var (
	logger = strings.NewReplacer("  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: prerig-fn}\n", "  annotations: {config.kubernetes.io/local-config: \"true\"}\n").Replace(extra)
	mesh   = strings.NewReplacer("  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: prerig-fn}\n", "  annotations: {config.kubernetes.io/local-config: \"true\"}\n").Replace(istio)
)

func named(object, name string) string {
	return strings.Replace(object, "metadata:\n  name: web\n", "metadata:\n  name: "+name+"\n", 1)
}

const withMesh = "exec: prerig-fn, configPath: mesh.yaml"

var kptParity = map[string]map[string]string{
	"one function": {
		"Kptfile": kptfile(withMesh), "mesh.yaml": mesh, "web.yaml": "# the shop's own\n" + deployment, "others.yaml": others,
	},
	"configMap": {
		"Kptfile":  kptfile(`exec: prerig-fn, configMap: {builtIn: istio, tag: 1.30.3, defaultNamespace: shop, unknownNamespace: Inject}`),
		"web.yaml": deployment, "others.yaml": others,
	},
	"several functions": {
		"Kptfile":   kptfile("exec: prerig-fn, configPath: logger.yaml", withMesh),
		"mesh.yaml": mesh, "logger.yaml": logger, "web.yaml": deployment, "others.yaml": others,
	},
	"selectors and exclusions": {
		"Kptfile": kptfile("exec: prerig-fn, configPath: logger.yaml, selectors: [{kind: Deployment, labels: {app: web}}, {name: bare}], exclude: [{name: quiet}, {}]",
			"exec: prerig-fn, configPath: mesh.yaml, exclude: [{apiVersion: v1, kind: Pod}]", "exec: prerig-fn, configPath: logger.yaml, selectors: [{annotations: {a: b}}]"),
		"logger.yaml": logger, "mesh.yaml": mesh, "web.yaml": deployment, "others.yaml": others, "quiet.yaml": named(deployment, "quiet"), "loud.yaml": named(deployment, "loud"),
	},
	"validators change nothing": {
		"Kptfile": kptfileWith([]string{withMesh}, []string{"exec: prerig-fn, configPath: logger.yaml"}), "logger.yaml": logger, "mesh.yaml": mesh, "web.yaml": deployment,
	},
	"packages below, in order": {
		"Kptfile": kptfile(withMesh), "mesh.yaml": mesh, "a.yaml": named(deployment, "top-a"), "z.yaml": named(deployment, "top-z"),
		"b/in/Kptfile": kptfile("exec: prerig-fn, configPath: conf/logger.yaml"), "b/in/conf/logger.yaml": logger, "b/in/web.yaml": named(deployment, "b-in"),
		"b-c/Kptfile": strings.Replace(kptfile(), "pipeline:\n", "", 1), "b-c/web.yaml": named(deployment, "b-c"),
		"b-c/deep/er/Kptfile": kptfile("exec: prerig-fn, configPath: ./logger.yaml"), "b-c/deep/er/logger.yaml": logger, "b-c/deep/er/web.yaml": named(deployment, "deeper"),
		"b/own.yaml": named(deployment, "own"), "b.yml": named(deployment, "yml"), "c/x.json": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"json"},"spec":{"containers":[{"name":"app","image":"x"}]}}` + "\n",
		".hidden/web.yaml": named(deployment, "hidden"), ".dot.yaml": named(deployment, "dot"),
	},
	".krmignore": {
		"Kptfile": kptfile(withMesh), "mesh.yaml": mesh, "web.yaml": deployment,
		".krmignore":  "# what is none of it\nvalues.yaml\n/draft\n*-test.yaml\nsub\nout/**\n!kept-test.yaml\ndocs/\n",
		"values.yaml": "replicas: 2\n", "draft/web.yaml": "x: [\n", "deep/draft/web.yaml": named(deployment, "deep-draft"), "deep/values.yaml": "a: b\n",
		"a-test.yaml": "a: b\n", "kept-test.yaml": named(deployment, "kept"), "docs/x.yaml": "a: b\n", "out/a/b.yaml": named(deployment, "out"),
		"sub/Kptfile": kptfile("exec: prerig-fn, configPath: logger.yaml"), "sub/logger.yaml": logger, "sub/web-test.yaml": named(deployment, "of-sub"), "sub/values.yaml": named(deployment, "values"),
		"deep/.krmignore": "*\n",
	},
	"what is for tools is seen by the function": {
		"Kptfile": kptfile(withMesh), "mesh.yaml": strings.Replace(mesh, "spec:\n", "spec:\n  record: Annotation\n", 1), "web.yaml": deployment,
		"kustomization.yaml": "resources: [web.yaml]\n", "inventory.yaml": "apiVersion: kpt.dev/v1alpha1\nkind: ResourceGroup\nmetadata: {name: inventory, namespace: shop}\n",
		"local.yaml": strings.Replace(named(deployment, "local"), "  labels: {app: web}\n", "  annotations: {config.kubernetes.io/local-config: \"true\"}\n", 1),
	},
	"twice is once": {
		"Kptfile": kptfile(withMesh, withMesh), "mesh.yaml": mesh, "web.yaml": deployment,
	},
	"objects that sidecars bring": {
		"Kptfile": kptfile("exec: prerig-fn, configPath: collector.yaml, selectors: [{kind: Deployment}]", withMesh), "mesh.yaml": mesh, "web.yaml": deployment, "others.yaml": others,
		"collector.yaml": "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: watch, annotations: {config.kubernetes.io/local-config: \"true\"}}\nspec:\n  sidecars:\n  - name: watch\n" +
			"    select: {default: Inject}\n    template: |\n      spec:\n        containers: [{name: watch, image: registry.example.com/watch:2}]\n" +
			"    objects: |\n      apiVersion: v1\n      kind: ConfigMap\n      metadata: {name: watch}\n      data: {level: high}\n",
	},
}

// realKpt renders a package with the kpt command and gives the objects in its order, and a directory with the files that it writes.
func realKpt(t *testing.T, files map[string]string) (stream, written string) {
	t.Helper()
	kpt, err := exec.LookPath("kpt")
	if err != nil && os.Getenv("CI") != "" {
		t.Fatal(err)
	} else if err != nil {
		t.Skip("kpt is not installed: nothing to compare with")
	}
	bin, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "app")
	for name, content := range files {
		full := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		command := exec.Command(kpt, append([]string{"fn", "render", "--allow-exec", dir}, args...)...)
		command.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+t.TempDir())
		var out, stderr bytes.Buffer
		command.Stdout, command.Stderr = &out, &stderr
		if err := command.Run(); err != nil {
			t.Fatalf("%v\n%s", err, stderr.String())
		}
		return out.String()
	}
	written = filepath.Join(t.TempDir(), "out")
	run("-o", written)
	return run("-o", "unwrap"), written
}

// forCluster is what kpt live apply would send of a stream, and not the configuration of functions.
func forCluster(t *testing.T, stream string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, doc := range strings.Split("\n"+stream, "\n---\n") {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(doc), &object); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		apiVersion, _ := object["apiVersion"].(string)
		group, _, _ := strings.Cut(apiVersion, "/")
		metadata, _ := object["metadata"].(map[string]any)
		annotations, _ := metadata["annotations"].(map[string]any)
		if apiVersion == "" || slices.Contains([]string{"kpt.dev", "prerig.dev"}, group) || annotations["config.kubernetes.io/local-config"] == "true" {
			continue
		}
		for key := range annotations {
			if strings.HasPrefix(key, "internal.config.kubernetes.io/") || strings.HasPrefix(key, "config.kubernetes.io/") {
				delete(annotations, key)
			}
		}
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
		out = append(out, object)
	}
	return out
}

// published is what a commit would hold of objects.
func published(t *testing.T, objects []map[string]any) map[string]string {
	t.Helper()
	var rendered []render.Object
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		metadata := object["metadata"].(map[string]any)
		namespace, _ := metadata["namespace"].(string)
		rendered = append(rendered, render.Object{
			APIVersion: object["apiVersion"].(string), Kind: object["kind"].(string), Namespace: namespace, Name: metadata["name"].(string), YAML: text,
		})
	}
	return filesOf(t, rendered)
}

func filesOf(t *testing.T, objects []render.Object) map[string]string {
	t.Helper()
	files, err := publish.Files(objects, v1alpha1.LayoutObjects, v1alpha1.StyleCanonical)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for name, text := range files {
		texts[name] = string(text)
	}
	return texts
}

// TestParityWithKpt compares with kpt fn render: the same objects in the same order, and the same bytes in a commit, both
// from what kpt prints and from the files that it writes.
func TestParityWithKpt(t *testing.T) {
	for name, files := range kptParity {
		t.Run(name, func(t *testing.T) {
			stream, dir := realKpt(t, files)
			want := forCluster(t, stream)
			source := map[string]string{}
			for name, text := range files {
				source["app/"+name] = text
			}
			r := request("app")
			r.Type = v1alpha1.BuildKpt
			got, _, err := renderFiles(t, source, r)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, forCluster(t, text(got))); diff != "" {
				t.Errorf("the objects are not those of kpt (-kpt +prerig):\n%s", diff)
			}
			if diff := cmp.Diff(published(t, want), filesOf(t, got.Objects)); diff != "" {
				t.Errorf("the commit is not that of kpt (-kpt +prerig):\n%s", diff)
			}
			var written []map[string]any
			err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				text, err := os.ReadFile(name)
				written = append(written, forCluster(t, string(text))...)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(published(t, want), published(t, written)); diff != "" {
				t.Errorf("kpt prints something else than it writes, so the comparison tells nothing:\n%s", diff)
			}
			if got.Type != v1alpha1.BuildKpt || !strings.Contains(text(got), "istio-proxy") {
				t.Errorf("the case injects nothing, or is no kpt package: %s", got.Type)
			}
		})
	}
}

// What kpt refuses is refused, and so is what it would run that is not ours, with the place.
func TestKptRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a foreign image":     {map[string]string{"Kptfile": kptfile(withMesh, "image: evil.example.com/fn:1")}, "app/Kptfile:9: pipeline.mutators[1]: the image evil.example.com/fn:1 is not Prerig's own"},
		"a foreign validator": {map[string]string{"Kptfile": kptfileWith(nil, []string{"exec: ./evil.sh"})}, "app/Kptfile:8: pipeline.validators[0]: the executable ./evil.sh is not Prerig's own"},
		"one of a package below": {map[string]string{"Kptfile": kptfile(), "sub/Kptfile": kptfile("exec: sh -c prerig-fn, configPath: mesh.yaml")},
			"app/sub/Kptfile:8: pipeline.mutators[0]: the executable sh is not Prerig's own"},
		"arguments":                 {map[string]string{"Kptfile": kptfile("exec: prerig-fn --force, configPath: mesh.yaml")}, "takes none"},
		"no configuration":          {map[string]string{"Kptfile": kptfile("exec: prerig-fn")}, "the function needs its policy"},
		"both configurations":       {map[string]string{"Kptfile": kptfile("exec: prerig-fn, configPath: mesh.yaml, configMap: {builtIn: istio}")}, "cannot both be given"},
		"outside of the package":    {map[string]string{"Kptfile": kptfile("exec: prerig-fn, configPath: ../mesh.yaml")}, "must stay inside"},
		"ignored":                   {map[string]string{"Kptfile": kptfile(withMesh), ".krmignore": "mesh.yaml\n"}, "app/mesh.yaml is not a manifest of the package"},
		"of a package below":        {map[string]string{"Kptfile": kptfile("exec: prerig-fn, configPath: sub/mesh.yaml"), "sub/Kptfile": kptfile(), "sub/mesh.yaml": mesh}, "app/sub/mesh.yaml is not a manifest"},
		"two objects":               {map[string]string{"Kptfile": kptfile(withMesh), "mesh.yaml": mesh + "---\n" + logger}, "holds 2 objects"},
		"no function":               {map[string]string{"Kptfile": kptfile("configPath: mesh.yaml")}, "exactly one of image and exec"},
		"a typo":                    {map[string]string{"Kptfile": strings.Replace(kptfile(withMesh), "mutators", "mutator", 1)}, "mutator"},
		"a typo of a function":      {map[string]string{"Kptfile": kptfile("exec: prerig-fn, configpath: mesh.yaml")}, "line 8: field configpath not found"},
		"a key of the configMap":    {map[string]string{"Kptfile": kptfile("exec: prerig-fn, configMap: {builtin: istio}")}, "builtIn"},
		"a condition":               {map[string]string{"Kptfile": kptfile("exec: prerig-fn, configPath: mesh.yaml, condition: \"true\"")}, "field condition not found"},
		"an older Kptfile":          {map[string]string{"Kptfile": strings.Replace(kptfile(withMesh), "kpt.dev/v1", "kpt.dev/v1alpha2", 1)}, "must be a Kptfile of kpt.dev/v1"},
		"another order":             {map[string]string{"Kptfile": strings.Replace(kptfile(withMesh), "annotations: {", "annotations: {kpt.dev/bfs-rendering: \"true\", ", 1)}, "kpt.dev/bfs-rendering is not supported"},
		"what is no object":         {map[string]string{"Kptfile": kptfile(withMesh), "values.yaml": "replicas: 1\n"}, "app/values.yaml:1: an object of a kpt package needs"},
		"an object without a name":  {map[string]string{"Kptfile": kptfile(withMesh), "job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {labels: {a: b}}\n"}, "needs apiVersion, kind, and metadata.name or generateName"},
		"a function without a name": {map[string]string{"Kptfile": kptfile("exec: \" \", configPath: mesh.yaml")}, "names no program"},
		"aliases that grow":         {map[string]string{"Kptfile": kptfile(withMesh) + aliasBomb()}, "excessive aliasing"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"app/mesh.yaml": mesh}
			for name, text := range tc.files {
				files["app/"+name] = text
			}
			if _, _, err := renderFiles(t, files, request("app")); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func aliasBomb() string {
	out := "info:\n  a0: &a0 [x, x]\n"
	for i := range 30 {
		out += fmt.Sprintf("  a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	return out
}

// Links to directories are not followed, and so cannot go round in circles.
func TestKptLinks(t *testing.T) {
	files := map[string]string{"app/Kptfile": kptfile(withMesh), "app/mesh.yaml": mesh, "app/round": "->.", "app/more": "->../other", "other/web.yaml": deployment, "app/web.yaml": "->../other/web.yaml"}
	got, _, err := renderFiles(t, files, request("app"))
	if err != nil || ids(got) != "apps/v1 Deployment web" || strings.Count(text(got), "name: istio-proxy\n") != 1 {
		t.Errorf("%v: got %v", err, got)
	}
}
