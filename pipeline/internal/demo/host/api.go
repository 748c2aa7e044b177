// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// apiRoutes are the calls below /api/v1/repos/OWNER/NAME.
var apiRoutes = map[string]func(r *Repository, w http.ResponseWriter, request *http.Request){
	"GET /pulls":                     apiPulls,
	"POST /pulls":                    apiOpen,
	"GET /pulls/{number}":            apiPull,
	"PATCH /pulls/{number}":          apiEdit,
	"POST /pulls/{number}/merge":     apiMerge,
	"GET /pulls/{number}/reviews":    apiNone,
	"GET /pulls/{base}/{head...}":    apiBetween,
	"GET /labels":                    apiLabels,
	"POST /labels":                   apiAddLabel,
	"POST /issues/{number}/labels":   apiLabel,
	"POST /issues/{number}/comments": apiAddComment,
	"GET /commits/{commit}/status":   apiStatus,
}

// encode returns a value as JSON. Only values that JSON has are passed to it.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

func writeAnswer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(encode(value))
}

func writeProblem(w http.ResponseWriter, code int, err error) {
	writeAnswer(w, code, map[string]string{"message": err.Error()})
}

// readBody reads the JSON of a request, and answers the request itself if that fails.
func readBody(w http.ResponseWriter, r *http.Request, into any) bool {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<20))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		writeProblem(w, http.StatusUnprocessableEntity, err)
	}
	return err == nil
}

// numberOf returns the number of a pull request in the path of a request, or 0 for a text that is none.
func numberOf(r *http.Request) int64 {
	number, _ := strconv.ParseInt(r.PathValue("number"), 10, 64)
	return number
}

// apiNone answers an empty list.
func apiNone(_ *Repository, w http.ResponseWriter, _ *http.Request) {
	writeAnswer(w, http.StatusOK, []any{})
}

// answerOf returns a pull request as Gitea does. The caller holds the lock.
func (r *Repository) answerOf(p *pull) map[string]any {
	state := "open"
	if !p.isOpen() {
		state = "closed"
	}
	var labels []label
	for _, one := range r.labels {
		if slices.Contains(p.labels, one.ID) {
			labels = append(labels, one)
		}
	}
	branch := func(name, commit string) map[string]any {
		return map[string]any{"label": name, "ref": name, "sha": commit, "repo_id": r.id}
	}
	answer := map[string]any{
		"number": p.number, "html_url": r.PullURL(p.number), "state": state, "title": p.title, "body": p.body,
		"merged": p.merged,
		"head":   branch(p.head, r.commitOf(p)), "base": branch(p.base, r.head(p.base)), "labels": labels,
		"user":       user{author},
		"created_at": p.created, "updated_at": p.last, "content_version": p.version, "merge_commit_sha": p.mergeCommit,
	}
	if !p.isOpen() {
		answer["closed_at"] = p.closed
	}
	if p.merged {
		answer["merged_at"] = p.closed
	}
	return answer
}

// apiPulls answers one page of a list, the newest first.
func apiPulls(r *Repository, w http.ResponseWriter, request *http.Request) {
	q := request.URL.Query()
	r.mu.Lock()
	defer r.mu.Unlock()
	found := []any{}
	for _, p := range slices.Backward(r.pulls) {
		state := q.Get("state")
		if base := q.Get("base_branch"); base != "" && base != p.base || state == "closed" && p.isOpen() || state == "open" && !p.isOpen() {
			continue
		}
		found = append(found, r.answerOf(p))
	}
	writePage(w, request, found)
}

// writePage answers the part of a list that a request asks for by page and limit.
func writePage(w http.ResponseWriter, request *http.Request, all []any) {
	limit, err := strconv.Atoi(request.URL.Query().Get("limit"))
	if err != nil || limit < 1 {
		limit = 50
	}
	page, err := strconv.Atoi(request.URL.Query().Get("page"))
	if err != nil || page < 1 {
		page = 1
	}
	w.Header().Set("X-Total-Count", strconv.Itoa(len(all)))
	from := min((page-1)*limit, len(all))
	writeAnswer(w, http.StatusOK, all[from:min(from+limit, len(all))])
}

