// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/cli/importer"
	"github.com/prerig/prerig/pipeline/cli/policy"
	"github.com/prerig/prerig/pipeline/cli/scaffold"
)

// Where a policy can come from, beside files and directories.
const (
	fromBuiltIn = "built-in"
	fromCluster = "cluster"
)

// allNamespaces and noPipeline are answers.
const (
	allNamespaces = "all"
	noPipeline    = "none"
)

// initRun is the state of one prerig init.
type initRun struct {
	streams Streams
	cmd     *cobra.Command

	dir             string // of the manifests
	from            string
	valuesFiles     []string
	namespaces      []string
	kubernetes      string
	importing       importRun
	source, publish string
	name, branch    string
	destination     // of the policy
	pipelines       string
	force, noAsking bool
	builds          []string        // directories and patterns of the builds that get pipelines
	repository      *ownRepository  // that the current directory is in; nil for none
	inspected       *inspection     // of the repository, nil until it is requested
	policy          *files.Output   // what is written
	written         []planned       // pipelines
	leftOut         []planned       // pipelines that cannot be rendered, and are not written
	kept            int             // pipelines that already exist
	missing         strings.Builder // what keeps written pipelines from being rendered completely
	untried         error           // why pipelines were not rendered
	unlocked        bool            // charts have to be locked
	keepPolicy      bool            // the policy already exists and is kept
	imported        *importer.Import
	version         string
}

func newInit(streams Streams, version string) *cobra.Command {
	in := &initRun{streams: streams, version: version, importing: importRun{streams: streams}}
	cmd := newCommand("init [DIRECTORY]", "Write a first policy, and optionally pipelines")
	cmd.Long = `Write a policy for the manifests below a directory, . by default, and RenderPipelines if a
source is specified. On a terminal, init asks for the settings that no flag sets, in five
questions at most; Enter accepts the answer in brackets, and --yes accepts all of them.
Without a terminal, it asks nothing.

With --source ., init inspects this repository and writes a pipeline for each root that a
cluster applies: clusters of Flux, Applications and ApplicationSets of Argo CD with what they
name, overlays that no other kustomization uses, charts, and directories of manifests. If
there are clusters of Flux or Applications, only these get pipelines. --builds names others:
directories, patterns such as 'overlays/*', or all. Each pipeline is rendered once. One that
cannot be rendered is not written, unless --builds names it or only charts have to be locked,
and init names what is missing.

The policy is based on the built-in one (--from built-in), on the cluster that kubectl would
use (--from cluster), or on istiod's chart or its rendered manifests (--from PATH: the chart's
directory or archive, or files), as with prerig import. It is not limited to one mesh:
Linkerd, Vault and OpenTelemetry in a cluster are imported too.

Nothing is overwritten without --force, and either all files are written or none. An existing
policy is kept, and so are existing pipelines if there are several, so that init can be
repeated.`
	cmd.Example = `  prerig init                                   # asks questions
  prerig init k8s/ --yes                        # the built-in policy, for all namespaces
  prerig init k8s/ --from cluster --context production
  prerig init k8s/ --from charts/istiod --values mesh-values.yaml --kubernetes-version 1.34
  prerig init --yes --source .                   # a pipeline for each root of this repository
  prerig init --yes --source . --builds 'clusters/*' --publish rendered`
	in.initFlags(cmd)
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		in.cmd, in.dir = cmd, "."
		if len(args) == 1 {
			in.dir = args[0]
		}
		return in.runInit(cmd.Context())
	}
	return cmd
}

// initFlags adds the flags of the command.
func (in *initRun) initFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&in.from, "from", fromBuiltIn, "base of the policy: built-in, cluster, or the path of a chart or of manifests")
	f.StringArrayVar(&in.valuesFiles, "values", nil, "values file for the chart of --from; may be repeated")
	f.StringSliceVar(&in.namespaces, "namespaces", nil,
		"namespaces whose pods are injected (default: all, or those of the import)")
	f.StringVar(&in.kubernetes, "kubernetes-version", "", "version of the cluster's oldest kubelet, such as 1.34")
	f.StringVar(&in.importing.options.Version, "istio-version", "",
		"version of Istio, if the import does not contain it")
	f.StringVar(&in.importing.options.Revision, "revision", "", "revision of the control plane, if there are several")
	f.StringVar(&in.importing.options.Namespace, "istio-namespace", "", "namespace of the control plane")
	f.StringVar(&in.importing.kubeconfig, "kubeconfig", "",
		"kubeconfig of the cluster, with --from cluster (default: kubectl's own)")
	f.StringVar(&in.importing.kubeContext, "context", "", "kubeconfig context (default: the current context)")
	f.StringVar(&in.source, "source", "", "also write a pipeline that renders this source: the URL of a Git repository, oci://REGISTRY/PATH, or . for this repository")
	f.StringSliceVar(&in.builds, "builds", nil, "with --source .: what gets a pipeline: directories, patterns such as 'overlays/*', all, or usual (default: usual)")
	f.StringVar(&in.branch, "branch", "", "branch of the source to follow (default: the repository's default branch)")
	f.StringVar(&in.publish, "publish", "rendered",
		"where the pipeline publishes: a branch of the source's repository, URL#BRANCH, or oci://REGISTRY/PATH")
	f.StringVar(&in.name, "name", "", "name of the pipeline, if there is one (default: the name of the source, or with several that of the directory)")
	in.destinationFlags(cmd, in.streams, policy.FileName, "policy file to write", nil)
	f.StringVar(&in.pipelines, "pipelines", "pipelines", "directory for the pipeline files")
	f.BoolVar(&in.force, "force", false, "replace existing files")
	f.BoolVarP(&in.noAsking, "yes", "y", false, "accept all defaults without asking")
	mustRegister(cmd.MarkFlagFilename("to", "yaml", "yml"))
	mustRegister(cmd.MarkFlagFilename("values", "yaml", "yml", "json"))
	mustRegister(cmd.MarkFlagFilename("kubeconfig"))
	mustRegister(cmd.MarkFlagDirname("pipelines"))
	mustRegister(cmd.RegisterFlagCompletionFunc("from", completePolicyTemplates))
}

