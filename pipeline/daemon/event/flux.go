// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// parseFlux reads an event of Flux's notification controller (fluxcd/pkg apis/event/v1beta1). Only a new artifact
// of a source is a change. The revision's key is bare, as the controller sends it, or has its group, as in the
// documentation.
func parseFlux(_ http.Header, body []byte) ([]Change, error) {
	var p struct {
		InvolvedObject struct{ Kind, Namespace, Name string }
		Reason         string
		Severity       string
		Metadata       map[string]string
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a Flux event: %w", err)
	}
	o := p.InvolvedObject
	if o.Kind == "" || o.Name == "" {
		return nil, fmt.Errorf("reading a Flux event: it has no involvedObject")
	}
	switch o.Kind {
	case "GitRepository", "OCIRepository":
	default:
		return nil, nil
	}
	if p.Severity == "error" {
		return nil, nil
	}
	c := &FluxChange{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Revision: p.Metadata["revision"]}
	for _, key := range slices.Sorted(maps.Keys(p.Metadata)) {
		if c.Revision == "" && strings.HasSuffix(key, "/revision") {
			c.Revision = p.Metadata[key]
		}
	}
	return []Change{{Flux: c}}, nil
}

// parseGeneric reads {"git": …}, {"oci": …} or {"flux": …} as in [Change], for senders of one's own.
func parseGeneric(_ http.Header, body []byte) ([]Change, error) {
	var c Change
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, fmt.Errorf("reading a generic event: %w", err)
	}
	changes := c.splitChange()
	if len(changes) == 0 {
		return nil, fmt.Errorf("reading a generic event: it has none of git.urls (at most 50), oci.repository, and flux.kind with flux.name")
	}
	return changes, nil
}

// maxURLs is how many names one repository may have.
const maxURLs = 50

// splitChange returns one change for each object that a custom sender reports, without those that name no object.
func (c Change) splitChange() []Change {
	var out []Change
	if g := c.Git; g != nil {
		if urls := distinctWords(g.URLs...); len(urls) > 0 && len(urls) <= maxURLs {
			change := gitChange(urls, g.Ref, g.Before, g.After)
			change.Deleted = change.Deleted || g.Deleted
			out = append(out, Change{Git: change})
		}
	}
	if c.OCI != nil && c.OCI.Repository != "" {
		out = append(out, Change{OCI: c.OCI})
	}
	if c.Flux != nil && c.Flux.Kind != "" && c.Flux.Name != "" {
		out = append(out, Change{Flux: c.Flux})
	}
	return out
}
