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

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/batch"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/cli/importer"
)

// errValuesWithoutChart is about values without a chart to render.
var errValuesWithoutChart = errors.New("--values requires a chart, and none is specified")

// importRun is the state of one prerig import.
type importRun struct {
	streams Streams
	files   []string
	exclude []string
	destination
	options importer.Options
	quiet   bool
	unread  []string // what of the cluster may not be read
	kinds   []string // of the documents of files
	kept    []string // what was taken over of the policy that is replaced

	kubeconfig, kubeContext string
	all                     bool
	cluster                 bool   // read the cluster
	watchDiff               string // policy to compare with

	valuesFiles []string // of a chart
	charts      int      // that were read
	kubernetes  string   // version that a chart is rendered for, and of the oldest kubelet
}

// importExamples are the examples of the command.
const importExamples = `  # from a cluster
  kubectl -n istio-system get configmaps,deployments,mutatingwebhookconfigurations,namespaces,nodes -o yaml \
    | prerig import --to prerig.yaml
  prerig import --kubeconfig ~/.kube/config --to prerig.yaml

  # in CI: does the committed policy match the cluster?
  prerig import --context production --watch-diff prerig.yaml

  # from a chart
  helm template istiod istio/istiod -n istio-system | prerig import --to prerig.yaml
  prerig import charts/istiod --values mesh-values.yaml --to prerig.yaml

  # Linkerd
  kubectl get configmaps,namespaces -A -o yaml | prerig import --to prerig.yaml

  # Vault's injector
  kubectl get deployments,mutatingwebhookconfigurations,namespaces -A -o yaml | prerig import --to prerig.yaml

  # from the input of istioctl install
  prerig import istio-operator.yaml --to prerig.yaml

  # one of several revisions
  prerig import --revision canary cluster.yaml`

func newImport(streams Streams) *cobra.Command {
	im := &importRun{streams: streams}
	cmd := newCommand("import [FILE|DIRECTORY|CHART]...", "Create a policy from a cluster's objects or a chart")
	cmd.Long = `Create an InjectionPolicy from the objects that control injection: the ConfigMaps of the
injector and the mesh, the webhook configurations and the namespaces, and, if they are in the
input, the istiod Deployment (for its version and the variables that templates read) and the
nodes (for the oldest kubelet). For Linkerd, it reads the ConfigMaps linkerd-config and
linkerd-identity-trust-roots; for Vault's injector, the Deployment and the webhook
configuration; for OpenTelemetry, the OpenTelemetryCollectors with mode sidecar and the
Instrumentations; and for Cloud SQL, the AuthProxyWorkload objects. An IstioOperator, or an
Istio of the Sail operator, becomes the built-in policy with the requested changes; a setting
that a policy cannot express is an error. Reads files or standard input, in YAML or JSON. A
chart, specified by its directory or archive, is rendered as by helm template, with --values.

With --kubeconfig or --context, the cluster itself is read, with the same content that kubectl
would pipe: from the namespace istio-system or --istio-namespace, or with -A from all; and
from all namespaces the labels, ServiceAccounts with pull secrets, LimitRanges and
ProxyConfigs. --watch-diff compares with a committed policy and writes nothing; the parts that
an import leaves alone, comments and the name are ignored.

Secrets are never written, nor certificates except those that pods have: Linkerd's trust
anchors, and the CA of Vault's injector. The same objects produce the same policy, in any
order. Run it again when the mesh changes: the diff shows what changed. If --to is an existing
policy, the parts that an import never writes are kept, such as lint, workloads and
runtimeWebhook; its comments are not. Other existing files are not replaced, nor is a policy
that cannot be read.

Exit codes:
  0  success
  1  --watch-diff: the policy differs from the import
  2  the input has no control plane or more than one, or a read or write error`
	cmd.Example = importExamples
	im.importFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		im.cluster = cmd.Flags().Changed("kubeconfig") || cmd.Flags().Changed("context")
		return im.runImport(cmd.Context(), args)
	}
	return cmd
}

