// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/cli/importer"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/dir"
	sourcetree "github.com/prerig/prerig/pipeline/source/tree"
)

// chartKubernetes is the default version of Kubernetes that a chart is rendered for.
const chartKubernetes = "1.34"

// isChart reports whether a path is that of a chart: a directory with Chart.yaml, or an archive.
func isChart(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if info.IsDir() {
		_, err := os.Stat(filepath.Join(path, "Chart.yaml"))
		return err == nil
	}
	return strings.HasSuffix(path, ".tgz") || strings.HasSuffix(path, ".tar.gz")
}

// readChart renders a chart as helm template would, and reads its objects.
func (im *importRun) readChart(ctx context.Context, path string) ([]importer.Object, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	root, name := path, "."
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		root, name = filepath.Dir(path), filepath.Base(path)
	}
	files, err := chartFiles(root, name)
	if err != nil {
		return nil, err
	}
	spec := &v1alpha1.Helm{
		Chart: name, ReleaseName: "istiod", Namespace: cmp.Or(im.options.Namespace, istioNamespace),
		KubeVersion: cmp.Or(im.kubernetes, chartKubernetes),
		Lookup:      v1alpha1.ImpureEmpty, Impure: v1alpha1.ImpureEmpty, Hooks: v1alpha1.HooksKeep,
	}
	if strings.Count(spec.KubeVersion, ".") == 1 {
		spec.KubeVersion += ".0"
	}
	for _, file := range im.valuesFiles {
		if err := mergeValues(spec, file); err != nil {
			return nil, err
		}
	}
	pool, err := render.NewPool(render.Options{})
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	manifests, err := pool.RenderChart(ctx, sourcetree.NewView(files, sourcetree.Limits{}),
		render.ChartRequest{Helm: spec, Fields: importFields})
	if err != nil {
		return nil, err
	}
	var objects []importer.Object
	for _, m := range manifests {
		parsed, err := manifest.Parse(m.Template, m.YAML)
		if err != nil {
			return nil, err
		}
		for _, doc := range parsed.Docs {
			found, err := importer.ReadDocument(m.Template, doc)
			if err != nil {
				return nil, err
			}
			objects = append(objects, found...)
		}
	}
	return objects, nil
}

// chartFiles reads the files of a chart: its directory, or its archive alone.
func chartFiles(root, name string) (*sourcetree.Tree, error) {
	if name == "." {
		return dir.Read(root, sourcetree.Limits{})
	}
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, fmt.Errorf("reading the chart: %w", err)
	}
	builder := sourcetree.NewBuilder(sourcetree.Limits{})
	if err := builder.Add(name, sourcetree.File, text); err != nil {
		return nil, err
	}
	return builder.Build(), nil
}

// importFields names the fields of a release as the flags do.
var importFields = map[string]string{
	"kubeVersion": "--kubernetes-version", "namespace": "--istio-namespace", "values": "--values",
	"valuesFiles": "--values",
}

// mergeValues merges the values of a file over those of the release.
func mergeValues(spec *v1alpha1.Helm, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading values: %w", err)
	}
	var values map[string]any
	if err := yaml.Unmarshal(text, &values); err != nil {
		return fmt.Errorf("reading values %s: %w", file, err)
	}
	spec.Values = mergeMaps(spec.Values, values)
	return nil
}

// mergeMaps returns the values of over merged over those of base, maps key by key.
func mergeMaps(base, over map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range base {
		out[key] = value
	}
	for key, value := range over {
		if inner, ok := value.(map[string]any); ok {
			if old, ok := out[key].(map[string]any); ok {
				value = mergeMaps(old, inner)
			}
		}
		out[key] = value
	}
	return out
}
