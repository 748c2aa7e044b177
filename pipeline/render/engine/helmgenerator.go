// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"
	_ "unsafe" // for go:linkname

	"github.com/Masterminds/sprig/v3"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	"sigs.k8s.io/kustomize/kyaml/yaml/merge2"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/helmchart"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// The table of kustomize's builtin generators, as that of transformers. Its entry for helmCharts, which runs the helm command,
// is replaced by one that renders here; everything around it stays kustomize's: the order of objects, the namespaces, the
// transformers that follow.
//
//go:linkname builtinGenerators sigs.k8s.io/kustomize/api/internal/plugins/builtinhelpers.GeneratorFactories
var builtinGenerators map[int]func() resmap.GeneratorPlugin

// helmPlugin is the type that runs the helm command.
const helmPlugin = "*builtins.HelmChartInflationGeneratorPlugin"

// installHelmGenerator puts our generator into kustomize's table, in the place of that of an earlier build too.
func installHelmGenerator(create func() resmap.GeneratorPlugin) error {
	for kind, factory := range builtinGenerators {
		made := factory()
		if _, ours := made.(*helmGenerator); ours || fmt.Sprintf("%T", made) == helmPlugin {
			builtinGenerators[kind] = create
			return nil
		}
	}
	return errors.New("this version of kustomize keeps its builtin generators elsewhere; Prerig must be adapted to it")
}

// helmGenerator renders one entry of helmCharts as kustomize 5.8 has it rendered by helm template
// (api/internal/builtins/HelmChartInflationGenerator.go).
type helmGenerator struct {
	ctx     context.Context
	build   *kustomizeBuild
	places  map[string]string // of entries, by directory and name
	helpers *resmap.PluginHelpers
	types.HelmGlobals
	types.HelmChart
}

// Ways to bring valuesInline and the file of values together.
const (
	valuesMerge    = "merge"    // the file has precedence
	valuesOverride = "override" // what is inline has
	valuesReplace  = "replace"  // inline values only
)

// Config implements resmap.Configurable.
func (g *helmGenerator) Config(helpers *resmap.PluginHelpers, config []byte) error {
	g.helpers = helpers
	if err := yaml.Unmarshal(config, g); err != nil {
		return err
	}
	if g.Name == "" {
		return errors.New("an entry of helmCharts needs a name")
	}
	if path.IsAbs(g.ChartHome) {
		return errors.New("helmGlobals.chartHome must be relative to the kustomization")
	}
	if g.ChartHome == "" {
		g.ChartHome = types.HelmDefaultHome
	}
	if g.ValuesMerge == "" {
		g.ValuesMerge = valuesOverride
	}
	if !slices.Contains([]string{valuesMerge, valuesOverride, valuesReplace}, g.ValuesMerge) {
		return fmt.Errorf("the valuesMerge of the chart %s must be merge, override or replace, found %q", g.Name, g.ValuesMerge)
	}
	return nil
}

