// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/ambient"
	"github.com/prerig/prerig/pipeline/cli/batch"
	"github.com/prerig/prerig/pipeline/cli/files"
)

// ambientRun is the state of one prerig ambient plan.
type ambientRun struct {
	manifestRun
	output      string
	only, steps []string
	write, back bool
}

func newAmbient(streams Streams) *cobra.Command {
	cmd := newCommand("ambient", "Move namespaces from sidecars to ambient mode")
	cmd.Args = knownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(newAmbientPlan(streams))
	return cmd
}

func newAmbientPlan(streams Streams) *cobra.Command {
	a := &ambientRun{manifestRun: manifestRun{streams: streams}}
	cmd := newCommand("plan [FILE|DIRECTORY]...", "Plan the move of namespaces to ambient mode, and write its files")
	cmd.Long = `Show, namespace by namespace, what moves to Istio's ambient mode as it is, what must change
first, and what cannot move; in which order, where enforcement differs on the way, and how much
the sidecars request. Findings are those of prerig lint for ambient mode (PR9xx), for the state
after the move.

--write changes the files of a directory, in steps: network, waypoint, routes, policies, limit,
label, sidecars, cleanup and enforce. Publish them one after the other; each is safe while those
before it are in place. Comments and order stay. --back takes steps back: the bytes are as
before. What no step can express with the same meaning is named and left as it is.`
	cmd.Example = `  prerig ambient plan k8s/
  prerig ambient plan --only shop --write --step network,waypoint,routes k8s/
  prerig ambient plan --back --step routes k8s/`
	a.addFlags(cmd)
	a.versionFlag(cmd)
	f := cmd.Flags()
	formatFlag(cmd, streams, &a.output, textFormats)
	f.StringSliceVar(&a.only, "only", nil, "namespaces to move; default: all that have sidecars")
	f.StringSliceVar(&a.steps, "step", nil, "steps to write or to take back; default with --write: all but enforce, with --back: the newest")
	f.BoolVar(&a.write, "write", false, "change the files of one directory")
	f.BoolVar(&a.back, "back", false, "take the steps back, with those after them")
	completeChoice(cmd, "step", ambient.StepNames())
	refuseTogether(cmd, "write", "back")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), args) }
	return cmd
}

func (a *ambientRun) run(ctx context.Context, args []string) error {
	for _, step := range a.steps {
		if err := checkChoice("step", step, ambient.StepNames()); err != nil {
			return err
		}
	}
	if len(a.steps) > 0 && !a.write && !a.back {
		return errors.New("--step needs --write or --back")
	}
	if a.back {
		return a.takeBack(ctx, append(a.files, args...))
	}
	b, err := a.readFiles(ctx, args)
	if err != nil {
		return err
	}
	if err := a.checkAnyManifest(); err != nil {
		return err
	}
	tree, usage, err := a.readSidecars(ctx, b)
	if err != nil {
		return err
	}
	if a.write {
		return a.writeSteps(ctx, b, tree, append(a.files, args...))
	}
	o := a.options()
	for _, f := range b.Files {
		if !f.IsWhole() {
			o.Broken = append(o.Broken, f.Input.Path)
		}
	}
	for _, in := range b.Beside() {
		o.Patches = append(o.Patches, ambient.Patch{Path: in.Path, Text: string(in.Data)})
	}
	plan, err := ambient.New(tree, o, usage)
	if err != nil {
		return err
	}
	if a.output == "text" {
		err = plan.WriteText(a.streams.Out)
	} else {
		err = writeStructured(a.streams.Out, a.output, plan)
	}
	if err != nil {
		return fmt.Errorf("writing standard output: %w", err)
	}
	return nil
}

func (a *ambientRun) options() ambient.Options {
	o := ambient.Options{Namespaces: a.only, DefaultNamespace: a.namespace, IstioVersion: a.istio}
	for _, p := range a.allPolicies() {
		if p.Spec.Istio == nil {
			continue
		}
		o.RootNamespace = p.Spec.Istio.RootNamespace
		if o.IstioVersion == "" {
			o.IstioVersion = p.Spec.Istio.Version
		}
	}
	return o
}

// readSidecars returns the files with their documents without sidecars, and what the sidecars request where the
// policies inject them.
func (a *ambientRun) readSidecars(ctx context.Context,
	b *batch.Batch) ([]ambient.File, map[string]ambient.Usage, error) {
	if err := a.loadPolicies(); err != nil {
		return nil, nil, err
	}
	report, err := a.runPolicies(ctx, v1alpha1.ModeInject)
	if err != nil {
		return nil, nil, err
	}
	a.printResults(slices.DeleteFunc(report.Results, func(r result.Result) bool { return r.Severity != result.Error }))
	var injected []*manifest.Document
	for _, item := range b.ItemsAfter() {
		injected = append(injected, item.Doc)
	}
	usage, err := ambient.SidecarUsage(injected, a.namespace)
	if err != nil {
		return nil, nil, err
	}
	if _, err := a.rerunPolicies(ctx, v1alpha1.ModeRemove); err != nil {
		return nil, nil, err
	}
	var out []ambient.File
	for _, from := range b.Files {
		f := ambient.File{Path: from.Input.Path}
		for _, one := range from.Documents() {
			f.Docs, f.Clean = append(f.Docs, one.Before), append(f.Clean, one.After)
			if one.Passed {
				f.Pass(one.Before)
			}
		}
		out = append(out, f)
	}
	return out, usage, nil
}

