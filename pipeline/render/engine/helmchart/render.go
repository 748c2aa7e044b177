// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Manifest is text that a chart makes: one YAML document or, of its crds directories, a file with several.
type Manifest struct {
	// Template is the file that it is from, beginning with the chart's name.
	Template string
	// YAML is the text.
	YAML string
	// CRD reports whether it is from a crds directory, Hook whether it is a hook.
	CRD, Hook bool
}

// Options of a render.
type Options struct {
	// Archives are charts of repositories: the one that the release names, and dependencies that are not vendored.
	Archives []Archive
	// KeepTests also renders hooks that are tests, which is the default of helm template.
	KeepTests bool
	// DefaultValues are in the place of the chart's own values.yaml; nil leaves that in place.
	DefaultValues map[string]any
	// FieldName returns the user-facing name of a field of the release, such as impure, for messages, or "" if no
	// such field exists. nil means spec.build.helm.
	FieldName func(field string) string
	// Warn is called with what the output cannot hold as the chart makes it; it may be nil.
	Warn func(message string)
}

// nameField returns what a user calls a field of the release.
func (o Options) nameField(field string) string {
	if o.FieldName == nil {
		return "helm." + field
	}
	return o.FieldName(field)
}

// Render returns what helm template prints for a release, in the same order: custom resource definitions of the crds
// directories, manifests in the order in which Helm installs them, hooks. An error names the file of the chart and the line
// where it is about one. It is the same for the same files and the same release, wherever and whenever it is rendered.
func Render(ctx context.Context, files tree.Reader, spec *v1alpha1.Helm, options Options) ([]Manifest, error) {
	c := &chartRender{ctx: ctx, spec: spec, options: options}
	manifests, err := c.render(files)
	if err != nil {
		return nil, fmt.Errorf("rendering the chart %s: %w", spec.Chart, c.rewriteErrorPaths(err))
	}
	return c.settleOutput(manifests), nil
}

// chartRender renders one release, as often as needed to determine the effect of its impure functions.
type chartRender struct {
	ctx       context.Context
	spec      *v1alpha1.Helm
	options   Options
	files     []*archive.BufferedFile
	directory bool
	values    map[string]any
	name      string // the chart's, once it is known

	captured *capturedObjects // nil without lookup: Captured
}

// maxTried bounds how many calls are tried one by one.
const maxTried = 50

func (c *chartRender) render(files tree.Reader) ([]Manifest, error) {
	var err error
	if err = c.readFiles(files); err != nil {
		return nil, err
	}
	if c.values, err = readValues(files, c.spec); err != nil {
		return nil, err
	}
	if c.captured, err = readCaptured(files, c.spec, c.options); err != nil {
		return nil, err
	}
	calls := c.newCalls(0)
	manifests, err := c.renderOnce(calls)
	if len(calls.names) == 0 {
		return manifests, err
	}
	if err != nil {
		// Where it is about what was made up, the last call before it is to blame.
		if _, other := c.renderOnce(c.newCalls(1)); other != nil && other.Error() == err.Error() {
			return nil, err
		}
		return nil, errors.Join(c.explainCall(len(calls.names)-1), err)
	}
	if same, err := c.isSame(manifests, c.newCalls(1)); err != nil || same {
		return manifests, err
	}
	for i := range min(len(calls.names), maxTried) {
		one := c.newCalls(0)
		one.other = i
		if same, err := c.isSame(manifests, one); err != nil || !same {
			return nil, errors.Join(c.explainCall(i), err)
		}
	}
	return nil, c.explainCall(0)
}

// isSame reports whether a render with other made-up values yields the same result.
func (c *chartRender) isSame(as []Manifest, calls *impureCalls) (bool, error) {
	manifests, err := c.renderOnce(calls)
	if err != nil && len(calls.names) > 0 {
		return false, nil //nolint:nilerr // what is made up has an effect
	}
	return slices.Equal(as, manifests), err
}

// explainCall returns the error of a render in which a call fails, which names its place.
func (c *chartRender) explainCall(number int) error {
	calls := c.newCalls(0)
	calls.fail = number
	_, err := c.renderOnce(calls)
	if err == nil {
		// The chart hides the errors of its own templates.
		return errors.New(calls.explainImpureRejection(calls.names[number]))
	}
	return err
}

// renderOnce renders from the files on: templates can change values, and those of the chart too.
func (c *chartRender) renderOnce(calls *impureCalls) ([]Manifest, error) {
	root, err := c.loadChart()
	if err != nil {
		return nil, err
	}
	given := copyValues(c.values)
	if err := chartutil.ProcessDependencies(root, given); err != nil {
		return nil, fmt.Errorf("choosing the dependencies: %w", err)
	}
	sees, err := clusterCapabilities(c.spec)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", c.options.nameField("kubeVersion"), err)
	}
	if wanted := root.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, sees.KubeVersion.String()) {
		return nil, fmt.Errorf("the chart is for Kubernetes %s, and %s is %s", wanted, c.options.nameField("kubeVersion"), c.spec.KubeVersion)
	}
	if !c.spec.SkipSchemaValidation {
		if err := checkSchemas(root, c.options.nameField("skipSchemaValidation")); err != nil {
			return nil, err
		}
	}
	options := common.ReleaseOptions{Name: c.spec.ReleaseName, Namespace: c.spec.Namespace, Revision: 1, IsInstall: true}
	values, err := util.ToRenderValuesWithSchemaValidation(root, given, options, sees, c.spec.SkipSchemaValidation)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Engine{CustomTemplateFuncs: calls.impureFunctionReplacements()}.RenderWithContext(c.ctx, root, values)
	if err != nil {
		return nil, err
	}
	return c.inOrder(root, rendered)
}

