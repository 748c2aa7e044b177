// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/cli/batch"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/policies"
)

// completeTimeout bounds the requests and reads of a completion: a person waits for it while typing. Candidates
// that cannot be found in time are silently omitted.
const completeTimeout = 3 * time.Second

// completion returns the candidates for completing a word.
type completion = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective)

// completeNames completes each argument with names that are not among the arguments yet.
func completeNames(names func(ctx context.Context) []string) completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(contextOf(cmd), completeTimeout)
		defer cancel()
		var out []cobra.Completion
		for _, name := range names(ctx) {
			if strings.HasPrefix(name, begun) && !slices.Contains(args, name) {
				out = append(out, name)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func contextOf(cmd *cobra.Command) context.Context {
	if ctx := cmd.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// completePipelines has the arguments of a command completed with the pipelines of a directory.
func (l *localPipelines) completePipelines(cmd *cobra.Command) {
	cmd.ValidArgsFunction = completeNames(func(context.Context) (names []string) {
		found, err := catalog.Open(l.pipelines, nil)
		if err != nil {
			return nil
		}
		for _, e := range found.All() {
			if e.Err == nil {
				names = append(names, e.Key)
			}
		}
		return names
	})
}

// completePipelines has the arguments of a command completed with the pipelines of the daemon.
func (d *daemonClient) completePipelines(cmd *cobra.Command) {
	cmd.ValidArgsFunction = completeNames(func(ctx context.Context) (names []string) {
		found, err := d.getPipelines(ctx)
		if err != nil {
			return nil
		}
		for _, p := range found {
			names = append(names, p.Name)
		}
		return names
	})
}

// completeRemovals completes arguments with missing pipelines.
func (d *daemonClient) completeRemovals(cmd *cobra.Command) {
	cmd.ValidArgsFunction = completeNames(func(ctx context.Context) (names []string) {
		found, err := d.getCatalog(ctx)
		if err != nil {
			return nil
		}
		for _, r := range found.Removals {
			names = append(names, r.Pipeline)
		}
		return names
	})
}

// completePolicies completes a flag or an argument with the policies that come with Prerig, and with files.
func completePolicies(_ *cobra.Command, _ []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var out []cobra.Completion
	for _, name := range policies.Names() {
		if strings.HasPrefix(name, begun) {
			out = append(out, name)
		}
	}
	return out, cobra.ShellCompDirectiveDefault
}

// completePolicyTemplates completes what a policy is made of.
func completePolicyTemplates(_ *cobra.Command, _ []string,
	begun string) (out []cobra.Completion, directive cobra.ShellCompDirective) {
	for _, name := range []string{fromBuiltIn, fromCluster} {
		if strings.HasPrefix(name, begun) {
			out = append(out, name)
		}
	}
	return out, cobra.ShellCompDirectiveDefault
}

// completeWorkloads completes KIND/NAMESPACE/NAME with the workloads of the files that the flags and the arguments
// before it name, and of the current directory where they name none. Files can be completed as well.
func (r *manifestRun) completeWorkloads(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(contextOf(cmd), completeTimeout)
		defer cancel()
		names := slices.Clone(r.files)
		for _, arg := range args {
			if _, err := os.Stat(arg); err == nil {
				names = append(names, arg)
			}
		}
		if len(names) == 0 {
			names = []string{"."}
		}
		names = slices.DeleteFunc(names, func(name string) bool { return name == "-" })
		read, err := batch.Read(ctx, names, files.Options{Exclude: r.exclude})
		if err != nil {
			return nil, cobra.ShellCompDirectiveDefault
		}
		var out []cobra.Completion
		for _, item := range read.Items() {
			meta, ok := item.Doc.Peek()
			if !ok || !slices.Contains(completedKinds, meta.Kind) {
				continue
			}
			word := strings.ToLower(meta.Kind) + "/" + meta.Name
			if meta.Namespace != "" {
				word = strings.ToLower(meta.Kind) + "/" + meta.Namespace + "/" + meta.Name
			}
			if strings.HasPrefix(word, begun) && !slices.Contains(args, word) {
				out = append(out, word)
			}
		}
		slices.Sort(out)
		return slices.Compact(out), cobra.ShellCompDirectiveDefault
	}
}

// completedKinds are kinds of workloads that are offered; others are not found out about in time.
var completedKinds = []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job",
	"CronJob", "Pod", "Rollout", "DeploymentConfig"}

// completeDaemonFlags completes the flags of the configuration.
func completeDaemonFlags(cmd *cobra.Command) {
	for _, name := range []string{"pipelines", "policies", "secrets", "state"} {
		mustRegister(cmd.MarkFlagDirname(name))
	}
	mustRegister(cmd.MarkFlagFilename("config", "yaml", "yml"))
}
