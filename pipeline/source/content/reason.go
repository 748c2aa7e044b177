// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package content distinguishes Kubernetes objects from the other files and documents of a repository: charts,
// kustomizations, patches, templates, playbooks, data. Commands over files and builds of plain manifests skip the same.
package content

import (
	"cmp"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/result"
)

// Reason is why a file or a document of a repository is skipped, and what to do instead.
type Reason struct {
	// One and Many name what is skipped.
	One, Many string
	// Instead is what to do, or the reason no action is needed. Build is the same where the directory is built by a
	// pipeline, if that differs.
	Instead, Build string
	// Severity is that of the line about skipped files, Info if empty: Warning if a workload may be missed.
	Severity result.Severity
	// Copied reports whether the file belongs to the manifests around it, and is copied with them.
	Copied bool
}

// InjectAdvice is what to do instead of injecting a file.
func (r *Reason) InjectAdvice() string { return r.Instead }

// BuildAdvice is what to do instead of publishing a file.
func (r *Reason) BuildAdvice() string {
	if r.Build != "" {
		return r.Build
	}
	return r.Instead
}

// The reasons to skip, in the order in which they are reported.
var (
	HelmTemplate   = &Reason{One: "Helm template", Many: "Helm templates", Instead: "render the chart with helm template and inject the output, or make prerig inject Helm's post-renderer", Build: "a pipeline with build.helm renders a chart"}
	Template       = &Reason{One: "template", Many: "templates", Instead: "render templates first, and inject the output", Build: "commit what the template renders to"}
	Patch          = &Reason{One: "patch or input file of a kustomization", Many: "patches or input files of kustomizations", Instead: "inject the resources that they change, or the output of kustomize build", Build: "a pipeline with build.path renders a kustomization", Copied: true}
	Kustomization  = &Reason{One: "kustomization", Many: "kustomizations", Instead: "inject the resources, or the output of kustomize build", Build: "a pipeline with build.path renders a kustomization", Copied: true}
	misnamed       = &Reason{One: "kustomization with a name that kustomize does not read", Many: "kustomizations with names that kustomize does not read", Instead: "rename it to kustomization.yaml", Severity: result.Warning}
	Unfilled       = &Reason{One: "file with a value that a later build fills in", Many: "files with values that a later build fills in", Instead: "inject the output of that build", Severity: result.Warning, Copied: true}
	ObjectList     = &Reason{One: "plain list of objects", Many: "plain lists of objects", Instead: "kubectl does not read such lists; make it the items of an object of kind List", Severity: result.Warning}
	Fragment       = &Reason{One: "workload without containers", Many: "workloads without containers", Instead: "it defines no pod, and the API server rejects it; patches and expected test results look like this", Severity: result.Warning}
	ResourceList   = &Reason{One: "ResourceList", Many: "ResourceLists", Instead: "it is the input of a function; to work on it by its functionConfig, specify it alone", Build: "it is the input of a function"}
	list           = &Reason{One: "file with a list", Many: "files with lists", Instead: "a list, such as an Ansible playbook, is not a Kubernetes object"}
	jsonLines      = &Reason{One: "file of JSON lines", Many: "files of JSON lines", Instead: "JSON lines contain no Kubernetes objects"}
	jsonComments   = &Reason{One: "JSON file with comments", Many: "JSON files with comments", Instead: "Kubernetes objects are not written this way"}
	compose        = &Reason{One: "Docker Compose file", Many: "Docker Compose files", Instead: "only Kubernetes objects can be injected", Build: "only Kubernetes objects are published"}
	openAPI        = &Reason{One: "OpenAPI document", Many: "OpenAPI documents", Instead: "it describes an API, not an object"}
	rules          = &Reason{One: "file of Prometheus rules", Many: "files of Prometheus rules", Instead: "they are for Prometheus, not Kubernetes"}
	istioValues    = &Reason{One: "file with values of Istio's chart", Many: "files with values of Istio's chart", Instead: "import the chart with them: prerig import CHART --values FILE"}
	meshConfig     = &Reason{One: "MeshConfig of Istio", Many: "MeshConfigs of Istio", Instead: "give it to prerig import with --meshConfigFile"}
	Plain          = &Reason{One: "file without apiVersion and kind", Many: "files without apiVersion and kind", Instead: "every Kubernetes object has both"}
	notText        = &Reason{One: "file that is not text", Many: "files that are not text", Instead: "manifests are UTF-8 text"}
	unreadable     = &Reason{One: "file that is neither YAML nor JSON", Many: "files that are neither YAML nor JSON", Instead: "its apiVersion and kind cannot be read", Severity: result.Warning}
	reasonsInOrder = []*Reason{HelmTemplate, Template, Unfilled, misnamed, Kustomization, Patch, ResourceList, Fragment, ObjectList, list, jsonLines, jsonComments, compose, openAPI, rules, istioValues, meshConfig, Plain, notText, unreadable}
)

