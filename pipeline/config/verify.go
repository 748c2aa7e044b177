// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// Verify is a cluster whose pods are compared with what was committed.
type Verify struct {
	// Name distinguishes it from others, in metrics and notifications.
	Name string `mapstructure:"name"`
	// Kubeconfig is the file with the connection to the cluster, Context one of its contexts. Without a file, a
	// daemon in a cluster uses its own service account.
	Kubeconfig string `mapstructure:"kubeconfig"`
	Context    string `mapstructure:"context"`
	// URL of the repository and Branch that the cluster is to have, Paths the directories in it.
	URL    string   `mapstructure:"url"`
	Branch string   `mapstructure:"branch"`
	Paths  []string `mapstructure:"paths"`
	// Secret names the secret to read it with, NAMESPACE/NAME or NAME in the directory of secrets.
	Secret string `mapstructure:"secret"`
	// DefaultNamespace is the one of committed objects that name none; default where it is left out.
	DefaultNamespace string `mapstructure:"default_namespace"`
	// Namespaces whose pods are compared; none means those that workloads are committed for.
	Namespaces []string `mapstructure:"namespaces"`
	// Ignore are patterns of fields that may differ.
	Ignore []string `mapstructure:"ignore"`
	// Interval is how long to wait between two looks; 5m where it is left out.
	Interval time.Duration `mapstructure:"interval"`
	// Notify receives CloudEvents when the set of wrong pods changes.
	Notify VerifyNotify `mapstructure:"notify"`
}

// VerifyNotify is a receiver of CloudEvents.
type VerifyNotify struct {
	URL string `mapstructure:"url"`
	// Secret names the secret whose key token signs them.
	Secret string `mapstructure:"secret"`
}

// SecretName splits the name of a secret: namespace and name, both empty if the secret is not set.
func SecretName(text string) (namespace, name string) {
	if namespace, name, ok := strings.Cut(text, "/"); ok {
		return namespace, name
	}
	return "", text
}

const (
	verifyInterval         = 5 * time.Minute
	shortestVerifyInterval = 10 * time.Second
)

// Every is the interval with its default.
func (v Verify) Every() time.Duration {
	if v.Interval == 0 {
		return verifyInterval
	}
	return v.Interval
}

func validateVerify(clusters []Verify, add addError) {
	names := map[string]bool{}
	for i, v := range clusters {
		at := fmt.Sprintf("verify[%d]", i)
		switch {
		case v.Name == "" || strings.ContainsFunc(v.Name, notInStreamNames):
			add(at+".name", "must be of letters, digits, - and _, found %q", v.Name)
		case names[v.Name]:
			add(at+".name", "is that of another cluster, %q", v.Name)
		}
		names[v.Name] = true
		if v1alpha1.CheckGitURL(v.URL) != nil {
			// It is not quoted, as it could hold credentials.
			add(at+".url", "must start with https://, http:// or ssh://, or be of the form user@host:path, and hold no credentials; give them with %s.secret", at)
		}
		if v.Interval != 0 && v.Interval < shortestVerifyInterval {
			add(at+".interval", "must be at least %s, found %s", shortestVerifyInterval, v.Interval)
		}
		if !absentOrHTTP(v.Notify.URL) {
			add(at+".notify.url", "must be an http:// or https:// URL without credentials")
		}
		if v.Notify.URL == "" && v.Notify.Secret != "" {
			add(at+".notify.url", "must be given where notify.secret is")
		}
		if slices.ContainsFunc(v.Paths, func(p string) bool { return path.IsAbs(p) || strings.HasPrefix(path.Clean(p), "..") }) {
			add(at+".paths", "must be directories in the repository")
		}
	}
}
