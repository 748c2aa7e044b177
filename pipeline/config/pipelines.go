// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/secret/tenant"
)

// PipelinesGit is a Git repository with files of RenderPipelines.
type PipelinesGit struct {
	// Name prefixes the names of its files in the status and in the metrics. It is required if several are
	// configured.
	Name string `mapstructure:"name"`
	// URL of the repository, as in a pipeline's source: https://, http:// or ssh://, or user@host:path, without
	// credentials.
	URL string `mapstructure:"url"`
	// Branch to follow; without it and Ref the one that the repository calls its HEAD.
	Branch string `mapstructure:"branch"`
	// Ref is the full name of another reference to follow, such as refs/tags/production.
	Ref string `mapstructure:"ref"`
	// Path of the directory in the repository; empty is its root. Every .yaml, .yml and .json file below it is read.
	Path string `mapstructure:"path"`
	// Secret names the secret to read it with, NAMESPACE/NAME or NAME in the directory of secrets. Its keys are those
	// of a pipeline's source.
	Secret string `mapstructure:"secret"`
	// Interval is how often the repository is looked at without an event.
	Interval time.Duration `mapstructure:"interval"`
	// Namespaces that its pipelines may be of; a pipeline that names none is of the only one. None means any, which
	// only the only repository may have. No other repository or tenant may have the same.
	Namespaces []string `mapstructure:"namespaces"`
	// Sources, Targets and Notifications are the URLs, or patterns with /* at the end, that its pipelines may read,
	// publish to and call. They require namespaces; those that are omitted set no bound.
	Sources       []string `mapstructure:"sources"`
	Targets       []string `mapstructure:"targets"`
	Notifications []string `mapstructure:"notifications"`
}

// RefName is the full name of what is followed, "" for the default branch.
func (g PipelinesGit) RefName() string {
	if g.Branch != "" {
		return "refs/heads/" + g.Branch
	}
	return g.Ref
}

// SecretName returns namespace and name of the secret, both empty if none is configured.
func (g PipelinesGit) SecretName() (namespace, name string) {
	return SecretName(g.Secret)
}

// ParsedTenants returns what the authors of the repository may do as the only tenant of it, none where it is not bound
// to namespaces.
func (g PipelinesGit) ParsedTenants() ([]tenant.Tenant, error) {
	if len(g.Namespaces) == 0 {
		return nil, nil
	}
	one, err := tenant.New(".", g.Namespaces, g.Sources, g.Targets, g.Notifications)
	return []tenant.Tenant{one}, err
}

// Repositories returns the Git repositories that pipelines are read from.
func (c *Config) Repositories() []PipelinesGit {
	if len(c.PipelinesGitList) > 0 {
		return c.PipelinesGitList
	}
	if c.PipelinesGit.URL != "" {
		return []PipelinesGit{c.PipelinesGit}
	}
	return nil
}

// PipelinesName is what the directory of pipelines is called beside repositories; empty where it is alone.
func (c *Config) PipelinesName() string {
	if len(c.Repositories()) == 0 && !c.Kubernetes.Pipelines {
		return ""
	}
	return "pipelines"
}

// Removals are about pipelines that are not in the directory or repository any more.
type Removals struct {
	// Delay is how long a pipeline must be missing before it is handled.
	Delay time.Duration `mapstructure:"delay"`
	// MaxShare is the percentage of all pipelines that may disappear at once. More wait for confirmation by a
	// person, and so does the last one. Fewer than four always pass.
	MaxShare int `mapstructure:"max_share"`
}

