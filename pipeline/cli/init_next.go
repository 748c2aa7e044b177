// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/importer"
	"github.com/prerig/prerig/pipeline/cli/policy"
)

// printNextSteps reports the written files, and what to do with them.
func (in *initRun) printNextSteps() {
	var b strings.Builder
	if in.policy != nil {
		fmt.Fprintf(&b, "wrote %s: %s\n", in.policy.Path, originText(in.imported))
		if in.imported != nil {
			for _, resource := range in.importing.unread {
				fmt.Fprintf(&b, "%s: %s\n", result.Warning, unreadableResourceNotice(resource))
			}
			for _, w := range in.imported.Warnings {
				fmt.Fprintf(&b, "%s: %s\n", result.Warning, w)
			}
			for _, n := range in.imported.Notes {
				if len(in.namespaces) > 0 && strings.HasPrefix(n, "the input has no Namespace") {
					continue // set by the user
				}
				fmt.Fprintf(&b, "%s: %s\n", result.Info, n)
			}
		}
	} else {
		fmt.Fprintf(&b, "kept %s, which already exists\n", in.to)
	}
	in.describePipelines(&b)
	b.WriteString("\nNext:\n")
	var steps [][2]string
	dir, by := quoteShellWord(filepath.ToSlash(in.dir)), ""
	if policyIsFound(in.dir, in.to) {
		steps = append(steps, [2]string{"prerig doctor" + in.directoryFlags(), "check everything"})
	} else {
		by = "-p " + quoteShellWord(in.to) + " "
		steps = append(steps, [2]string{"prerig doctor" + in.directoryFlags() + " " + quoteShellWord(in.to), "check everything"})
	}
	steps = append(steps, [2]string{"prerig explain " + by + dir, "show which workloads are injected, and why"},
		[2]string{"prerig inject --diff " + by + dir, "show what would change"})
	if len(in.written) > 0 {
		steps = append(steps, in.pipelineSteps()...)
	} else {
		steps = append(steps, [2]string{"prerig inject -i " + by + dir, "change the files"})
	}
	width := 0
	for _, s := range steps {
		width = max(width, len(s[0]))
	}
	for _, s := range steps {
		fmt.Fprintf(&b, "  %-*s  # %s\n", width, s[0], s[1])
	}
	fmt.Fprint(in.streams.Err, b.String())
}

// directoryFlags returns the flags that locate pipelines and policies, or "" if a command finds them by itself.
func (in *initRun) directoryFlags() string {
	flags := ""
	if len(in.written) == 0 {
		return flags
	}
	if in.pipelines != "pipelines" {
		flags += " --pipelines " + quoteShellWord(in.pipelines)
	}
	if !in.repository.isSource(in.source) {
		flags += " --policies " + quoteShellWord(cmp.Or(filepath.ToSlash(filepath.Dir(in.to)), "."))
	}
	return flags
}

// pipelineSteps are what to do with a pipeline.
func (in *initRun) pipelineSteps() (steps [][2]string) {
	flags := in.directoryFlags()
	render := "prerig render" + flags
	if in.repository.isSource(in.source) {
		render += " --source " + quoteShellWord(cmp.Or(in.repository.relativeRootPath(), "."))
	}
	if in.unlocked {
		steps = append(steps, [2]string{"prerig charts lock" + flags, "lock the charts of repositories"})
	}
	if len(in.written) == 1 {
		steps = append(steps, [2]string{render + " " + in.written[0].options.Name, "show the pipeline's result"})
	} else {
		steps = append(steps, [2]string{render + " -o rendered/", "write the results of all pipelines"})
	}
	return append(steps,
		[2]string{"prerig serve" + flags, "render and publish on every change, once these files are committed"})
}

// policyIsFound reports whether commands find a policy for the manifests of a directory without a flag.
func policyIsFound(dir, name string) bool {
	found, err := (&policy.Finder{}).Near(dir)
	if err != nil || found == "" {
		return false
	}
	a, errA := filepath.Abs(found)
	b, errB := filepath.Abs(name)
	return errA == nil && errB == nil && a == b
}

// originText describes the origin of a policy; imported is nil for the built-in one.
func originText(imported *importer.Import) string {
	if imported != nil {
		return imported.From
	}
	return "the built-in Istio policy"
}

// quoteShellWord quotes a text so that a shell reads it as one word.
func quoteShellWord(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') &&
			!strings.ContainsRune("-_./:@+,=%", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
