// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/internal/corpustest"
)

// TestCorpus imports the configuration of real Istio versions and injects real workloads with it. The three files of
// istioctl kube-inject give the same; a second run changes nothing; what is not a workload keeps its bytes.
func TestCorpus(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(corpustest.Dir(t), "*", "configmaps.yaml"))
	must(t, err)
	if len(paths) == 0 {
		t.Skip("the corpus has no configmaps.yaml")
	}
	for _, path := range paths {
		version := filepath.Dir(path)
		t.Run(filepath.Base(version), func(t *testing.T) {
			t.Parallel()
			policy := filepath.Join(t.TempDir(), "policy.yaml")
			// Their tags are no versions.
			ok(t, "", "import", "--istio-version", filepath.Base(version), "--to", policy, path)
			saved := append(saveFiles(t, path), "--istio-version", filepath.Base(version))
			inputs, err := filepath.Glob(filepath.Join(version, "inputs", "*.yaml"))
			must(t, err)
			good := injectCorpus(t, inputs, policy)
			checkCorpus(t, good, policy, saved)
			injected := len(good)
			t.Logf("%d of %d inputs could be injected", injected, len(inputs))
			if injected < len(inputs)*3/4 {
				t.Error("that is too few: only some inputs are there for their errors")
			}
		})
	}
}

// injectCorpus injects file by file, as some are there for their errors, and gives the output of the others by input.
func injectCorpus(t *testing.T, inputs []string, policy string) map[string]string {
	t.Helper()
	good := map[string]string{}
	for _, input := range inputs {
		name := filepath.Base(input)
		code, once, stderr := command(t, "", "inject", "-n", "default", "-p", policy, input)
		if code == ExitOK {
			sameBytes(t, name, readFile(t, input), once)
			good[input] = once
			continue
		}
		if once != "" {
			t.Errorf("%s: an error, and yet output: %s", name, stderr)
		}
		t.Logf("%s: %s", name, lastError(stderr))
	}
	return good
}

// checkCorpus compares with what the files of kube-inject give, and with a second run.
func checkCorpus(t *testing.T, good map[string]string, policy string, saved []string) {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"inject", "-n", "default", "--to", dir}, saved...)
	ok(t, "", append(args, slices.Sorted(maps.Keys(good))...)...)
	for input, once := range good {
		if d := cmp.Diff(once, readFile(t, filepath.Join(dir, filepath.Base(input)))); d != "" {
			t.Errorf("%s: the files of kube-inject give something else (-policy +files):\n%s", filepath.Base(input), d)
		}
	}
	if code, patch, stderr := command(t, "", "inject", "-n", "default", "-p", policy, "--check", "--diff", dir); code != ExitOK {
		t.Errorf("a second run changes something (exit code %d):\n%s\n%s", code, patch, stderr)
	}
}

// lastError is the last line that is an error.
func lastError(stderr string) string {
	last := ""
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "error") {
			last = strings.TrimSpace(line)
		}
	}
	return last
}

// saveFiles does what people do before they call kube-inject: kubectl get configmap -o jsonpath='{.data.config}' and so on.
func saveFiles(t *testing.T, configMaps string) []string {
	t.Helper()
	file, err := manifest.Parse(configMaps, []byte(readFile(t, configMaps)))
	must(t, err)
	data := map[string]string{}
	for _, d := range file.Docs {
		var cm struct{ Data map[string]string }
		must(t, yaml.Unmarshal(d.Raw(), &cm))
		for k, v := range cm.Data {
			data[k] = v
		}
	}
	dir := t.TempDir()
	var args []string
	for _, f := range []struct{ flag, key string }{{"--injectConfigFile", "config"}, {"--valuesFile", "values"}, {"--meshConfigFile", "mesh"}} {
		if data[f.key] == "" {
			continue
		}
		path := filepath.Join(dir, f.key)
		must(t, os.WriteFile(path, []byte(data[f.key]), 0o644))
		args = append(args, f.flag, path)
	}
	return args
}

// sameBytes checks that the documents are the same ones in the same order, and that those which hold no pod are unchanged.
func sameBytes(t *testing.T, name, before, after string) {
	t.Helper()
	registry, err := workload.NewRegistry(nil)
	must(t, err)
	old, err := manifest.Parse(name, []byte(before))
	must(t, err)
	new, err := manifest.Parse(name, []byte(after))
	must(t, err)
	if len(old.Docs) != len(new.Docs) {
		t.Errorf("%s: %d documents became %d", name, len(old.Docs), len(new.Docs))
		return
	}
	for i, d := range old.Docs {
		meta, sure := d.Peek()
		if now, _ := new.Docs[i].Peek(); now != meta {
			t.Errorf("%s: document %d was %v and is %v", name, i, meta, now)
		}
		if _, pods := registry.Lookup(meta.APIVersion, meta.Kind); !sure || pods || meta.Kind == "List" {
			continue
		}
		if !bytes.Equal(d.Raw(), new.Docs[i].Raw()) {
			t.Errorf("%s: %s %s changed", name, meta.Kind, meta.Name)
		}
	}
}
