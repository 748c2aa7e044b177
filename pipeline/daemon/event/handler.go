// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Store keeps events until they were acted on.
type Store interface {
	// Watches reports whether any pipeline could be touched by one of the changes. It must be quick.
	Watches(changes []Change) bool
	// Put stores the event durably before it returns. It returns true for an event whose ID is already stored.
	Put(ctx context.Context, e Event) (duplicate bool, err error)
}

// Handler answers POST /hook/NAME. A delivery gets 202 only after it is stored; a sender that gets anything other
// than 202 or a 4xx may send again.
type Handler struct {
	receivers map[string]Receiver
	store     Store
	log       *slog.Logger
	now       func() time.Time
	observe   func(receiver, outcome string)
	bodies    *bodyReader
	moves     *moves
	// warnings bounds the log lines about what was not accepted; unlogged counts those that it left out since the last one.
	warnings *rate.Limiter
	unlogged atomic.Int64
}

// At most so many deliveries that were not accepted are logged: anybody can send them.
const (
	warningsPerSecond = 5
	warningsAtOnce    = 20
)

// Option changes a Handler.
type Option func(*Handler)

// WithClock sets the clock against which signed timestamps are checked.
func WithClock(now func() time.Time) Option { return func(h *Handler) { h.now = now } }

// WithLogger sets the logger; the default discards.
func WithLogger(log *slog.Logger) Option { return func(h *Handler) { h.log = log } }

// WithObserver calls observe with the receiver's name (empty if no receiver has that name) and the outcome of every
// delivery: stored, duplicate, unwatched, ignored, unknown, refused, malformed, large, slow, busy or failed.
func WithObserver(observe func(receiver, outcome string)) Option {
	return func(h *Handler) { h.observe = observe }
}

// NewHandler returns a handler for the receivers, whose names must be distinct.
func NewHandler(receivers []Receiver, store Store, opts ...Option) (*Handler, error) {
	h := &Handler{receivers: map[string]Receiver{}, store: store, log: slog.New(slog.DiscardHandler), now: time.Now,
		observe: func(string, string) {}, bodies: newBodyReader(), warnings: rate.NewLimiter(warningsPerSecond, warningsAtOnce)}
	for _, r := range receivers {
		if err := r.Validate(); err != nil {
			return nil, err
		}
		if _, ok := h.receivers[r.Name]; ok {
			return nil, errors.New("setting up receivers: there are two with the name " + r.Name)
		}
		h.receivers[r.Name] = r
	}
	for _, opt := range opts {
		opt(h)
	}
	h.moves = newMoves(h.now())
	return h, nil
}

// ServeHTTP answers one delivery.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name := strings.TrimPrefix(req.URL.Path, "/hook/")
	r, ok := h.receivers[name]
	if !ok {
		h.writeAnswer(w, req, "", http.StatusNotFound, "unknown", Event{}, nil)
		return
	}
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		h.writeAnswer(w, req, name, http.StatusMethodNotAllowed, "malformed", Event{}, errors.New("only POST is answered"))
		return
	}
	token := req.URL.Query().Get("token")
	if err := r.CheckHeaders(req.Header, token, h.now()); err != nil {
		w.Header().Set("Connection", "close") // what follows is not read
		h.writeAnswer(w, req, name, http.StatusUnauthorized, "refused", Event{}, err)
		return
	}
	body, release, err := h.bodies.readRequestBody(w, req)
	defer release()
	if err != nil {
		h.answerUnread(w, req, name, err)
		return
	}
	e, err := r.Read(req.Header, token, body, h.now())
	switch {
	case errors.Is(err, ErrSignature):
		h.writeAnswer(w, req, name, http.StatusUnauthorized, "refused", e, err)
	case errors.Is(err, errWrongKind):
		h.writeAnswer(w, req, name, http.StatusUnprocessableEntity, "malformed", e, err)
	case err != nil:
		h.writeAnswer(w, req, name, http.StatusBadRequest, "malformed", e, err)
	case len(e.Changes) == 0:
		h.writeAnswer(w, req, name, http.StatusOK, "ignored", e, nil)
	case !h.store.Watches(e.Changes):
		h.writeAnswer(w, req, name, http.StatusOK, "unwatched", e, nil)
	default:
		if r.isNamedByBody(req.Header, body) {
			e.ID = h.moves.eventIDForBody(e)
		}
		h.putEvent(w, req, e)
	}
}

// answerUnread answers a delivery whose body was not read to its end.
func (h *Handler) answerUnread(w http.ResponseWriter, req *http.Request, name string, err error) {
	w.Header().Set("Connection", "close")
	status, outcome := http.StatusBadRequest, "malformed"
	switch {
	case errors.Is(err, errBodyTooLarge):
		status, outcome = http.StatusRequestEntityTooLarge, "large"
	case errors.Is(err, errNoRoom):
		w.Header().Set("Retry-After", "5")
		status, outcome = http.StatusServiceUnavailable, "busy"
	case errors.Is(err, os.ErrDeadlineExceeded):
		status, outcome = http.StatusRequestTimeout, "slow"
	}
	h.writeAnswer(w, req, name, status, outcome, Event{}, err)
}

// putEvent stores the event. A repeated delivery is answered with success, as some senders repeat until they see it (the
// distribution registry does), and has no effect.
func (h *Handler) putEvent(w http.ResponseWriter, req *http.Request, e Event) {
	duplicate, err := h.store.Put(req.Context(), e)
	switch {
	case err != nil:
		w.Header().Set("Retry-After", "5")
		h.writeAnswer(w, req, e.Receiver, http.StatusServiceUnavailable, "failed", e, err)
	case duplicate:
		h.writeAnswer(w, req, e.Receiver, http.StatusOK, "duplicate", e, nil)
	default:
		h.writeAnswer(w, req, e.Receiver, http.StatusAccepted, "stored", e, nil)
	}
}

// writeAnswer reports to the sender the outcome and, for a malformed delivery, the error; all other details stay in
// the log.
func (h *Handler) writeAnswer(w http.ResponseWriter, req *http.Request, receiver string, status int, outcome string, e Event, err error) {
	h.observe(receiver, outcome)
	reply := map[string]string{"outcome": outcome}
	if e.ID != "" {
		reply["id"] = e.ID
	}
	if err != nil && outcome == "malformed" {
		reply["error"] = err.Error()
	}
	h.logDelivery(req, receiver, outcome, e, err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(reply)
}

// logDelivery logs every delivery that was accepted, and of the others as many as a reader can use, with where they came from.
func (h *Handler) logDelivery(req *http.Request, receiver, outcome string, e Event, err error) {
	if err == nil && outcome != "unknown" {
		h.log.Info("delivery", "receiver", receiver, "outcome", outcome, "event", e.ID)
		return
	}
	if !h.warnings.Allow() {
		h.unlogged.Add(1)
		return
	}
	args := []any{"receiver", receiver, "outcome", outcome, "remote", req.RemoteAddr}
	if via := req.Header.Get("X-Forwarded-For"); via != "" {
		args = append(args, "forwarded", via[:min(len(via), 200)])
	}
	if err != nil {
		args = append(args, "error", err)
	}
	if n := h.unlogged.Swap(0); n > 0 {
		args = append(args, "unlogged", n)
	}
	h.log.Warn("delivery", args...)
}
