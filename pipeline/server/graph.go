// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"net/url"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// graphData is what a pipeline reads and where it publishes to.
type graphData struct {
	Sources  []graphNode
	Policies []graphNode
	Targets  []graphNode
}

// graphNode is a box of the graph.
type graphNode struct {
	// Kind is what it is, Name which one; Detail is more about it.
	Kind, Name, Detail string
	// Feeds counts the pipelines that a policy feeds by state, as far as the user may see them; Link leads to them.
	Feeds []stateCount
	N     int
	Link  string
}

// policyKey names a policy so that it is equal for the pipelines that have it.
func policyKey(p *v1alpha1.RenderPipeline, ref v1alpha1.PolicyRef) string {
	switch {
	case ref.BuiltIn != "":
		return "builtIn " + ref.BuiltIn
	case ref.File != "":
		return "file " + ref.File
	case ref.Name != "":
		return "object " + p.Metadata.Namespace + "/" + ref.Name
	}
	return "path " + p.Spec.Source.URL() + " " + ref.Path
}

// policiesOf returns the policies of a pipeline.
func policiesOf(p row) (keys []string) {
	if p.entry.Pipeline == nil {
		return nil
	}
	for _, ref := range p.entry.Pipeline.Spec.Policies {
		keys = append(keys, policyKey(p.entry.Pipeline, ref))
	}
	return keys
}

// graphOf draws a pipeline; rows are the pipelines that the user may see.
func graphOf(p row, rows []row) (g graphData) {
	spec := p.entry.Pipeline.Spec
	g.Sources = append(g.Sources, graphNode{Kind: "source", Name: p.Source, Detail: spec.Build.Path})
	for _, one := range spec.Sources {
		g.Sources = append(g.Sources, graphNode{Kind: "source", Name: one.Source().URL(), Detail: one.MountPath})
	}
	for _, ref := range spec.Policies {
		key := policyKey(p.entry.Pipeline, ref)
		node := graphNode{
			Kind: "policy",
			Name: cmp.Or(ref.BuiltIn, ref.File, ref.Name, ref.Path),
			Link: "/?" + url.Values{"policy": {key}}.Encode(),
		}
		if ref.BuiltIn != "" {
			node.Detail = "built in"
		}
		counts := map[string]int{}
		for _, other := range rows {
			if slices.Contains(policiesOf(other), key) {
				counts[other.State]++
				node.N++
			}
		}
		for _, state := range order {
			if counts[state] > 0 {
				node.Feeds = append(node.Feeds, stateCount{State: state, N: counts[state]})
			}
		}
		g.Policies = append(g.Policies, node)
	}
	for _, to := range spec.Publish {
		node := graphNode{Kind: to.Kind(), Name: to.Target()}
		if published := publishedTo(p.Pipeline, to); published != nil && published.Istio != "" {
			node.Detail = "Istio " + published.Istio
		}
		g.Targets = append(g.Targets, node)
	}
	return g
}
