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
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/batch"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// gateFlags are the flags about the API server that prerig check and prerig gate ask.
type gateFlags struct {
	catalog     []string
	admission   []string // admission policies
	podSecurity string
	user        string
	userGroups  []string
	against     string // what the cluster has

	constraints []fn.Item // LimitRanges and ResourceQuotas that flags name
}

func newGate(streams Streams, version string) *cobra.Command {
	g := &checkRun{manifestRun: manifestRun{streams: streams}, version: version, checkParts: checkParts{gate: true}}
	cmd := newCommand("gate [FILE|DIRECTORY]...", "Check injected objects for what a cluster would reject")
	cmd.Long = `Check the objects after injection for everything that the API server would reject: unknown
fields, wrong types and values, missing fields, names and labels, and kinds that the version
does not have. Manifests are not changed, and no cluster is contacted.

Built-in kinds are checked against the OpenAPI schema of the Kubernetes version. Custom
resources are checked against their CustomResourceDefinitions, with defaults and
x-kubernetes-validations, by the API server's own code. The definitions are those in the input,
those in the files and directories of --crds, and else those of Istio, the Gateway API, Flux,
Argo CD and other projects that prerig contains. The program prerig-validate next to prerig
also runs Kubernetes' own validation of built-in kinds: selectors, ports, mounts, schedules
and the like.

ValidatingAdmissionPolicies in the input and those of --policies are evaluated with their
bindings and parameters, for the objects and for the pods that controllers create from them.
Pods are checked against the Pod Security levels of their Namespaces, or of --pod-security.
Anything that cannot be determined without a cluster is a finding, policy-not-evaluated.

The files are injected in memory, as by prerig inject. --as-is checks the files without
injection, for example the committed output of an injection.

--against sets the current state of the cluster: a file or directory, or a Git revision, from
which the same files are read. Changes are then checked as updates too: immutable fields,
rules with oldSelf of CustomResourceDefinitions, and policies for updates. Jobs and bare Pods
keep their current state (spec.jobs of the policy).

Exit codes:
  0  no finding is as severe as --fail-on
  1  a finding is as severe as --fail-on
  2  invalid input, policy or flag, no objects to check, or a read error`
	cmd.Example = `  prerig gate k8s/
  prerig gate --kubernetes-version 1.34 --crds crds/ k8s/
  prerig gate --policies cluster/policies/ --pod-security baseline k8s/
  prerig gate --as-is -o sarif rendered/ > prerig.sarif
  prerig gate --against rendered/ k8s/
  prerig gate --as-is --against origin/main rendered/
  prerig gate --rule schema-unknown-field=Warning k8s/`
	g.addFlags(cmd)
	g.addReportFlags(cmd, streams, "object")
	g.addCheckFlags(cmd)
	g.addGateFlags(cmd)
	return cmd
}

// addGateFlags adds the flags about the API server.
func (c *checkRun) addGateFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.Lookup("kubernetes-version").Usage = "version of the cluster, such as 1.34 (default: the newest supported version)"
	f.StringArrayVar(&c.catalog, "crds", nil, "file or directory with CustomResourceDefinitions of the cluster; may be repeated")
	f.StringArrayVar(&c.admission, "policies", nil,
		"file or directory with admission policies, bindings, parameters and Namespaces of the cluster; may be repeated")
	f.StringVar(&c.podSecurity, "pod-security", "",
		"Pod Security level of Namespaces without a label, such as baseline or restricted:v1.34")
	f.StringVar(&c.user, "as", "", "user who applies the objects, for policies that read request.userInfo")
	f.StringArrayVar(&c.userGroups, "as-group", nil, "group of the user who applies the objects; may be repeated")
	f.StringVar(&c.against, "against", "", "file, directory or Git revision with the current state of the cluster, to check changes as updates")
}