// loadChart makes a chart of the files and checks that it is complete.
func (c *chartRender) loadChart() (*chart.Chart, error) {
	root, err := loader.LoadFiles(c.files)
	if err != nil {
		return nil, err
	}
	c.name = root.Name()
	if c.options.DefaultValues != nil {
		root.Values = copyValues(c.options.DefaultValues)
	}
	if kind := root.Metadata.Type; kind != "" && kind != "application" {
		return nil, fmt.Errorf("a chart of type %s cannot be rendered by itself", kind)
	}
	sortDependencies(root)
	for _, wanted := range root.Metadata.Dependencies {
		packed := slices.ContainsFunc(root.Dependencies(), func(have *chart.Chart) bool { return have.Name() == wanted.Name })
		if !packed {
			return nil, fmt.Errorf("its dependency %s %s (%s) is neither in its charts directory nor locked; run prerig lock, or helm dependency build, and commit what it writes",
				wanted.Name, wanted.Version, wanted.Repository)
		}
	}
	return root, nil
}

// sortDependencies sorts dependencies, since Helm's loader returns them in the order of a Go map.
func sortDependencies(c *chart.Chart) {
	sorted := slices.SortedFunc(slices.Values(c.Dependencies()), func(a, b *chart.Chart) int {
		return strings.Compare(a.Name()+" "+a.Metadata.Version, b.Name()+" "+b.Metadata.Version)
	})
	c.SetDependencies(sorted...)
	for _, dependency := range sorted {
		sortDependencies(dependency)
	}
}

// notes is the file whose text is for people (pkg/action/action.go).
const notes = "NOTES.txt"

// inOrder puts the files of a render in the order in which helm template prints them.
func (c *chartRender) inOrder(root *chart.Chart, rendered map[string]string) ([]Manifest, error) {
	for name := range rendered {
		if strings.HasSuffix(name, notes) {
			delete(rendered, name)
		}
	}
	hooks, sorted, err := releaseutil.SortManifests(rendered, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, err
	}
	var out []Manifest
	if c.spec.IncludeCRDs == nil || *c.spec.IncludeCRDs {
		for _, crd := range root.CRDObjects() {
			out = append(out, Manifest{Template: crd.Filename, YAML: string(crd.File.Data), CRD: true})
		}
	}
	for _, manifest := range sorted {
		out = append(out, Manifest{Template: manifest.Name, YAML: manifest.Content})
	}
	for _, hook := range hooks {
		if !c.options.KeepTests && slices.Contains(hook.Events, release.HookTest) || c.spec.Hooks == v1alpha1.HooksDrop {
			continue
		}
		if c.spec.Hooks == v1alpha1.HooksRefuse {
			return nil, fmt.Errorf("%s: %s %s is a hook (%v), and %s is Refuse", hook.Path, hook.Kind, hook.Name, hook.Events, c.options.nameField("hooks"))
		}
		out = append(out, Manifest{Template: hook.Path, YAML: hook.Manifest, Hook: true})
	}
	return out, nil
}

// rewriteErrorPaths puts the paths of the source into the text of an error of Helm, where the chart is a directory, and
// makes it one line. Helm's paths begin with the chart's name.
func (c *chartRender) rewriteErrorPaths(err error) error {
	text := leaveOutCalls(err.Error())
	if c.directory && c.name != "" {
		for _, dir := range []string{"templates", "charts", "crds"} {
			text = replacePrefix(text, c.name+"/"+dir+"/", path.Join(c.spec.Chart, dir)+"/")
		}
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return errors.New(strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "; "))
}

// outermostCalls is the number of template calls that an error shows at each end of the call chain.
const outermostCalls = 4

// leaveOutCalls removes calls from the middle of an error to keep its cause visible: Helm stops a template that
// calls itself after a thousand calls, and names each of them.
func leaveOutCalls(text string) string {
	const call = ": error calling "
	parts := strings.Split(text, call)
	left := len(parts) - 2*outermostCalls
	if left < 2 {
		return text
	}
	first, last := parts[:outermostCalls], parts[len(parts)-outermostCalls:]
	return fmt.Sprintf("%s: … (%d more calls) … %s", strings.Join(first, call), left, strings.Join(last, call))
}

// replacePrefix replaces a path where it begins: at the beginning of the text, or after what is not part of a path.
func replacePrefix(text, from, to string) string {
	var out strings.Builder
	for {
		at := strings.Index(text, from)
		if at < 0 {
			out.WriteString(text)
			return out.String()
		}
		inside := at > 0 && !strings.ContainsAny(text[at-1:at], " \n\t\"'(<")
		out.WriteString(text[:at])
		if inside {
			out.WriteString(from)
		} else {
			out.WriteString(to)
		}
		text = text[at+len(from):]
	}
}
