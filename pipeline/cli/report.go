// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/review/dryrun"
)

// named is how many findings of one sort are printed in full.
const named = 3

// notice is a finding of a pipeline. Those of one sort differ only in names.
type notice struct{ sort, text string }

// reportProblems prints the problems of results, and reports whether it found any. A problem that many objects
// share is printed a few times and counted.
func reportProblems(w io.Writer, dir string, results []dryrun.Result, verbose bool) (failed bool) {
	counts := map[string]int{}
	var order []string
	var all []notice
	for _, r := range results {
		found, bad := pipelineNotices(dir, r)
		failed = failed || bad
		for _, n := range found {
			if counts[n.sort]++; counts[n.sort] == 1 {
				order = append(order, n.sort)
			}
			all = append(all, n)
		}
	}
	told := map[string]int{}
	for _, n := range all {
		if told[n.sort]++; verbose || told[n.sort] <= named || counts[n.sort] == named+1 {
			fmt.Fprintln(w, n.text)
		}
	}
	for _, sort := range order {
		if more := counts[sort] - named; more > 1 && !verbose {
			fmt.Fprintf(w, "and %d more like this (-v prints them): %s\n", more, shortenLine(sort, 200))
		}
	}
	return failed
}

// chartOfRepository is how messages name a chart of a repository.
var chartOfRepository = lazyregexp.New(`chart \S+( \S+)? of (https?|oci)://[^\s;,]+`)

// fieldOfPipeline finds the field at the beginning of an error about a pipeline.
var fieldOfPipeline = lazyregexp.New(`^(?:gate \w+: )?(spec\.[^ :]+): `)

// placeInPipeline returns the file and the line of the field with which an error begins, as "shop.yaml:8: ", or "".
func placeInPipeline(dir string, e catalog.Entry, text string) string {
	m := fieldOfPipeline.FindStringSubmatch(text)
	if m == nil || e.File == "" || e.Revision != "" {
		return ""
	}
	name := filepath.Join(dir, filepath.FromSlash(e.File))
	data, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	file, err := manifest.Parse(name, data)
	if err != nil {
		return ""
	}
	for _, doc := range file.Docs {
		meta, _ := doc.Peek()
		if e.Pipeline == nil || meta.Name != e.Pipeline.Metadata.Name {
			continue
		}
		for path := workload.ParseField(m[1]); len(path) > 0; path = path[:len(path)-1] {
			if line, _, ok := doc.Locate(path...); ok {
				return fmt.Sprintf("%s:%d: ", name, line)
			}
		}
	}
	return ""
}

// sourceHint describes how to render without a source that cannot be read.
func sourceHint(text string) string {
	if strings.HasPrefix(text, "spec.source: ") {
		return "; to render a directory in the place of the source, use --source DIRECTORY"
	}
	return ""
}

// pipelineNotices are the findings of one pipeline, whose file is below a directory.
func pipelineNotices(dir string, r dryrun.Result) (out []notice, failed bool) {
	key := r.Entry.Key
	add := func(kind, text, name, line string) {
		sort := kind + ": " + chartOfRepository.ReplaceAllString(strings.ReplaceAll(text, key, "<pipeline>"), "chart <name> of <repository>")
		for _, own := range []string{name, withoutNamespace(key)} {
			if len(own) > 1 {
				sort = strings.ReplaceAll(sort, own, "<name>")
			}
		}
		out = append(out, notice{sort, line})
	}
	if r.Response() != nil {
		for _, text := range r.Built.Warnings {
			add("warning", text, "", fmt.Sprintf("warning: %s: %s", key, text))
		}
		for _, one := range r.Built.Results {
			if one.Severity == result.Info {
				continue
			}
			name := ""
			if one.ResourceRef != nil {
				name = one.ResourceRef.Name
			}
			add(string(one.Severity), one.Message, name, fmt.Sprintf("%s: %s", key, one.String()))
		}
	}
	problems := []error{r.Err, r.Gate}
	if r.Response() != nil {
		if failed := r.Built.NotRendered(); len(failed) > 0 { // the results say why
			problems = append(problems, fmt.Errorf("not rendered: %s", foreign.List(failed, named)))
		}
	}
	for _, err := range problems {
		if err != nil {
			text := err.Error()
			add("error", text, "", fmt.Sprintf("error: %s: %s%s%s", key, placeInPipeline(dir, r.Entry, text), text, sourceHint(text)))
			failed = true
		}
	}
	return out, failed
}