// findValidator returns the program beside this one that answers with Kubernetes' own validation, or nil if it does
// not exist. One line then names what is not checked, if any objects are.
func (g *checkRun) findValidator(objects int) gate.Validator {
	if objects == 0 {
		return nil
	}
	if validator := gate.InstalledValidator(); validator != nil {
		return validator
	}
	g.printResults(result.Results{{Severity: result.Info, Message: gate.NotInstalled}})
	return nil
}

// checkByRenderer makes a renderer check objects, because this program contains no code of the API server.
func checkByRenderer(ctx context.Context, request render.GateRequest) (result.Results, error) {
	pool, err := render.NewPool(render.Options{})
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	return pool.CheckObjects(ctx, request)
}

// readOptions reads the definitions that flags name.
func (g *checkRun) readOptions(ctx context.Context, severities map[string]string) (render.GateRequest, error) {
	request := render.GateRequest{Options: gate.Options{KubernetesVersion: g.kubernetes}, Severities: severities}
	if _, err := gate.KubernetesMinor(g.kubernetes); err != nil {
		return request, fmt.Errorf("--kubernetes-version is %q; the versions %s to %s are known", g.kubernetes, gate.OldestKubernetes, gate.NewestKubernetes)
	}
	if g.user == "" && len(g.userGroups) > 0 {
		return request, errors.New("--as-group needs --as")
	}
	request.Options.PodSecurity, request.Options.User, request.Options.Groups = g.podSecurity, g.user, g.userGroups
	for _, one := range []struct {
		flag  string
		names []string
	}{{definitionsFlag, g.catalog}, {policiesFlag, g.admission}} {
		read, err := g.readCatalog(ctx, one.flag, one.names)
		if err != nil {
			return request, err
		}
		request.Catalog = append(request.Catalog, read.documents...)
		if err := applyCapture(&request.Options, read.objects); err != nil {
			return request, err
		}
		g.constraints = append(g.constraints, read.constraints...)
	}
	return request, nil
}

// definitionsFlag is the flag for CustomResourceDefinitions, and policiesFlag that for admission policies.
const (
	definitionsFlag = "--crds"
	policiesFlag    = "--policies"
)

// foreignPolicies are the groups of policies that a webhook of their own evaluates.
var foreignPolicies = map[string]string{
	"kyverno.io": "Kyverno", "policies.kyverno.io": "Kyverno", "templates.gatekeeper.sh": "Gatekeeper",
	"constraints.gatekeeper.sh": "Gatekeeper", "policies.kubewarden.io": "Kubewarden",
}

// isNoRule reports whether the gate reads nothing of an object: policies of other programs, and workloads.
func isNoRule(meta manifest.Meta) bool {
	group, _, _ := strings.Cut(meta.APIVersion, "/")
	return foreignPolicies[group] != "" || group == "apps" || group == "batch"
}

// describeForeign describes objects of which the gate reads nothing.
func describeForeign(b *batch.Batch) string {
	for _, item := range b.Items() {
		meta, _ := item.Doc.Peek()
		group, _, _ := strings.Cut(meta.APIVersion, "/")
		if engine := foreignPolicies[group]; engine != "" {
			return fmt.Sprintf("%s is a %s of %s, which only its own webhook evaluates", item.Doc, meta.Kind, engine)
		}
	}
	return fmt.Sprintf("there is no admission policy in %s", b.Files[0].Input.Path)
}

