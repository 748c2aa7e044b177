// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/files"
)

// reasonToSkip describes an object that holds no workload to inject into, and what to do instead.
type passReason struct {
	one, many string
	// instead is what to do, or the reason no action is needed.
	instead string
	// severity is that of the line about skipped objects: Warning if a workload may be missed.
	severity result.Severity
	// copied reports whether the file belongs to the manifests around it, and is copied with them.
	copied bool
}

// The reasons to skip, in the order in which they are reported.
var (
	helmTemplate   = &passReason{one: "Helm template", many: "Helm templates", instead: "render the chart with helm template and inject the output, or make prerig inject Helm's post-renderer"}
	template       = &passReason{one: "template", many: "templates", instead: "render templates first, and inject the output"}
	patch          = &passReason{one: "patch or input file of a kustomization", many: "patches or input files of kustomizations", instead: "inject the resources that they change, or the output of kustomize build", copied: true}
	kustomization  = &passReason{one: "kustomization", many: "kustomizations", instead: "inject the resources, or the output of kustomize build", copied: true}
	objectList     = &passReason{one: "plain list of objects", many: "plain lists of objects", instead: "kubectl does not read such lists; make it the items of an object of kind List", severity: result.Warning}
	fragment       = &passReason{one: "workload without containers", many: "workloads without containers", instead: "it defines no pod, and the API server rejects it; patches and expected test results look like this", severity: result.Warning}
	resourceList   = &passReason{one: "ResourceList", many: "ResourceLists", instead: "it is the input of a function; to work on it by its functionConfig, specify it alone"}
	list           = &passReason{one: "file with a list", many: "files with lists", instead: "a list, such as an Ansible playbook, is not a Kubernetes object"}
	jsonLines      = &passReason{one: "file of JSON lines", many: "files of JSON lines", instead: "JSON lines contain no Kubernetes objects"}
	jsonComments   = &passReason{one: "JSON file with comments", many: "JSON files with comments", instead: "Kubernetes objects are not written this way"}
	compose        = &passReason{one: "Docker Compose file", many: "Docker Compose files", instead: "only Kubernetes objects can be injected"}
	openAPI        = &passReason{one: "OpenAPI document", many: "OpenAPI documents", instead: "it describes an API, not an object"}
	rules          = &passReason{one: "file of Prometheus rules", many: "files of Prometheus rules", instead: "they are for Prometheus, not Kubernetes"}
	plain          = &passReason{one: "file without apiVersion and kind", many: "files without apiVersion and kind", instead: "every Kubernetes object has both"}
	notText        = &passReason{one: "file that is not text", many: "files that are not text", instead: "manifests are UTF-8 text"}
	unreadable     = &passReason{one: "file that is neither YAML nor JSON", many: "files that are neither YAML nor JSON", instead: "its apiVersion and kind cannot be read", severity: result.Warning}
	dangling       = &passReason{one: "broken link", many: "broken links", instead: "their targets do not exist", severity: result.Warning}
	linked         = &passReason{one: "link to a directory", many: "links to directories", instead: "links to directories are not followed; specify the directories themselves"}
	specialFile    = &passReason{one: "named pipe, device or socket", many: "named pipes, devices or sockets", instead: "only regular files are read in a directory"}
	dependencies   = &passReason{one: "directory of downloaded packages", many: "directories of downloaded packages", instead: "to read one, specify it"}
	results        = &passReason{one: "directory of results", many: "directories of results", instead: "results are not read again"}
	large          = &passReason{one: "file", many: "files", instead: fmt.Sprintf("files larger than %d MiB are not read", files.MaxSize>>20), severity: result.Warning}
	reasonsInOrder = []*passReason{helmTemplate, template, kustomization, patch, resourceList, fragment, objectList, list, jsonLines, jsonComments, compose, openAPI, rules, plain, notText,
		unreadable, dangling, linked, specialFile, dependencies, results, large}
)

// whyNotRead are the reasons for what was not even read.
var whyNotRead = map[files.Why]*passReason{
	files.Dangling: dangling, files.Special: specialFile, files.LinkedDirectory: linked, files.Dependencies: dependencies, files.Results: results, files.Large: large,
}

// passedFile is something that was passed over.
type passedFile struct {
	reason *passReason
	// place is the path of a file, or that of a directory, with a slash at its end, for all that is below it.
	place string
}

// Notes reports the skipped objects, one line for each kind.
func (b *Batch) Notes() result.Results {
	places := map[*passReason][]string{}
	for _, p := range b.passed {
		places[p.reason] = append(places[p.reason], p.place)
	}
	var notes result.Results
	for _, r := range reasonsInOrder {
		if len(places[r]) > 0 {
			notes = append(notes, r.skippedFilesResult(places[r]))
		}
	}
	return notes
}

// skippedFilesResult is the line about what was passed over for this reason.
func (r *passReason) skippedFilesResult(places []string) result.Result {
	what, verb := r.many, "were"
	if len(places) == 1 {
		what, verb = r.one, "was"
	}
	severity := r.severity
	if severity == "" {
		severity = result.Info
	}
	return result.Result{Severity: severity, Message: fmt.Sprintf("%d %s%s %s skipped; %s", len(places), what, placesInWords(places), verb, r.instead)}
}

// placesInWords describes the places in a few words.
func placesInWords(places []string) string {
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
	common := filepath.ToSlash(filepath.Dir(sorted[0]))
	for _, place := range sorted[1:] {
		for common != "." && common != "/" && !strings.HasPrefix(filepath.ToSlash(place), common+"/") {
			common = filepath.ToSlash(filepath.Dir(common))
		}
	}
	if common == "." || common == "/" {
		return ""
	}
	return common
}
