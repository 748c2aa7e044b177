// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package group

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Change is a difference that one or more objects have in common.
type Change struct {
	// Kind is added, modified, deleted or left in the cluster.
	Kind string `json:"kind"`
	// Hunks are the differences. The values of their placeholders for each object are in Objects.
	Hunks []Hunk `json:"hunks"`
	// Objects that it is the same for.
	Objects []Object `json:"objects"`
}

// Hunk is a piece of a difference.
type Hunk struct {
	// At is the field that holds all changed lines, if one exists. It begins with "pod:" if the pod template is in
	// different places of the objects.
	At string `json:"at,omitempty"`
	// Text is lines that begin with "-", "+" or, for those around them that all objects share, a blank.
	Text string `json:"text"`
}

// Object is what a change is about.
type Object struct {
	Pipeline string `json:"pipeline"`
	// Name is "Kind namespace/name", or the path of a file that holds no object.
	Name string `json:"name"`
	// Places that it changes in.
	Places []Place `json:"places"`
	// Values maps the placeholders in the change's hunks to their values.
	Values map[string]string `json:"values,omitempty"`
	// Owner is the unit that renders it, such as Application argocd/web.
	Owner string `json:"owner,omitempty"`
	// Dangers are what the change may break, and Notes what else a reader has to know of it.
	Dangers []string `json:"dangers,omitempty"`
	Notes   []string `json:"notes,omitempty"`
}

// Place is a file at a target.
type Place struct {
	Target string `json:"target"`
	// Path of the file, relative to the pipeline's. It begins with "../" where it is at a path that the pipeline
	// leaves.
	Path string `json:"path"`
}

// Title describes in one line the change and the objects that have it; noun is what a pipeline is called, such as
// pipeline.
func (c Change) Title(noun string) string {
	if len(c.Objects) == 1 {
		return fmt.Sprintf("%s: %s (%s)", c.Kind, c.Objects[0].Name, c.Objects[0].Pipeline)
	}
	return fmt.Sprintf("%s: the same in %s of %s", c.Kind, c.KindCounts(), countWithNoun(c.CountPipelines(), noun))
}

// CountPipelines counts the pipelines of the objects.
func (c Change) CountPipelines() int {
	pipelines := map[string]bool{}
	for _, o := range c.Objects {
		pipelines[o.Pipeline] = true
	}
	return len(pipelines)
}

// KindCounts counts the objects: "3 objects (2 Deployment, 1 CronJob)", "2 Service".
func (c Change) KindCounts() string {
	counts := map[string]int{}
	var order []string
	for _, o := range c.Objects {
		kind, _, ok := strings.Cut(o.Name, " ")
		if !ok {
			kind = "file"
		}
		if counts[kind]++; counts[kind] == 1 {
			order = append(order, kind)
		}
	}
	sort.SliceStable(order, func(i, j int) bool { return counts[order[i]] > counts[order[j]] })
	if len(order) == 1 {
		return countWithNoun(len(c.Objects), order[0])
	}
	var parts []string
	for _, kind := range order {
		parts = append(parts, countWithNoun(counts[kind], kind))
	}
	if len(parts) > 6 {
		parts = append(parts[:5], fmt.Sprintf("%d other kinds", len(order)-5))
	}
	return fmt.Sprintf("%s (%s)", countWithNoun(len(c.Objects), "object"), strings.Join(parts, ", "))
}

// Legend lists the values of the placeholders.
func (c Change) Legend() string {
	params := map[string]bool{}
	for _, o := range c.Objects {
		for param := range o.Values {
			params[param] = true
		}
	}
	var names []string
	for param := range params {
		names = append(names, "<"+param+">")
	}
	slices.Sort(names)
	if len(names) == 0 {
		return ""
	}
	verb := " stands"
	if len(names) > 1 {
		verb = " stand"
	}
	return strings.Join(names, ", ") + verb + " for each object's own"
}

func countWithNoun(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