// writeSteps makes the steps and writes their files, with the record of what they changed.
func (a *ambientRun) writeSteps(ctx context.Context, b *batch.Batch, tree []ambient.File, args []string) error {
	dir, err := openOneDirectory(args)
	if err != nil {
		return err
	}
	defer dir.Close()
	record, err := readRecord(dir)
	if err != nil {
		return err
	}
	steps := a.steps
	if len(steps) == 0 {
		steps = slices.DeleteFunc(ambient.StepNames(), func(name string) bool { return name == "enforce" })
	}
	rel := map[string]string{} // by the path of the file
	var broken []string
	for _, f := range b.Files {
		if !f.IsWhole() {
			broken = append(broken, f.Input.Path)
		}
		rel[f.Input.Path] = filepath.ToSlash(f.Input.Rel)
	}
	o := a.options()
	tree, warnings, err := ambient.Readable(tree, &o, broken)
	if err != nil {
		return err
	}
	for _, warning := range warnings {
		fmt.Fprintf(a.streams.Err, "warning: %s\n", warning)
	}
	content := map[string][]byte{}
	for _, step := range ambient.StepNames() {
		if !slices.Contains(steps, step) {
			continue
		}
		next, notes, err := ambient.Apply(tree, o, step)
		if err != nil {
			return err
		}
		for _, n := range notes {
			n.Line = 0 // the step changes the lines
			fmt.Fprintf(a.streams.Err, "warning: %s\n", n)
		}
		a.recordStep(record, step, tree, next, content, rel)
		tree = next
	}
	return saveSteps(ctx, dir, record, content)
}

// recordStep notes which files a step changed.
func (a *ambientRun) recordStep(record *ambient.Record, step string, tree, next []ambient.File,
	content map[string][]byte, rel map[string]string) {
	before, after := map[string][]byte{}, map[string][]byte{}
	for i := range next {
		old, data := tree[i].Bytes(), next[i].Bytes()
		if string(old) != string(data) {
			name := rel[next[i].Path]
			before[name], after[name], content[name] = old, data, data
		}
	}
	record.Add(step, before, after)
	fmt.Fprintf(a.streams.Err, "step %s: %s changed\n", step, countWithNoun(len(after), "file"))
}

// saveSteps writes files, by their paths in the directory, and the record of the steps, all of them or none. A record
// without steps is removed.
func saveSteps(ctx context.Context, dir *files.Directory, record *ambient.Record, content map[string][]byte) error {
	if len(record.Steps) > 0 {
		data, err := record.Bytes()
		if err != nil {
			return err
		}
		content[ambient.RecordName] = data
	}
	if err := writeBelow(ctx, dir, content); err != nil {
		return err
	}
	if len(record.Steps) == 0 {
		_, err := dir.Remove(ambient.RecordName)
		return err
	}
	return nil
}

// takeBack undoes the newest steps down to the ones that are named.
func (a *ambientRun) takeBack(ctx context.Context, args []string) error {
	dir, err := openOneDirectory(args)
	if err != nil {
		return err
	}
	defer dir.Close()
	record, err := readRecord(dir)
	if err != nil {
		return err
	}
	content := map[string][]byte{}
	var done []string
	first := firstOf(a.steps)
	for {
		step, ok := record.Last()
		if !ok || slices.Index(ambient.StepNames(), step.Name) < first {
			break
		}
		for rel := range step.Files {
			if _, ok := content[rel]; ok {
				continue
			}
			if content[rel], err = fs.ReadFile(dir.FS(), rel); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("reading a file of step %s: %w", step.Name, err)
			}
		}
		if err := record.Undo(content); err != nil {
			return err
		}
		done = append(done, fmt.Sprintf("step %s: %s taken back", step.Name, countWithNoun(len(step.Files), "file")))
		if len(a.steps) == 0 {
			break
		}
	}
	if len(content) == 0 {
		fmt.Fprintln(a.streams.Err, "no file was changed by a step that is to be taken back")
		return nil
	}
	if err := saveSteps(ctx, dir, record, content); err != nil {
		return err
	}
	for _, line := range done {
		fmt.Fprintln(a.streams.Err, line)
	}
	return nil
}

// firstOf returns the place of the first of some steps; 0 without any.
func firstOf(steps []string) int {
	if len(steps) == 0 {
		return 0
	}
	return slices.IndexFunc(ambient.StepNames(), func(name string) bool { return slices.Contains(steps, name) })
}

// openOneDirectory opens the directory that steps are written into. Its files and its record come from the author of a
// repository, so nothing outside of it is read or written.
func openOneDirectory(args []string) (*files.Directory, error) {
	if len(args) != 1 {
		return nil, errors.New("name one directory to change")
	}
	info, err := os.Stat(args[0])
	if err != nil {
		return nil, fmt.Errorf("reading the directory: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory; steps are written into a directory", args[0])
	}
	return files.OpenDirectory(args[0])
}

func readRecord(dir *files.Directory) (*ambient.Record, error) {
	data, err := fs.ReadFile(dir.FS(), ambient.RecordName)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the record of the steps: %w", err)
	}
	return ambient.ReadRecord(data)
}
