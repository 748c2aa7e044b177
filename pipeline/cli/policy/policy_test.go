// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/policies"
)

const small = `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: NAME}
spec:
  istio:
    injector:
      config: "policy: enabled"
`

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func named(name string) string { return strings.Replace(small, "NAME", name, 1) }

// TestNear looks for the policy of directories, from the innermost prerig.yaml outwards to the root of the repository.
func TestNear(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"repo/.git", "repo/apps/web/base", "repo/apps/own/k8s", "repo/sub/k8s", "plain/k8s"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, root, FileName, named("outside"))
	write(t, filepath.Join(root, "repo"), FileName, named("repository"))
	write(t, filepath.Join(root, "repo/apps/own"), FileName, named("own"))
	write(t, filepath.Join(root, "repo/sub"), ".git", "gitdir: ../.git/modules/sub\n") // of a submodule
	write(t, filepath.Join(root, "repo/apps/web"), FileName, "pipelines: pipelines\nlisten: :8080\n")
	f := &Finder{}
	for dir, want := range map[string]string{
		"repo":               "repo/prerig.yaml",
		"repo/apps":          "repo/prerig.yaml",
		"repo/apps/web/base": "repo/prerig.yaml",
		"repo/apps/own":      "repo/apps/own/prerig.yaml",
		"repo/apps/own/k8s":  "repo/apps/own/prerig.yaml",
		"repo/sub/k8s":       "",
		"plain/k8s":          "prerig.yaml",
	} {
		for range 2 { // the second time it is remembered
			got, err := f.Near(filepath.Join(root, dir))
			if err != nil {
				t.Fatal(err)
			}
			if want != "" && got != filepath.Join(root, want) || want == "" && got != "" {
				t.Errorf("the policy of %s is %q, want %q", dir, got, want)
			}
		}
	}
	if want := filepath.Join(root, "repo/apps/web", FileName); len(f.Passed) != 1 || f.Passed[0] != want {
		t.Errorf("passed over: %v, want %s", f.Passed, want)
	}
}

// TestNearLeavesSharedDirectoriesAlone: what lies in /tmp may be anybody's.
func TestNearLeavesSharedDirectoriesAlone(t *testing.T) {
	shared := t.TempDir()
	if err := os.Chmod(shared, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	write(t, shared, FileName, named("anybody's"))
	own := filepath.Join(shared, "own")
	if err := os.Mkdir(own, 0o755); err != nil {
		t.Fatal(err)
	}
	if got, err := (&Finder{}).Near(own); got != "" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := (&Finder{}).Near(shared); got != filepath.Join(shared, FileName) || err != nil {
		t.Errorf("of the directory itself: got %q, %v", got, err)
	}
}

// TestNearRefusesWhatCannotBeRead: a policy further out, or the built-in one, would decide something else.
func TestNearRefusesWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, FileName, named("outside"))
	for want, place := range map[string]func(path string) error{
		"is a broken link":      func(path string) error { return os.Symlink("../gone.yaml", path) },
		"is not a regular file": func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		dir := filepath.Join(root, strings.ReplaceAll(want, " ", "-"))
		if err := errors.Join(os.Mkdir(dir, 0o755), place(filepath.Join(dir, FileName))); err != nil {
			t.Fatal(err)
		}
		if got, err := (&Finder{}).Near(dir); err == nil || err.Error() != "searching for a policy: "+filepath.Join(dir, FileName)+" "+want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}

// TestNearEndsAtHome where there is no repository.
func TestNearEndsAtHome(t *testing.T) {
	root := t.TempDir()
	home := filepath.Join(root, "home")
	if err := os.MkdirAll(filepath.Join(home, "k8s"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	write(t, root, FileName, named("of-the-machine"))
	if got, err := (&Finder{}).Near(filepath.Join(home, "k8s")); got != "" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, tc := range map[string]struct{ path, want string }{
		"no file":       {filepath.Join(dir, "nowhere.yaml"), "no such file, and no built-in policy of that name (built-in policies: cloud-sql-operator"},
		"a directory":   {dir, "is a directory"},
		"empty":         {write(t, dir, "empty.yaml", "# nothing\n"), "the file is empty"},
		"two":           {write(t, dir, "two.yaml", named("a")+"---\n"+named("b")), "2 documents (the second at line 9)"},
		"the daemon's":  {write(t, dir, "daemon.yaml", "pipelines: pipelines\nstate: /var/lib/prerig\n"), "it is a configuration of prerig serve and not an InjectionPolicy"},
		"a ConfigMap":   {write(t, dir, "injector.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio-sidecar-injector}\ndata: {config: 'policy: enabled'}\n"), "prerig import " + filepath.Join(dir, "injector.yaml") + " --to prerig.yaml"},
		"no type":       {write(t, dir, "none.yaml", "spec: {}\n"), "apiVersion: is missing; it must be prerig.dev/v1alpha1"},
		"another kind":  {write(t, dir, "cm.yaml", "apiVersion: v1\nkind: Pod\n"), "it is a Pod and not an InjectionPolicy"},
		"another group": {write(t, dir, "v2.yaml", strings.Replace(named("a"), "v1alpha1", "v2", 1)), "prerig.dev/v1alpha1"},
	} {
		_, err := Load(tc.path)
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), filepath.Base(tc.path)) {
			t.Errorf("%s: %v, want the file's name and %q", name, err, tc.want)
		}
	}
}

