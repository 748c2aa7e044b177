// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/lint/format"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/batch"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/gate"
)

// gateRun is the state of one prerig gate.
type gateRun struct {
	manifestRun
	reportFlags
	version string

	catalog     []string
	policies    []string
	podSecurity string
	user        string
	userGroups  []string
	asIs        bool
}

func newGate(streams Streams, version string) *cobra.Command {
	g := &gateRun{manifestRun: manifestRun{streams: streams}, version: version}
	cmd := newCommand("gate [FILE|DIRECTORY]...", "Check what a cluster would refuse of the objects after injection")
	cmd.Long = `Check the objects as they are after injection against what the API server would refuse: unknown
fields, wrong types and values, missing fields, names and labels, kinds that the version does not
have. Nothing is written to the manifests, and no cluster is asked.

Built-in kinds are held against the OpenAPI of the version of Kubernetes. Custom resources are
held against their CustomResourceDefinitions, with defaults and x-kubernetes-validations, by the
API server's own code. The definitions are those among the files, and those in the files and
directories that --crds names.

ValidatingAdmissionPolicies are evaluated with their bindings and parameters, for the objects and
for the pods that controllers make of them: those among the files, and those that --policies
names. Pods are held against the Pod Security levels of their Namespaces, or of --pod-security.
What cannot be known without a cluster is a finding, policy-not-evaluated.

The files are injected in memory, as prerig inject would do it. --as-is checks the files as they
are, for example the committed output of an injection.

Exit codes:
  0  no finding is as severe as --fail-on
  1  a finding is as severe as --fail-on
  2  the input, the policy or a flag is wrong, there is no object to check, or reading failed`
	cmd.Example = `  prerig gate k8s/
  prerig gate --kubernetes-version 1.34 --crds crds/ k8s/
  prerig gate --policies cluster/policies/ --pod-security baseline k8s/
  prerig gate --as-is -o sarif rendered/ > prerig.sarif
  prerig gate --rule schema-unknown-field=Warning k8s/`
	g.addFlags(cmd)
	g.addReportFlags(cmd, "object")
	f := cmd.Flags()
	f.Lookup("kubernetes-version").Usage = "version of the cluster, such as 1.34 (default: the newest that is known)"
	f.StringArrayVar(&g.catalog, "crds", nil, "file or directory with CustomResourceDefinitions that the cluster has; may be repeated")
	f.StringArrayVar(&g.policies, "policies", nil, "file or directory with admission policies, bindings, parameters and Namespaces that the cluster has; may be repeated")
	f.StringVar(&g.podSecurity, "pod-security", "", "Pod Security level that Namespaces without a label enforce, such as baseline or restricted:v1.34")
	f.StringVar(&g.user, "as", "", "user who applies the objects, for policies that read request.userInfo")
	f.StringArrayVar(&g.userGroups, "as-group", nil, "group of the user who applies the objects; may be repeated")
	f.BoolVar(&g.asIs, "as-is", false, "check the files as they are, and inject nothing")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return g.runGate(cmd.Context(), args) }
	return cmd
}

func (g *gateRun) runGate(ctx context.Context, args []string) error {
	if g.list {
		return g.printRules()
	}
	if err := g.checkReportFlags(); err != nil {
		return err
	}
	options, err := g.readOptions(ctx)
	if err != nil {
		return err
	}
	if _, err := g.readFiles(ctx, args); err != nil {
		return err
	}
	objects, unchecked, err := g.gateObjects(ctx)
	if err != nil {
		return err
	}
	found, err := gate.Check(ctx, objects, options)
	if err != nil {
		return err
	}
	found = append(unchecked, found...)
	count := len(objects)
	report := format.Options{
		Version: g.version, Objects: &count, Rules: gateRules(),
		Colour: wantsColour(g.colour, g.streams),
	}
	if g.output == "text" {
		found = visibleResults(found)
	}
	if err := format.Write(g.streams.Out, g.output, found, report); err != nil {
		return err
	}
	return g.verdict(found, len(unchecked), count, "object")
}

