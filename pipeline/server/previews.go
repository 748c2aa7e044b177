// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/server/access"
)

// Preview is a pull request that is previewed for the pipelines of a namespace, as the API shows it.
type Preview struct {
	// Namespace is the namespace of the pipelines, Repository the target of the pull request, Number its number in
	// it, and URL its page if known.
	Namespace  string `json:"namespace,omitempty"`
	Repository string `json:"repository"`
	Number     int64  `json:"number"`
	URL        string `json:"url,omitempty"`
	// Fork reports whether its head is not a branch of the repository, so that it is rendered without secrets.
	Fork bool `json:"fork,omitempty"`
	// Since is when it was first heard of. State is Waiting, Succeeded or Failed, and Ended when it was previewed last.
	Since time.Time `json:"since,omitzero"`
	State string    `json:"state"`
	Ended time.Time `json:"ended,omitzero"`
	// Head is the commit that was previewed last, Base the target branch, and Message the result.
	Head    string `json:"head,omitempty"`
	Base    string `json:"base,omitempty"`
	Message string `json:"message,omitempty"`
}

// Previews are the pull requests that are previewed.
type Previews struct {
	// Previews are by namespaces and repositories, newest pull requests first.
	Previews []Preview `json:"previews"`
}

// shownPreviews is how many previews the page shows.
const shownPreviews = 100

// listPreviews returns the previewed pull requests, restricted to the pipelines that the user may see.
func (v *pipelineViews) listPreviews(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, Previews{Previews: v.previewsFor(requestPrincipal(r))})
}

// previewsFor returns the previews that the user may see.
func (v *pipelineViews) previewsFor(who access.Principal) []Preview {
	out := []Preview{}
	for _, key := range v.store.Previews() {
		one := v.store.Preview(key)
		if one == nil || !who.May(access.Read, one.Namespace) {
			continue
		}
		out = append(out, previewOf(one))
	}
	slices.SortFunc(out, func(a, b Preview) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Repository, b.Repository), cmp.Compare(b.Number, a.Number))
	})
	return out
}

func previewOf(one *status.Preview) Preview {
	return Preview{
		Namespace: one.Namespace, Repository: one.Repository, Number: one.Number, URL: one.URL, Fork: one.Fork, Since: one.Since, State: one.State(),
		Ended: one.Ended, Head: one.Head, Base: one.Base, Message: one.Message,
	}
}