// IsObject reports whether a text that is skipped for this reason may be an object that cannot be read as it is.
func (r *Reason) IsObject(text string) bool {
	switch r {
	case ObjectList, unreadable:
		return true
	case Template, Fragment:
		return LooksLikeObject(text)
	}
	return false
}

// IsWhole reports whether what is skipped for this reason is an object, with apiVersion and kind, that a build
// publishes as it is.
func (r *Reason) IsWhole() bool { return r == Fragment || r == Unfilled }

// Skipped is something that was skipped.
type Skipped struct {
	Reason *Reason
	// Place is the path of a file, or that of a directory, with a slash at its end, for all that is below it.
	Place string
	// Why is what is particular to this place, which then has a line of its own; nil otherwise.
	Why error
}

// Notes reports what was skipped, one line for each reason. advice returns what to do instead.
func Notes(skipped []Skipped, advice func(*Reason) string) result.Results {
	var notes result.Results
	places := map[*Reason][]string{}
	order := slices.Clone(reasonsInOrder)
	for _, s := range skipped {
		if s.Why != nil {
			notes = append(notes, result.Result{Severity: cmp.Or(s.Reason.Severity, result.Info), Message: fmt.Sprintf("%v; skipped: %s", s.Why, advice(s.Reason))})
			continue
		}
		if len(places[s.Reason]) == 0 && !slices.Contains(reasonsInOrder, s.Reason) {
			order = append(order, s.Reason)
		}
		places[s.Reason] = append(places[s.Reason], s.Place)
	}
	for _, r := range order {
		if len(places[r]) > 0 {
			notes = append(notes, r.note(places[r], advice(r)))
		}
	}
	return notes
}

// note is the line about what was skipped for this reason.
func (r *Reason) note(places []string, advice string) result.Result {
	what, verb := r.Many, "were"
	if len(places) == 1 {
		what, verb = r.One, "was"
	}
	return result.Result{Severity: cmp.Or(r.Severity, result.Info),
		Message: fmt.Sprintf("%d %s%s %s skipped; %s", len(places), what, Places(places), verb, advice)}
}

// Places describes places in a few words that follow their number.
func Places(places []string) string {
	unique := slices.Clone(places)
	slices.Sort(unique)
	unique = slices.Compact(unique)
	if len(unique) == 1 {
		if strings.HasSuffix(unique[0], "/") {
			return " below " + unique[0]
		}
		return " (" + unique[0] + ")"
	}
	if common := commonDirectory(unique); common != "" {
		return " below " + common + "/"
	}
	if len(unique) == 2 {
		return " (" + unique[0] + " and " + unique[1] + ")"
	}
	return fmt.Sprintf(" (%s, %s and others)", unique[0], unique[1])
}

// commonDirectory returns the directory that all places are in; empty where that is the current one, or none.
func commonDirectory(sorted []string) string {
	common := path.Dir(filepath.ToSlash(sorted[0]))
	for _, place := range sorted[1:] {
		for common != "." && common != "/" && !strings.HasPrefix(filepath.ToSlash(place), common+"/") {
			common = path.Dir(common)
		}
	}
	if common == "." || common == "/" {
		return ""
	}
	return common
}
