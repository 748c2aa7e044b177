// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"helm.sh/helm/v4/pkg/strvals"

	"github.com/prerig/prerig/pipeline/render/engine/helmchart"
)

// mergeApplicationValues returns the values that result from the helm template flags that Argo CD writes
// (util/helm/cmd.go): files in their order, then values or valuesObject, then parameters.
func (r *appRender) mergeApplicationValues() (map[string]any, error) {
	merged := map[string]any{}
	helm := r.source.Helm
	if helm == nil {
		return merged, nil
	}
	files, err := r.valueFiles()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		values, err := readValues(file.content)
		if err != nil {
			return nil, errorAboutField(r.object, file.at, "reading the values of %s: %v", file.name, err)
		}
		merged = mergeMaps(merged, values)
	}
	field, text := "values", []byte(helm.Values)
	if len(helm.ValuesObject) > 0 && string(helm.ValuesObject) != "null" {
		field, text = "valuesObject", helm.ValuesObject // Argo CD writes it to a file, too
	}
	own, err := readValues(text)
	if err != nil {
		return nil, errorAboutField(r.object, r.at+".helm."+field, "cannot be read: %v", err)
	}
	merged = mergeMaps(merged, own)
	return merged, r.setParameters(merged)
}

// setParameters sets what --set, --set-string and --set-file would, in this order.
func (r *appRender) setParameters(values map[string]any) error {
	for _, asString := range []bool{false, true} {
		for i, one := range r.source.Helm.Parameters {
			if one.ForceString != asString {
				continue
			}
			at := fmt.Sprintf("%s.helm.parameters[%d]", r.at, i)
			value, err := r.substituteBuildVariables(at+".value", one.Value)
			if err != nil {
				return err
			}
			set := strvals.ParseInto
			if asString {
				set = strvals.ParseIntoString
			}
			if err := set(one.Name+"="+escapeCommas(value), values); err != nil {
				return errorAboutField(r.object, at, "cannot be set: %v", err)
			}
		}
	}
	for i, one := range r.source.Helm.FileParameters {
		at := fmt.Sprintf("%s.helm.fileParameters[%d]", r.at, i)
		file, err := r.readFile(at+".path", one.Path)
		if err != nil {
			return errorAboutField(r.object, at+".path", "reading %s: %v", one.Path, err)
		}
		read := func([]rune) (any, error) { return string(file.content), nil }
		if err := strvals.ParseIntoFile(one.Name+"=file", values, read); err != nil {
			return errorAboutField(r.object, at, "cannot be set: %v", err)
		}
	}
	return nil
}

// escapeCommas escapes the commas of a parameter that are not escaped, but for lists in braces.
func escapeCommas(value string) string {
	if strings.HasPrefix(value, "{") && strings.HasSuffix(value, "}") {
		return value
	}
	var out strings.Builder
	before := rune(0)
	for _, c := range value {
		if c == ',' && before != '\\' {
			out.WriteByte('\\')
		}
		out.WriteRune(c)
		before = c
	}
	return out.String()
}

// substituteBuildVariables replaces variables as Argo CD does; unknown ones are replaced by the empty string.
func (r *appRender) substituteBuildVariables(at, text string) (string, error) {
	if !strings.Contains(text, "$") {
		return text, nil
	}
	var err error
	out := os.Expand(text, func(name string) string {
		switch name {
		case "$":
			return "$"
		case "ARGOCD_APP_NAME":
			return r.app.Metadata.Name
		case "ARGOCD_APP_NAMESPACE":
			return r.app.Spec.Destination.Namespace
		case "ARGOCD_APP_PROJECT_NAME":
			return r.app.Spec.Project
		case "ARGOCD_APP_SOURCE_REPO_URL":
			return r.source.RepoURL
		case "ARGOCD_APP_SOURCE_PATH":
			return r.source.Path
		case "ARGOCD_APP_SOURCE_TARGET_REVISION":
			return r.source.TargetRevision
		case "ARGOCD_APP_REVISION", "ARGOCD_APP_REVISION_SHORT", "ARGOCD_APP_REVISION_SHORT_8":
			err = errorAboutField(r.object, at, "$%s is another one at each commit, so that each would render something else; write out what is meant", name)
		}
		return ""
	})
	return out, err
}

// valueFile is a file of values.
type valueFile struct {
	at, name string
	content  []byte
}

// valueFiles reads the values files, each once. A file that is named explicitly keeps that position, even if a
// pattern matches it too.
func (r *appRender) valueFiles() ([]valueFile, error) {
	helm := r.source.Helm
	named := map[string]bool{}
	for i, raw := range helm.ValueFiles {
		if at, err := r.resolveApplicationPath(fmt.Sprintf("%s.helm.valueFiles[%d]", r.at, i), raw); err == nil && !isPattern(at.path) {
			named[at.path] = true
		}
	}
	seen := map[string]bool{}
	var out []valueFile
	for i, raw := range helm.ValueFiles {
		field := fmt.Sprintf("%s.helm.valueFiles[%d]", r.at, i)
		found, err := r.readValueFiles(field, raw, named)
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			if !seen[file.name] {
				seen[file.name] = true
				out = append(out, file)
			}
		}
	}
	return out, nil
}

