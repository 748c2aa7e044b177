// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/prerig/prerig/pipeline/config"
)

// TestKubernetes has a cluster alone, and beside other places where no namespace has two.
func TestKubernetes(t *testing.T) {
	const tenants = "tenants: [{directory: a, namespaces: [a]}]\n"
	const repository = "pipelines_git: {name: r, url: 'https://git.example.com/r', namespaces: [r]}\n"
	for name, tc := range map[string]struct{ text, want string }{
		"alone":                      {"kubernetes: {pipelines: true}\n", ""},
		"with tenants":               {"kubernetes: {pipelines: true}\n" + tenants, ""},
		"some namespaces":            {"kubernetes: {pipelines: true, namespaces: [a, b], kubeconfig: k}\n", ""},
		"beside a repository":        {"kubernetes: {pipelines: true, namespaces: [a]}\n" + repository, ""},
		"beside a directory":         {"pipelines: p\nkubernetes: {pipelines: true, namespaces: [b]}\n" + tenants, ""},
		"a directory without bounds": {"pipelines: p\nkubernetes: {pipelines: true, namespaces: [b]}\n", "must not be given together with kubernetes.pipelines"},
		"all beside a repository":    {"kubernetes: {pipelines: true}\n" + repository, "kubernetes.namespaces: must be given"},
		"the same namespace":         {"kubernetes: {pipelines: true, namespaces: [r]}\n" + repository, "r is of pipelines_git[0] already"},
		"the cluster's name":         {"kubernetes: {pipelines: true, namespaces: [a]}\n" + strings.Replace(repository, "name: r", "name: kubernetes", 1), "must have another name"},
		"a key alone":                {"kubernetes: {kubeconfig: k}\n", "kubernetes.pipelines: must be true"},
		"an odd namespace":           {"kubernetes: {pipelines: true, namespaces: [A]}\n", "kubernetes.namespaces[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			c, file, err := loadText(t, tc.text)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if err == nil && !strings.HasPrefix(tc.text, "pipelines:") && c.Pipelines != "" {
				t.Errorf("the directory of pipelines is %q", c.Pipelines)
			}
			if err == nil && c.Kubernetes.Kubeconfig != "" && c.Kubernetes.Kubeconfig != filepath.Join(filepath.Dir(file), "k") {
				t.Errorf("the kubeconfig is %q", c.Kubernetes.Kubeconfig)
			}
		})
	}
}

// loadText reads a configuration from a file of its own.
func loadText(t *testing.T, text string) (c *config.Config, file string, err error) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "prerig.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.Flags(flags)
	if err := flags.Parse([]string{"--config", file}); err != nil {
		t.Fatal(err)
	}
	c, _, err = config.Load(flags)
	return c, file, err
}
