// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/server/access"
)

// subject is what an action is about.
type subject int

const (
	ofPipeline subject = iota // one that exists
	ofRemoval                 // one that was deleted and is not removed yet
)

// action is something that people do on the page. A row of actions is all that a new one needs.
type action struct {
	// Name is the value in the form and in the record; Label is the text of the button.
	Name, Label string
	// Question is asked before it is done, with the pipelines below; "" asks only where it is about several.
	Question string
	// Asks returns the question about some pipelines where it is not the same for all, "" where none is asked; it may be nil.
	Asks func(s *Server, pipelines []string) string
	// LabelFor returns the button text for a pipeline, or "" for Label; it may be nil.
	LabelFor func(p Pipeline) string
	// Done describes what happened, after the number of pipelines.
	Done string
	// Role that it needs in the pipeline's namespace.
	Role    access.Role
	Subject subject
	// IsOffered reports whether a pipeline has the button; nil means always. It does not decide who may use it:
	// Role does.
	IsOffered func(p Pipeline, spec *v1alpha1.RenderPipeline) bool
	// Plan returns what it would do, which is shown with the question; nil shows the pipelines alone.
	Plan func(s *Server, r *http.Request, pipelines []string) ([]planData, error)
	// Do does it with pipelines that the request may do it with.
	Do func(s *Server, ctx context.Context, pipelines []string) error
	// Route is the path of the API that performs, checks and records it, instead of Do. If the server does not have
	// it, the button is not shown.
	Route string
}

// actions are the buttons, in the order in which they are shown.
var actions = []action{
	{
		Name: "retry", Label: "Retry", Done: "asked to try again", Role: access.Operate,
		IsOffered: func(p Pipeline, _ *v1alpha1.RenderPipeline) bool { return isBad(p.State) },
		Plan:      (*Server).planPutBack, Asks: (*Server).askPutBack, LabelFor: func(p Pipeline) string {
			if p.State == StateDrifted {
				return "Put back…"
			}
			return ""
		},
		Do: func(s *Server, ctx context.Context, names []string) error {
			return s.reconcileFromPage(ctx, names, true)
		},
	},
	{
		Name: "reconcile", Label: "Reconcile", Done: "asked to look at the source now", Role: access.Operate,
		IsOffered: func(p Pipeline, _ *v1alpha1.RenderPipeline) bool { return !isBad(p.State) && !p.Suspended },
		Do: func(s *Server, ctx context.Context, names []string) error {
			return s.reconcileFromPage(ctx, names, false)
		},
	},
	{
		Name: "suspend", Label: "Suspend", Done: "suspended", Role: access.Operate,
		IsOffered: func(p Pipeline, _ *v1alpha1.RenderPipeline) bool { return !p.Suspended },
		Do:        func(s *Server, ctx context.Context, names []string) error { return s.setSuspended(ctx, names, true) },
	},
	{
		Name: "resume", Label: "Resume", Done: "resumed", Role: access.Operate,
		IsOffered: func(p Pipeline, spec *v1alpha1.RenderPipeline) bool { return p.Suspended && !spec.Spec.Suspend },
		Do:        func(s *Server, ctx context.Context, names []string) error { return s.setSuspended(ctx, names, false) },
	},
	{
		Name: "promote", Label: "Promote", Done: "promoted", Role: access.Operate, Route: "/api/v1/promote",
		Question:  "Merge what waits of these now, or open it, whatever the policies wait for? What the host demands holds all the same.",
		IsOffered: func(p Pipeline, _ *v1alpha1.RenderPipeline) bool { return p.Suspended || waitsForMerge(p) },
	},
	{
		Name: "hold", Label: "Hold", Done: "put on hold", Role: access.Operate, Route: "/api/v1/hold",
		IsOffered: func(p Pipeline, _ *v1alpha1.RenderPipeline) bool { return !p.Suspended && len(p.Status.Published) > 0 },
	},
	{
		Name: "rollback", Label: "Roll back", Done: "asked to be rolled back", Role: access.Operate, Route: "/api/v1/rollback", Plan: (*Server).planRollback,
		Question:  "Take back what was published last of these? They are on hold afterwards. Others that were published with them go back, too.",
		IsOffered: func(p Pipeline, _ *v1alpha1.RenderPipeline) bool { return len(p.Status.Published) > 0 },
	},
	{
		Name: "remove", Label: "Approve", Done: "approved for removal", Role: access.Administer, Subject: ofRemoval,
		Question: "Remove what is published of these, as their deletion policies say? This deletes files, and a cluster that follows them deletes the objects.",
		Do: func(s *Server, ctx context.Context, names []string) error {
			return s.confirmRemovals(ctx, names, false)
		},
	},
	{
		Name: "orphan", Label: "Leave files", Done: "approved to go without their files", Role: access.Administer, Subject: ofRemoval,
		Question: "Forget these, and leave the files that they have published? No pipeline owns the files then.",
		Do:       func(s *Server, ctx context.Context, names []string) error { return s.confirmRemovals(ctx, names, true) },
	},
}

