// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// plugin is Argo CD's file of a Config Management Plugin, as its documentation gives it.
type plugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version  string  `json:"version,omitempty"`
		Init     command `json:"init,omitempty"`
		Generate command `json:"generate"`
		Discover struct {
			FileName string         `json:"fileName,omitempty"`
			Find     map[string]any `json:"find,omitempty"`
		} `json:"discover,omitempty"`
		Parameters struct {
			Static  []parameter `json:"static,omitempty"`
			Dynamic command     `json:"dynamic,omitempty"`
		} `json:"parameters,omitempty"`
		PreserveFileMode bool `json:"preserveFileMode,omitempty"`
		ProvideGitCreds  bool `json:"provideGitCreds,omitempty"`
	} `json:"spec"`
}

type command struct {
	Command []string `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
}

type parameter struct {
	Name           string            `json:"name"`
	Title          string            `json:"title,omitempty"`
	Tooltip        string            `json:"tooltip,omitempty"`
	Required       bool              `json:"required,omitempty"`
	ItemType       string            `json:"itemType,omitempty"`
	CollectionType string            `json:"collectionType,omitempty"`
	String         string            `json:"string,omitempty"`
	Array          []string          `json:"array,omitempty"`
	Map            map[string]string `json:"map,omitempty"`
}

type application struct {
	Spec struct {
		Source struct {
			RepoURL, TargetRevision, Path string
			Directory                     struct{ Recurse bool }
			Plugin                        struct {
				Name string
				Env  []struct{ Name, Value string }
			}
		}
		Destination struct{ Namespace string }
	}
}

// environment is what Argo CD sets for an application: its own variables, the application's with a prefix, and the
// parameters both as JSON and one by one.
func environment(t *testing.T, app application, name string, parameters ...parameter) []string {
	t.Helper()
	list, err := json.Marshal(parameters)
	if err != nil {
		t.Fatal(err)
	}
	env := []string{
		"ARGOCD_APP_NAME=" + name, "ARGOCD_APP_NAMESPACE=" + app.Spec.Destination.Namespace, "ARGOCD_APP_REVISION=" + strings.Repeat("a", 40),
		"ARGOCD_APP_SOURCE_PATH=" + app.Spec.Source.Path, "ARGOCD_APP_SOURCE_REPO_URL=" + app.Spec.Source.RepoURL,
		"ARGOCD_APP_SOURCE_TARGET_REVISION=" + app.Spec.Source.TargetRevision, "KUBE_VERSION=1.34.0", "KUBE_API_VERSIONS=v1,apps/v1",
		"ARGOCD_APP_PARAMETERS=" + string(list),
	}
	for _, e := range app.Spec.Source.Plugin.Env {
		env = append(env, "ARGOCD_ENV_"+e.Name+"="+e.Value)
	}
	for _, p := range parameters {
		env = append(env, "PARAM_"+strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(p.Name))+"="+p.String)
	}
	return env
}

func TestArgoCDPlugin(t *testing.T) {
	files := example(t, "argo-cd")
	var p plugin
	if err := yaml.UnmarshalStrict([]byte(files["plugin.yaml"]), &p); err != nil {
		t.Fatal(err)
	}
	if p.APIVersion != "argoproj.io/v1alpha1" || p.Kind != "ConfigManagementPlugin" || p.Metadata.Name == "" {
		t.Fatalf("not a Config Management Plugin: %+v", p)
	}
	app := decode[application](t, files["application-plugin.yaml"])[0]
	if got := app.Spec.Source.Plugin.Name; got != p.Metadata.Name {
		t.Errorf("the application names the plugin %q, the plugin is %q", got, p.Metadata.Name)
	}
	if len(p.Spec.Parameters.Static) != 1 || p.Spec.Parameters.Static[0].Name != "pipeline" {
		t.Errorf("the parameters are %+v", p.Spec.Parameters.Static)
	}
	root := t.TempDir()
	if err := testbed.Write(root, files); err != nil {
		t.Fatal(err)
	}
	generate := append(p.Spec.Generate.Command, p.Spec.Generate.Args...)
	none, atRoot := app, app
	none.Spec.Source.Plugin.Env = nil
	atRoot.Spec.Source.Path = "."
	for name, tc := range map[string]struct {
		app        application
		name       string
		dir        string
		parameters []parameter
	}{
		"by the application's environment": {app, "x", app.Spec.Source.Path, nil},
		"by a parameter":                   {none, "x", app.Spec.Source.Path, []parameter{{Name: "pipeline", String: "shop"}}},
		"a parameter wins": {func() application {
			a := app
			a.Spec.Source.Plugin.Env = []struct{ Name, Value string }{{"PIPELINE", "none"}}
			return a
		}(), "x", app.Spec.Source.Path, []parameter{{Name: "pipeline", String: "shop"}}},
		"by the application's name":     {none, "shop", app.Spec.Source.Path, nil},
		"in a namespace of its own":     {none, "team_shop", app.Spec.Source.Path, nil},
		"at the root of the repository": {atRoot, "shop", ".", nil},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, err := shell(t, filepath.Join(root, tc.dir), environment(t, tc.app, tc.name, tc.parameters...), generate...)
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr)
			}
			checkInjected(t, stdout)
		})
	}
	t.Run("a pipeline that is not there", func(t *testing.T) {
		stdout, stderr, err := shell(t, filepath.Join(root, app.Spec.Source.Path), environment(t, none, "other"), generate...)
		if err == nil || stdout != "" || !strings.Contains(stderr, "no pipeline other") {
			t.Errorf("err %v, output %q, errors %q", err, stdout, stderr)
		}
	})
	t.Run("manifests that are wrong", func(t *testing.T) {
		if err := testbed.Write(root, map[string]string{"apps/shop/web.yaml": "kind: [\n"}); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, err := shell(t, filepath.Join(root, app.Spec.Source.Path), environment(t, app, "shop"), generate...)
		if err == nil || stdout != "" || !strings.Contains(stderr, "web.yaml") {
			t.Errorf("err %v, output %q, errors %q", err, stdout, stderr)
		}
	})
}

// TestArgoCDOnTheRenderedBranch expects that the Application's directory on its branch holds what Argo CD can apply as it is.
func TestArgoCDOnTheRenderedBranch(t *testing.T) {
	files := example(t, "argo-cd")
	app := decode[application](t, files["application.yaml"])[0]
	s := serve(t, files, nil)
	checkInjected(t, branch(t, s, app.Spec.Source.TargetRevision, app.Spec.Source.Path, app.Spec.Source.Directory.Recurse))
}

// branch returns the manifests of a directory on a branch, as a stream: those in directories below it only where it is read as a whole,
// which Flux always does, and Argo CD where an Application says so.
func branch(t *testing.T, s served, ref, path string, recurse bool) string {
	t.Helper()
	args := []string{"ls-tree", "--format=%(objecttype) %(path)"}
	if recurse {
		args = append(args, "-r")
	}
	listed, err := s.repository.Git(t.Context(), append(args, ref, "--", strings.TrimPrefix(path, "./")+"/")...)
	var names string
	for line := range strings.Lines(listed) {
		if name, isFile := strings.CutPrefix(line, "blob "); isFile {
			names += name
		}
	}
	if err != nil || names == "" {
		t.Fatalf("%s holds nothing on %s: %v", path, ref, err)
	}
	var out strings.Builder
	for name := range strings.Lines(names + "\n") {
		text, err := s.repository.Git(t.Context(), "show", ref+":"+strings.TrimSpace(name))
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString("---\n" + text + "\n")
	}
	return out.String()
}
