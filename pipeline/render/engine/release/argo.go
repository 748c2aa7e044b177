// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render/engine/helmchart"
)

// application is what is read of an Application (pkg/apis/application/v1alpha1 of Argo CD 3.5).
type application struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		Project     string      `json:"project"`
		Source      *appSource  `json:"source"`
		Sources     []appSource `json:"sources"`
		Destination struct {
			Server    string `json:"server"`
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"destination"`
		SourceHydrator map[string]any `json:"sourceHydrator"`
		SyncPolicy     struct {
			SyncOptions              []string `json:"syncOptions"`
			ManagedNamespaceMetadata *struct {
				Labels      map[string]any `json:"labels"`
				Annotations map[string]any `json:"annotations"`
			} `json:"managedNamespaceMetadata"`
		} `json:"syncPolicy"`
	} `json:"spec"`
}

type appSource struct {
	RepoURL        string         `json:"repoURL"`
	Path           string         `json:"path"`
	TargetRevision string         `json:"targetRevision"`
	Helm           *appHelm       `json:"helm"`
	Kustomize      map[string]any `json:"kustomize"`
	Directory      map[string]any `json:"directory"`
	Plugin         map[string]any `json:"plugin"`
	Chart          string         `json:"chart"`
	Ref            string         `json:"ref"`
	Name           string         `json:"name"`
	TagPrefix      string         `json:"tagPrefix"`
}

type appHelm struct {
	ValueFiles []string `json:"valueFiles"`
	Parameters []struct {
		Name        string `json:"name"`
		Value       string `json:"value"`
		ForceString bool   `json:"forceString"`
	} `json:"parameters"`
	ReleaseName    string `json:"releaseName"`
	Values         string `json:"values"`
	FileParameters []struct {
		Name string `json:"name"`
		Path string `json:"path"`
	} `json:"fileParameters"`
	Version                 string          `json:"version"`
	PassCredentials         bool            `json:"passCredentials"`
	IgnoreMissingValueFiles bool            `json:"ignoreMissingValueFiles"`
	SkipCrds                bool            `json:"skipCrds"`
	ValuesObject            json.RawMessage `json:"valuesObject"`
	Namespace               string          `json:"namespace"`
	KubeVersion             string          `json:"kubeVersion"`
	APIVersions             []string        `json:"apiVersions"`
	SkipTests               bool            `json:"skipTests"`
	SkipSchemaValidation    bool            `json:"skipSchemaValidation"`
}

func (s *Set) renderApplication(ctx context.Context, o *Object, out *Rendered) error {
	var app application
	unknown, err := decodeReleaseType(o, &app)
	if err != nil {
		return err
	}
	for _, field := range unknown {
		if strings.HasPrefix(field, "spec.source") {
			out.Results = append(out.Results, Finding(result.Warning, o, field, "is no field of an Application, and has no effect"))
		}
	}
	if err := s.checkApplication(o, &app); err != nil {
		return err
	}
	sources, at := app.Spec.Sources, func(i int) string { return fmt.Sprintf("spec.sources[%d]", i) }
	if len(sources) == 0 && app.Spec.Source != nil {
		sources, at = []appSource{*app.Spec.Source}, func(int) string { return "spec.source" }
	}
	if len(sources) == 0 {
		return errorAboutField(o, "spec.source", "must be given, or spec.sources")
	}
	for i, source := range sources {
		if source.Ref != "" && source.Path == "" && source.Chart == "" {
			continue // it only provides values for others
		}
		one := &appRender{set: s, object: o, app: &app, sources: sources, source: source, at: at(i)}
		if err := one.render(ctx, out); err != nil {
			return err
		}
	}
	if len(out.Wanted) > 0 {
		out.Manifests = nil
		return nil
	}
	out.Namespace = app.Spec.Destination.Namespace
	if slices.Contains(app.Spec.SyncPolicy.SyncOptions, "CreateNamespace=true") && out.Namespace != "" {
		var labels, annotations map[string]any
		if managed := app.Spec.SyncPolicy.ManagedNamespaceMetadata; managed != nil {
			labels, annotations = managed.Labels, managed.Annotations
		}
		out.Created = newNamespace(out.Namespace, labels, annotations)
	}
	return nil
}

// checkApplication refuses what cannot be rendered here, and sets the namespace.
func (s *Set) checkApplication(o *Object, app *application) error {
	if o.Ref().APIVersion != argoGroup+"/v1alpha1" {
		return errorAboutField(o, "apiVersion", "is not read; move it to %s/v1alpha1", argoGroup)
	}
	if app.Spec.SourceHydrator != nil {
		return errorAboutField(o, "spec.sourceHydrator", "is for Argo CD's own hydrator; give spec.source, %s", keepHint)
	}
	if app.Spec.Destination.Namespace == "" {
		app.Spec.Destination.Namespace = s.in.Spec.Namespace
	}
	if s.destination == nil {
		s.destination = o
		return nil
	}
	var first application
	if _, err := decodeReleaseType(s.destination, &first); err != nil {
		return err
	}
	if a, b := clusterOf(&first), clusterOf(app); a != b {
		ref := s.destination.Ref()
		return errorAboutField(o, "spec.destination", "is the cluster %s, and that of %s is %s; what a pipeline renders goes to one cluster: give each a pipeline of its own, %s", b, ref.String(), a, keepHint)
	}
	return nil
}

// clusterOf names the cluster of an Application.
func clusterOf(app *application) string {
	d := app.Spec.Destination
	switch {
	case d.Name == "in-cluster", d.Server == "https://kubernetes.default.svc", d.Name == "" && d.Server == "":
		return "in-cluster"
	case d.Name != "":
		return d.Name
	}
	return d.Server
}

// appRender renders one source of an Application.
type appRender struct {
	set     *Set
	object  *Object
	app     *application
	sources []appSource
	source  appSource
	at      string // the field of the source
	chart   foundChart
	spec    *v1alpha1.Helm
	options helmchart.Options
}

func (r *appRender) render(ctx context.Context, out *Rendered) error {
	if err := r.findChart(); err != nil {
		return err
	}
	r.spec = r.set.newSpec()
	own := map[string]string{"values": r.at + ".helm.values", "skipSchemaValidation": r.at + ".helm.skipSchemaValidation"}
	if helm := r.source.Helm; helm != nil && helm.KubeVersion != "" {
		own["kubeVersion"] = r.at + ".helm.kubeVersion"
	}
	r.options = r.set.sharedRenderOptions(own)
	if !r.chart.useChartInRelease(r.set, r.spec, out) {
		return nil
	}
	if err := r.applyReleaseSettings(); err != nil {
		return err
	}
	var err error
	if r.spec.Values, err = r.mergeApplicationValues(); err != nil {
		return err
	}
	manifests, err := helmchart.Render(ctx, r.set.in.Files, r.spec, r.options)
	if err != nil {
		return errorAboutField(r.object, r.at, "%v", err)
	}
	out.Manifests = append(out.Manifests, manifests...)
	return nil
}

// applyReleaseSettings applies the release settings of an Application.
func (r *appRender) applyReleaseSettings() error {
	include := true
	r.spec.IncludeCRDs, r.spec.ReleaseName, r.spec.Namespace = &include, r.app.Metadata.Name, r.app.Spec.Destination.Namespace
	if helm := r.source.Helm; helm != nil {
		include = !helm.SkipCrds
		r.spec.SkipSchemaValidation = helm.SkipSchemaValidation
		if helm.ReleaseName != "" {
			r.spec.ReleaseName = helm.ReleaseName
		}
		if helm.Namespace != "" {
			r.spec.Namespace = helm.Namespace
		}
		if helm.KubeVersion != "" {
			r.spec.KubeVersion = helm.KubeVersion
		}
		if len(helm.APIVersions) > 0 {
			r.spec.APIVersions = helm.APIVersions
		}
	}
	if minor, ok := r.spec.KubeMinor(); !ok || minor < v1alpha1.OldestKubeMinor {
		return errorAboutField(r.object, r.at+".helm.kubeVersion", "must be a version of Kubernetes from 1.%d on, such as 1.33.4, found %q", v1alpha1.OldestKubeMinor, r.spec.KubeVersion)
	}
	if len(r.spec.ReleaseName) > maxNameLength {
		return errorAboutField(r.object, r.at+".helm.releaseName", "must be given: the name of the release, %s, has more than %d characters", r.spec.ReleaseName, maxNameLength)
	}
	if r.spec.Namespace == "" {
		return errorAboutField(r.object, "spec.destination.namespace", "is missing, and the release depends on it; set it, or spec.build.releases.namespace of the pipeline")
	}
	return nil
}

// findChart finds the chart of a source: in a repository, a registry, or the tree.
func (r *appRender) findChart() error {
	source := r.source
	for _, other := range []struct {
		name  string
		given map[string]any
	}{{"plugin", source.Plugin}, {"kustomize", source.Kustomize}, {"directory", source.Directory}} {
		if other.given != nil {
			return errorAboutField(r.object, r.at+"."+other.name, "is not Helm; render what it names by a pipeline of its own, %s", keepHint)
		}
	}
	r.chart = foundChart{of: r.object, field: r.at + ".chart"}
	registry := strings.HasPrefix(source.RepoURL, "oci://")
	switch {
	case source.Chart != "":
		r.chart.Repository, r.chart.Name, r.chart.Range = source.RepoURL, source.Chart, source.TargetRevision
		if !strings.Contains(source.RepoURL, "://") { // a registry, as Argo CD knows by the repository's Secret
			r.chart.Repository = "oci://" + source.RepoURL
		}
	case registry:
		if path.Clean("/"+source.Path) != "/" {
			return errorAboutField(r.object, r.at+".path", "must be . for a chart in a registry")
		}
		r.chart.field = r.at + ".repoURL"
		r.chart.Repository, r.chart.Name = splitRegistry(source.RepoURL)
		r.chart.Range = source.TargetRevision
	default:
		return r.findInTree()
	}
	if r.chart.Range == "HEAD" {
		r.chart.Range = ""
	}
	if err := v1alpha1.CheckChartRepository(r.chart.Repository); err != nil {
		return errorAboutField(r.object, r.at+".repoURL", "%v", err)
	}
	return nil
}

// findInTree finds the chart of a Git repository.
func (r *appRender) findInTree() error {
	source, files := r.source, r.set.in.Files
	if source.TagPrefix != "" {
		return errorAboutField(r.object, r.at+".tagPrefix", "cannot be resolved in the tree; %s", repositoryHint)
	}
	root, reason := r.set.findRevision(source.RepoURL, source.TargetRevision)
	if reason != "" {
		return errorAboutField(r.object, r.at+".repoURL", "%s", reason)
	}
	r.chart.root, r.chart.field = root, r.at+".path"
	r.chart.path = path.Join(root, path.Join("/", source.Path))
	exists := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			_, err := files.Lookup(path.Join(r.chart.path, name))
			return err == nil
		})
	}
	switch {
	case !exists("."):
		return errorAboutField(r.object, r.at+".path", "%s is not in the tree", source.Path)
	case !exists("Chart.yaml") || source.Helm == nil && exists("kustomization.yaml", "kustomization.yml", "Kustomization"):
		return errorAboutField(r.object, r.at+".path", "%s is no chart; render it by a pipeline of its own, %s", source.Path, keepHint)
	case exists(".argocd-source.yaml", ".argocd-source-"+r.app.Metadata.Name+".yaml"):
		return errorAboutField(r.object, r.at+".path", "%s has a file .argocd-source*.yaml, which is not read; write what it says into the Application", source.Path)
	}
	return nil
}
