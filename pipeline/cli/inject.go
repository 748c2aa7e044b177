// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/cli/batch"
	"github.com/prerig/prerig/pipeline/cli/policy"
	"github.com/prerig/prerig/pipeline/publish/published"
)

// injectRun is the state of one prerig inject.
type injectRun struct {
	manifestRun
	inPlace, diff, check, remove bool
	unwritten                    int  // files that should change and are not to be written
	keepGoing, canKeepGoing      bool // write past errors, and whether the command has a flag for it
	destination
	against  string // what is published
	colour   string
	wantedBy string // what defines the desired manifests
}

// injectExamples are the examples of the command.
const injectExamples = `  # write to standard output, using prerig.yaml or the built-in policy
  prerig inject deployment.yaml
  kustomize build overlays/prod | prerig inject -p mesh.yaml | kubectl apply -f -

  # show what would change, then change the files
  prerig inject -p mesh.yaml --diff k8s/
  prerig inject -p mesh.yaml -i k8s/

  # the same, past files with errors, which are listed
  prerig inject -p mesh.yaml -i --keep-going k8s/

  # in CI: fail if a committed file does not match the policy
  prerig inject -p mesh.yaml --check --diff k8s/

  # render into a committed file, and leave its Jobs unchanged
  kustomize build overlays/prod | prerig inject -p mesh.yaml --published rendered.yaml --to rendered.yaml

  # remove the injection
  prerig inject -p mesh.yaml --remove -i k8s/

  # with the files of istioctl kube-inject
  prerig inject --injectConfigFile inject-config.yaml --valuesFile inject-values.yaml \
    --meshConfigFile mesh-config.yaml --filename deployment.yaml`

func newInject(streams Streams) *cobra.Command {
	in := &injectRun{manifestRun: manifestRun{streams: streams}, wantedBy: "policy", canKeepGoing: true}
	cmd := newCommand("inject [FILE|DIRECTORY]...", "Inject sidecars into manifests")
	cmd.Long = `Inject sidecars into the workloads in manifests, and leave every other byte unchanged.

Reads files, the .yaml, .yml and .json files below directories, or standard input. Every
manifest that was read, injected or not, is written to standard output in the order of the
input, or to the destination of --to or -i.

A directory may contain other files: charts, templates, kustomizations, playbooks, data. These
are skipped, with one message for each kind; specifying such a file explicitly is an error.
Hidden files and downloaded packages (node_modules, vendor) are not read, nor are files that
match --exclude or a .prerigignore file, which follow the rules of .gitignore.

Kustomizations in the same repository that address a changed list by position, or replace it,
would patch other elements afterwards: -i and --check fail and list them.

The decision for each workload, with its reason, is printed to standard error, one line each.
If there is an error in any file, -i and --to FILE write nothing at all, and nothing is written
if a workload cannot be injected. Otherwise a file that cannot be read is omitted as a whole,
and the other files are processed; --diff and --check show everything that can be determined.
The exit code is then 2. With --keep-going, all files without an error are written.

Exit codes:
  0  success; with --diff also if there are differences
  1  --check: the input differs from the result of the injection
  2  invalid input, policy or flag, or a read or write error

A Job's template is immutable, as is most of a Pod's spec. Jobs and bare Pods that carry an
injection keep it as long as their own spec is unchanged (spec.jobs of the policy). If the
input is the output of a build, specify the published manifests with --published to keep their
Jobs and Pods.

--filename, --injectConfigFile, --valuesFile, --meshConfigFile and --revision mean
the same as in istioctl kube-inject; its --output is --to, and its -i is --istioNamespace.`
	cmd.Example = injectExamples
	in.injectFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return in.runInject(cmd.Context(), args) }
	return cmd
}

// injectFlags adds the flags of the command.
func (in *injectRun) injectFlags(cmd *cobra.Command) {
	in.addFlags(cmd)
	in.versionFlag(cmd)
	f := cmd.Flags()
	f.BoolVarP(&in.inPlace, "in-place", "i", false,
		"change the files in place: all of them, or none if there is an error")
	f.BoolVar(&in.keepGoing, "keep-going", false, "write all other files if there are errors in some, and exit with 2")
	f.BoolVar(&in.diff, "diff", false, "print a unified diff; manifests are written only with -i or --to")
	f.BoolVar(&in.check, "check", false, "write nothing, and exit with 1 if the input differs from the result of the injection")
	f.BoolVar(&in.remove, "remove", false, "remove the injection")
	f.StringVar(&in.against, "published", "", "file or directory with the published manifests, whose Jobs and bare Pods keep their injection")
	f.StringVar(&in.colour, "color", "auto", "when to colour the diff: auto, always or never")
	completeChoice(cmd, "color", colourValues)
	in.writeFlags(cmd)
}

