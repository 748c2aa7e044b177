// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/batch"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/cli/policy"
)

// manifestRun is what inject and explain have in common: which files, and by which policies.
type manifestRun struct {
	streams Streams
	command *cobra.Command

	files    []string
	exclude  []string
	policies []string
	quiet    bool
	verbose  bool

	kubeInject policy.KubeInject
	revision   string
	namespace  string
	target     string
	istio      string
	kubernetes string

	results string // a directory that results are written to and not read from; "" for none

	batch  *batch.Batch   // what read has read
	groups []*policyGroup // the files with their policies

	published []*manifest.Document // what is published; nil where that is not known
}

// addFlags adds the flags that choose files and policies.
func (r *manifestRun) addFlags(cmd *cobra.Command) {
	r.command = cmd
	f := cmd.Flags()
	f.StringArrayVarP(&r.files, "filename", "f", nil, "file or directory to read, - for standard input; may be repeated")
	excludeFlag(cmd, &r.exclude)
	f.StringArrayVarP(&r.policies, "policy", "p", nil,
		"InjectionPolicy: a file, or the name of a built-in one; may be repeated (default: "+policy.FileName+
			" next to the file or above it in its repository, otherwise the built-in "+policy.BuiltIn+")")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "print warnings and errors only")
	f.BoolVarP(&r.verbose, "verbose", "v", false, "list every workload, even if many have the same reason")
	f.StringVarP(&r.namespace, "namespace", "n", "", "namespace of objects that do not set one")
	f.StringVar(&r.target, "target-namespace", "", "namespace that all objects will get, like Flux's targetNamespace; used for decisions, not written")
	f.StringVar(&r.revision, "revision", "", "revision of the control plane")
	f.StringVar(&r.kubernetes, "kubernetes-version", "", "version of the cluster's oldest kubelet, such as 1.34")
	f.StringVar(&r.kubeInject.InjectConfig, "injectConfigFile", "", "injector configuration, as for istioctl kube-inject")
	f.StringVar(&r.kubeInject.Values, "valuesFile", "", "injector values, as for istioctl kube-inject")
	f.StringVar(&r.kubeInject.MeshConfig, "meshConfigFile", "", "mesh config, as for istioctl kube-inject")
	mustRegister(cmd.RegisterFlagCompletionFunc("policy", completePolicies))
	for _, name := range []string{"filename", "injectConfigFile", "valuesFile", "meshConfigFile"} {
		mustRegister(cmd.MarkFlagFilename(name, "yaml", "yml", "json"))
	}
	r.clusterFlags(cmd)
	for _, name := range []string{"injectConfigFile", "valuesFile", "meshConfigFile"} {
		refuseTogether(cmd, "policy", name)
	}
}

// excludeFlag adds the flag for what is not read below directories.
func excludeFlag(cmd *cobra.Command, patterns *[]string) {
	cmd.Flags().StringArrayVar(patterns, "exclude", nil,
		"pattern, as in .gitignore, of files to skip below a directory; may be repeated")
	addCheck(cmd, func() error {
		for _, pattern := range *patterns {
			if err := files.CheckPattern(pattern); err != nil {
				return fmt.Errorf("reading the flag --exclude: %w", err)
			}
		}
		return nil
	})
}

// versionFlag adds the flag for the version of Istio that is followed.
func (r *manifestRun) versionFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.istio, "istio-version", "", "version of Istio to follow, such as 1.31, if the configuration does not contain it")
}

// clusterOnly are the flags of istioctl kube-inject that make it contact a cluster. They are recognized, so that
// the author of a migrated script learns what to do instead.
var clusterOnly = map[string]string{
	"injectConfigMapName": "save the ConfigMap and pass it with --injectConfigFile, or create a policy from it with prerig import",
	"meshConfigMapName":   "save the ConfigMap and pass it with --meshConfigFile, or create a policy from it with prerig import",
	"webhookConfig":       "create a policy from the cluster's objects with prerig import",
	"operatorFileName":    "render the chart and create a policy from the result: helm template istiod … | prerig import",
	"istioNamespace":      "the policy contains the namespace of the control plane; create it with prerig import",
	"context":             "create a policy from the cluster's objects with kubectl --context … get … | prerig import",
	"kubeconfig":          "create a policy from the cluster's objects with kubectl --kubeconfig … get … | prerig import",
}

