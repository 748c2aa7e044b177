// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/artifact"
	"github.com/prerig/prerig/pipeline/render/engine/helmchart"
)

// foundChart is where a chart is: in a repository, or in the tree.
type foundChart struct {
	of    *Object
	field string // of the release that asks for it
	Chart
	path string // of a chart in the tree
	root string // of the repository that it is in
	// valuesFiles replace the chart's own values.yaml; ignoreMissing skips those that do not exist.
	valuesFiles   []string
	ignoreMissing bool
}

// useChartInRelease writes the chart into a release. It reports false where the chart must be fetched first, which it
// notes.
func (f *foundChart) useChartInRelease(s *Set, spec *v1alpha1.Helm, out *Rendered) bool {
	if f.Repository == "" {
		spec.Chart = f.path
		out.Local = append(out.Local, f.path)
		return true
	}
	spec.Repository, spec.Chart, spec.Version = f.Repository, f.Name, f.Range
	for _, archive := range s.in.Archives {
		same := v1alpha1.NormalChartRepository(archive.Repository) == v1alpha1.NormalChartRepository(f.Repository)
		if same && archive.Name == f.Name && archive.Range == f.Range {
			return true
		}
	}
	ref := f.of.Ref()
	f.Where, f.Field = ref.String()+" "+f.field, f.field
	if at := Finding("", f.of, f.field, "").File; at != nil {
		f.Where = at.String() + ": " + f.Where
	}
	out.Wanted = append(out.Wanted, f.Chart)
	return false
}

// defaultValues returns the values that are in the place of the chart's own, nil where those stay.
func (f *foundChart) defaultValues(s *Set, spec *v1alpha1.Helm, options helmchart.Options) (map[string]any, error) {
	if len(f.valuesFiles) == 0 || len(f.valuesFiles) == 1 && path.Clean(f.valuesFiles[0]) == defaultKey {
		return nil, nil
	}
	merged := map[string]any{}
	for _, name := range f.valuesFiles {
		content, err := f.readValuesFile(s, spec, options, name)
		if errors.Is(err, fs.ErrNotExist) && f.ignoreMissing {
			continue
		}
		if err != nil {
			return nil, errorAboutField(f.of, f.field, "reading the values file %s: %v", name, err)
		}
		values, err := readValues(content)
		if err != nil {
			return nil, errorAboutField(f.of, f.field, "reading the values file %s: %v", name, err)
		}
		merged = mergeMaps(merged, values)
	}
	return merged, nil
}

// readValuesFile reads a file of the chart's archive, or one of the repository that the chart is in.
func (f *foundChart) readValuesFile(s *Set, spec *v1alpha1.Helm, options helmchart.Options, name string) ([]byte, error) {
	if f.Repository != "" {
		return helmchart.ReadFile(s.in.Files, spec, options, name)
	}
	return s.in.Files.Read(path.Join(f.root, path.Join("/", name)))
}

// findFluxChart finds the chart of a HelmRelease.
func (s *Set) findFluxChart(o *Object, hr *helmv2.HelmRelease) (*foundChart, error) {
	switch {
	case hr.Spec.Chart != nil && hr.Spec.ChartRef != nil:
		return nil, errorAboutField(o, "spec.chartRef", "excludes spec.chart; give one of them")
	case hr.Spec.Chart != nil:
		chart := hr.Spec.Chart.Spec
		spec := sourcev1.HelmChartSpec{
			Chart: chart.Chart, Version: chart.Version, ValuesFiles: chart.ValuesFiles, IgnoreMissingValuesFiles: chart.IgnoreMissingValuesFiles,
			SourceRef: sourcev1.LocalHelmChartSourceReference{Kind: chart.SourceRef.Kind, Name: chart.SourceRef.Name},
		}
		return s.findInSource(o, "spec.chart.spec", hr.Spec.Chart.GetNamespace(hr.Namespace), &spec)
	case hr.Spec.ChartRef == nil:
		return nil, errorAboutField(o, "spec.chart", "must be given, or spec.chartRef")
	}
	ref := hr.Spec.ChartRef
	namespace := ref.Namespace
	if namespace == "" {
		namespace = hr.Namespace
	}
	const at = "spec.chartRef"
	switch ref.Kind {
	case sourcev1.OCIRepositoryKind:
		return s.findInRegistry(o, at, namespace, ref.Name)
	case sourcev1.HelmChartKind:
		object, err := s.findSource(o, at, ref.Kind, namespace, ref.Name)
		if err != nil {
			return nil, err
		}
		var chart sourcev1.HelmChart
		if _, err := decodeReleaseType(object, &chart); err != nil {
			return nil, err
		}
		found, err := s.findInSource(object, "spec", namespace, &chart.Spec)
		if err == nil {
			found.of, found.field = o, at
		}
		return found, err
	}
	if ref.Kind == artifact.ExternalKind && s.in.MountArtifact != nil {
		root, chart, err := s.in.MountArtifact(namespace, ref.Name)
		if err != nil {
			return nil, errorAboutField(o, at+".name", "the chart of %s %s/%s is not in the tree: %v; %s", ref.Kind, namespace, ref.Name, err, keepHint)
		}
		return &foundChart{of: o, field: at + ".name", root: root, path: chart}, nil
	}
	return nil, errorAboutField(o, at+".kind", "a chart of kind %s cannot be found in the tree; name an OCIRepository or a HelmChart, %s", ref.Kind, keepHint)
}