// importFlags adds the flags of the command.
func (im *importRun) importFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVarP(&im.files, "filename", "f", nil,
		"file or directory to read, - for standard input; may be repeated")
	excludeFlag(cmd, &im.exclude)
	f.StringVar(&im.options.Revision, "revision", "", "revision of the control plane, if there are several")
	f.StringVar(&im.options.Namespace, "istio-namespace", "", "namespace of the control plane, if there are several")
	f.StringVar(&im.options.Version, "istio-version", "", "version of Istio, if the objects do not contain it")
	f.StringVar(&im.options.Name, "name", "", "name of the policy (default: istio, followed by the revision, or linkerd, vault-agent or cloud-sql-operator)")
	f.StringArrayVar(&im.valuesFiles, "values", nil, "values file for a chart; may be repeated")
	f.StringVar(&im.kubernetes, "kubernetes-version", "",
		"version of the cluster's oldest kubelet, such as 1.34; also the version that a chart is rendered for (default: that of the nodes, and "+chartKubernetes+" for a chart)")
	f.StringVar(&im.kubeconfig, "kubeconfig", "", "read the cluster of this kubeconfig; with --context, the default is kubectl's own")
	f.StringVar(&im.kubeContext, "context", "", "read the cluster of this kubeconfig context (default: the current context)")
	f.BoolVarP(&im.all, "all-namespaces", "A", false,
		"read all namespaces of the cluster, and the objects of operators")
	f.StringVar(&im.watchDiff, "watch-diff", "", "policy to compare with; prints the difference and exits with 1 if there is one")
	f.BoolVarP(&im.quiet, "quiet", "q", false, "print warnings and errors only")
	mustRegister(cmd.MarkFlagFilename("filename", "yaml", "yml", "json"))
	mustRegister(cmd.MarkFlagFilename("values", "yaml", "yml", "json"))
	im.destinationFlags(cmd, im.streams, "", "file to write (default: standard output)", manifestFormats)
	mustRegister(cmd.MarkFlagFilename("to", "yaml", "yml", "json"))
	mustRegister(cmd.MarkFlagFilename("watch-diff", "yaml", "yml"))
}

func (im *importRun) runImport(ctx context.Context, args []string) error {
	names := append(append([]string(nil), im.files...), args...)
	switch {
	case im.cluster && len(names) > 0:
		return errors.New("files and a cluster cannot be imported together; omit the files, or --kubeconfig and --context")
	case im.all && !im.cluster:
		return errors.New("--all-namespaces requires a cluster; set --kubeconfig or --context")
	case im.watchDiff != "" && im.to != "":
		return errors.New("--watch-diff writes no policy and cannot be used with --to")
	}
	read := func() ([]importer.Object, error) { return im.readFiles(ctx, names) }
	if im.cluster {
		read = func() ([]importer.Object, error) { return im.readCluster(ctx) }
	}
	objects, err := read()
	if err != nil {
		return err
	}
	imp, err := im.makePolicy(objects)
	if errors.Is(err, importer.ErrNoControlPlane) {
		return fmt.Errorf("importing: %s has %w", im.describeInput(args, objects), importer.ErrNoControlPlane)
	}
	switch {
	case err != nil:
		return err
	case im.needsNoKubernetes(imp):
		return errors.New("--kubernetes-version applies to Istio and charts, and the input has neither")
	}
	if im.watchDiff != "" {
		im.printMessages(imp)
		return im.compareWith(im.watchDiff, imp.Policy)
	}
	if im.writesFile() {
		if err := im.keepFromOutput(imp); err != nil {
			return err
		}
	}
	text, err := importer.Marshal(imp.Policy, imp.Comment())
	if err != nil {
		return err
	}
	if err := im.write(ctx, im.streams, text); err != nil {
		return err
	}
	im.printMessages(imp)
	return nil
}

