// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/server/access"
)

// Pipeline is a pipeline as the API and the page show it.
type Pipeline struct {
	// Name is its namespace and name, or for what could not be read that far, its file.
	Name string `json:"name"`
	// File that it is in.
	File string `json:"file"`
	// State is Ready, Failing, Stalled, Suspended, Invalid or New.
	State string `json:"state"`
	// Message is more detail.
	Message string `json:"message,omitempty"`
	// Source is the URL of the source.
	Source string `json:"source,omitempty"`
	// Sources are its further sources, with where they were in the last run.
	Sources []v1alpha1.SourceRevision `json:"sources,omitempty"`
	// Status as in the object.
	Status v1alpha1.RenderPipelineStatus `json:"status"`
	// Runs are the last runs, newest first.
	Runs []status.Run `json:"runs,omitempty"`
	// Suspended reports whether it is suspended, for whatever reason.
	Suspended bool `json:"suspended,omitempty"`
	// OnHold describes who put it on hold and why, or is nil if it is not.
	OnHold *status.OnHold `json:"onHold,omitempty"`
	// OpenRequest is the token of the last reconcile request as long as it is not handled.
	OpenRequest string `json:"openRequest,omitempty"`
}

// States of a Pipeline.
const (
	StateReady     = "Ready"
	StateFailing   = "Failing"
	StateStalled   = "Stalled"
	StateSuspended = "Suspended"
	StateInvalid   = "Invalid"
	StateNew       = "New"
	StateDrifted   = "Drifted"
)

// Request asks for something to be done with pipelines.
type Request struct {
	// Pipelines by name; All means every one.
	Pipelines []string `json:"pipelines,omitempty"`
	All       bool     `json:"all,omitempty"`
	// Force renders without a change. For reconcile.
	Force bool `json:"force,omitempty"`
	// Suspended is what to set. For suspend.
	Suspended bool `json:"suspended,omitempty"`
	// Reason is why, in a few words. For hold.
	Reason string `json:"reason,omitempty"`
	// Commit is the publish that is taken back, in full or its first digits, "" for the last one. For rollback.
	Commit string `json:"commit,omitempty"`
	// DryRun makes the daemon report what it would do, without doing it. For promote, rollback, and reconcile with
	// Force.
	DryRun bool `json:"dryRun,omitempty"`
	// Held is about those only that are held because state was lost. For suspend.
	Held bool `json:"held,omitempty"`
}

// Answer to a Request.
type Answer struct {
	// Token is found in status.lastHandledReconcileAt when the request was handled, until another one is. A pipeline without
	// an openRequest has handled this one, or a later one in its place.
	Token string `json:"token,omitempty"`
	// Pipelines that it is about.
	Pipelines []string `json:"pipelines"`
}

// listPipelines returns all pipelines that the user may see, or the ones that the parameter pipeline names, with
// their runs.
func (v *pipelineViews) listPipelines(w http.ResponseWriter, r *http.Request) {
	names := r.URL.Query()["pipeline"]
	out := []Pipeline{}
	for _, e := range v.visibleEntries(requestPrincipal(r)) {
		if len(names) > 0 && !slices.Contains(names, e.Key) {
			continue
		}
		one := v.viewPipeline(e)
		if len(names) == 0 {
			one.Runs = nil
		}
		out = append(out, one)
	}
	for _, name := range names {
		if !slices.ContainsFunc(out, func(p Pipeline) bool { return p.Name == name }) {
			writeError(w, http.StatusNotFound, fmt.Errorf("there is no pipeline %s", name))
			return
		}
	}
	writeJSON(w, out)
}

// viewPipeline is what is shown of an entry.
func (v *pipelineViews) viewPipeline(e catalog.Entry) Pipeline {
	p := Pipeline{Name: e.Key, File: e.File, State: StateNew}
	state := v.store.Get(e.Key)
	p.Status, p.Runs = state.Status, state.Runs
	if e.Err != nil {
		p.State, p.Message = StateInvalid, e.Err.Error()
		p.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInvalid, Message: p.Message}}
		return p
	}
	p.Source, p.Sources = e.Pipeline.Spec.Source.URL(), furtherSources(e.Pipeline, state.Status.LastRun)
	if c := state.Condition(); c != nil {
		p.Message = c.Message
		switch {
		case c.Status == metav1.ConditionTrue:
			p.State = StateReady
		case state.IsDrifted():
			p.State = StateDrifted
		case state.Stalled():
			p.State = StateStalled
		default:
			p.State = StateFailing
		}
	}
	if v.isWaiting != nil && v.isWaiting(e.Key) {
		p.Message = strings.TrimSuffix("a run waits, as no worker takes jobs; "+p.Message, "; ")
	}
	// It is read after the state, so that it includes everything that the state reports as handled.
	control := v.store.Control(e.Key)
	if control.RequestedAt != state.Requested {
		p.OpenRequest = control.RequestedAt
	}
	if p.Suspended = e.Pipeline.Spec.Suspend || control.Suspended; p.Suspended {
		p.State = StateSuspended
	}
	if p.OnHold = control.OnHold; p.OnHold != nil {
		p.Message = p.OnHold.Message()
	}
	if control.Held {
		p.Message = status.HeldMessage
	}
	return p
}

func (v *pipelineViews) showDiff(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("pipeline")
	var d *status.Diff
	var err error
	if _, ok := v.visibleEntry(requestPrincipal(r), name); ok || requestPrincipal(r).MayEverywhere(access.Read) {
		d, err = v.store.LoadDiff(r.Context(), name, r.URL.Query().Get("run"))
	}
	switch {
	case err != nil:
		writeError(w, http.StatusServiceUnavailable, err)
	case d == nil:
		writeError(w, http.StatusNotFound, errors.New("no difference is stored for this run"))
	default:
		writeJSON(w, d)
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(v)
}

func writeError(w http.ResponseWriter, code int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
}

// furtherSources returns the further sources of a pipeline, with where they were in its last run.
func furtherSources(p *v1alpha1.RenderPipeline, last *v1alpha1.Run) []v1alpha1.SourceRevision {
	var out []v1alpha1.SourceRevision
	for _, mounted := range p.Spec.Sources {
		one := v1alpha1.SourceRevision{MountPath: mounted.MountPath, URL: mounted.Source().URL()}
		if last != nil {
			if i := slices.IndexFunc(last.Sources, func(r v1alpha1.SourceRevision) bool { return r.MountPath == one.MountPath }); i >= 0 {
				one.Revision = last.Sources[i].Revision
			}
		}
		out = append(out, one)
	}
	return out
}

// Snapshot is a policy that was completed from a cluster.
type Snapshot struct {
	Digest string `json:"digest"`
	// Policy is a self-contained InjectionPolicy, in YAML.
	Policy string `json:"policy"`
}

// showSnapshot returns a policy that a pipeline was rendered with, if the user may see it.
func (v *pipelineViews) showSnapshot(w http.ResponseWriter, r *http.Request) {
	digest := r.URL.Query().Get("digest")
	may := requestPrincipal(r).MayEverywhere(access.Read) || slices.ContainsFunc(v.visibleEntries(requestPrincipal(r)), func(e catalog.Entry) bool {
		return v.store.Get(e.Key).NamesSnapshot(digest)
	})
	text, ok := v.store.Snapshot(digest)
	if !ok || !may {
		writeError(w, http.StatusNotFound, errors.New("no snapshot of this digest is kept: snapshots that are neither published nor in the history of a pipeline are deleted"))
		return
	}
	writeJSON(w, Snapshot{digest, string(text)})
}