// findSource returns the object that a chart comes from.
func (s *Set) findSource(o *Object, at, kind, namespace, name string) (*Object, error) {
	if object := s.byName[objectKey{sourceGroup, kind, namespace, name}]; object != nil {
		return object, nil
	}
	return nil, errorAboutField(o, at+".name", "%s %s/%s is not among the objects; put it into the build, or name its file under spec.build.releases.objects, %s",
		kind, namespace, name, keepHint)
}

// findInSource finds a chart in a HelmRepository or GitRepository.
func (s *Set) findInSource(o *Object, at, namespace string, spec *sourcev1.HelmChartSpec) (*foundChart, error) {
	kind, name := spec.SourceRef.Kind, spec.SourceRef.Name
	if kind == "" {
		return nil, errorAboutField(o, at+".sourceRef", "must be given, with kind and name")
	}
	if kind != sourcev1.HelmRepositoryKind && kind != sourcev1.GitRepositoryKind {
		return nil, errorAboutField(o, at+".sourceRef.kind", "a chart of a %s cannot be found in the tree; name a HelmRepository or a GitRepository, %s", kind, keepHint)
	}
	if s.in.Own != "" && s.in.Own == namespace+"/"+name && kind == sourcev1.GitRepositoryKind {
		return &foundChart{
			of: o, field: at + ".chart", valuesFiles: spec.ValuesFiles, ignoreMissing: spec.IgnoreMissingValuesFiles,
			root: ".", path: render.CleanPath(spec.Chart),
		}, nil
	}
	object, err := s.findSource(o, at+".sourceRef", kind, namespace, name)
	if err != nil {
		return nil, err
	}
	found := &foundChart{of: o, field: at + ".chart", valuesFiles: spec.ValuesFiles, ignoreMissing: spec.IgnoreMissingValuesFiles}
	if kind == sourcev1.HelmRepositoryKind {
		var repository sourcev1.HelmRepository
		if _, err := decodeReleaseType(object, &repository); err != nil {
			return nil, err
		}
		if err := v1alpha1.CheckChartRepository(repository.Spec.URL); err != nil {
			return nil, errorAboutField(object, "spec.url", "%v", err)
		}
		found.Repository, found.Name, found.Range = repository.Spec.URL, spec.Chart, spec.Version
		return found, nil
	}
	return found, s.findInGit(object, found, spec)
}

// defaultBranch is the branch that source-controller follows if a GitRepository sets none.
const defaultBranch = "master"

// findInGit finds a chart in the tree of a GitRepository.
func (s *Set) findInGit(object *Object, found *foundChart, spec *sourcev1.HelmChartSpec) error {
	root, err := s.FindRepository(object)
	if err != nil {
		return err
	}
	found.root, found.path = root, path.Join(root, path.Join("/", spec.Chart))
	return nil
}

var tagVersion = lazyregexp.New(`^v?[0-9]+(\.[0-9]+){0,2}([-+][0-9A-Za-z.+-]+)?$`)

// findInRegistry finds the chart of an OCIRepository.
func (s *Set) findInRegistry(o *Object, at, namespace, name string) (*foundChart, error) {
	object, err := s.findSource(o, at, sourcev1.OCIRepositoryKind, namespace, name)
	if err != nil {
		return nil, err
	}
	var repository sourcev1.OCIRepository
	if _, err := decodeReleaseType(object, &repository); err != nil {
		return nil, err
	}
	found := &foundChart{of: o, field: at}
	found.Repository, found.Name = splitRegistry(repository.Spec.URL)
	if err := v1alpha1.CheckChartRepository(found.Repository); err != nil || found.Name == "" {
		return nil, errorAboutField(object, "spec.url", "must be oci://HOST/PATH/CHART")
	}
	ref := repository.Spec.Reference
	switch {
	case ref == nil:
		return nil, errorAboutField(object, "spec.ref", "must be given: the tag latest is no version of a chart")
	case ref.SemverFilter != "":
		return nil, errorAboutField(object, "spec.ref.semverFilter", "is not followed by the lock; give a range that needs no filter")
	case ref.SemVer != "" && ref.Digest == "":
		found.Range = ref.SemVer
		return found, nil
	case ref.Tag == "" && ref.Digest != "":
		return nil, errorAboutField(object, "spec.ref.digest", "names no version; give the tag beside it, and charts.lock.yaml fixes the digest")
	}
	found.Range = strings.ReplaceAll(ref.Tag, "_", "+")
	if !tagVersion.MatchString(found.Range) {
		return nil, errorAboutField(object, "spec.ref.tag", "%q is no version of a chart", ref.Tag)
	}
	return found, nil
}

// splitRegistry returns the repository and the name of a chart in a registry.
func splitRegistry(url string) (repository, name string) {
	i := strings.LastIndex(strings.TrimRight(url, "/"), "/")
	if i < 0 {
		return "", ""
	}
	return url[:i], strings.TrimRight(url[i+1:], "/")
}
