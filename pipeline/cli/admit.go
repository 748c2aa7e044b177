// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/capture"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// admitRun is the state of one prerig admit.
type admitRun struct {
	manifestRun

	cluster       []string
	podSecurity   string
	user          string
	userGroups    []string
	nodeSelectors bool
	asIs, why     bool
	output        string

	kubeconfig, kubeContext string
}

func newAdmit(streams Streams) *cobra.Command {
	a := &admitRun{manifestRun: manifestRun{streams: streams}}
	cmd := newCommand("admit [FILE|DIRECTORY]...", "Show the pods that the API server would store")
	cmd.Long = `Show, for each workload, the pod that an API server would store: with its defaults, the
admission plugins LimitRanger, ServiceAccount, PodNodeSelector, Priority,
DefaultTolerationSeconds and RuntimeClass, MutatingAdmissionPolicies with bindings and
parameters, the injection of the policies in the place of the webhooks, and the second round of
admission. Pod Security, ValidatingAdmissionPolicies, ResourceQuotas and Kubernetes' own
validation then decide whether the pod is rejected. No file is changed, and no cluster is
contacted without --context.

--cluster specifies the objects of the cluster: files and directories, best the directory that
prerig capture writes. Objects in the input also count. If a step lacks an object, the output
names it; nothing is guessed.

--why prints one line for each field that differs from the file: the value, the step that sets
it, and the object, annotation or value that decides it. "because of" names further objects
without which the field would be another one, because the step reacts to what they change. To
know them, each pod is admitted again without each object. --as-is admits the files without
injection, for example the committed output of one.

--context asks a cluster and changes nothing: it sends the pod that a controller would create
for each workload as a dry run, and prints each field that the answer has otherwise than the
file: with the reason where the prediction has the same value, and otherwise with the webhooks
that may have changed it. Without --cluster, the cluster's objects are read as prerig capture
reads them. It needs the permission to create pods in the namespaces of the workloads.

Exit codes:
  0  success
  1  the API server would reject a pod or its workload; with --context, a pod is not as predicted, or the cluster
     does not answer for it
  2  invalid input, policy or flag, or a read error`
	cmd.Example = `  prerig admit --cluster cluster/ k8s/
  prerig admit --why --cluster cluster/ k8s/web.yaml
  prerig admit --as-is -o json rendered/
  prerig admit --context prod k8s/
  kustomize build overlays/prod | prerig admit -p mesh.yaml`
	f := cmd.Flags()
	f.StringVar(&a.kubeContext, "context", "", "kubeconfig context of a cluster to ask by dry runs")
	f.StringVar(&a.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster to ask by dry runs (default with --context: kubectl's own)")
	a.addFlags(cmd)
	a.versionFlag(cmd)
	f.Lookup("kubernetes-version").Usage = "version of the cluster, such as 1.34 (default: that of the capture, otherwise the newest supported version)"
	f.StringArrayVar(&a.cluster, "cluster", nil, "file or directory with objects of the cluster, such as the output of prerig capture; may be repeated")
	f.StringVar(&a.podSecurity, "pod-security", "", "Pod Security level of Namespaces without a label, such as baseline or restricted:v1.34")
	f.StringVar(&a.user, "as", "", "user who creates bare Pods, for policies that read request.userInfo")
	f.StringArrayVar(&a.userGroups, "as-group", nil, "group of the user who creates bare Pods; may be repeated")
	f.BoolVar(&a.nodeSelectors, "pod-node-selector", false, "the API server runs the admission plugin PodNodeSelector")
	f.BoolVar(&a.asIs, "as-is", false, "admit the files as they are, without injection")
	f.BoolVar(&a.why, "why", false, "print why each field differs from the file, instead of the pods")
	formatFlag(cmd, streams, &a.output, manifestFormats)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.runAdmit(cmd.Context(), args) }
	return cmd
}

func (a *admitRun) runAdmit(ctx context.Context, args []string) error {
	request := render.AdmitRequest{Why: a.why || a.asksCluster(), Created: a.asksCluster(), Share: !a.asksCluster(), Options: gate.Options{
		KubernetesVersion: a.kubernetes, PodSecurity: a.podSecurity, NodeSelectors: a.nodeSelectors,
		User: a.user, Groups: a.userGroups,
	}}
	var config *rest.Config
	catalog, err := a.readCatalog(ctx, "--cluster", a.cluster)
	if err == nil && a.asksCluster() {
		config, err = a.liveConfig()
	}
	if err == nil && config != nil && len(a.cluster) == 0 {
		catalog, err = a.readLive(ctx, config)
	}
	if err != nil {
		return err
	}
	request.Catalog = catalog.documents
	if err := applyCapture(&request.Options, catalog.objects); err != nil {
		return err
	}
	if _, err := a.readFiles(ctx, args); err != nil {
		return err
	}
	if err := a.checkAnyManifest(); err != nil {
		return err
	}
	if request.Groups, err = a.admitGroups(); err != nil {
		return err
	}
	a.printNotices()
	a.printResults(a.batch.Problems())
	admitted, err := admitByRenderer(ctx, request)
	if err != nil {
		return err
	}
	pods := admitted.Pods
	if len(pods) == 0 && len(a.batch.Problems()) == 0 {
		return errors.New("no workload was found, so nothing was admitted; specify other files")
	}
	var invalid result.Results
	if config != nil {
		err = a.askCluster(ctx, config, pods)
	} else {
		invalid, err = a.validateAdmitted(ctx, admitted, request.Options)
	}
	if err != nil {
		return err
	}
	a.printResults(invalid)
	if err := a.printPods(admitted); err != nil {
		return fmt.Errorf("writing standard output: %w", err)
	}
	if len(a.batch.Problems()) > 0 {
		return errReported
	}
	if config != nil {
		return exitErrorForLive(pods)
	}
	return exitErrorForRejected(admitted, invalid)
}

// applyCapture sets the version of Kubernetes and the kinds that are complete by the description of a capture among
// objects. A version that is set stays.
func applyCapture(options *gate.Options, objects []gate.Object) error {
	for _, o := range objects {
		d, err := capture.ReadDescription(o.Value)
		if err != nil {
			return err
		}
		if d != nil {
			options.KubernetesVersion = cmp.Or(options.KubernetesVersion, d.KubernetesVersion)
			options.Complete = append(options.Complete, d.Complete...)
			options.Parameters = append(options.Parameters, d.Parameters...)
		}
	}
	return nil
}

// admitByRenderer makes a renderer admit pods, because this program contains no code of the API server.
func admitByRenderer(ctx context.Context, request render.AdmitRequest) (*render.Admitted, error) {
	pool, err := render.NewPool(render.Options{})
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	return pool.Admit(ctx, request)
}

// admitGroups returns the documents with the policies that stand for the cluster's webhooks.
func (a *admitRun) admitGroups() ([]render.AdmitGroup, error) {
	if a.asIs {
		g, err := admitGroup(a.batch.Items())
		g.Namespace, g.TargetNamespace = a.namespace, a.target
		return []render.AdmitGroup{g}, err
	}
	if err := a.loadPolicies(); err != nil {
		return nil, err
	}
	var out []render.AdmitGroup
	for _, group := range a.groups {
		g, err := admitGroup(group.batch.Items())
		if err != nil {
			return nil, err
		}
		for _, p := range group.policies {
			text, err := v1alpha1.Marshal(p)
			if err != nil {
				return nil, err
			}
			g.Policies = append(g.Policies, text)
			g.Namespace = cmp.Or(g.Namespace, p.Spec.DefaultNamespace)
			g.TargetNamespace = cmp.Or(g.TargetNamespace, p.Spec.TargetNamespace)
		}
		out = append(out, g)
	}
	return out, nil
}

// admitGroup returns the documents as they are: the renderer reads them.
func admitGroup(items []fn.Item) (out render.AdmitGroup, err error) {
	for _, item := range items {
		if item.Doc.Empty() {
			continue
		}
		sent, isWhole := render.NewGateDocument(item.Doc, item.Doc, item.Path)
		if !isWhole {
			return out, fmt.Errorf("reading %s: an element of a list cannot be checked without the list", item.Path)
		}
		out.Documents = append(out.Documents, sent)
	}
	return out, nil
}

// printsLines reports whether lines about a pod are printed, and not the pod.
func (a *admitRun) printsLines(p render.AdmittedPod) bool { return a.why || p.Live != nil }

// printPod prints a pod as YAML, or the reasons for its fields, below what is to be known about it.
func (a *admitRun) printPod(b *bytes.Buffer, p render.AdmittedPod) {
	mark := "# "
	if a.printsLines(p) {
		mark = ""
	}
	b.WriteString(mark + p.Ref.String())
	if p.Place.Path != "" {
		b.WriteString(" (" + p.Place.String() + ")")
	}
	b.WriteString("\n")
	if p.Injection != "" {
		b.WriteString(mark + joinLines(p.Injection) + "\n")
	}
	if p.Rejected != "" {
		b.WriteString(mark + "rejected: " + joinLines(p.Rejected) + "\n")
	}
	for _, text := range p.Warnings {
		b.WriteString(mark + "warning: " + joinLines(text) + "\n")
	}
	for _, text := range p.Missing {
		b.WriteString(mark + "not known: " + joinLines(text) + "\n")
	}
	if p.Live != nil {
		printLive(b, p)
	} else if a.why {
		for _, r := range p.Reasons {
			b.WriteString("  " + describeReason(r) + "\n")
		}
		for _, v := range p.Prevented {
			b.WriteString("  " + describePrevented(v) + "\n")
		}
	} else if p.Pod != nil {
		b.Write(manifest.Marshal(p.Pod))
	}
}

// describeReason returns a line such as
// spec.priority: 1000 (Priority, PriorityClass high at cluster/classes.yaml:7: priorityClassName: high).
func describeReason(r render.Reason) string {
	value := changeText(r.Before, r.After)
	by := cmp.Or(r.Step, "unknown")
	if r.Object != "" {
		by += ", " + r.Object
	}
	if r.Place.Path != "" {
		by += " at " + r.Place.String()
	}
	if r.Detail != "" {
		by += ": " + r.Detail
	}
	if r.Round > 1 {
		by += "; second round"
	}
	if len(r.Because) > 0 {
		by += "; because of " + strings.Join(r.Because, " and ")
	}
	if r.Otherwise != "" {
		by += "; without it, " + r.Otherwise + " sets the same value"
	}
	return fmt.Sprintf("%s: %s (%s)", r.Field, joinLines(value), joinLines(by))
}

// describePrevented returns a line such as
// metadata.labels.tier: unchanged (MutatingAdmissionPolicy a prevents gold, which MutatingAdmissionPolicy b would set).
func describePrevented(p render.Prevented) string {
	return fmt.Sprintf("%s: unchanged (%s prevents %s, which %s would set)", p.Field, p.Object, joinLines(changeText(p.Value, p.Without)), p.By)
}

// changeText describes a value that was another one.
func changeText(before, after any) string {
	switch {
	case after == nil:
		return "removed, was " + valueText(before)
	case before == nil:
		return valueText(after)
	}
	return valueText(after) + ", was " + valueText(before)
}

func valueText(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// joinLines returns a text without line breaks.
func joinLines(text string) string { return strings.Join(strings.Fields(text), " ") }