// readValueFiles reads what an entry of valueFiles names.
func (r *appRender) readValueFiles(field, raw string, named map[string]bool) ([]valueFile, error) {
	at, err := r.resolveApplicationPath(field, raw)
	if err != nil {
		return nil, err
	}
	ignore := r.source.Helm.IgnoreMissingValueFiles
	if isPattern(at.path) {
		if at.inChart {
			return nil, errorAboutField(r.object, field, "%s is a pattern, and the chart is an archive; name the files", raw)
		}
		names, err := r.matchPatternFiles(at)
		if err != nil {
			return nil, errorAboutField(r.object, field, "reading %s: %v", raw, err)
		}
		if len(names) == 0 && !ignore {
			return nil, errorAboutField(r.object, field, "no file is %s; ignoreMissingValueFiles leaves it out", raw)
		}
		var out []valueFile
		for _, name := range names {
			if named[name] {
				continue
			}
			content, err := r.set.in.Files.Read(name)
			if err != nil {
				return nil, errorAboutField(r.object, field, "reading %s: %v", name, err)
			}
			out = append(out, valueFile{field, name, content})
		}
		return out, nil
	}
	file, err := r.readFile(field, raw)
	if errors.Is(err, fs.ErrNotExist) && ignore {
		return nil, nil
	}
	if err != nil {
		return nil, errorAboutField(r.object, field, "reading %s: %v", raw, err)
	}
	return []valueFile{*file}, nil
}

// isPattern reports whether Argo CD treats a path as a pattern.
func isPattern(name string) bool { return strings.ContainsAny(name, "*?[") }

// resolvedFile is a file of the tree, or one of the chart's archive.
type resolvedFile struct {
	path, root string
	inChart    bool
}

// resolveApplicationPath finds what a path of an Application means: a path from the chart on, from the repository's
// root on where it begins with a slash, or from the root of another source where it begins with $ and its name.
func (r *appRender) resolveApplicationPath(field, raw string) (resolvedFile, error) {
	var none resolvedFile
	if ref, rest, _ := strings.Cut(raw, "/"); strings.HasPrefix(ref, "$") {
		for i, source := range r.sources {
			if source.Ref == "" || "$"+source.Ref != ref {
				continue
			}
			root, reason := r.set.findRevision(source.RepoURL, source.TargetRevision)
			if reason != "" {
				return none, errorAboutField(r.object, fmt.Sprintf("spec.sources[%d].repoURL", i), "%s", reason)
			}
			name, err := r.substituteBuildVariables(field, rest)
			return resolvedFile{path: path.Join(root, path.Join("/", name)), root: root}, err
		}
	}
	name, err := r.substituteBuildVariables(field, raw)
	if err != nil {
		return none, err
	}
	if strings.Contains(name, "://") {
		return none, errorAboutField(r.object, field, "%s is a URL, and a render uses no network; put the file into the tree", name)
	}
	if r.chart.Repository != "" {
		return resolvedFile{path: strings.TrimPrefix(path.Join("/", name), "/"), inChart: true}, nil
	}
	if strings.HasPrefix(name, "/") {
		return resolvedFile{path: path.Join(r.chart.root, path.Clean(name)), root: r.chart.root}, nil
	}
	at := path.Join(r.chart.path, name)
	if root := path.Clean(r.chart.root); root != "." && at != root && !strings.HasPrefix(at, root+"/") || at == ".." || strings.HasPrefix(at, "../") {
		return none, errorAboutField(r.object, field, "%s leads out of the repository", raw)
	}
	return resolvedFile{path: at, root: r.chart.root}, nil
}

// readFile reads one file. It returns an fs.ErrNotExist error if the file does not exist.
func (r *appRender) readFile(field, raw string) (*valueFile, error) {
	at, err := r.resolveApplicationPath(field, raw)
	if err != nil {
		return nil, err
	}
	var content []byte
	if at.inChart {
		content, err = helmchart.ReadFile(r.set.in.Files, r.spec, r.options, at.path)
	} else {
		content, err = r.set.in.Files.Read(at.path)
	}
	return &valueFile{field, at.path, content}, err
}

// matchPatternFiles returns the files that a pattern means, sorted.
func (r *appRender) matchPatternFiles(at resolvedFile) ([]string, error) {
	base, _ := doublestar.SplitPattern(at.path)
	var found []string
	enter := func(string) bool { return true }
	err := r.set.walkFiles(base, enter, func(name string) error {
		ok, err := doublestar.Match(at.path, name)
		if ok {
			found = append(found, name)
		}
		return err
	})
	slices.Sort(found)
	return found, err
}
