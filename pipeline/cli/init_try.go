// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/build/discover"
	"github.com/prerig/prerig/pipeline/cli/scaffold"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/review/dryrun"
	"github.com/prerig/prerig/pipeline/source"
)

// tryPipelines renders pipelines from the files of this repository, and returns those to write. It notes in each what
// is missing, and leaves out those that cannot be rendered at all.
func (in *initRun) tryPipelines(ctx context.Context, plan []planned) ([]planned, error) {
	dir, err := os.MkdirTemp("", "prerig-init-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	local := localPipelines{secrets: "secrets", cache: defaultCache()}
	renderer, closing, err := local.startRenderer(in.streams, in.version)
	if err != nil { // such as where the renderer is not installed
		in.untried = err
		return plan, nil
	}
	defer closing()
	found, err := in.inspect()
	if err != nil {
		return nil, err
	}
	snapshot := &source.Snapshot{Tree: found.files, Revision: "dir@" + found.files.ID()}
	renderer.Instead = func(catalog.Entry, v1alpha1.NamedSource) *source.Snapshot { return snapshot }
	renderer.Builder.Policies = dir
	newPolicy := "" // its path in the repository
	if in.policy != nil {
		newPolicy, _ = in.repository.pathFromRoot(in.to) // it is not in the repository yet
		if err := os.WriteFile(filepath.Join(dir, newPolicyFile), in.policy.Data, 0o600); err != nil {
			return nil, err
		}
	}
	entries := make([]catalog.Entry, len(plan))
	for i := range plan {
		if entries[i], err = trialEntry(plan[i].options, newPolicy); err != nil {
			return nil, err
		}
		if err := addChartRepositories(ctx, renderer, &plan[i], &entries[i], newPolicy); err != nil {
			return nil, err
		}
	}
	in.unlocked = slices.ContainsFunc(entries, found.isUnlocked)
	results := renderer.All(ctx, entries)
	local.bar.clearLine()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var out []planned
	var incomplete []dryrun.Result
	for i, r := range results {
		if r.Err != nil && !(plan[i].explicit || found.isUnlocked(entries[i])) {
			plan[i].problem = shortenLine(r.Err.Error(), maxProblem)
			in.leftOut = append(in.leftOut, plan[i])
			continue
		}
		out = append(out, plan[i])
		incomplete = append(incomplete, withoutWarnings(r))
	}
	reportProblems(&in.missing, "", incomplete, false)
	if len(out) == 0 && len(plan) > 0 && in.kept == 0 {
		return nil, fmt.Errorf("nothing was written, as none of %s can be rendered:\n%s",
			describeBuilds(buildsOf(plan)), strings.TrimSuffix(listLeftOut(in.leftOut, "  "), "\n"))
	}
	return out, nil
}

// newPolicyFile is the name of a policy that is not written yet.
const newPolicyFile = "new.yaml"

// trialEntry returns a pipeline as the catalog has it. newPolicy is the path of a policy that is not written yet.
func trialEntry(o scaffold.PipelineOptions, newPolicy string) (catalog.Entry, error) {
	text, err := scaffold.Pipeline(o)
	if err != nil {
		return catalog.Entry{}, err
	}
	e := catalog.Parse(o.Name, text)[0]
	if newPolicy != "" && o.Policy == newPolicy {
		e.Pipeline.Spec.Policies = []v1alpha1.PolicyRef{{File: newPolicyFile}}
	}
	return e, nil
}

// addChartRepositories lets a pipeline use the chart repositories that the source names. Builds that fail are reported
// by their render.
func addChartRepositories(ctx context.Context, renderer *dryrun.Renderer, p *planned, e *catalog.Entry,
	newPolicy string) error {
	spec := &p.options.Build
	if spec.Helm == nil && spec.Releases == nil && spec.HelmCharts == nil {
		return nil
	}
	found, err := renderer.FindReferences(ctx, *e, build.KeepLocked)
	if err != nil {
		return ctx.Err()
	}
	for _, one := range found.Charts {
		known := func(r v1alpha1.ChartRepository) bool { return r.URL == one.Repository }
		if one.Repository != "" && !slices.ContainsFunc(spec.ChartRepositories, known) {
			spec.ChartRepositories = append(spec.ChartRepositories, v1alpha1.ChartRepository{URL: one.Repository})
		}
	}
	slices.SortFunc(spec.ChartRepositories, func(a, b v1alpha1.ChartRepository) int { return cmp.Compare(a.URL, b.URL) })
	if len(spec.ChartRepositories) == 0 {
		return nil
	}
	with, err := trialEntry(p.options, newPolicy)
	if err != nil || with.Err != nil { // a repository that a pipeline cannot name is reported by the render
		spec.ChartRepositories = nil
		return nil //nolint:nilerr // see above
	}
	*e = with
	return nil
}

// isUnlocked reports whether a pipeline needs charts, and the repository has none locked.
func (f *inspection) isUnlocked(e catalog.Entry) bool {
	if e.Pipeline == nil || len(e.Pipeline.Spec.Build.ChartRepositories) == 0 {
		return false
	}
	_, err := f.view().Lookup(v1alpha1.DefaultChartLock)
	return err != nil
}

// withoutWarnings returns a result with its errors alone.
func withoutWarnings(r dryrun.Result) dryrun.Result {
	if r.Response() == nil {
		return r
	}
	built, response := *r.Built, *r.Built.Response
	response.Warnings = nil
	response.Results = slices.DeleteFunc(slices.Clone(response.Results), func(one result.Result) bool { return one.Severity != result.Error })
	built.Response = &response
	r.Built = &built
	return r
}

// maxProblem is how much of a problem is shown.
const maxProblem = 400

func buildsOf(plan []planned) (out []discover.Build) {
	for _, one := range plan {
		out = append(out, one.build)
	}
	return out
}

// listLeftOut lists the builds without a pipeline, in lines with a prefix.
func listLeftOut(leftOut []planned, prefix string) string {
	var b strings.Builder
	for i, one := range leftOut {
		if i == named && len(leftOut) > named+1 {
			fmt.Fprintf(&b, "%s%s more, which cannot be rendered either\n", prefix,
				describeBuilds(buildsOf(leftOut[i:])))
			break
		}
		fmt.Fprintf(&b, "%s%s (%s): %s\n", prefix, one.build.Path, one.build.Kind, one.problem)
	}
	return b.String()
}

// describePipelines reports the pipelines that were written, those that were not, and what is missing.
func (in *initRun) describePipelines(b *strings.Builder) {
	if n := len(in.written); n > shownBuilds {
		fmt.Fprintf(b, "wrote %d pipelines to %s: %s\n", n, in.pipelines, describeBuilds(buildsOf(in.written)))
	} else {
		for _, one := range in.written {
			fmt.Fprintf(b, "wrote %s: %s %s\n", one.file, one.build.Kind, one.build.Path)
		}
	}
	if in.kept > 0 {
		fmt.Fprintf(b, "kept %s, which already exist\n", countWithNoun(in.kept, "pipeline"))
	}
	if in.missing.Len() > 0 {
		fmt.Fprintf(b, "\nNot everything can be rendered yet:\n%s\n", in.missing.String())
	}
	b.WriteString(listLeftOut(in.leftOut, "warning: no pipeline for "))
	if in.untried != nil {
		fmt.Fprintf(b, "warning: the pipelines were not rendered: %v\n", in.untried)
	}
	in.describeOthers(b)
}

// describeOthers names what gets no pipeline, and how it would.
func (in *initRun) describeOthers(b *strings.Builder) {
	switch {
	case in.source != "" && !in.repository.isSource(in.source):
		fmt.Fprintf(b, "info: %s is not inspected, and the pipeline renders its directory %s; in a clone of it, "+
			"prerig init --source . writes a pipeline for each root\n", in.source, in.written[0].build.Path)
		return
	case in.source == "" && in.repository != nil:
		if found, err := in.inspect(); err == nil && len(found.builds) > 0 { // pipelines were not requested
			fmt.Fprintf(b, "info: found %s; prerig init --source . writes pipelines for them\n",
				describeBuilds(found.usual()))
		}
		return
	case in.inspected == nil || len(in.builds) > 0:
		return
	}
	chosen := in.inspected.usual()
	others := slices.DeleteFunc(slices.Clone(in.inspected.builds), func(one discover.Build) bool {
		return slices.ContainsFunc(chosen, func(c discover.Build) bool { return c.Path == one.Path })
	})
	if len(others) == 0 {
		return
	}
	var paths []string
	for _, one := range others {
		paths = append(paths, one.Path)
	}
	fmt.Fprintf(b, "info: no pipeline for %s (%s); --builds all writes one for each\n", describeBuilds(others),
		foreign.List(paths, named))
}