func (c *Config) validatePipelines(add addError) {
	g := c.PipelinesGit
	if g.URL == "" && (g.Branch != "" || g.Ref != "" || g.Path != "" || g.Secret != "" || g.Name != "" || len(g.Namespaces) > 0) {
		add("pipelines_git.url", "must be given where another key of pipelines_git is")
	}
	if len(c.PipelinesGitList) == 0 {
		g.validate("pipelines_git", add)
	} else if g.URL != "" {
		add("pipelines_git", "must not be given by flags or variables where the file has a list of repositories")
	}
	for i, g := range c.PipelinesGitList {
		at := fmt.Sprintf("pipelines_git[%d]", i)
		if g.URL == "" {
			add(at+".url", "must be given")
		}
		g.validate(at, add)
	}
	if c.Pipelines != "" && len(c.Repositories()) > 0 && len(c.Tenants) == 0 {
		add("pipelines", "must not be given together with pipelines_git, unless tenants bind the directory to namespaces")
	}
	if c.Pipelines != "" && c.Kubernetes.Pipelines && len(c.Tenants) == 0 {
		add("pipelines", "must not be given together with kubernetes.pipelines, unless tenants bind the directory to namespaces")
	}
	c.Kubernetes.validateKeys(add)
	c.validateOwners(add)
	if c.Removals.Delay < 0 {
		add("removals.delay", "must not be negative")
	}
	if c.Removals.MaxShare < 0 || c.Removals.MaxShare > 100 {
		add("removals.max_share", "must be between 0 and 100")
	}
}

// nameRule is what a repository of pipelines can be called.
var nameRule = lazyregexp.New(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// validate reports errors of one repository, whose key is at.
func (g PipelinesGit) validate(at string, add addError) {
	if g.Name != "" && !nameRule.MatchString(g.Name) {
		add(at+".name", "must be of small letters, digits and -, found %q", g.Name)
	}
	if g.URL != "" && v1alpha1.CheckGitURL(g.URL) != nil {
		// It is not quoted, as it could hold credentials.
		add(at+".url", "must start with https://, http:// or ssh://, or be of the form user@host:path, and hold no credentials; give them with %s.secret", at)
	}
	if g.Branch != "" && g.Ref != "" {
		add(at+".ref", "must not be given together with %s.branch", at)
	}
	if name := g.RefName(); name != "" && (!strings.HasPrefix(name, "refs/") || v1alpha1.CheckRefName(name) != nil) {
		add(at, "branch must be the name of a branch, or ref a reference in full such as refs/tags/production, found %q", name)
	}
	if clean := path.Clean(g.Path); g.Path != "" && (path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../")) {
		add(at+".path", "must be relative to the root of the repository and stay in it, found %q", g.Path)
	}
	if strings.Count(g.Secret, "/") > 1 {
		add(at+".secret", "must be NAMESPACE/NAME or NAME, found %q", g.Secret)
	}
	if g.Interval < time.Second {
		add(at+".interval", "must be at least 1s")
	}
	if len(g.Namespaces) == 0 && len(g.Sources)+len(g.Targets)+len(g.Notifications) > 0 {
		add(at+".namespaces", "must be given with sources, targets and notifications")
	}
	if _, err := g.ParsedTenants(); err != nil {
		add(at, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
}

// validateOwners reports origins that could both own the same pipeline.
func (c *Config) validateOwners(add addError) {
	all := c.Repositories()
	places := len(all)
	for _, also := range []bool{c.Pipelines != "", c.Kubernetes.Pipelines} {
		if also {
			places++
		}
	}
	several := places > 1
	if !several {
		if len(all) == 1 && len(all[0].Namespaces) > 0 && len(c.Tenants) > 0 {
			add("tenants", "must not be given together with the namespaces of pipelines_git")
		}
		return
	}
	if c.Pipelines == "" && len(c.Tenants) > 0 {
		add("tenants", "are for directories of pipelines or of the only repository; of several, each has namespaces")
	}
	names, namespaces := map[string]bool{c.PipelinesName(): true}, map[string]string{}
	for i, t := range c.Tenants {
		for _, namespace := range t.Namespaces {
			namespaces[namespace] = fmt.Sprintf("tenants[%d]", i)
		}
	}
	for i, g := range all {
		at := fmt.Sprintf("pipelines_git[%d]", i)
		if g.Name == "" || names[g.Name] {
			add(at+".name", "must be given, and be another one for each repository (pipelines is the directory)")
		}
		names[g.Name] = true
		if len(g.Namespaces) == 0 {
			add(at+".namespaces", "must be given where pipelines are read from several places")
		}
		for _, namespace := range g.Namespaces {
			if other := namespaces[namespace]; other != "" {
				add(at+".namespaces", "%s is of %s already: a pipeline has one place", namespace, other)
			}
			namespaces[namespace] = at
		}
	}
	c.Kubernetes.validatePlace(add, names, namespaces)
}
