// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/verify"
	"github.com/prerig/prerig/pipeline/verify/live"
	"github.com/prerig/prerig/pipeline/verify/rendered"
)

// verifyRun is the state of one prerig verify.
type verifyRun struct {
	streams Streams

	rendered, revision, namespace string
	paths, policies               []string
	history                       int

	files, audit            []string
	kubeconfig, kubeContext string
	kubernetes              string
	namespaces              []string
	all                     bool

	ignore, sidecars, failOn []string
	attestations             []string
	output                   string
	verbose                  bool
}

// failStates are the values of --fail-on, with the states of pods that fail the command.
var failStates = map[string][]verify.State{
	"changed": {verify.Changed, verify.Unreadable},
	"foreign": {verify.Foreign},
	"older":   {verify.Older},
	"removed": {verify.Removed},
	"resized": {verify.Resized},
	"any":     {verify.Changed, verify.Unreadable, verify.Foreign, verify.Older, verify.Removed, verify.Resized},
	"never":   nil,
}

var failStateValues = []string{"changed", "foreign", "older", "removed", "resized", "any", "never"}

func newVerify(streams Streams) *cobra.Command {
	r := &verifyRun{streams: streams}
	cmd := newCommand("verify [FILE]...", "Compare the pods of a cluster with the committed manifests")
	cmd.Long = `Compare each pod of a cluster with the workload that was committed for it. The pod's owners
lead to the workload; its template is turned into the pod that the API server and the
controllers of Kubernetes would create, and the two are compared.

A pod is reported as committed, resized in place, from an older commit, from a removed
workload, changed, or not from Git. For a changed or resized pod, every differing field is
listed with who changed it, if the objects show that: the workload itself, a webhook at
admission, or someone later. --audit-log specifies the API server's audit log, which identifies
the webhook.

The committed manifests are read from a repository or a directory (--rendered, --revision,
--path). With --attestations, a signed statement by one of the keys must cover the file that each
pod comes from (docs/attestations.md). The cluster is read with list requests only, using kubectl's kubeconfig or
--kubeconfig; docs/verify.md lists the required permissions. FILEs are saved output of kubectl
get -o yaml or -o json to read instead of a cluster, - for standard input. Pods that have
finished are not compared.

Exit codes:
  0  no pod is in one of the states of --fail-on
  1  a pod is in one of the states of --fail-on, or its file has no trusted statement
  2  the cluster, the commits or a flag cannot be read, or there is nothing to compare`
	cmd.Example = `  prerig verify --rendered ../config --revision origin/rendered --path shop
  prerig verify --rendered rendered/ -n shop -n billing --fail-on any
  kubectl get pods,replicasets,jobs -A -o yaml --show-managed-fields | prerig verify --rendered . -
  prerig verify --rendered . -o json | jq '.pods[] | select(.state == "Changed")'`
	f := cmd.Flags()
	f.StringVar(&r.rendered, "rendered", ".", "directory of the committed manifests, preferably in a Git repository")
	f.StringVar(&r.revision, "revision", "", "branch or commit that the cluster should have (default: HEAD)")
	f.StringArrayVar(&r.paths, "path", nil, "directory below --rendered to read; may be repeated")
	f.IntVar(&r.history, "history", 50, "number of older commits to read")
	f.StringVar(&r.namespace, "default-namespace", "default", "namespace of committed objects that do not set one")
	f.StringArrayVarP(&r.policies, "policy", "p", nil,
		"policy whose spec.workloads lists further kinds with pods; may be repeated")
	f.StringVar(&r.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default: kubectl's own)")
	f.StringVar(&r.kubeContext, "context", "", "kubeconfig context (default: the current context)")
	f.StringArrayVarP(&r.files, "filename", "f", nil,
		"file with saved objects of the cluster, - for standard input; may be repeated")
	f.StringVar(&r.kubernetes, "kubernetes-version", "",
		"version of the cluster of the saved objects, such as 1.34 (default: the newest supported version)")
	f.StringArrayVar(&r.audit, "audit-log", nil, "audit log of the API server, as JSON lines; may be repeated")
	f.StringArrayVarP(&r.namespaces, "namespace", "n", nil,
		"compare the pods of this namespace; may be repeated (default: those of the committed workloads)")
	f.BoolVarP(&r.all, "all-namespaces", "A", false, "compare the pods of all namespaces")
	f.StringArrayVar(&r.ignore, "ignore", nil, `field that may differ, with * as a wildcard, such as 'metadata.annotations["example.com/*"]'; may be repeated`)
	f.StringArrayVar(&r.sidecars, "sidecar", nil, "container whose versions are counted; may be repeated (default: the sidecars that prerig knows)")
	f.StringArrayVar(&r.attestations, "attestations", nil, "public key of the signed statements that must cover the file of each pod, such as cosign.pub; may be repeated")
	f.StringSliceVar(&r.failOn, "fail-on", []string{"changed", "foreign"}, "exit with 1 for pods in these states: "+strings.Join(failStateValues, ", "))
	formatFlag(cmd, streams, &r.output, textFormats)
	f.BoolVarP(&r.verbose, "verbose", "v", false, "also show the pods that are as committed")
	mustRegister(cmd.MarkFlagDirname("rendered"))
	completeChoice(cmd, "fail-on", failStateValues)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r.files = append(r.files, args...)
		return r.run(cmd.Context())
	}
	return cmd
}