// clusterFlags adds those of them that the command does not have.
func (r *manifestRun) clusterFlags(cmd *cobra.Command) {
	unsupported := slices.DeleteFunc(slices.Sorted(maps.Keys(clusterOnly)), func(name string) bool { return cmd.Flags().Lookup(name) != nil })
	for _, name := range unsupported {
		cmd.Flags().String(name, "", "")
		mustRegister(cmd.Flags().MarkHidden(name))
	}
	addCheck(cmd, func() error {
		for _, name := range unsupported {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s is not supported, because this command contacts no cluster; %s", name, clusterOnly[name])
			}
		}
		return nil
	})
}

// refuseTogether refuses two of the flags at once.
func refuseTogether(cmd *cobra.Command, names ...string) {
	addCheck(cmd, func() error {
		var given []string
		for _, name := range names {
			if cmd.Flags().Changed(name) {
				given = append(given, "--"+name)
			}
		}
		if len(given) > 1 {
			return fmt.Errorf("%s cannot be used together", strings.Join(given, " and "))
		}
		return nil
	})
}

// addCheck adds a check of the flags.
func addCheck(cmd *cobra.Command, check func() error) {
	next := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := check(); err != nil {
			return err
		}
		if next != nil {
			return next(cmd, args)
		}
		return nil
	}
}

// mustRegister is for mistakes in the program itself: a flag that does not exist.
func mustRegister(err error) {
	if err != nil {
		panic(err)
	}
}

// readFiles reads the files.
func (r *manifestRun) readFiles(ctx context.Context, args []string) (*batch.Batch, error) {
	names := append(append([]string(nil), r.files...), args...)
	if len(names) == 0 {
		if r.streams.InTerminal {
			return nil, errors.New("no input: specify files or directories, or pipe manifests to standard input")
		}
		names = []string{"-"}
	}
	bar := newBar(r.streams.Err, "reading")
	b, err := batch.Read(ctx, names, files.Options{Stdin: r.streams.In, Exclude: r.exclude, Without: r.results, Progress: func(done int, path string) { bar.setProgress(done, 0, path) }})
	bar.clearLine()
	if err != nil {
		return nil, err
	}
	if len(b.Files) == 1 && b.Files[0].Input.Stdin() && b.Files[0].Blank() {
		return nil, errors.New("standard input is empty; did the command before the pipe fail?")
	}
	for _, f := range b.Files {
		switch {
		case f.Input.Root != "" || f.Input.Stdin():
		case f.Blank():
			fmt.Fprintf(r.streams.Err, "warning: %s: the file is empty\n", f.Input.Path)
		case f.IsEmpty() && f.IsWhole():
			fmt.Fprintf(r.streams.Err, "warning: %s: the file has no object, only comments or separators\n", f.Input.Path)
		}
	}
	r.batch = b
	return b, nil
}

// checkAnyManifest refuses an input without any manifest: the wrong files were named, or what writes them has failed.
func (r *manifestRun) checkAnyManifest() error {
	b := r.batch
	if len(b.Problems()) > 0 || b.HasManifest() || len(b.Files) == 0 && len(b.Notes()) == 0 {
		return nil
	}
	r.printResults(b.Notes())
	command := strings.TrimPrefix(r.command.CommandPath(), r.command.Root().Name()+" ")
	done := map[string]string{"inject": "injected", "explain": "explained", "admit": "admitted", "ambient plan": "planned", "images pin": "resolved"}[command]
	if done == "" {
		done = "checked"
	}
	advice := "specify other files"
	if at := b.Kustomization(); at != "" {
		dir := quoteShellWord(filepath.Dir(at))
		advice = fmt.Sprintf("build the kustomization first: kustomize build %s | prerig %s, or see its changes with prerig review", dir, command)
	} else if own := b.OwnObject(); own != "" {
		advice = own + " is not a manifest; specify the files with the workloads"
	}
	return fmt.Errorf("no Kubernetes object was found, so nothing was %s; %s", done, advice)
}

// printResults prints the results, one line each. A message that is the same for many objects is printed once, with
// their number, so that the rest remains visible.
func (r *manifestRun) printResults(rs result.Results) {
	rs = lint.JoinMesh(rs)
	alike := map[string]int{}
	for _, res := range rs {
		if res.Severity == result.Info && res.ResourceRef != nil {
			alike[res.Message]++
		}
	}
	for _, res := range rs {
		if r.quiet && res.Severity == result.Info {
			continue
		}
		line := res.String()
		if res.Severity == result.Info && res.ResourceRef != nil && !r.verbose {
			n := alike[res.Message]
			alike[res.Message] = 0
			if n == 0 {
				continue // already printed
			}
			if n > named {
				line = fmt.Sprintf("info: %d workloads: %s (-v lists them)", n, res.Message)
			} else {
				alike[res.Message] = n
			}
		}
		fmt.Fprintln(r.streams.Err, line)
	}
}
