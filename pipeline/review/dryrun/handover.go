// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"slices"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/review/pairing"
)

// handover is about the objects that one Application or Kustomization leaves to another one, which has them from now on or
// had them, too.
//
// Source: Argo CD 3.5, controller/appcontroller.go (finalizeApplicationDeletion) and controller/state.go: an Application
// deletes the live objects with its own tracking label or annotation. kustomize-controller 1.9,
// internal/controller/kustomization_controller.go (prune, finalize): a Kustomization deletes those of its inventory with
// its own labels. Both are set by whichever has applied last; neither tool takes away those of the other one.
type handover struct {
	build    string
	from, to *render.Unit // to is nil for objects that no unit of to has
	toName   string
	// deleted reports whether from is deleted itself, shared whether to had the objects before, and gained whether from has
	// them from now on, beside to.
	deleted, shared, gained bool
	vital                   bool // the deletion of any object takes something away, even if it is created again
	objects                 []string
}

// handovers divides moves into those that change nothing in the cluster, and those from an Application or a Kustomization that
// may delete its objects before, or after, the other one has taken them over. Objects that two have are among the results.
func handovers(pairs pairing.Pairs, all []*endPair) (kept []pairing.Move, out []Remark) {
	ends, remaining := map[string]*endPair{}, map[string]bool{}
	for _, e := range all {
		ends[e.key()] = e
		for _, unit := range unitsOf(e.after) {
			remaining[nameOfUnit(&unit)] = true
		}
	}
	var found []*handover
	add := func(one handover, m pairing.Move) {
		i := slices.IndexFunc(found, func(other *handover) bool { return one.isLike(other) })
		if i < 0 {
			i = len(found)
			found = append(found, &one)
		}
		found[i].vital = found[i].vital || isVital(m.Object)
		found[i].objects = append(found[i].objects, refOf(m.Object))
	}
	follow := func(m pairing.Move, one handover) {
		one.build, one.toName = m.To, m.To
		one.from, one.to = ends[m.From].unitOf(m.FromPath, one.gained), ends[m.To].unitOf(m.ToPath, true)
		stays := one.from == nil || !one.gained && ends[m.From].staysBecause(m.FromPath, ends[m.To].build.Before[m.ToPath]) != ""
		switch {
		case !stays:
			one.deleted = !remaining[nameOfUnit(one.from)]
			add(one, m)
		case !one.gained:
			kept = append(kept, m)
		}
	}
	for _, m := range pairs.Moves {
		follow(m, handover{})
	}
	for _, s := range pairs.Shared {
		follow(pairing.Move{Object: s.Object, From: s.From, To: s.Build, FromPath: s.FromPath, ToPath: s.Path},
			handover{shared: true, gained: s.Gained})
	}
	for _, one := range found {
		out = append(out, Remark{Kind: RemarkReplaced, Pipeline: one.build, Objects: one.objects, Text: one.text()})
	}
	return kept, out
}

func refOf(id gate.Identity) string {
	return result.ResourceRef{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}.String()
}

// isVital reports whether the deletion of an object stops something or takes something along.
func isVital(id gate.Identity) bool {
	serving := []string{"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Service", "Ingress"}
	return id.Destroys() != "" || slices.Contains(serving, id.Kind)
}

func (h *handover) isLike(other *handover) bool {
	sameTo := h.toName == other.toName && nameOfUnit(h.to) == nameOfUnit(other.to)
	return sameTo && nameOfUnit(h.from) == nameOfUnit(other.from) && h.shared == other.shared && h.gained == other.gained
}

func nameOfUnit(unit *render.Unit) string {
	if unit == nil {
		return ""
	}
	return unit.Kind + " " + unit.Name
}

// toolOf returns what deletes the objects of a unit.
func toolOf(unit *render.Unit) string {
	if unit.Kind == "Kustomization" {
		return "Flux"
	}
	return "Argo CD"
}

// text returns the sentence about a handover.
func (h *handover) text() string {
	from, to := nameOfUnit(h.from), nameOfUnit(h.to)
	if to == "" {
		to = h.toName
	}
	count, them := countWithNoun(len(h.objects), "object"), "them"
	if len(h.objects) == 1 {
		them = "it"
	}
	names := foreign.List(h.objects, shownObjects)
	if h.gained {
		return fmt.Sprintf("%s has %s from now on that %s has, too: each applies %s over the other: %s", from, count, to, them, names)
	}
	danger := ""
	if h.vital {
		danger = "danger: "
	}
	return danger + h.cause(from, to, count) + h.effect(from, to, them) + ": " + names
}

// cause returns how the objects leave one unit.
func (h *handover) cause(from, to, count string) string {
	switch {
	case h.deleted && h.shared:
		return fmt.Sprintf("%s is deleted, and %s has %s of it, too: ", from, to, count)
	case h.deleted && h.from.Kind == "Application":
		return fmt.Sprintf("%s is deleted with a finalizer, and %s is in its place: ", from, to)
	case h.deleted:
		return fmt.Sprintf("%s is deleted, and %s is in its place: ", from, to)
	case h.shared:
		return fmt.Sprintf("%s no longer has %s that %s has, too, before and after: ", from, count, to)
	}
	return fmt.Sprintf("%s leaves %s to %s: ", from, count, to)
}

// effect returns what becomes of the objects.
func (h *handover) effect(from, to, them string) string {
	again := "creates " + them + " again"
	if h.to != nil && h.to.Manual {
		again += " at the next sync by hand"
	}
	tool, deletes := toolOf(h.from), them
	if h.deleted && !h.shared {
		deletes = countWithNoun(len(h.objects), "object")
	}
	stay := map[bool]string{true: "it stays", false: "they stay"}[them == "it"]
	switch {
	case h.to != nil && toolOf(h.to) != tool:
		return fmt.Sprintf("%s deletes %s, as the labels of the %s remain, and %s %s", tool, deletes, h.from.Kind, to, again)
	case h.shared:
		return fmt.Sprintf("%s, unless %s has applied %s last; then %s deletes %s, and %s %s", stay, from, them, tool, them, to, again)
	}
	return fmt.Sprintf("%s deletes %s, and %s, unless the new one takes %s over first", tool, deletes, again, them)
}

// addShared returns the differences of objects that two units have, and one of them has no longer, with a note.
func (n objectNotes) addShared(e *endPair, shared []pairing.Shared) {
	for _, s := range shared {
		if !s.Gained && s.Build == e.key() {
			text := "the difference from what another one had applied; nothing changes if this one has applied it last"
			note := n.of(e.key(), s.Path)
			note.others = append(note.others, text)
		}
	}
}