// readOptions reads the severities and the definitions that flags name.
func (g *gateRun) readOptions(ctx context.Context) (gate.Options, error) {
	options := gate.Options{KubernetesVersion: g.kubernetes}
	severities, err := g.ruleSeverities("schema-unknown-field=Warning")
	if err != nil {
		return options, err
	}
	if options.Severities, err = gate.NewSeverities(severities); err != nil {
		return options, fmt.Errorf("--rule: %w", err)
	}
	if g.user == "" && len(g.userGroups) > 0 {
		return options, errors.New("--as-group needs --as")
	}
	options.PodSecurity, options.User, options.Groups = g.podSecurity, g.user, g.userGroups
	for _, one := range []struct {
		flag  string
		names []string
	}{{"--crds", g.catalog}, {"--policies", g.policies}} {
		read, err := g.readCatalog(ctx, one.flag, one.names)
		if err != nil {
			return options, err
		}
		options.Catalog = append(options.Catalog, read...)
	}
	return options, nil
}

// readCatalog reads the objects of the files and directories that a flag names. What cannot be read there is an error, as nobody knows
// what the cluster would refuse because of it; what is passed over in directories is told.
func (g *gateRun) readCatalog(ctx context.Context, flag string, names []string) ([]gate.Object, error) {
	if len(names) == 0 {
		return nil, nil
	}
	b, err := batch.Read(ctx, names, files.Options{Stdin: g.streams.In})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", flag, err)
	}
	notes := slices.Clone(b.Notes())
	for i := range notes {
		notes[i].Message = flag + ": " + notes[i].Message
	}
	g.printResults(notes)
	var errs []error
	for _, p := range b.Problems() {
		errs = append(errs, fmt.Errorf("reading %s: %s", flag, p.Message))
	}
	var out []gate.Object
	empty := true
	for _, item := range b.Items() {
		empty = empty && item.Doc.Empty()
		objects, err := gate.ReadDocument(item.Doc, item.Doc, item.Path)
		if err != nil {
			errs = append(errs, fmt.Errorf("reading %s: %w", flag, err))
		}
		out = append(out, objects...)
	}
	if empty && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("reading %s: there is no object in %s", flag, strings.Join(names, ", ")))
	}
	return out, errors.Join(errs...)
}

// gateObjects returns the objects as they are after the injection, and what could not be checked.
func (g *gateRun) gateObjects(ctx context.Context) (objects []gate.Object, unchecked result.Results, err error) {
	if g.asIs {
		g.printNotices()
		items := g.batch.Items()
		objects, unchecked = readObjects(items, items)
		return objects, append(slices.Clone(g.batch.Problems()), unchecked...), nil
	}
	if err := g.loadPolicies(); err != nil {
		return nil, nil, err
	}
	for _, p := range g.allPolicies() {
		if p.Spec.Lint == nil {
			p.Spec.Lint = &v1alpha1.Lint{}
		}
		p.Spec.Lint.Disabled = true
	}
	report, err := g.runPolicies(ctx, v1alpha1.ModeInject)
	if err != nil {
		return nil, nil, err
	}
	_, unchecked, others := sortOut(report.Results)
	g.printResults(slices.DeleteFunc(others, func(r result.Result) bool { return r.Severity == result.Info }))
	for _, group := range g.groups {
		found, problems := readObjects(group.batch.ItemsAfter(), group.batch.Items())
		objects, unchecked = append(objects, found...), append(unchecked, problems...)
	}
	for _, doc := range report.Added {
		found, problems := readObjects([]fn.Item{{Doc: doc}}, []fn.Item{{Doc: doc}})
		objects, unchecked = append(objects, found...), append(unchecked, problems...)
	}
	return objects, unchecked, nil
}

// readObjects reads the objects of documents, with the lines of those that the user wrote.
func readObjects(items, written []fn.Item) (objects []gate.Object, unchecked result.Results) {
	for i, item := range items {
		found, err := gate.ReadDocument(item.Doc, written[i].Doc, item.Path)
		if err != nil {
			unchecked = append(unchecked, result.Result{
				Severity: result.Error, Message: err.Error(), File: &result.File{Path: item.Path, Index: item.Index, Line: item.Doc.Line()},
			})
			continue
		}
		objects = append(objects, found...)
	}
	return objects, unchecked
}

func (g *gateRun) printRules() error {
	for _, r := range gate.Rules() {
		if _, err := fmt.Fprintf(g.streams.Out, "%-26s  %-7s  %s\n", r.Code, r.Severity, r.Title); err != nil {
			return err
		}
	}
	return nil
}

// gateRules describes the rules for SARIF.
func gateRules() []format.Rule {
	var out []format.Rule
	for _, r := range gate.Rules() {
		out = append(out, format.Rule{Code: r.Code, Title: r.Title, Why: r.Why, Change: r.Change, Severity: r.Severity, Group: "Gate", Document: "docs/gate.md"})
	}
	return out
}