// waitsForMerge reports whether a result of a pipeline waits in a pull request.
func waitsForMerge(p Pipeline) bool {
	return slices.ContainsFunc(p.Status.Published, func(one v1alpha1.Published) bool { return one.PullRequest.Waits() })
}

// isBad reports whether a state needs attention.
func isBad(state string) bool {
	return slices.Contains([]string{StateInvalid, StateFailing, StateStalled, StateDrifted}, state)
}

func (s *Server) reconcileFromPage(ctx context.Context, names []string, force bool) error {
	s.Catalog.Wake()
	_, err := s.requestRuns(ctx, names, force)
	return err
}

func (s *Server) confirmRemovals(ctx context.Context, names []string, orphan bool) error {
	if s.Keeper == nil {
		return prune.ErrNotGone
	}
	return s.Keeper.Confirm(ctx, names, orphan)
}

// findAction returns the action with a name.
func findAction(name string) (action, bool) {
	i := slices.IndexFunc(actions, func(a action) bool { return a.Name == name })
	if i < 0 {
		return action{}, false
	}
	return actions[i], true
}

// button is an action as a page offers it.
type button struct{ Name, Label string }

// buttonsOf returns the buttons that a user has for a pipeline. A user who cannot submit forms has none.
func (s *Server) buttonsOf(r *http.Request, p Pipeline, e catalog.Entry) (out []button) {
	if e.Err != nil || e.Pipeline == nil || requestOf(r).credential == "" {
		return nil
	}
	for _, a := range actions {
		if a.Subject == ofPipeline && s.supportsAction(a) && requestPrincipal(r).May(a.Role, e.Pipeline.Metadata.Namespace) && (a.IsOffered == nil || a.IsOffered(p, e.Pipeline)) {
			label := ""
			if a.LabelFor != nil {
				label = a.LabelFor(p)
			}
			out = append(out, button{a.Name, cmp.Or(label, a.Label)})
		}
	}
	return out
}

// buttonsForAll returns the buttons of a subject for several pipelines, restricted to those that the user may
// change.
func (s *Server) buttonsForAll(r *http.Request, of subject) (out []button) {
	for _, a := range actions {
		if a.Subject == of && s.supportsAction(a) && requestOf(r).credential != "" && requestPrincipal(r).MaySomewhere(a.Role) {
			out = append(out, button{a.Name, a.Label})
		}
	}
	return out
}

// checkAction returns the status code of the answer and why the user may not perform an action on pipelines; a
// pipeline that they may not see is treated as non-existent.
func (s *Server) checkAction(who access.Principal, a action, names []string) (code int, err error) {
	if len(names) == 0 {
		return http.StatusBadRequest, errors.New("no pipeline is chosen")
	}
	if a.Subject == ofRemoval {
		err := checkRemovable(who, names)
		switch {
		case errors.Is(err, prune.ErrNotGone):
			return http.StatusNotFound, err
		case err != nil:
			return http.StatusForbidden, err
		}
		return 0, nil
	}
	for _, name := range names {
		e, ok := s.visibleEntry(who, name)
		switch {
		case !ok:
			return http.StatusNotFound, fmt.Errorf("there is no pipeline %s", name)
		case e.Err != nil:
			return http.StatusNotFound, e.Err
		case !who.May(a.Role, e.Pipeline.Metadata.Namespace):
			return http.StatusForbidden, fmt.Errorf("changing pipeline %s: %w", name, errNotYours)
		}
	}
	return 0, nil
}