// collectSeldom is at what growth of the heap, in percent, garbage is collected: the command is short, and most of what
// it reads stays until it ends.
const collectSeldom = 400

func (r *verifyRun) run(ctx context.Context) error {
	if err := r.checkFlags(); err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(collectSeldom))
	}
	registry, err := r.workloadRegistry()
	if err != nil {
		return err
	}
	if err := isDirectory("rendered", r.rendered); err != nil {
		return err
	}
	bar := newBar(r.streams.Err, "reading the commits")
	defer func() { bar.clearLine() }()
	history, err := rendered.Open(ctx, r.rendered, rendered.Options{
		Registry: registry, Namespace: r.namespace, Revision: r.revision, Paths: r.paths, MaxCommits: r.history,
	})
	if err != nil {
		return missingRevisionError(cmp.Or(r.revision, "HEAD"), err)
	}
	if len(history.Workloads()) == 0 {
		return errors.New("no workload is committed there, so nothing was compared; name other files with --rendered, --revision and --path")
	}
	bar = bar.next("reading the cluster")
	snapshot, err := r.readClusterSnapshot(ctx, history)
	if err != nil {
		return err
	}
	audit, err := r.readAudit()
	if err != nil {
		return err
	}
	bar = bar.next("comparing the pods")
	report, err := verify.Verify(ctx, snapshot, history, verify.Options{
		Registry: registry, Namespaces: r.namespaces, AllNamespaces: r.all, Ignore: r.ignore, Sidecars: r.sidecars,
		Audit: audit,
	})
	if err != nil {
		return err
	}
	if report.Attested, err = r.readAttested(report); err != nil {
		return err
	}
	bar.clearLine()
	if len(report.Pods)+report.Finished == 0 {
		return r.noPods(history)
	}
	if r.output == "text" {
		err = report.Text(visibleWriter{r.streams.Out}, r.verbose)
	} else {
		err = writeStructured(r.streams.Out, r.output, report)
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return r.exitErrorForReport(report)
}

// noPods returns the error if no pods were compared, which must not look as if all were as committed.
func (r *verifyRun) noPods(history verify.History) error {
	const advice = "so nothing was compared; see whether --namespace, --kubeconfig and --context are those that are meant"
	if r.all {
		return errors.New("there is no pod, " + advice)
	}
	namespaces := r.namespaces
	if len(namespaces) == 0 {
		namespaces = verify.Namespaces(history)
	}
	return fmt.Errorf("there is no pod in %s, %s", strings.Join(namespaces, ", "), advice)
}

