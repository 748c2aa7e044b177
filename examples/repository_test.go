// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// actionStep is a step of a workflow or of a composite action, as far as the tests read it.
type actionStep struct {
	Uses string         `json:"uses"`
	With map[string]any `json:"with"`
}

// workflow is a workflow of GitHub, as far as the tests read it.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Steps []actionStep `json:"steps"`
	} `json:"jobs"`
}

// pinned is an action that is fixed to a commit.
var pinned = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+@[0-9a-f]{40}$`)

// TestWorkflowsArePinned checks that every action is fixed to a commit, that every workflow starts with read access only, and that
// no checkout leaves the token in the working tree.
func TestWorkflowsArePinned(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*")
	if err != nil || len(files) < 5 {
		t.Fatalf("found only the workflows %v, %v", files, err)
	}
	for _, file := range files {
		var w workflow
		if err := yaml.Unmarshal(read(t, file), &w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
			t.Errorf("%s: the permissions of the workflow are %v, want contents: read alone", file, w.Permissions)
		}
		for _, job := range w.Jobs {
			checkSteps(t, file, job.Steps)
		}
	}
	var composite struct {
		Runs struct {
			Steps []actionStep `json:"steps"`
		} `json:"runs"`
	}
	if err := yaml.Unmarshal(read(t, "../action.yml"), &composite); err != nil {
		t.Fatal(err)
	}
	checkSteps(t, "../action.yml", composite.Runs.Steps)
}

func checkSteps(t *testing.T, file string, steps []actionStep) {
	t.Helper()
	for _, s := range steps {
		if s.Uses == "" || s.Uses == "./" {
			continue
		}
		if !pinned.MatchString(s.Uses) {
			t.Errorf("%s: the action %s is not fixed to a commit", file, s.Uses)
		}
		if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != false {
			t.Errorf("%s: a checkout keeps the token", file)
		}
	}
}

// TestDependabotKnowsEveryModule compares the directories of dependabot.yml with the modules of the repository.
func TestDependabotKnowsEveryModule(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"`
			Directories []string `json:"directories"`
		} `json:"updates"`
	}
	if err := yaml.Unmarshal(read(t, "../.github/dependabot.yml"), &config); err != nil {
		t.Fatal(err)
	}
	var listed, modules []string
	for _, update := range config.Updates {
		if update.Ecosystem == "gomod" {
			listed = append(listed, update.Directories...)
		}
	}
	for name := range strings.FieldsSeq(git(t, "..", "ls-files", "-co", "--exclude-standard", "--", "go.mod", "**/go.mod")) {
		modules = append(modules, path.Join("/", path.Dir(name)))
	}
	slices.Sort(listed)
	slices.Sort(modules)
	if diff := cmp.Diff(modules, listed); diff != "" {
		t.Errorf("dependabot.yml has other modules than the repository (-repository +listed):\n%s", diff)
	}
}

// insights is security-insights.yml with the fields that version 2 of its specification requires.
type insights struct {
	Header struct {
		SchemaVersion string `json:"schema-version"`
		LastUpdated   string `json:"last-updated"`
		LastReviewed  string `json:"last-reviewed"`
		URL           string `json:"url"`
	} `json:"header"`
	Project struct {
		Name           string           `json:"name"`
		Administrators []map[string]any `json:"administrators"`
		Repositories   []map[string]any `json:"repositories"`
		Reporting      *struct {
			Accepted  *bool `json:"reports-accepted"`
			BugBounty *bool `json:"bug-bounty-available"`
		} `json:"vulnerability-reporting"`
	} `json:"project"`
	Repository struct {
		URL              string           `json:"url"`
		Status           string           `json:"status"`
		Changes          *bool            `json:"accepts-change-request"`
		AutomatedChanges *bool            `json:"accepts-automated-change-request"`
		CoreTeam         []map[string]any `json:"core-team"`
		License          struct {
			URL        string `json:"url"`
			Expression string `json:"expression"`
		} `json:"license"`
		Security struct {
			Assessments struct {
				Self struct {
					Comment string `json:"comment"`
				} `json:"self"`
			} `json:"assessments"`
		} `json:"security"`
	} `json:"repository"`
}

// TestSecurityInsights checks the required fields of security-insights.yml, and that its links to the repository lead to files.
func TestSecurityInsights(t *testing.T) {
	text := read(t, "../security-insights.yml")
	var s insights
	if err := yaml.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	reporting := s.Project.Reporting
	for field, present := range map[string]bool{
		"header.schema-version":           strings.HasPrefix(s.Header.SchemaVersion, "2."),
		"header.last-updated":             isDate(s.Header.LastUpdated),
		"header.last-reviewed":            isDate(s.Header.LastReviewed),
		"header.url":                      strings.HasSuffix(s.Header.URL, "/main/security-insights.yml"),
		"project.name":                    s.Project.Name != "",
		"project.administrators":          isComplete(s.Project.Administrators, "name", "primary"),
		"project.repositories":            isComplete(s.Project.Repositories, "name", "comment", "url"),
		"project.vulnerability-reporting": reporting != nil && reporting.Accepted != nil && reporting.BugBounty != nil,
		"repository.url":                  s.Repository.URL == repository,
		"repository.status":               s.Repository.Status == "active",
		"repository.accepts-…":            s.Repository.Changes != nil && s.Repository.AutomatedChanges != nil,
		"repository.core-team":            isComplete(s.Repository.CoreTeam, "name", "primary"),
		"repository.license":              s.Repository.License.URL != "" && s.Repository.License.Expression == "Apache-2.0",
		"repository.security.assessments": s.Repository.Security.Assessments.Self.Comment != "",
	} {
		if !present {
			t.Errorf("%s is missing or wrong", field)
		}
	}
	followed := 0
	for _, found := range regexp.MustCompile(regexp.QuoteMeta(repository)+`/blob/main/(\S+)`).FindAllStringSubmatch(string(text), -1) {
		followed++
		if err := follow(t, ".", found[1]); err != nil {
			t.Error(err)
		}
	}
	if followed < 10 {
		t.Errorf("followed only %d links", followed)
	}
}

func isDate(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err == nil
}

// isComplete reports whether entries exist and all of them have the keys.
func isComplete(entries []map[string]any, keys ...string) bool {
	for _, entry := range entries {
		for _, key := range keys {
			if entry[key] == nil {
				return false
			}
		}
	}
	return len(entries) > 0
}

// TestLinksOfLLMs follows the links of llms.txt.
func TestLinksOfLLMs(t *testing.T) {
	links := link.FindAllStringSubmatch(readText(t, "../llms.txt"), -1)
	if len(links) < 20 {
		t.Errorf("found only %d links", len(links))
	}
	for _, found := range links {
		if err := follow(t, "llms.txt", found[1]); err != nil {
			t.Error(err)
		}
	}
}