func (in *injectRun) runInject(ctx context.Context, args []string) error {
	if err := in.checkColour(); err != nil {
		return err
	}
	if in.to != "" && isOutputDirectory(in.to) {
		if in.format != "yaml" {
			return fmt.Errorf("-o %s is for standard output or a file; the files in the directory %s keep their format",
				in.format, in.to)
		}
		in.results = in.to
	}
	b, err := in.readFiles(ctx, args)
	if err != nil {
		return err
	}
	if err := in.checkAnyManifest(); err != nil {
		return err
	}
	if err := in.loadPolicies(); err != nil {
		return err
	}
	if in.against != "" {
		if in.published, err = published.ReadFiles(in.against); err != nil {
			return fmt.Errorf("reading the flag --published: %w", err)
		}
	}
	mode := in.effectiveMode(in.allPolicies())
	overlays, err := in.findOverlays(ctx, b)
	if err != nil {
		return err
	}
	var opts []fn.Option
	if !overlays.Empty() {
		opts = append(opts, fn.WithPods())
	}
	report, err := in.runPolicies(ctx, mode, opts...)
	if err != nil {
		return err
	}
	report.Results = append(report.Results, in.checkOverlays(overlays, b, report)...)
	return in.finishRun(ctx, b, report, func() (*fn.Report, error) { return in.rerunPolicies(ctx, mode) })
}

// checkColour checks --color.
func (in *injectRun) checkColour() error {
	return checkChoice("color", in.colour, colourValues)
}

// replacesByDefault rejects changing files by a policy that was not chosen explicitly if pods carry another
// version's injection: they were injected by a policy that was not found now. It reports whether such pods exist.
func (in *injectRun) replacesByDefault() bool {
	if !in.inPlace {
		return false
	}
	refused := false
	for _, g := range in.groups {
		if !g.byDefault {
			continue
		}
		for _, o := range g.report.Outcomes {
			if o.Action != fn.Injected || o.EarlierImage == "" || o.EarlierImage == o.Image {
				continue
			}
			refused = true
			fmt.Fprintf(in.streams.Err, "error: %s:%d: %s: it has the proxy %s, and the built-in policy, which is used only because no %s was found, has %s\n",
				o.File.Path, o.File.Line, o.Ref, o.EarlierImage, policy.FileName, o.Image)
		}
	}
	if refused {
		fmt.Fprintf(in.streams.Err, "to continue, specify the intended policy with -p, or save it in the root of the repository as %s; use -p %s for the built-in one\n", policy.FileName, policy.BuiltIn)
	}
	return refused
}

// effectiveMode of the run, "" to leave it to the policies. A policy whose own mode is Check is the same as --check.
func (in *injectRun) effectiveMode(ps []*v1alpha1.InjectionPolicy) v1alpha1.Mode {
	if in.remove {
		return v1alpha1.ModeRemove
	}
	for _, p := range ps {
		if p.Spec.Mode != v1alpha1.ModeCheck {
			return ""
		}
	}
	in.check = true
	return v1alpha1.ModeInject
}

// printSummary summarises the run in one line.
func (in *injectRun) printSummary(b *batch.Batch, report *fn.Report) {
	if in.quiet {
		return
	}
	n := map[fn.Action]int{}
	for _, o := range report.Outcomes {
		n[o.Action]++
	}
	var parts []string
	for _, a := range []fn.Action{fn.Injected, batch.Pinned, fn.Removed, fn.Kept, fn.Skipped} {
		if n[a] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[a], a))
		}
	}
	if len(parts) == 0 {
		parts = []string{"no workloads in the input"}
		if report.Failed() {
			parts = []string{"no workload could be injected"}
		}
	}
	changed := 0
	for _, f := range b.Files {
		if f.Changed() && !(in.inPlace && f.Incomplete()) {
			changed++
		}
	}
	verb := "would change"
	if in.inPlace {
		verb = "changed"
		changed -= in.unwritten
	}
	line := strings.Join(parts, ", ")
	if in.inPlace || in.diff || in.check {
		line += fmt.Sprintf("; %d of %s %s", changed, countWithNoun(len(b.Files), "file"), verb)
	}
	fmt.Fprintln(in.streams.Err, line)
}

// checkVerdict is the result of --check.
func (in *injectRun) checkVerdict(report *fn.Report) error {
	if !in.check {
		return nil
	}
	var found []string
	for _, o := range report.Outcomes {
		if o.Changed {
			found = append(found, fmt.Sprintf("%s:%d: %s: does not match the "+in.wantedBy, o.File.Path, o.File.Line, o.Ref))
		}
	}
	if len(found) == 0 {
		return nil
	}
	found = append(slices.Compact(found), "To fix it, run the same command with -i instead of --check, and commit the result.")
	return findingsError{strings.Join(found, "\n")}
}

func countWithNoun(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
