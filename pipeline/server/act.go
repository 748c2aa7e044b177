// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/server/access"
	"github.com/prerig/prerig/pipeline/server/signin"
)

// Bounds of a form with an action: in bytes, and in pipelines.
const (
	maxForm      = 1 << 20
	maxPipelines = 20_000
)

// confirmData is the page that asks before something is done.
type confirmData struct {
	Action action
	Names  []string
	// Scope is the query of the list whose pipelines are meant, "" where they are named.
	Scope string
	// Digest identifies what is asked: the answer applies only to this.
	Digest, CSRF, To string
	// Changed reports whether it is asked again because the affected pipelines have changed since.
	Changed bool
	// Plans are what it would do, PlanError why that is not known.
	Plans     []planData
	PlanError string
}

// actionHandler performs the actions of the page's buttons.
type actionHandler struct {
	pages    *pageWriter
	views    *pipelineViews
	runs     *runControl
	catalogs *catalogHandler
	promoter *promotion.Promoter // nil for none
	// api serves the API, which performs some of them.
	api   http.Handler
	audit *access.Audit
	log   *slog.Logger
}

// performPageAction performs the action of a button of the page.
func (h *actionHandler) performPageAction(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		h.pages.writeFailurePage(w, r, http.StatusBadRequest, "The form is too large or malformed.")
		return
	}
	wanted := r.PostForm.Get("action")
	if !h.pages.forms.isOwnForm(r) {
		recordAuditLine(h.audit, r, "form "+cutText(wanted, 40), nil, access.Refused, "the form was not given to who sends it")
		h.pages.writeFailurePage(w, r, http.StatusForbidden, "This form was made for another session. Go back, load the page again, and try once more.")
		return
	}
	a, ok := findAction(wanted)
	if !ok {
		h.pages.writeFailurePage(w, r, http.StatusBadRequest, "There is no such button.")
		return
	}
	names, err := h.pipelinesChosenInForm(r, a)
	code := http.StatusBadRequest
	if err == nil {
		code, err = h.checkAction(requestPrincipal(r), a, names)
	}
	if err != nil {
		recordAuditLine(h.audit, r, a.Name, names, access.Refused, err.Error())
		h.pages.writeFailurePage(w, r, code, errorAsSentence(err))
		return
	}
	if a.Asks != nil {
		if label, question := a.Asks(h, names); question != "" {
			a.Label, a.Question = label, question
		}
	}
	digest := digestOf(a.Name, names)
	if confirmed := r.PostForm.Get("confirmed"); (a.Question != "" || len(names) > 1) && confirmed != digest {
		data := confirmData{
			Action: a, Names: names, Scope: r.PostForm.Get("scope"), Digest: digest, CSRF: h.pages.forms.formToken(r), To: signin.LocalPath(r.PostForm.Get("to")), Changed: confirmed != "",
		}
		data.Plans, data.PlanError = h.planOf(r, a, names)
		h.pages.writePage(w, r, "confirm", a.Label, data)
		return
	}
	h.finishAction(w, r, a, names)
}

// pipelinesChosenInForm returns the names that a form is about, sorted: those it lists, or those of a list for which
// the user may perform the action.
func (h *actionHandler) pipelinesChosenInForm(r *http.Request, a action) ([]string, error) {
	names := slices.Clone(r.PostForm["name"])
	if scope := r.PostForm.Get("scope"); scope != "" {
		values, err := url.ParseQuery(scope)
		if err != nil {
			return nil, errors.New("the form names a list that is none")
		}
		names = h.views.namesInList(requestPrincipal(r), readQuery(values), a)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > maxPipelines {
		return nil, errors.New("more pipelines are chosen than " + strconv.Itoa(maxPipelines))
	}
	return names, nil
}

// digestOf identifies an action and its pipelines.
func digestOf(name string, pipelines []string) string {
	sum := sha256.Sum256([]byte(name + "\x00" + strings.Join(pipelines, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// finishAction does it and leads back to where the button was.
func (h *actionHandler) finishAction(w http.ResponseWriter, r *http.Request, a action, names []string) {
	if a.Route != "" {
		code, err := postAPI(h.api, r, a.Route, Request{Pipelines: names})
		if err != nil {
			h.pages.writeFailurePage(w, r, code, errorAsSentence(err))
			return
		}
		h.redirectToPage(w, r, a, names)
		return
	}
	err := a.Do(h, r.Context(), names)
	switch {
	case errors.Is(err, prune.ErrNotGone):
		recordAuditLine(h.audit, r, a.Name, names, access.Refused, err.Error())
		h.pages.writeFailurePage(w, r, http.StatusNotFound, errorAsSentence(err))
		return
	case err != nil:
		recordAuditLine(h.audit, r, a.Name, names, access.Failed, err.Error())
		h.pages.writeFailurePage(w, r, http.StatusServiceUnavailable, "It could not be stored; try it again.")
		return
	}
	recordAuditLine(h.audit, r, a.Name, names, access.Done, "")
	h.log.Info("done on the page", "action", a.Name, "pipelines", len(names))
	h.redirectToPage(w, r, a, names)
}

// redirectToPage redirects to the page with the button, which reports what was done.
func (h *actionHandler) redirectToPage(w http.ResponseWriter, r *http.Request, a action, names []string) {
	if err := h.views.store.Sync(r.Context()); err != nil {
		h.log.Debug("the page may show what was before", "error", err)
	}
	setSecurityHeaders(w, "")
	http.Redirect(w, r, addNoticeToURL(signin.LocalPath(r.PostForm.Get("to")), a.Name, len(names)), http.StatusSeeOther)
}

// Query parameters that describe the last action.
const (
	noticeAction = "done"
	noticeNumber = "n"
)

// addNoticeToURL adds to an address of ours what was just done.
func addNoticeToURL(to, name string, n int) string {
	u, err := url.Parse(to)
	if err != nil {
		return "/"
	}
	values := u.Query()
	values.Set(noticeAction, name)
	values.Set(noticeNumber, strconv.Itoa(n))
	u.RawQuery = values.Encode()
	return u.String()
}

// noticeFromURL describes the last action according to the URL. Anyone can craft a URL: the notice can only claim that
// something was done.
func noticeFromURL(r *http.Request) string {
	values := r.URL.Query()
	a, ok := findAction(values.Get(noticeAction))
	n, err := strconv.Atoi(values.Get(noticeNumber))
	switch {
	case !ok || err != nil || n < 1 || n > maxPipelines || requestOf(r).credential == "":
		return ""
	case n == 1:
		return "1 pipeline " + a.Done + "."
	}
	return strconv.Itoa(n) + " pipelines " + a.Done + "."
}

// withoutNotice returns the address of a request without what was just done, for the forms on its page to lead back to.
func withoutNotice(r *http.Request) string {
	values := r.URL.Query()
	values.Del(noticeAction)
	values.Del(noticeNumber)
	if len(values) == 0 {
		return r.URL.Path
	}
	return r.URL.Path + "?" + values.Encode()
}

func cutText(text string, n int) string {
	if len(text) > n {
		return strings.ToValidUTF8(text[:n], "") + "…"
	}
	return text
}
