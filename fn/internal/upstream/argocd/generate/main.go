// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build argocd

// Generate calls Argo CD's generators of Applications and of manifests, to compare renders with. It is built within a checkout of Argo
// CD (make argocd-generate), as Argo CD requires a module that only its own repository has.
//
// Its arguments are a work tree, which it may change, and the URLs of its repository. It reads requests from standard input, and
// writes an answer for each, as JSON. helm and kustomize are run from PATH.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	log "github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/argoproj/argo-cd/v3/applicationset/controllers/template"
	"github.com/argoproj/argo-cd/v3/applicationset/generators"
	"github.com/argoproj/argo-cd/v3/applicationset/utils"
	"github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/reposerver/apiclient"
	"github.com/argoproj/argo-cd/v3/reposerver/repository"
	"github.com/argoproj/argo-cd/v3/util/argo"
	"github.com/argoproj/argo-cd/v3/util/git"
	utilio "github.com/argoproj/argo-cd/v3/util/io"
)

// request asks for the Applications of an ApplicationSet, or for the manifests of an Application.
type request struct {
	ApplicationSet *v1alpha1.ApplicationSet `json:"applicationSet"`
	Application    *v1alpha1.Application    `json:"application"`
	Clusters       []corev1.Secret          `json:"clusters"`
	KubeVersion    string                   `json:"kubeVersion"`
	APIVersions    []string                 `json:"apiVersions"`
}

// answer has objects, or why there are none.
type answer struct {
	Objects []json.RawMessage `json:"objects"`
	Error   string            `json:"error"`
}

func main() {
	log.SetOutput(io.Discard)
	tree := workTree{root: os.Args[1], urls: map[string]bool{}}
	for _, url := range os.Args[2:] {
		tree.urls[git.NormalizeGitURL(url)] = true
	}
	requests, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var text json.RawMessage
		err := requests.Decode(&text)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		var r request
		a := answer{}
		err = json.Unmarshal(text, &r) // of the wrong type, which the API server refuses
		switch {
		case err != nil:
		case r.ApplicationSet != nil:
			a.Objects, err = tree.applications(r)
		default:
			a.Objects, err = tree.manifests(r)
		}
		if err != nil {
			a = answer{Error: err.Error()}
		}
		if err := answers.Encode(a); err != nil {
			os.Exit(1)
		}
	}
}

// workTree is a work tree of the repository that Applications name.
type workTree struct {
	root string
	urls map[string]bool
}

// check reports whether the repository is this one.
func (t workTree) check(url string) error {
	if t.urls[git.NormalizeGitURL(url)] {
		return nil
	}
	return fmt.Errorf("another repository: %s", url)
}

