// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
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
			Automated *struct {
				Prune   bool  `json:"prune"`
				Enabled *bool `json:"enabled"`
			} `json:"automated"`
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
	Kustomize      *appKustomize  `json:"kustomize"`
	Directory      *appDirectory  `json:"directory"`
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
	if ours, err := s.checkApplication(o, &app, out); err != nil || !ours {
		return err
	}
	known, _ := s.clusters() // one that cannot be read has the name or server that is written
	out.Unit = describe(&app, o, known)
	spec := mapAt(o.Value, "spec")
	raw, _ := spec["sources"].([]any)
	sources, at := app.Spec.Sources, func(i int) string { return fmt.Sprintf("spec.sources[%d]", i) }
	if len(sources) == 0 && app.Spec.Source != nil {
		sources, raw, at = []appSource{*app.Spec.Source}, []any{spec["source"]}, func(int) string { return "spec.source" }
	}
	if len(sources) == 0 {
		return errorAboutField(o, "spec.source", "must be given, or spec.sources")
	}
	for i, source := range sources {
		if source.Ref != "" && source.Path == "" && source.Chart == "" {
			continue // it only provides values for others
		}
		one := &appRender{set: s, object: o, app: &app, sources: sources, source: source, at: at(i)}
		one.raw, _ = raw[i].(map[string]any)
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

// checkApplication refuses what cannot be rendered here, and sets the namespace. It reports false for an Application of
// another cluster, which is left out.
func (s *Set) checkApplication(o *Object, app *application, out *Rendered) (ours bool, err error) {
	if o.Ref().APIVersion != argoGroup+"/v1alpha1" {
		return false, errorAboutField(o, "apiVersion", "is not read; move it to %s/v1alpha1", argoGroup)
	}
	if app.Spec.SourceHydrator != nil {
		return false, errorAboutField(o, "spec.sourceHydrator", "is for Argo CD's own hydrator; give spec.source, %s", keepHint)
	}
	if app.Spec.Destination.Namespace == "" {
		app.Spec.Destination.Namespace = s.in.Spec.Namespace
	}
	known, _ := s.clusters() // one that cannot be read has the name or server that is written
	destination := clusterOf(app, known)
	if only := s.in.Spec.Destination; only != "" {
		ours = only == destination.name || only == destination.server
		if !ours {
			out.Results = append(out.Results, Finding(result.Info, o, "spec.destination", "is the cluster "+destination.String()+", and what is for it is left out"))
		}
		return ours, nil
	}
	if s.in.Spec.PerApplication {
		return true, nil
	}
	if s.first == nil {
		s.first, s.destination = o, destination
	}
	if s.destination != destination {
		ref := s.first.Ref()
		return false, errorAboutField(o, "spec.destination", "is the cluster %s, and that of %s is %s; what a pipeline renders goes to one cluster: give each a pipeline of its own, with spec.build.releases.destination, %s",
			destination, ref.String(), s.destination, keepHint)
	}
	return true, nil
}

// destination is the cluster of an Application: its name, its server, or both where Argo CD's Secret of it is known.
type destination struct{ name, server string }

func (d destination) String() string { return cmp.Or(d.name, d.server) }

// clusterOf returns the cluster of an Application.
func clusterOf(app *application, known []cluster) destination {
	to := destination{app.Spec.Destination.Name, strings.TrimSuffix(app.Spec.Destination.Server, "/")}
	for _, one := range append(known, cluster{name: inClusterName, server: inClusterAddress}) {
		if to.name != "" && to.name == one.name || to.name == "" && to.server == one.server || to == (destination{}) && one.server == inClusterAddress {
			return destination{one.name, one.server}
		}
	}
	return to
}

// appRender renders one source of an Application.
type appRender struct {
	set     *Set
	object  *Object
	app     *application
	sources []appSource
	source  appSource
	raw     map[string]any // the source as it is written
	at      string         // the field of the source
	chart   foundChart
	spec    *v1alpha1.Helm
	options helmchart.Options
}

// renderChart renders a source that is a chart.
func (r *appRender) renderChart(ctx context.Context, out *Rendered) error {
	if r.chart.path == "" {
		if err := r.findChart(); err != nil {
			return err
		}
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
	out.addChart(manifests)
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

// findChart finds the chart of a source in a repository or a registry.
func (r *appRender) findChart() error {
	source := r.source
	r.chart = foundChart{of: r.object, field: r.at + ".chart"}
	if source.Chart != "" {
		r.chart.Repository, r.chart.Name, r.chart.Range = source.RepoURL, source.Chart, source.TargetRevision
		if !strings.Contains(source.RepoURL, "://") { // a registry, as Argo CD knows by the repository's Secret
			// Its chart may have directories, as in a repository of Docker Hub that is only the host.
			r.chart.Repository, r.chart.Name = splitRegistry("oci://" + strings.TrimSuffix(source.RepoURL, "/") + "/" + source.Chart)
		}
	} else {
		if path.Clean("/"+source.Path) != "/" {
			return errorAboutField(r.object, r.at+".path", "must be . for a chart in a registry")
		}
		r.chart.field = r.at + ".repoURL"
		r.chart.Repository, r.chart.Name = splitRegistry(source.RepoURL)
		r.chart.Range = source.TargetRevision
	}
	if r.chart.Range == "HEAD" {
		r.chart.Range = ""
	}
	if err := v1alpha1.CheckChartRepository(r.chart.Repository); err != nil {
		return errorAboutField(r.object, r.at+".repoURL", "%v", err)
	}
	return nil
}
