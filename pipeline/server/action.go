// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	// Asks returns what is asked about some pipelines, with the text of the button, where that is not the same for all; "" where nothing
	// is asked. It may be nil.
	Asks func(h *actionHandler, pipelines []string) (label, question string)
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
	Plan func(h *actionHandler, r *http.Request, pipelines []string) ([]planData, error)
	// Do does it with pipelines that the request may do it with.
	Do func(h *actionHandler, ctx context.Context, pipelines []string) error
	// Route is the path of the API that performs, checks and records it, instead of Do.
	Route string
}

// retryAction is the name of the action that renders and publishes again, and reverts what others have changed.
const retryAction = "retry"

// actions are the buttons, in the order in which they are shown.
var actions = []action{
	{
		Name: retryAction, Label: "Retry", Done: "asked to try again", Role: access.Operate,
		IsOffered: func(p Pipeline, _ *v1alpha1.RenderPipeline) bool { return isBad(p.State) },
		Plan:      (*actionHandler).planRevert, Asks: (*actionHandler).askRevert, LabelFor: func(p Pipeline) string {
			if p.State == StateDrifted {
				return "Revert…"
			}
			return ""
		},
		Do: func(h *actionHandler, ctx context.Context, names []string) error {
			return h.reconcileFromPage(ctx, names, true)
		},
	},
	{
		Name: "reconcile", Label: "Reconcile", Done: "asked to check the source now", Role: access.Operate,
		IsOffered: func(p Pipeline, _ *v1alpha1.RenderPipeline) bool { return !isBad(p.State) && !p.Suspended },
		Do: func(h *actionHandler, ctx context.Context, names []string) error {
			return h.reconcileFromPage(ctx, names, false)
		},
	},
	{
		Name: "suspend", Label: "Suspend", Done: "suspended", Role: access.Operate,
		IsOffered: func(p Pipeline, _ *v1alpha1.RenderPipeline) bool { return !p.Suspended },
		Do: func(h *actionHandler, ctx context.Context, names []string) error {
			return h.runs.setSuspended(ctx, names, true)
		},
	},
	{
		Name: "resume", Label: "Resume", Done: "resumed", Role: access.Operate,
		IsOffered: func(p Pipeline, spec *v1alpha1.RenderPipeline) bool { return p.Suspended && !spec.Spec.Suspend },
		Do: func(h *actionHandler, ctx context.Context, names []string) error {
			return h.runs.setSuspended(ctx, names, false)
		},
	},
	{
		Name: "promote", Label: "Promote", Done: "promoted", Role: access.Operate, Route: "/api/v1/promote",
		Question:  "Merge or open what is waiting now, without the conditions of the policies? The host's branch protection still applies.",
		IsOffered: func(p Pipeline, _ *v1alpha1.RenderPipeline) bool { return p.Suspended || waitsForMerge(p) },
	},
	{
		Name: "hold", Label: "Hold", Done: "put on hold", Role: access.Operate, Route: "/api/v1/hold",
		IsOffered: func(p Pipeline, _ *v1alpha1.RenderPipeline) bool { return !p.Suspended && len(p.Status.Published) > 0 },
	},
	{
		Name: "rollback", Label: "Roll back", Done: "asked to be rolled back", Role: access.Operate, Route: "/api/v1/rollback", Plan: (*actionHandler).planRollback,
		Question:  "Undo the last publish of these, and of the pipelines that were published with it? They are on hold afterwards.",
		IsOffered: func(p Pipeline, _ *v1alpha1.RenderPipeline) bool { return len(p.Status.Published) > 0 },
	},
	{
		Name: "remove", Label: "Approve", Done: "approved for removal", Role: access.Administer, Subject: ofRemoval,
		Question: "Remove the published files of these, by their deletion policies? A cluster that applies them deletes the objects.",
		Do: func(h *actionHandler, ctx context.Context, names []string) error {
			return h.catalogs.confirmRemovals(ctx, names, false)
		},
	},
	{
		Name: "orphan", Label: "Leave files", Done: "approved to go without their files", Role: access.Administer, Subject: ofRemoval,
		Question: "Forget these, and keep their published files? No pipeline owns the files then.",
		Do: func(h *actionHandler, ctx context.Context, names []string) error {
			return h.catalogs.confirmRemovals(ctx, names, true)
		},
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

func (h *actionHandler) reconcileFromPage(ctx context.Context, names []string, force bool) error {
	h.views.catalog.Wake()
	_, err := h.runs.requestRuns(ctx, names, force)
	return err
}

func (h *catalogHandler) confirmRemovals(ctx context.Context, names []string, orphan bool) error {
	if h.keeper == nil {
		return prune.ErrNotGone
	}
	return h.keeper.Confirm(ctx, names, orphan)
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
func buttonsOf(r *http.Request, p Pipeline, e catalog.Entry) (out []button) {
	if e.Err != nil || e.Pipeline == nil || requestOf(r).credential == "" {
		return nil
	}
	for _, a := range actions {
		if a.Subject == ofPipeline && requestPrincipal(r).May(a.Role, e.Pipeline.Metadata.Namespace) && (a.IsOffered == nil || a.IsOffered(p, e.Pipeline)) {
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
func buttonsForAll(r *http.Request, of subject) (out []button) {
	for _, a := range actions {
		if a.Subject == of && requestOf(r).credential != "" && requestPrincipal(r).MaySomewhere(a.Role) {
			out = append(out, button{a.Name, a.Label})
		}
	}
	return out
}

// checkAction returns the status code of the answer and why the user may not perform an action on pipelines; a
// pipeline that they may not see is treated as non-existent.
func (h *actionHandler) checkAction(who access.Principal, a action, names []string) (code int, err error) {
	if len(names) == 0 {
		return http.StatusBadRequest, errors.New("no pipeline is chosen")
	}
	if a.Subject == ofRemoval {
		err = checkRemovable(who, names)
		return codeOfError(err), err
	}
	for _, name := range names {
		if code, err = h.views.checkRole(who, a.Role, name); err != nil {
			return code, err
		}
	}
	return 0, nil
}

// postAPI posts to a route of the API as the sender of a request. The error is the API's.
func postAPI(api http.Handler, r *http.Request, path string, body Request) (code int, err error) {
	text, err := json.Marshal(body)
	if err != nil {
		return http.StatusInternalServerError, fmt.Errorf("asking the API: %w", err)
	}
	asked, err := http.NewRequestWithContext(r.Context(), http.MethodPost, path, bytes.NewReader(text))
	if err != nil {
		return http.StatusInternalServerError, fmt.Errorf("asking the API: %w", err)
	}
	asked.RemoteAddr, asked.Host, asked.TLS = r.RemoteAddr, r.Host, r.TLS
	for _, name := range []string{"Sec-Fetch-Site", "Origin"} { // the origin of the form was already checked, and is checked again
		if value := r.Header.Get(name); value != "" {
			asked.Header.Set(name, value)
		}
	}
	answer := &answerBuffer{header: http.Header{}, code: http.StatusOK}
	api.ServeHTTP(answer, asked)
	if answer.code >= 300 {
		var failed struct{ Error string }
		if json.Unmarshal(answer.body.Bytes(), &failed) != nil || failed.Error == "" {
			failed.Error = http.StatusText(answer.code)
		}
		return answer.code, errors.New(failed.Error)
	}
	return answer.code, nil
}

// answerBuffer buffers the response of a handler.
type answerBuffer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answerBuffer) Header() http.Header         { return a.header }
func (a *answerBuffer) WriteHeader(code int)        { a.code = code }
func (a *answerBuffer) Write(p []byte) (int, error) { return a.body.Write(p) }
