// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/explain"
	"github.com/prerig/prerig/pipeline/cli/files"
)

// explainRun is the state of one prerig explain.
type explainRun struct {
	manifestRun
	output string
}

func newExplain(streams Streams) *cobra.Command {
	ex := &explainRun{manifestRun: manifestRun{streams: streams}}
	cmd := newCommand("explain [FILE|DIRECTORY|KIND/NAME]...", "Show which workloads are injected, and why")
	cmd.Long = `Show for each workload whether it is injected, by which rule of which webhook, for which
revision, with which templates, and what decided it. Nothing is written.

Reads files, directories and standard input as prerig inject does. The functionConfig of a
ResourceList is its policy. KIND/NAME or KIND/NAMESPACE/NAME shows every step for one
workload; if no file is specified, the current directory is read.

If a file cannot be read, its error is reported and the other files are explained.

Exit codes:
  0  success
  2  invalid input, policy or flag, or a file that cannot be read or a workload that cannot be
     injected`
	cmd.Example = `  prerig explain k8s/
  prerig explain -p mesh.yaml -f k8s/ deployment/web
  kustomize build overlays/prod | prerig explain -p mesh.yaml
  prerig explain -o json k8s/`
	ex.addFlags(cmd)
	ex.versionFlag(cmd)
	ex.completeWorkloads(cmd)
	formatFlag(cmd, streams, &ex.output, textFormats)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return ex.runExplain(cmd.Context(), args) }
	return cmd
}

func (ex *explainRun) runExplain(ctx context.Context, args []string) error {
	names, refs := splitReferences(args)
	for _, name := range names {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, "/.*") {
			return fmt.Errorf("%s is no file, and a workload is KIND/NAME; did you mean deployment/%s?", name, name)
		}
	}
	if len(refs) > 0 && len(names) == 0 && len(ex.files) == 0 {
		names = []string{"."}
	}
	if _, err := ex.readFiles(ctx, names); err != nil {
		return err
	}
	if err := ex.checkAnyManifest(); err != nil {
		return err
	}
	if err := ex.loadPolicies(); err != nil {
		return err
	}
	var opts []fn.Option
	onlyMisplaced := false
	if len(refs) > 0 {
		onlyMisplaced = ex.lintMisplaced()
		opts = append(opts, fn.WithTrace())
	}
	report, err := ex.runPolicies(ctx, v1alpha1.ModeInject, opts...)
	if err != nil {
		return err
	}
	if onlyMisplaced {
		report.Results = slices.DeleteFunc(report.Results, isLintFindingExcept(misplacedRule))
	}
	e := explain.Of(report)
	failed := report.Failed()
	switch {
	case len(e.Workloads) == 0: // no workloads exist, or a policy cannot be applied
		ex.printResults(report.Results)
		if !failed {
			fmt.Fprintln(ex.streams.Err, "no workloads in the input")
		}
	case len(refs) > 0: // what is wrong with others is not asked for, but what cannot be read may be what is asked for
		ex.printResults(ex.batch.Problems())
		if e, err = e.Select(refs); err != nil {
			return err
		}
		failed = e.Failed()
	default:
		ex.quiet = true // every reason is in the table
		ex.printResults(report.Results)
	}
	if err := ex.printExplanation(e, len(refs) > 0); err != nil {
		return err
	}
	if failed {
		return errReported
	}
	return nil
}

// misplacedRule is the rule about labels and annotations in places where the injector does not read them, such as the
// label that selects a pod on its Deployment. Without it, the decision for one workload could not name them.
const misplacedRule = "PR602"

// lintMisplaced has the run lint if no policy asks for it, and reports whether only the findings of misplacedRule are wanted.
func (ex *explainRun) lintMisplaced() bool {
	policies := ex.allPolicies()
	if slices.ContainsFunc(policies, func(p *v1alpha1.InjectionPolicy) bool { return p.Spec.Lint != nil }) {
		return false
	}
	for _, p := range policies {
		p.Spec.Lint = &v1alpha1.Lint{}
	}
	return true
}

// isLintFindingExcept reports whether a result is a finding of another lint rule.
func isLintFindingExcept(code string) func(result.Result) bool {
	return func(r result.Result) bool {
		found := r.Tags[result.TagCode]
		_, ok := lint.Lookup(found)
		return ok && found != code
	}
}

// splitReferences separates files from references to workloads. An argument that exists as a file is one.
func splitReferences(args []string) (names []string, refs []explain.Reference) {
	for _, arg := range args {
		ref, ok := explain.ParseReference(arg)
		ok = ok && !files.Manifest(arg)
		if _, err := os.Stat(arg); err != nil && ok {
			refs = append(refs, ref)
			continue
		}
		names = append(names, arg)
	}
	return names, refs
}

func (ex *explainRun) printExplanation(e explain.Explanation, detail bool) error {
	out := ex.streams.Out
	switch {
	case ex.output != "text":
		return writeStructured(out, ex.output, e)
	case len(e.Workloads) == 0:
		return nil
	case detail:
		return e.Detail(visibleWriter{out})
	}
	return e.Table(visibleWriter{out})
}
