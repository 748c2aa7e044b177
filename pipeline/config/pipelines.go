// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// PipelinesGit is a Git repository with files of RenderPipelines, instead of a directory.
type PipelinesGit struct {
	// URL of the repository, as in a pipeline's source: https://, http:// or ssh://, or user@host:path, without credentials.
	URL string `mapstructure:"url"`
	// Branch to follow; without it and Ref the one that the repository calls its HEAD.
	Branch string `mapstructure:"branch"`
	// Ref is the full name of another reference to follow, such as refs/tags/production.
	Ref string `mapstructure:"ref"`
	// Path of the directory in the repository; empty is its root. Every .yaml, .yml and .json file below it is read.
	Path string `mapstructure:"path"`
	// Secret names the secret to read it with, NAMESPACE/NAME or NAME in the directory of secrets. Its keys are those of a
	// pipeline's source.
	Secret string `mapstructure:"secret"`
	// Interval is how often the repository is looked at without an event.
	Interval time.Duration `mapstructure:"interval"`
}

// RefName is the full name of what is followed, "" for the default branch.
func (g PipelinesGit) RefName() string {
	if g.Branch != "" {
		return "refs/heads/" + g.Branch
	}
	return g.Ref
}

// SecretName returns namespace and name of the secret, both empty where there is none.
func (g PipelinesGit) SecretName() (namespace, name string) {
	if namespace, name, ok := strings.Cut(g.Secret, "/"); ok {
		return namespace, name
	}
	return "", g.Secret
}

// Removals are about pipelines that are not in the directory or repository any more.
type Removals struct {
	// Delay is how long a pipeline must be gone before anything is done about it.
	Delay time.Duration `mapstructure:"delay"`
	// MaxShare is how many percent of all pipelines may go at once. More wait for somebody to confirm it, and so does the
	// last one. Fewer than four always pass.
	MaxShare int `mapstructure:"max_share"`
}

func (c *Config) validatePipelines(add func(key, format string, args ...any)) {
	g := c.PipelinesGit
	switch {
	case g.URL == "":
		if g.Branch != "" || g.Ref != "" || g.Path != "" || g.Secret != "" {
			add("pipelines_git.url", "must be given where another key of pipelines_git is")
		}
	case c.Pipelines != "":
		add("pipelines", "must not be given together with pipelines_git.url: pipelines are read from one place")
	case v1alpha1.CheckGitURL(g.URL) != nil:
		// It is not quoted, as it could hold credentials.
		add("pipelines_git.url", "must start with https://, http:// or ssh://, or be of the form user@host:path, and hold no credentials; give them with pipelines_git.secret")
	}
	if g.Branch != "" && g.Ref != "" {
		add("pipelines_git.ref", "must not be given together with pipelines_git.branch")
	}
	if name := g.RefName(); name != "" && (!strings.HasPrefix(name, "refs/") || v1alpha1.CheckRefName(name) != nil) {
		add("pipelines_git", "branch must be the name of a branch, or ref a reference in full such as refs/tags/production, found %q", name)
	}
	if clean := path.Clean(g.Path); g.Path != "" && (path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../")) {
		add("pipelines_git.path", "must be relative to the root of the repository and stay in it, found %q", g.Path)
	}
	if strings.Count(g.Secret, "/") > 1 {
		add("pipelines_git.secret", "must be NAMESPACE/NAME or NAME, found %q", g.Secret)
	}
	if g.Interval < time.Second {
		add("pipelines_git.interval", "must be at least 1s")
	}
	if c.Removals.Delay < 0 {
		add("removals.delay", "must not be negative")
	}
	if c.Removals.MaxShare < 0 || c.Removals.MaxShare > 100 {
		add("removals.max_share", "must be between 0 and 100")
	}
}