// GetFiles implements services.Repos.
func (t workTree) GetFiles(ctx context.Context, url, _, _, pattern string, _ bool, _ *v1alpha1.SourceIntegrity) (map[string][]byte, error) {
	if err := t.check(url); err != nil {
		return nil, err
	}
	repository, err := git.NewClientExt(url, t.root, git.NopCreds{}, false, false, "", "")
	if err != nil {
		return nil, err
	}
	names, err := repository.LsFiles(ctx, pattern, false)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, name := range names {
		if files[name], err = os.ReadFile(filepath.Join(t.root, name)); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// GetDirectories implements services.Repos as the repo-server does.
func (t workTree) GetDirectories(_ context.Context, url, _, _ string, _ bool, _ *v1alpha1.SourceIntegrity) (paths []string, err error) {
	if err := t.check(url); err != nil {
		return nil, err
	}
	err = filepath.WalkDir(t.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() || path == t.root {
			return err
		}
		if strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		relative, err := filepath.Rel(t.root, path)
		paths = append(paths, relative)
		return err
	})
	return paths, err
}

// applications returns what an ApplicationSet generates. The generators panic for some that the API server refuses.
func (t workTree) applications(r request) (out []json.RawMessage, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	project := &v1alpha1.AppProject{}
	project.Name, project.Namespace = r.ApplicationSet.Spec.Template.Spec.Project, r.ApplicationSet.Namespace
	builder := fake.NewClientBuilder().WithScheme(scheme)
	if project.Name != "" {
		builder = builder.WithObjects(project)
	}
	for _, secret := range r.Clusters {
		for key, value := range secret.StringData {
			if secret.Data == nil {
				secret.Data = map[string][]byte{}
			}
			secret.Data[key] = []byte(value)
		}
		secret.Namespace = r.ApplicationSet.Namespace
		builder = builder.WithObjects(&secret)
	}
	cluster := builder.Build()
	all := t.generators(cluster, r.ApplicationSet.Namespace)
	apps, _, err := template.GenerateApplications(log.NewEntry(log.StandardLogger()), *r.ApplicationSet, all, &utils.Render{}, cluster)
	if err != nil {
		return nil, err
	}
	for _, app := range apps {
		app.APIVersion, app.Kind = "argoproj.io/v1alpha1", "Application"
		text, err := json.Marshal(app)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}

// generators returns those that need no service.
func (t workTree) generators(cluster client.Client, namespace string) map[string]generators.Generator {
	terminal := map[string]generators.Generator{
		"List": generators.NewListGenerator(), "Git": generators.NewGitGenerator(t, namespace), "Clusters": generators.NewClusterGenerator(cluster, namespace),
	}
	nested := map[string]generators.Generator{"Matrix": generators.NewMatrixGenerator(terminal), "Merge": generators.NewMergeGenerator(terminal)}
	top := map[string]generators.Generator{"Matrix": generators.NewMatrixGenerator(nested), "Merge": generators.NewMergeGenerator(nested)}
	for name, one := range terminal {
		nested[name], top[name] = one, one
	}
	return top
}

// manifests returns what an Application deploys, as its repo-server generates it for each source.
func (t workTree) manifests(r request) (out []json.RawMessage, err error) {
	ctx, app := context.Background(), r.Application
	repositoryOf := func(_ context.Context, url, _ string) (*v1alpha1.Repository, error) {
		return &v1alpha1.Repository{Repo: url}, t.check(url)
	}
	sources := app.Spec.GetSources()
	refs, err := argo.GetRefSources(ctx, sources, app.Spec.Project, repositoryOf, nil)
	if err != nil {
		return nil, err
	}
	paths := utilio.NewRandomizedTempPaths(os.TempDir())
	for url := range t.urls {
		paths.Add(url, t.root)
	}
	for _, source := range sources {
		if source.Path == "" && source.Chart == "" && source.Ref != "" {
			continue
		}
		repo, err := repositoryOf(ctx, source.RepoURL, "")
		if err != nil {
			return nil, err
		}
		generated, err := repository.GenerateManifests(ctx, filepath.Join(t.root, source.Path), t.root, "", &apiclient.ManifestRequest{
			Repo: repo, AppName: app.Name, Namespace: app.Spec.Destination.Namespace, ApplicationSource: &source, KubeVersion: r.KubeVersion,
			ApiVersions: r.APIVersions, HasMultipleSources: app.Spec.HasMultipleSources(), RefSources: refs, ProjectName: app.Spec.Project,
			KustomizeOptions: &v1alpha1.KustomizeOptions{BuildOptions: "--enable-helm"}, HelmOptions: &v1alpha1.HelmOptions{ValuesFileSchemes: []string{}},
		}, true, git.NoopCredsStore{}, resource.MustParse("0"), paths)
		if err := errors.Join(err, t.reset()); err != nil {
			return nil, err
		}
		for _, manifest := range generated.Manifests {
			out = append(out, json.RawMessage(manifest))
		}
	}
	return out, nil
}

// reset takes back what the generation changed, such as the edits of a kustomization.
func (t workTree) reset() error {
	for _, arguments := range [][]string{{"checkout", "-q", "."}, {"clean", "-fdq"}} {
		if text, err := exec.Command("git", append([]string{"-C", t.root}, arguments...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, text)
		}
	}
	return nil
}
