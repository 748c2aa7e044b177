// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/server/access"
	"github.com/prerig/prerig/pipeline/source/giturl"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/pipeline/verify"
)

// VerifiedCluster is a cluster that is compared with what is committed.
type VerifiedCluster struct {
	// Name distinguishes it from others.
	Name string
	// URL and Branch are what is committed for it; an empty branch is the default one.
	URL, Branch string
	// Report has what the last comparison has found, nil where it failed or has not been made.
	Report *verify.Report
}

// placeKey names a file that a cluster is to have.
type placeKey struct{ url, branch, file string }

// differences returns the workloads of pipelines whose pods differ in a cluster, by pipeline. A pod counts for the
// pipeline that has published its file, and a path on a branch has one owner: so pods of others are never counted.
func (h *pageHandler) differences(who access.Principal, rows []row) map[string]map[string]bool {
	if h.clusters == nil {
		return nil
	}
	wrong := map[placeKey]map[string]bool{}
	for _, c := range h.clusters() {
		if c.Report == nil || c.Branch == "" && !who.MayEverywhere(access.Read) {
			continue
		}
		for _, pod := range c.Report.Wrong() {
			if pod.File == "" {
				continue
			}
			key := placeKey{giturl.Normal(c.URL), c.Branch, pod.File}
			if wrong[key] == nil {
				wrong[key] = map[string]bool{}
			}
			wrong[key][pod.Workload] = true
		}
	}
	out := map[string]map[string]bool{}
	if len(wrong) == 0 {
		return out
	}
	for _, p := range rows {
		if p.entry.Err == nil {
			if found := h.wrongWorkloads(p, wrong); len(found) > 0 {
				out[p.Name] = found
			}
		}
	}
	return out
}

// wrongWorkloads returns those workloads of a pipeline whose pods differ.
func (h *pageHandler) wrongWorkloads(p row, wrong map[placeKey]map[string]bool) map[string]bool {
	found := map[string]bool{}
	state := h.views.store.Get(p.Name)
	for _, to := range p.entry.Pipeline.Spec.Publish {
		if to.Git == nil {
			continue
		}
		url := giturl.Normal(to.Git.URL)
		for _, one := range state.Seen.Targets[to.Target()] {
			if one.Op != tree.OpRead {
				continue
			}
			for _, branch := range []string{to.Git.Branch, ""} {
				for workload := range wrong[placeKey{url, branch, one.Path}] {
					found[workload] = true
				}
			}
		}
	}
	return found
}

// foreignPods counts the pods that are not from Git by cluster. They belong to no pipeline, so that only those who
// may read all see them.
func (h *pageHandler) foreignPods(who access.Principal) (out []countedReason) {
	if h.clusters == nil || !who.MayEverywhere(access.Read) {
		return nil
	}
	for _, c := range h.clusters() {
		if c.Report != nil && c.Report.Counts[verify.Foreign] > 0 {
			out = append(out, countedReason{Reason: c.Name, N: c.Report.Counts[verify.Foreign]})
		}
	}
	return out
}

// publishedTo returns what a pipeline has published to an entry, nil for nothing.
func publishedTo(p Pipeline, to v1alpha1.Publish) *v1alpha1.Published {
	target := to.Target()
	for i := range p.Status.Published {
		if p.Status.Published[i].Target == target {
			return &p.Status.Published[i]
		}
	}
	return nil
}