func (in *initRun) runInit(ctx context.Context) error {
	if err := isDirectory("DIRECTORY", in.dir); err != nil {
		return fmt.Errorf("finding the manifests: %s is not a directory", in.dir)
	}
	in.repository = findOwnRepository(".")
	if err := in.checkFlags(); err != nil {
		return err
	}
	if err := in.checkThere(); err != nil {
		return err
	}
	if err := in.promptForMissing(ctx); err != nil {
		return err
	}
	var outs []files.Output
	if !in.keepPolicy {
		if err := in.makePolicy(ctx); err != nil {
			return err
		}
		outs = append(outs, *in.policy)
	}
	if in.source != "" {
		pipelines, err := in.makePipelines(ctx)
		if err != nil {
			return err
		}
		outs = append(outs, pipelines...)
	}
	switch {
	case len(outs) == 0 && in.kept > 0:
		fmt.Fprint(in.streams.Err, listLeftOut(in.leftOut, "warning: no pipeline for "))
		return errAllExist
	case len(outs) == 0:
		return fmt.Errorf("nothing to write: %s already exists and is kept; use --force to replace it, or --source to write a pipeline for it", in.to)
	}
	if err := files.Write(ctx, outs, nil); err != nil {
		return err
	}
	in.printNextSteps()
	return nil
}

// makePolicy makes the policy's file.
func (in *initRun) makePolicy(ctx context.Context) error {
	if in.from != fromBuiltIn && in.imported == nil {
		if err := in.readImport(ctx); err != nil {
			return err
		}
	}
	text, err := scaffold.Policy(scaffold.PolicyOptions{Namespaces: in.namespaces, KubernetesVersion: in.kubernetes, Import: in.imported})
	if err != nil {
		return err
	}
	in.policy, err = newFile(in.force, in.to, text)
	return err
}

// readImport reads what the policy is made of.
func (in *initRun) readImport(ctx context.Context) error {
	im := &in.importing
	im.quiet, im.valuesFiles, im.kubernetes = true, in.valuesFiles, in.kubernetes
	var objects []importer.Object
	var err error
	switch {
	case in.from == fromCluster:
		objects, err = im.readCluster(ctx)
	default:
		if _, statErr := os.Stat(in.from); statErr != nil {
			return fmt.Errorf("--from is %q; it must be %s, %s, or the path of a chart or of manifests, and there is no such file%s",
				in.from, fromBuiltIn, fromCluster, strict.DidYouMean(in.from, []string{fromBuiltIn, fromCluster}))
		}
		objects, err = im.readFiles(ctx, []string{in.from})
	}
	if err != nil {
		return err
	}
	if slices.Contains(im.unread, "namespaces") && len(in.namespaces) == 0 {
		return errors.New("the namespaces of the cluster may not be read, so the namespaces to inject into are unknown; set --namespaces, or request permission to list them")
	}
	in.imported, err = im.makePolicy(objects)
	if err == nil && im.needsNoKubernetes(in.imported) { // a cluster has it, whatever it injects
		in.imported.Notes = append(in.imported.Notes,
			"--kubernetes-version applies to Istio and charts, and is not in this policy")
	}
	return err
}

// makePipelines makes the files of the pipelines. Those that cannot be rendered are left out.
func (in *initRun) makePipelines(ctx context.Context) ([]files.Output, error) {
	o := scaffold.PipelineOptions{Branch: in.branch, Publish: in.publish}
	if err := in.locateSource(&o); err != nil {
		return nil, err
	}
	plan, err := in.planPipelines(o)
	if err != nil {
		return nil, err
	}
	for _, one := range plan { // before the time for rendering is spent
		if _, err := newFile(in.force, one.file, nil); err != nil {
			return nil, err
		}
		if _, err := scaffold.Pipeline(one.options); err != nil {
			return nil, err
		}
	}
	if in.repository.isSource(in.source) {
		if plan, err = in.tryPipelines(ctx, plan); err != nil {
			return nil, err
		}
	}
	var outs []files.Output
	for _, one := range plan {
		text, err := scaffold.Pipeline(one.options)
		if err != nil {
			return nil, err
		}
		out, err := newFile(in.force, one.file, text)
		if err != nil {
			return nil, err
		}
		outs = append(outs, *out)
	}
	in.written = plan
	return outs, nil
}

// locateSource determines the URL of the source and the location of the policy for a daemon on another machine.
func (in *initRun) locateSource(o *scaffold.PipelineOptions) error {
	o.Source = in.source
	if in.source == "." {
		url, err := in.repository.reachableRemoteURL()
		if err != nil {
			return err
		}
		o.Source = url
	}
	if !in.repository.isSource(in.source) {
		o.PolicyFile = filepath.Base(in.to)
		return nil
	}
	var err error
	o.Policy, err = in.repository.pathFromRoot(in.to)
	return err
}

// newFile is a file that may be written.
func newFile(force bool, path string, text []byte) (*files.Output, error) {
	if !force && fileExists(path) {
		return nil, fmt.Errorf("%s already exists; use --force to replace it", path)
	}
	out, err := files.To(path, text)
	return &out, err
}

// fileExists reports whether a path exists, as a file or anything else.
func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
