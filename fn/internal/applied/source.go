// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package applied

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/internal/conformance"
	"github.com/prerig/prerig/fn/internal/oracle"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/policies"
)

// batchSize is how many random workloads are injected together.
const batchSize = 250

// yieldIstioCorpus yields the test cases of Istio.
func yieldIstioCorpus(dir string, yield func(batch) error) error {
	versions, err := conformance.Load(dir)
	if err != nil {
		return err
	}
	for _, v := range versions {
		for _, c := range v.Cases {
			text, err := c.Text(c.Input)
			if err != nil {
				return err
			}
			items, err := itemsOf(c.Input, text)
			if err != nil {
				continue // some cases are broken files
			}
			b := batch{name: c.ID(), items: items, policies: func(next bool) ([]*v1alpha1.InjectionPolicy, error) {
				policy, err := c.Policy()
				if err != nil {
					return nil, err
				}
				if next {
					upgradeSidecarVersions(policy)
				}
				return []*v1alpha1.InjectionPolicy{policy}, nil
			}}
			if err := yield(b); err != nil {
				return err
			}
		}
	}
	return nil
}

func itemsOf(path string, text []byte) ([]fn.Item, error) {
	file, err := manifest.Parse(path, text)
	if err != nil {
		return nil, err
	}
	var items []fn.Item
	for i, doc := range file.Docs {
		items = append(items, fn.Item{Doc: doc, Path: path, Index: i})
	}
	return items, nil
}

// yieldExampleManifests yields the manifests of the examples, with the policies that come with Prerig.
func yieldExampleManifests(dir string, yield func(batch) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == ".expected" || d.Name() == "templates") {
			return filepath.SkipDir // what commands print, and templates of charts
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		items, err := itemsOf(path, text)
		if err != nil {
			return nil // some examples are broken files
		}
		for _, name := range policies.Names() {
			if err := yield(builtInBatch(path, []string{name}, items)); err != nil {
				return err
			}
		}
		return nil
	})
}

func builtInBatch(name string, names []string, items []fn.Item) batch {
	return batch{name: name + " with " + strings.Join(names, ", "), items: items, policies: func(next bool) ([]*v1alpha1.InjectionPolicy, error) {
		return builtIn(names, next)
	}}
}

// yieldRandomWorkloads yields random workloads for the built-in policies, alone and in pairs.
func yieldRandomWorkloads(seed uint64, count int, yield func(batch) error) error {
	var sets [][]string
	for i, a := range policies.Names() {
		sets = append(sets, []string{a})
		for _, b := range policies.Names()[i+1:] {
			sets = append(sets, []string{a, b})
		}
	}
	for n, set := range sets {
		if err := yieldRandomForPolicies(seed, shareOfCount(count, n, len(sets)), set, yield); err != nil {
			return err
		}
	}
	return nil
}

// shareOfCount returns the part of a count that one of several gets.
func shareOfCount(count, n, of int) int {
	part := count / of
	if n < count%of {
		part++
	}
	return part
}

func yieldRandomForPolicies(seed uint64, count int, set []string, yield func(batch) error) error {
	annotations := map[string]string{}
	for _, name := range set {
		maps.Copy(annotations, triggers[name])
	}
	around, err := itemsOf("around.yaml", []byte(surroundings))
	if err != nil {
		return err
	}
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		return err
	}
	for from := 0; from < count; from += batchSize {
		var items []fn.Item
		for n := from; n < min(count, from+batchSize); n++ {
			object, err := withSidecarAnnotations(registry, oracle.Generate(seed, strings.Join(set, "+"), n), annotations)
			if err != nil {
				return err
			}
			item, err := itemOf(object, n)
			if err != nil {
				return err
			}
			items = append(items, item)
		}
		name := fmt.Sprintf("random %d/%s/%d", seed, strings.Join(set, "+"), from)
		if err := yield(builtInBatch(name, set, slices.Concat(items, around))); err != nil {
			return err
		}
	}
	return nil
}

// withSidecarAnnotations returns an object whose pods ask for sidecars, as plain values.
func withSidecarAnnotations(registry *workload.Registry, object map[string]any, annotations map[string]string) (map[string]any, error) {
	text, err := yaml.Marshal(object)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := yaml.Unmarshal(text, &out); err != nil {
		return nil, err
	}
	templates, err := registry.Templates(out)
	if err != nil {
		return out, nil // the generator also makes what is no workload
	}
	for _, t := range templates {
		metadata, _ := t.Pod["metadata"].(map[string]any)
		metadata = maps.Clone(metadata)
		if metadata == nil {
			metadata = map[string]any{}
		}
		have, _ := metadata["annotations"].(map[string]any)
		have = maps.Clone(have)
		if have == nil {
			have = map[string]any{}
		}
		for key, value := range annotations {
			have[key] = value
		}
		metadata["annotations"] = have
		pod := maps.Clone(t.Pod)
		pod["metadata"] = metadata
		out = t.Write(out, pod)
	}
	return out, nil
}

func itemOf(object map[string]any, index int) (fn.Item, error) {
	text, err := yaml.Marshal(object)
	if err != nil {
		return fn.Item{}, fmt.Errorf("writing a workload: %w", err)
	}
	file, err := manifest.Parse("", text)
	if err != nil || len(file.Docs) != 1 {
		return fn.Item{}, fmt.Errorf("reading a workload again: %w", err)
	}
	return fn.Item{Doc: file.Docs[0], Path: "workloads.yaml", Index: index}, nil
}

// yieldInstalledPolicies yields random workloads for the policies of Istio's installations, which the command charts
// makes.
func yieldInstalledPolicies(ctx context.Context, o Options, yield func(batch) error) error {
	installations, err := namedInstallations(o.Installations)
	if err != nil {
		return err
	}
	found, err := oracle.Policies(ctx, oracle.Options{Tools: oracle.Tools{Charts: o.Charts}, Version: "1.31.0-rc.0", Installations: installations})
	if err != nil {
		return err
	}
	for n, one := range found {
		count := shareOfCount(o.Count, n, len(found))
		for from := 0; from < count; from += batchSize {
			items, err := installedItems(o.Seed, one, from, min(count, from+batchSize))
			if err != nil {
				return err
			}
			b := batch{name: fmt.Sprintf("random %d/%s/%d", o.Seed, one.Name, from), items: items}
			b.policies = func(next bool) ([]*v1alpha1.InjectionPolicy, error) {
				policy, err := one.Policy()
				if err != nil {
					return nil, err
				}
				policy.Spec.Jobs = "" // the oracle's follow the policy
				if next {
					upgradeSidecarVersions(policy)
				}
				return []*v1alpha1.InjectionPolicy{policy}, nil
			}
			if err := yield(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// namedInstallations returns the installations of the oracle with the names, or all of them without a name.
func namedInstallations(names []string) ([]oracle.Installation, error) {
	all := oracle.Installations()
	if len(names) == 0 {
		return all, nil
	}
	var out []oracle.Installation
	for _, name := range names {
		i := slices.IndexFunc(all, func(one oracle.Installation) bool { return one.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("selecting the installation %q: there is none", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

func installedItems(seed uint64, one oracle.InstalledPolicy, from, to int) ([]fn.Item, error) {
	var items []fn.Item
	for n := from; n < to; n++ {
		item, err := itemOf(oracle.Generate(seed, one.Name, n), n)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	for i, p := range one.ProxyConfigs {
		item, err := itemOf(p.Object(), to+i)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	return items, nil
}
