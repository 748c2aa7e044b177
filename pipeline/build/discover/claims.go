// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package discover

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
)

// askingGenerators are the generators of ApplicationSets that ask a server: which Applications they make, no tree tells.
var askingGenerators = []string{"clusters", "clusterDecisionResource", "scmProvider", "pullRequest", "plugin"}

// asks returns the generator of an ApplicationSet, also in a matrix or merge, that asks a server, "" without one. The clusters of Argo CD
// may be in the tree.
func (c *contents) asks(o map[string]any) string {
	generators, _ := child(o, "spec")["generators"].([]any)
	return c.findAsking(generators)
}

func (c *contents) findAsking(generators []any) string {
	for _, one := range generators {
		fields, _ := one.(map[string]any)
		for _, kind := range askingGenerators {
			if _, has := fields[kind]; has && !(kind == "clusters" && c.hasClusters) {
				return kind
			}
		}
		for _, kind := range []string{"matrix", "merge"} {
			inner, _ := child(fields, kind)["generators"].([]any)
			if found := c.findAsking(inner); found != "" {
				return found
			}
		}
	}
	return ""
}

// isClusterOfArgo reports whether an object is the Secret of a cluster of Argo CD.
func isClusterOfArgo(doc *manifest.Document, meta manifest.Meta) bool {
	return meta.Kind == "Secret" && bytes.Contains(doc.Raw(), []byte("argocd.argoproj.io/secret-type: cluster"))
}

// claims are the ApplicationSets that deploy directories to clusters that only Argo CD knows.
type claims map[string][]Claim

// add notes the directories that an ApplicationSet deploys, or may deploy: they are builds of their own. pattern is the path by which
// it may, "" if it surely does.
func (c claims) add(r release, generator, pattern string, directories []string) {
	meta := child(r.object, "metadata")
	namespace, _ := meta["namespace"].(string)
	name, _ := meta["name"].(string)
	by := Claim{Set: strings.TrimPrefix(namespace+"/"+name, "/"), Generator: generator, Pattern: pattern}
	for _, at := range directories {
		isKnown := slices.ContainsFunc(c[at], func(one Claim) bool { return one.Set == by.Set && (one.Pattern == "" || by.Pattern != "") })
		if !isKnown {
			c[at] = append(slices.DeleteFunc(c[at], func(one Claim) bool { return one.Set == by.Set }), by)
		}
	}
}

// of returns the ApplicationSets that may deploy a directory or the one that it is in.
func (c claims) of(at string) []Claim {
	for {
		if found := c[at]; len(found) > 0 {
			return found
		}
		if at == "." {
			return nil
		}
		at = path.Dir(at)
	}
}
