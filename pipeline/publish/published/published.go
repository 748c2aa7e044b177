// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package published keeps what is published of Jobs and bare Pods: the API server does not accept another injection of them. It is
// called with the result of a render, so that it also holds for what functions of the source have injected.
package published

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn"
	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/sidecar"
	"github.com/prerig/prerig/pipeline/render"
)

// Concerns reports whether a render has objects that Keep could change, and something was injected or looked at.
func Concerns(response *render.Response) bool {
	return len(response.Decisions) > 0 && slices.ContainsFunc(response.Objects, isKeptKind)
}

func isKeptKind(o render.Object) bool {
	return o.Kind == "Job" && o.Group() == "batch" || o.Kind == "Pod" && o.APIVersion == "v1"
}

// Keep restores Jobs and bare Pods of a render from the files if their own spec is unchanged (spec.jobs of
// policies), and records that in the results and decisions of the response. The files are the published files of
// the pipeline; unreadable ones are ignored. The error is that of ctx, or a defect.
func Keep(ctx context.Context, response *render.Response, files map[string][]byte) error {
	docs := documentsOf(files)
	if len(docs) == 0 {
		return nil
	}
	var items []fn.Item
	var at []int
	for i, o := range response.Objects {
		if !isKeptKind(o) && !strings.Contains(string(o.YAML), sidecar.ObjectAnnotation) {
			continue
		}
		file, err := manifest.Parse("", o.YAML)
		if err != nil || len(file.Docs) != 1 {
			continue // whatever is wrong with it is not made worse
		}
		items, at = append(items, fn.Item{Doc: file.Docs[0]}), append(at, i)
	}
	jobs := policyv1alpha1.JobsKeepPublished
	if response.FollowJobs {
		jobs = policyv1alpha1.JobsFollow
	}
	keeper, err := fn.NewKeeper(docs, jobs)
	if err != nil {
		return err
	}
	report, err := keeper.Run(ctx, items)
	if err != nil {
		return err
	}
	if report.Failed() {
		return fmt.Errorf("keeping what is published: %s", firstError(report.Results))
	}
	for i, item := range report.Items {
		if item.Doc != items[i].Doc {
			response.Objects[at[i]].YAML = item.Doc.Raw()
		}
	}
	for _, doc := range report.Added {
		meta, _ := doc.Peek()
		response.Objects = append(response.Objects, render.Object{
			APIVersion: meta.APIVersion, Kind: meta.Kind, Namespace: meta.Namespace, Name: meta.Name, YAML: doc.Raw(),
		})
	}
	replaceKeptResults(response, report)
	return nil
}

// ReadFiles returns the documents of a file, or of the manifests below a directory. The error names the file that
// cannot be read.
func ReadFiles(name string) ([]*manifest.Document, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(name, func(at string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || at != name && !manifest.IsFileName(at) {
			return err
		}
		files[at], err = os.ReadFile(at)
		return err
	})
	if err != nil {
		return nil, err
	}
	docs := []*manifest.Document{}
	for _, at := range slices.Sorted(maps.Keys(files)) {
		file, err := manifest.Parse(at, files[at])
		if err != nil {
			return nil, err
		}
		docs = append(docs, file.Docs...)
	}
	return docs, nil
}

// documentsOf returns the documents of manifests, in the order of their files.
func documentsOf(files map[string][]byte) []*manifest.Document {
	var docs []*manifest.Document
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !manifest.IsFileName(name) {
			continue
		}
		if file, err := manifest.Parse("", files[name]); err == nil {
			docs = append(docs, file.Docs...)
		}
	}
	return docs
}

func firstError(results result.Results) string {
	for _, one := range results {
		if one.Severity == result.Error {
			return one.String()
		}
	}
	return ""
}

// replaceKeptResults replaces the results about objects from their injection with those of the keeper.
func replaceKeptResults(response *render.Response, report *fn.Report) {
	kept := map[result.ResourceRef]string{}
	for _, o := range report.Outcomes {
		kept[o.Ref] = o.Reason
	}
	response.Results = slices.DeleteFunc(slices.Clone(response.Results), func(one result.Result) bool {
		if one.ResourceRef == nil || one.Severity != result.Info || one.Tags[result.TagCode] != "" {
			return false
		}
		_, ok := kept[*one.ResourceRef]
		return ok
	})
	response.Results = append(response.Results, report.Results...)
	for i, d := range response.Decisions {
		if reason, ok := kept[d.Object]; ok {
			response.Decisions[i].Action, response.Decisions[i].Reason = string(fn.Kept), reason
		}
	}
}