// TestLoadBuiltIn reads all policies that come with Prerig. A file of the same name wins.
func TestLoadBuiltIn(t *testing.T) {
	for _, name := range policies.Names() {
		got, err := Load(name)
		if err != nil {
			t.Errorf("built-in %s: %v", name, err)
			continue
		}
		if got.Metadata.Name != name || got.Origin != "built-in "+name {
			t.Errorf("built-in %s: is named %s, from %q", name, got.Metadata.Name, got.Origin)
		}
	}
	dir := t.TempDir()
	write(t, dir, "istio", named("file"))
	t.Chdir(dir)
	got, err := Load("istio")
	if err != nil || got.Metadata.Name != "file" {
		t.Errorf("Load(istio) with a file istio: %v, %v", got.Origin, err)
	}
}

func TestKubeInject(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := write(t, dir, "config", "policy: enabled\ntemplates: {sidecar: '{}'}\n")
	values := write(t, dir, "values", `{"global": {"tag": "1.30.1"}}`)
	mesh := write(t, dir, "mesh", "trustDomain: example.org\n")
	both := write(t, dir, "cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  config: \"policy: disabled\\ntemplates: {sidecar: '{}'}\"\n  values: '{}'\n")

	p, err := KubeInject{InjectConfig: config, Values: values, MeshConfig: mesh}.Policy()
	if err != nil {
		t.Fatal(err)
	}
	i := p.Spec.Istio
	if i.Injector.Config != "policy: enabled\ntemplates: {sidecar: '{}'}\n" || i.Injector.Values != `{"global": {"tag": "1.30.1"}}` || i.MeshConfig != "trustDomain: example.org\n" {
		t.Errorf("the files are not taken verbatim: %+v", i)
	}
	// A configuration that injects only on demand injects when somebody injects by hand.
	if p, err = (KubeInject{InjectConfig: both}).Policy(); err != nil || !strings.HasPrefix(p.Spec.Istio.Injector.Config, "policy: enabled\n") || p.Spec.Istio.Injector.Values != "{}" {
		t.Errorf("of a ConfigMap: %+v, %v", p.InjectionPolicy, err)
	}
	if p, err = (KubeInject{InjectConfig: both, Values: values}).Policy(); err != nil || p.Spec.Istio.Injector.Values != `{"global": {"tag": "1.30.1"}}` {
		t.Errorf("of a ConfigMap with values given: %+v, %v", p.InjectionPolicy, err)
	}
	for name, tc := range map[string]struct {
		k    KubeInject
		want string
	}{
		"no config":      {KubeInject{Values: values}, "--valuesFile and --meshConfigFile require --injectConfigFile"},
		"no file":        {KubeInject{InjectConfig: filepath.Join(dir, "nowhere")}, "nowhere of --injectConfigFile: no such file"},
		"empty":          {KubeInject{InjectConfig: write(t, dir, "empty", "\n")}, "empty of --injectConfigFile: the file is empty"},
		"ConfigMap keys": {KubeInject{InjectConfig: config, MeshConfig: both}, "the ConfigMap has no data.mesh"},
	} {
		if _, err := tc.k.Policy(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestKubeInjectTakesATemplateAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, tc := range map[string]struct{ text, want string }{
		"of a pod":           {"metadata:\n  labels: {a: b}\n\nspec:\n  containers: []\n", "policy: enabled\ntemplates:\n  sidecar: |2\n    metadata:\n      labels: {a: b}\n\n    spec:\n      containers: []\n"},
		"of containers":      {"containers:\n- name: istio-proxy", "policy: enabled\ntemplate: |4\n    containers:\n    - name: istio-proxy"},
		"without the policy": {"template: 'containers: []'\n", "policy: enabled\ntemplate: 'containers: []'\n"},
	} {
		p, err := KubeInject{InjectConfig: write(t, dir, "config", tc.text)}.Policy()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := p.Spec.Istio.Injector.Config; got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tc.want)
		}
	}
}