func (r *verifyRun) checkFlags() error {
	for _, pattern := range r.ignore {
		if err := verify.CheckIgnored(pattern); err != nil {
			return fmt.Errorf("--ignore is %q: %w", pattern, err)
		}
	}
	for _, state := range r.failOn {
		if err := checkChoice("fail-on", state, failStateValues); err != nil {
			return err
		}
	}
	switch {
	case slices.Contains(r.failOn, "never") && len(r.failOn) > 1:
		return errors.New("--fail-on cannot have never and other values")
	case r.all && len(r.namespaces) > 0:
		return errors.New("the flags --all-namespaces and --namespace cannot be given together")
	case len(r.files) > 0 && (r.kubeconfig != "" || r.kubeContext != ""):
		return errors.New("saved objects and a kubeconfig cannot be given together")
	case len(r.files) == 0 && r.kubernetes != "":
		return errors.New("--kubernetes-version is for saved objects; a cluster reports its version")
	case r.history < 0:
		return fmt.Errorf("the flag --history must not be negative, found %d", r.history)
	}
	return nil
}

// workloadRegistry returns the kinds with pods that policies define, and the built-in ones.
func (r *verifyRun) workloadRegistry() (*workload.Registry, error) {
	var kinds []v1alpha1.WorkloadKind
	for _, name := range r.policies {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the policy: %w", err)
		}
		p, err := v1alpha1.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("reading the policy %s: %w", name, err)
		}
		kinds = append(kinds, p.Spec.Workloads...)
	}
	return workload.NewRegistry(kinds)
}

// readClusterSnapshot reads the cluster, or the files in its place.
func (r *verifyRun) readClusterSnapshot(ctx context.Context, history verify.History) (*verify.Snapshot, error) {
	if len(r.files) > 0 {
		return r.savedSnapshot(ctx)
	}
	config, err := live.Config(r.kubeconfig, r.kubeContext)
	if errors.Is(err, live.ErrNoKubeconfig) {
		return nil, fmt.Errorf("%w, or specify files with the output of kubectl get -o yaml instead of a cluster", err)
	}
	if err != nil {
		return nil, err
	}
	namespaces := r.namespaces
	if len(namespaces) == 0 && !r.all {
		namespaces = verify.Namespaces(history)
	}
	return live.Read(ctx, config, namespaces)
}

func (r *verifyRun) savedSnapshot(ctx context.Context) (*verify.Snapshot, error) {
	s := &verify.Snapshot{KubernetesVersion: r.kubernetes}
	var errs []error
	listing, err := files.Read(ctx, r.files, files.Options{Stdin: r.streams.In}, func(in files.Input) {
		errs = append(errs, s.ReadSaved(in.Path, in.Data))
	})
	if err := errors.Join(append(append(errs, listing.Errors...), err)...); err != nil {
		return nil, err
	}
	if s.Pods() == 0 {
		return nil, errors.New("there is no pod among the saved objects, so nothing was compared; save them with kubectl get pods,replicasets,jobs -o yaml")
	}
	return s, nil
}

func (r *verifyRun) readAudit() (*verify.Audit, error) {
	audit := &verify.Audit{}
	for _, name := range r.audit {
		if err := readAuditLog(audit, name); err != nil {
			return nil, err
		}
	}
	return audit, nil
}

func readAuditLog(audit *verify.Audit, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	defer file.Close()
	if err := audit.Read(file); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// exitErrorForReport is the result of the command.
func (r *verifyRun) exitErrorForReport(report *verify.Report) error {
	counted := map[verify.State]bool{}
	for _, value := range r.failOn {
		for _, state := range failStates[value] {
			counted[state] = true
		}
	}
	n := 0
	for state := range counted {
		n += report.Counts[state]
	}
	if a := report.Attested; a != nil && len(a.Uncovered) > 0 {
		return findingsError{countWithNoun(len(a.Uncovered), "file") + " of running pods without a trusted statement (--attestations)"}
	}
	if n > 0 {
		return findingsError{fmt.Sprintf("%s in a state of --fail-on %s", countWithNoun(n, "pod"), strings.Join(r.failOn, ","))}
	}
	return nil
}