// Generate implements resmap.Generator.
func (g *helmGenerator) Generate() (resmap.ResMap, error) {
	text, err := g.renderHelmTemplate()
	if err != nil && g.build.request.Discover {
		return g.helpers.ResmapFactory().NewResMapFromBytes(nil)
	}
	if err != nil {
		dir := render.CleanPath(g.helpers.Loader().Root())
		return nil, fmt.Errorf("%s: helmCharts: %s: %w", cmp.Or(g.places[path.Join(dir, g.Name)], dir), g.Name, err)
	}
	objects, err := g.helpers.ResmapFactory().NewResMapFromBytes(text)
	if err != nil {
		return nil, fmt.Errorf("reading what the chart %s renders to: %w", g.Name, err)
	}
	for _, object := range objects.Resources() {
		if err := object.PipeE(kyaml.SetAnnotation(konfig.HelmGeneratedAnnotation, "true")); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

// renderHelmTemplate returns what helm template prints.
func (g *helmGenerator) renderHelmTemplate() ([]byte, error) {
	release, err := g.releaseFromFlags()
	if err != nil {
		return nil, err
	}
	files := boundedAliases{g.build.files}
	options := helmchart.Options{Archives: lockedCharts(g.build.request.Charts), KeepTests: !g.SkipTests, FieldName: g.nameField, Warn: g.build.response.AddWarning}
	if release.Values, err = g.mergeValuesFiles(files, release, options); err != nil {
		return nil, err
	}
	manifests, err := helmchart.Render(g.ctx, files, release, options)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for _, one := range manifests {
		fmt.Fprintf(&out, "---\n# Source: %s\n%s\n", one.Template, one.YAML)
	}
	return out.Bytes(), nil
}

// nameField returns what the user of a kustomization calls a field of the release.
func (g *helmGenerator) nameField(field string) string {
	switch field {
	case "skipSchemaValidation": // an entry has no such field
		return ""
	case "values":
		return "valuesInline"
	case "kubeVersion":
		if g.KubeVersion != "" {
			return "kubeVersion"
		}
	}
	return "spec.build.helmCharts." + field
}

// releaseFromFlags returns the release that the flags of helm template would make.
func (g *helmGenerator) releaseFromFlags() (*v1alpha1.Helm, error) {
	defaults := g.build.request.HelmCharts
	if releases := g.build.request.Releases; defaults == nil && releases != nil { // as a kustomization of an Application has them
		defaults = &v1alpha1.HelmCharts{
			KubeVersion: releases.KubeVersion, APIVersions: releases.APIVersions,
			Lookup: releases.Lookup, Captured: releases.Captured, Impure: releases.Impure,
		}
	}
	if defaults == nil {
		defaults = &v1alpha1.HelmCharts{Lookup: v1alpha1.ImpureRefuse, Impure: v1alpha1.ImpureRefuse}
	}
	h := &v1alpha1.Helm{
		Chart: g.Name, Namespace: g.Namespace, ReleaseName: g.ReleaseName, IncludeCRDs: &g.IncludeCRDs, KubeVersion: g.KubeVersion, APIVersions: g.ApiVersions,
		Hooks: v1alpha1.HooksKeep, Lookup: defaults.Lookup, Captured: defaults.Captured, Impure: defaults.Impure,
	}
	if g.SkipHooks {
		h.Hooks = v1alpha1.HooksDrop
	}
	if h.KubeVersion == "" {
		h.KubeVersion = defaults.KubeVersion
	}
	if len(h.APIVersions) == 0 {
		h.APIVersions = defaults.APIVersions
	}
	if _, ok := h.KubeMinor(); !ok {
		return nil, fmt.Errorf("kubeVersion must be given, here or in the pipeline (spec.build.helmCharts.kubeVersion), as the result would depend on the program that renders; found %q", h.KubeVersion)
	}
	if h.Namespace == "" {
		h.Namespace = "default"
	}
	if err := g.nameRelease(h); err != nil {
		return nil, err
	}
	h.Chart = path.Join(render.CleanPath(g.helpers.Loader().Root()), g.ChartHome, reference.ChartDirectory(g.Name, g.Version, g.Repo))
	if info, err := g.build.files.Lookup(h.Chart); err == nil && info.Dir {
		return h, nil
	}
	if g.Repo == "" {
		return nil, fmt.Errorf("there is no chart at %s, and repo names no repository", h.Chart)
	}
	h.Repository, h.Chart, h.Version = g.Repo, g.Name, g.Version
	return h, nil
}

// nameRelease names the release as helm template does, which calls one without a name release-name.
func (g *helmGenerator) nameRelease(h *v1alpha1.Helm) error {
	switch {
	case g.ReleaseName != "" && g.NameTemplate != "":
		return errors.New("releaseName and nameTemplate exclude each other")
	case g.NameTemplate == "" && g.ReleaseName == "":
		h.ReleaseName = "release-name"
	case g.NameTemplate != "":
		// Functions that are not functions of their arguments are not in this table.
		parsed, err := template.New("nameTemplate").Funcs(sprig.HermeticTxtFuncMap()).Parse(g.NameTemplate)
		if err != nil {
			return fmt.Errorf("reading nameTemplate: %w", err)
		}
		var name strings.Builder
		if err := parsed.Execute(&name, nil); err != nil {
			return fmt.Errorf("reading nameTemplate: %w", err)
		}
		h.ReleaseName = name.String()
	}
	return nil
}

// mergeValuesFiles returns the values that the files of --values would result in.
func (g *helmGenerator) mergeValuesFiles(files tree.Reader, release *v1alpha1.Helm, options helmchart.Options) (map[string]any, error) {
	own, err := g.mergeOwnValues(files, release, options)
	if err != nil {
		return nil, err
	}
	values, err := readHelmValues(own)
	if err != nil {
		return nil, fmt.Errorf("reading its values: %w", err)
	}
	for _, name := range g.AdditionalValuesFiles {
		content, err := g.helpers.Loader().Load(name)
		if err != nil {
			return nil, fmt.Errorf("reading additionalValuesFiles: %w", err)
		}
		more, err := readHelmValues(content)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		values = loader.MergeMaps(values, more)
	}
	return values, nil
}

// mergeOwnValues returns the values file that replaces the chart's, or the chart's own, merged with the inline values.
func (g *helmGenerator) mergeOwnValues(files tree.Reader, release *v1alpha1.Helm, options helmchart.Options) (content []byte, err error) {
	if len(g.ValuesInline) > 0 && g.ValuesMerge == valuesReplace {
		return yaml.Marshal(g.ValuesInline)
	}
	if g.ValuesFile != "" {
		content, err = g.helpers.Loader().Load(g.ValuesFile)
	} else {
		content, err = helmchart.DefaultValues(files, release, options)
	}
	if err != nil || len(g.ValuesInline) == 0 {
		return content, err
	}
	if len(bytes.TrimSpace(content)) == 0 {
		return yaml.Marshal(g.ValuesInline)
	}
	file, err := kyaml.Parse(string(content))
	if err != nil {
		return nil, fmt.Errorf("reading its values: %w", err)
	}
	inline, err := kyaml.FromMap(g.ValuesInline)
	if err != nil {
		return nil, fmt.Errorf("reading valuesInline: %w", err)
	}
	var merged *kyaml.RNode
	if g.ValuesMerge == valuesMerge {
		merged, err = merge2.Merge(file, inline, kyaml.MergeOptions{})
	} else {
		merged, err = merge2.Merge(inline, file, kyaml.MergeOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("merging valuesInline: %w", err)
	}
	values, err := merged.Map()
	if err != nil {
		return nil, fmt.Errorf("merging valuesInline: %w", err)
	}
	return yaml.Marshal(values)
}

func readHelmValues(content []byte) (map[string]any, error) {
	values, err := loader.LoadValues(bytes.NewReader(content))
	return maps.Clone(values), err
}