// readCatalog reads the objects of the files and directories that a flag names. A file that cannot be read is an
// error, because it is unknown what the cluster would reject because of it; files skipped in directories are
// reported.
func (r *manifestRun) readCatalog(ctx context.Context, flag string, names []string) (gateInput, error) {
	var input gateInput
	if len(names) == 0 {
		return input, nil
	}
	b, err := batch.Read(ctx, names, files.Options{Stdin: r.streams.In})
	if err != nil {
		return input, fmt.Errorf("reading %s: %w", flag, err)
	}
	notes := slices.Clone(b.Notes())
	for i := range notes {
		notes[i].Message = flag + ": " + notes[i].Message
	}
	r.printResults(notes)
	var errs []error
	for _, p := range b.Problems() {
		errs = append(errs, fmt.Errorf("reading %s: %s", flag, p.Message))
	}
	empty, defines, ruled := true, false, false
	for _, item := range b.Items() {
		empty = empty && item.Doc.Empty()
		meta, _ := item.Doc.Peek()
		defines = defines || meta.Kind == "CustomResourceDefinition"
		ruled = ruled || !isNoRule(meta)
		if isConstraint(item) {
			input.constraints = append(input.constraints, item)
		}
		if err := input.addGateDocument(item.Doc, item.Doc, item.Path); err != nil {
			errs = append(errs, fmt.Errorf("reading %s: %w", flag, err))
		}
	}
	switch {
	case len(errs) > 0:
	case empty:
		errs = append(errs, fmt.Errorf("reading %s: there is no object in %s", flag, strings.Join(names, ", ")))
	case flag == policiesFlag && len(names) > 0 && !ruled:
		errs = append(errs, fmt.Errorf("reading %s: %s; specify admission policies, bindings, parameters or Namespaces of the cluster", flag, describeForeign(b)))
	case flag == definitionsFlag && !defines:
		errs = append(errs, fmt.Errorf("reading %s: there is no CustomResourceDefinition in %s; specify the cluster's definitions", flag, strings.Join(names, ", ")))
	}
	return input, errors.Join(errs...)
}

// gateInput gathers the documents of a check.
type gateInput struct {
	documents []render.GateDocument
	objects   []gate.Object // of the documents
	// rejected are workloads that the injection leaves as they are, as the API server is certain to refuse their pods.
	rejected result.Results
	// istio are the versions of Istio that policies inject.
	istio []string
	// constraints are the LimitRanges and ResourceQuotas among the documents.
	constraints []fn.Item
}

// addGateDocument adds a document, with the one that the user wrote. A document that cannot be read is not added, and
// is an error.
func (in *gateInput) addGateDocument(document, written *manifest.Document, path string) error {
	objects, err := gate.ReadDocument(document, written, path)
	if err != nil || len(objects) == 0 {
		return err
	}
	sent, isWhole := render.NewGateDocument(document, written, path)
	if !isWhole {
		return fmt.Errorf("reading %s: an element of a list cannot be checked without the list", document)
	}
	in.documents = append(in.documents, sent)
	in.objects = append(in.objects, objects...)
	return nil
}

// addItems adds documents, with those that the user wrote, and returns what cannot be checked.
func (in *gateInput) addItems(items, written []fn.Item) (unchecked result.Results) {
	for i, item := range items {
		if err := in.addGateDocument(item.Doc, written[i].Doc, item.Path); err != nil {
			unchecked = append(unchecked, result.Result{
				Severity: result.Error, Message: err.Error(),
				File: &result.File{Path: item.Path, Index: item.Index, Line: item.Doc.Line()},
			})
		}
	}
	return unchecked
}

// istioVersions returns the versions of Istio in the outcomes of a report.
func istioVersions(report *fn.Report) []string {
	var out []string
	for _, o := range report.Outcomes {
		if o.Version != "" && !slices.Contains(out, o.Version) {
			out = append(out, o.Version)
		}
	}
	return out
}

// isConstraint reports whether an item is a LimitRange or ResourceQuota, which may reject injected pods.
func isConstraint(item fn.Item) bool {
	meta, ok := item.Doc.Peek()
	return ok && meta.APIVersion == "v1" && (meta.Kind == "LimitRange" || meta.Kind == "ResourceQuota")
}

// shareConstraints shows every policy the LimitRanges and ResourceQuotas of all files, and of those that flags name.
func (g *checkRun) shareConstraints() {
	for i, group := range g.groups {
		group.batch.Locks = append(group.batch.Locks, g.constraints...)
		for j, other := range g.groups {
			if j != i {
				items := slices.DeleteFunc(other.batch.Items(), func(item fn.Item) bool { return !isConstraint(item) })
				group.batch.Locks = append(group.batch.Locks, items...)
			}
		}
	}
}