// describeInput names the input and the kinds of its objects.
func (im *importRun) describeInput(args []string, objects []importer.Object) string {
	names := append(slices.Clone(im.files), args...)
	where := strings.Join(names, ", ")
	switch {
	case im.cluster:
		where = "the cluster"
	case where == "" || where == "-":
		where = "standard input"
	}
	kinds := slices.Clone(im.kinds)
	for _, o := range objects {
		if kind, _ := o.Value["kind"].(string); kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	switch {
	case len(kinds) == 0:
		return where + " has no Kubernetes object: it"
	case len(kinds) > named:
		kinds = append(kinds[:named], "others")
	}
	return where + " has only " + strings.Join(kinds, ", ") + ": it"
}

// makePolicy makes the policy of what was read.
func (im *importRun) makePolicy(objects []importer.Object) (*importer.Import, error) {
	im.options.KubernetesVersion = im.kubernetes
	return importer.Policy(objects, im.options)
}

// needsNoKubernetes reports whether an unused version of Kubernetes was set.
func (im *importRun) needsNoKubernetes(imp *importer.Import) bool {
	return im.kubernetes != "" && im.charts == 0 && imp.Policy.Spec.Istio == nil
}

// readFiles reads the objects of files, or of standard input where none is named.
func (im *importRun) readFiles(ctx context.Context, names []string) (_ []importer.Object, err error) {
	if len(names) == 0 {
		if im.streams.InTerminal {
			return nil, errors.New("no input: pipe the output of kubectl get -o yaml or of helm template, specify files, or set --kubeconfig; see prerig import --help")
		}
		names = []string{"-"}
	}
	var objects []importer.Object
	im.charts = 0
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		if !isChart(name) || err != nil {
			return false
		}
		im.charts++
		bar := newBar(im.streams.Err, "rendering the chart "+name)
		defer bar.clearLine()
		var found []importer.Object
		found, err = im.readChart(ctx, name)
		objects = append(objects, found...)
		return true
	})
	switch {
	case err != nil:
		return nil, err
	case im.charts == 0 && len(im.valuesFiles) > 0:
		return nil, fmt.Errorf("%w: %s has no Chart.yaml", errValuesWithoutChart, strings.Join(names, ", "))
	case len(names) == 0:
		return objects, nil
	}
	bar := newBar(im.streams.Err, "reading")
	b, err := batch.Read(ctx, names, files.Options{Stdin: im.streams.In, Exclude: im.exclude, Progress: func(done int, path string) { bar.setProgress(done, 0, path) }})
	bar.clearLine()
	if err != nil {
		return nil, err
	}
	if len(b.Files) == 1 && b.Files[0].Input.Stdin() && b.Files[0].Blank() {
		return nil, errors.New("standard input is empty; did the command before the pipe fail? It should print the objects of the control plane, such as:\n" +
			"kubectl -n istio-system get configmaps,deployments,mutatingwebhookconfigurations,namespaces,nodes -o yaml | prerig import")
	}
	for _, r := range append(b.Notes(), b.Problems()...) {
		if !im.quiet || r.Severity != result.Info {
			fmt.Fprintln(im.streams.Err, r.String())
		}
	}
	if len(b.Problems()) > 0 {
		return nil, errReported
	}
	var errs []error
	if own := b.OwnObject(); own != "" && !b.HasManifest() {
		return nil, fmt.Errorf("importing: %s is an input of Prerig already; prerig inject takes a policy with -p FILE", own)
	}
	im.kinds = nil
	for _, item := range b.Items() {
		im.addKind(item.Doc)
		os, err := importer.ReadDocument(item.Path, item.Doc)
		errs = append(errs, err)
		objects = append(objects, os...)
	}
	return objects, errors.Join(errs...)
}

// addKind notes the kind of a document, for the message about an input without a control plane.
func (im *importRun) addKind(doc *manifest.Document) {
	if meta, ok := doc.Peek(); ok && !strings.HasSuffix(meta.Kind, "List") && !slices.Contains(im.kinds, meta.Kind) {
		im.kinds = append(im.kinds, meta.Kind)
	}
}

func (im *importRun) printMessages(imp *importer.Import) {
	for _, resource := range im.unread {
		text := unreadableResourceNotice(resource)
		if resource == "namespaces" {
			text += ": it injects into all of them (unknownNamespace: Inject)"
		}
		fmt.Fprintln(im.streams.Err, "warning: "+text)
	}
	for _, w := range imp.Warnings {
		fmt.Fprintln(im.streams.Err, "warning: "+w)
	}
	if im.quiet {
		return
	}
	for _, n := range imp.Notes {
		fmt.Fprintln(im.streams.Err, "info: "+n)
	}
	if len(im.kept) > 0 {
		fmt.Fprintf(im.streams.Err, "info: kept from the previous policy in %s: %s\n", im.to,
			strings.Join(im.kept, ", "))
	}
	fmt.Fprintln(im.streams.Err, "imported: "+imp.From)
}
