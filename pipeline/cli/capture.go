// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/cli/capture"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/review/diff"
	"github.com/prerig/prerig/pipeline/verify/live"
)

// captureRun is the state of one prerig capture.
type captureRun struct {
	streams Streams

	kubeconfig, kubeContext string
	to                      string
	check                   bool
}

func newCapture(streams Streams) *cobra.Command {
	c := &captureRun{streams: streams}
	cmd := newCommand("capture", "Write what can change or reject a pod of a cluster into a directory")
	cmd.Long = `List the objects of a cluster that can change a pod or reject an object, and write them into a
directory to commit: Namespaces, ServiceAccounts, LimitRanges, ResourceQuotas, PriorityClasses,
RuntimeClasses, admission policies with bindings and parameters, webhook configurations,
CustomResourceDefinitions, the configuration of Istio's control planes, and the version of
Kubernetes. It is the input of prerig admit --cluster and of prerig gate --policies.

The cluster is only read, with list requests. Secrets are never listed. Status and fields that
only a server sets are left out, and objects are sorted: a second capture of the same cluster
writes the same bytes. Resources that may not be read are named in capture.yaml.

--check compares the cluster with the directory and writes nothing.

Exit codes:
  0  success
  1  --check: the cluster differs from the directory
  2  the cluster cannot be read, or the directory cannot be written`
	cmd.Example = `  prerig capture --to cluster/
  prerig capture --context prod --to clusters/prod/ --check`
	cmd.Args = noArguments
	f := cmd.Flags()
	f.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default: kubectl's own)")
	f.StringVar(&c.kubeContext, "context", "", "kubeconfig context (default: the current context)")
	f.StringVar(&c.to, "to", "", "directory to write")
	f.BoolVar(&c.check, "check", false, "print how the cluster differs from the directory, and write nothing")
	mustRegister(cmd.MarkFlagDirname("to"))
	mustRegister(cmd.MarkFlagRequired("to"))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return c.runCapture(cmd.Context()) }
	return cmd
}

func (c *captureRun) runCapture(ctx context.Context) error {
	config, err := live.Config(c.kubeconfig, c.kubeContext)
	if err != nil {
		return err
	}
	config.UserAgent = "prerig-capture"
	content, err := c.readCluster(ctx, config)
	if err != nil {
		return err
	}
	stale, err := c.staleFiles(content)
	if err != nil {
		return err
	}
	if c.check {
		return c.compareFiles(content, stale)
	}
	return c.writeFiles(ctx, content, stale)
}

// writeFiles replaces the earlier capture in the directory. Stale files come first: after a run that was killed, the description still
// names them.
func (c *captureRun) writeFiles(ctx context.Context, content map[string][]byte, stale []string) error {
	dir, err := files.OpenDirectory(c.to)
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, name := range stale {
		if _, err := dir.Remove(filepath.FromSlash(name)); err != nil {
			return err
		}
	}
	if err := writeBelow(ctx, dir, content); err != nil {
		return err
	}
	fmt.Fprintf(c.streams.Err, "wrote %s to %s\n", countWithNoun(len(content), "file"), c.to)
	return nil
}

// readCluster returns the files of a capture.
func (c *captureRun) readCluster(ctx context.Context, config *rest.Config) (map[string][]byte, error) {
	description := capture.Description{}
	var err error
	if description.KubernetesVersion, err = live.Version(ctx, config); err != nil {
		return nil, err
	}
	list := func(resources []live.Resource) ([]map[string]any, error) {
		found, err := live.List(ctx, config, resources, nil)
		if err != nil {
			return nil, err
		}
		description.Unread = append(description.Unread, found.Unread...)
		for _, one := range resources {
			if !slices.Contains(found.Unread, one.Resource) {
				description.Complete = append(description.Complete, one.Kind)
			}
		}
		return found.Objects, nil
	}
	objects, err := list(capture.Resources())
	if err != nil {
		return nil, err
	}
	references := capture.References(objects)
	params, err := list(capture.ParamResources(references, objects))
	if err != nil {
		return nil, err
	}
	complete := description.Complete
	configMaps, err := list(capture.ConfigMaps())
	if err != nil {
		return nil, err
	}
	// The capture has a few of the ConfigMaps.
	description.Parameters = description.Complete[len(complete):]
	parts, err := list(capture.Reduced())
	if err != nil {
		return nil, err
	}
	description.Complete = complete
	configMaps = slices.DeleteFunc(configMaps, func(o map[string]any) bool { return !capture.WantsConfigMap(o, references) })
	for _, name := range description.Unread {
		fmt.Fprintln(c.streams.Err, "warning: "+name+" may not be read, so the capture lacks them")
	}
	return capture.Files(description, slices.Concat(objects, params, configMaps, capture.Reduce(parts)))
}

// staleFiles returns the files of the earlier capture in the directory that this one does not have. A directory with
// files that are not of a capture is refused.
func (c *captureRun) staleFiles(content map[string][]byte) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(c.to, capture.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		entries, err := os.ReadDir(c.to)
		if err == nil && len(entries) > 0 {
			return nil, fmt.Errorf("writing the capture: %s has files and no %s; specify another directory", c.to, capture.FileName)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the earlier capture: %w", err)
	}
	var earlier capture.Description
	if err := yaml.Unmarshal(text, &earlier); err != nil {
		return nil, fmt.Errorf("reading the earlier capture: %w", err)
	}
	var stale []string
	for _, name := range earlier.Files {
		if content[name] == nil && filepath.IsLocal(filepath.FromSlash(name)) {
			stale = append(stale, name)
		}
	}
	return stale, nil
}

// compareFiles prints how the capture differs from the directory.
func (c *captureRun) compareFiles(content map[string][]byte, stale []string) error {
	different := false
	for _, name := range slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(content)), stale))) {
		path := filepath.Join(c.to, filepath.FromSlash(name))
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading the earlier capture: %w", err)
		}
		if bytes.Equal(old, content[name]) {
			continue
		}
		different = true
		if _, err := c.streams.Out.Write(diff.Unified(path, []diff.Chunk{{Old: old, New: content[name]}})); err != nil {
			return fmt.Errorf("writing standard output: %w", err)
		}
	}
	if different {
		return errDifferent
	}
	return nil
}