func apiOpen(r *Repository, w http.ResponseWriter, request *http.Request) {
	var in struct {
		Title, Body, Head, Base string
		Labels                  []int64
	}
	if !readBody(w, request, &in) {
		return
	}
	p, err := r.open(in.Title, in.Body, in.Head, in.Base, in.Labels)
	if err != nil {
		writeProblem(w, http.StatusUnprocessableEntity, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	writeAnswer(w, http.StatusCreated, r.answerOf(p))
}

// onPull calls do, under the lock, with the pull request of a request, or answers that there is none.
func onPull(r *Repository, w http.ResponseWriter, request *http.Request, do func(p *pull)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pullOf(numberOf(request)); p != nil {
		do(p)
		return
	}
	writeProblem(w, http.StatusNotFound, errNotFound)
}

func apiPull(r *Repository, w http.ResponseWriter, request *http.Request) {
	onPull(r, w, request, func(p *pull) { writeAnswer(w, http.StatusOK, r.answerOf(p)) })
}

// apiBetween answers the newest pull request between two branches.
func apiBetween(r *Repository, w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range slices.Backward(r.pulls) {
		if p.base == request.PathValue("base") && p.head == request.PathValue("head") {
			writeAnswer(w, http.StatusOK, r.answerOf(p))
			return
		}
	}
	writeProblem(w, http.StatusNotFound, errNotFound)
}

func apiEdit(r *Repository, w http.ResponseWriter, request *http.Request) {
	var in struct {
		Title, Body, State *string
		Version            *int `json:"content_version"`
	}
	if !readBody(w, request, &in) {
		return
	}
	if in.State != nil && *in.State == "closed" {
		_ = r.Reject(numberOf(request)) // one that is closed stays so
	}
	onPull(r, w, request, func(p *pull) {
		if in.Version != nil && *in.Version != p.version {
			writeProblem(w, http.StatusConflict, errChanged)
			return
		}
		if in.Title != nil {
			p.title = *in.Title
		}
		if in.Body != nil && *in.Body != p.body {
			p.body = *in.Body
			p.version++
		}
		p.last = time.Now()
		writeAnswer(w, http.StatusCreated, r.answerOf(p))
	})
}

func apiMerge(r *Repository, w http.ResponseWriter, request *http.Request) {
	var in struct {
		Head string `json:"head_commit_id"`
	}
	if !readBody(w, request, &in) {
		return
	}
	err := r.Merge(numberOf(request), in.Head, author)
	switch {
	case err == nil:
		w.WriteHeader(http.StatusOK)
	case errors.Is(err, errNotFound):
		writeProblem(w, http.StatusNotFound, err)
	case errors.Is(err, errChanged):
		writeProblem(w, http.StatusConflict, err)
	default:
		writeProblem(w, http.StatusMethodNotAllowed, err)
	}
}

func apiLabels(r *Repository, w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := []any{}
	for _, one := range r.labels {
		all = append(all, one)
	}
	writePage(w, request, all)
}

func apiAddLabel(r *Repository, w http.ResponseWriter, request *http.Request) {
	var in struct{ Name string }
	if !readBody(w, request, &in) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	made := label{int64(len(r.labels) + 1), in.Name}
	r.labels = append(r.labels, made)
	writeAnswer(w, http.StatusCreated, made)
}

func apiLabel(r *Repository, w http.ResponseWriter, request *http.Request) {
	var in struct{ Labels []int64 }
	if !readBody(w, request, &in) {
		return
	}
	onPull(r, w, request, func(p *pull) {
		p.labels = append(p.labels, in.Labels...)
		writeAnswer(w, http.StatusOK, []any{})
	})
}

func apiAddComment(r *Repository, w http.ResponseWriter, request *http.Request) {
	var in struct{ Body string }
	if !readBody(w, request, &in) {
		return
	}
	onPull(r, w, request, func(p *pull) {
		made := comment{ID: int64(len(r.comments) + 1), Body: in.Body, Created: time.Now(), User: user{author},
			number: p.number}
		r.comments = append(r.comments, made)
		writeAnswer(w, http.StatusCreated, made)
	})
}

// apiStatus answers all statuses of a commit at once.
func apiStatus(r *Repository, w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.statuses[request.PathValue("commit")]
	writeAnswer(w, http.StatusOK, map[string]any{"statuses": found, "total_count": len(found)})
}
