// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

// MaxBody is the largest delivery that is read, in bytes: what Flux's receivers accept too.
const MaxBody = 3 << 20

// Store keeps events until they were acted on.
type Store interface {
	// Watches reports whether any pipeline could be touched by one of the changes. It must be quick.
	Watches(changes []Change) bool
	// Put stores the event durably before it returns. It gives true for an event whose ID is stored already.
	Put(ctx context.Context, e Event) (duplicate bool, err error)
}

// Handler answers POST /hook/NAME. A delivery gets 202 only after it is stored; a sender that gets anything else but a 4xx
// may send again.
type Handler struct {
	receivers map[string]Receiver
	store     Store
	log       *slog.Logger
	now       func() time.Time
	observe   func(receiver, outcome string)
}

// Option changes a Handler.
type Option func(*Handler)

// WithClock sets the clock against which signed timestamps are checked.
func WithClock(now func() time.Time) Option { return func(h *Handler) { h.now = now } }

// WithLogger sets the logger; the default discards.
func WithLogger(log *slog.Logger) Option { return func(h *Handler) { h.log = log } }

// WithObserver calls observe with the receiver's name (empty where there is none of that name) and the outcome of every
// delivery: stored, duplicate, unwatched, ignored, unknown, refused, malformed, large or failed.
func WithObserver(observe func(receiver, outcome string)) Option {
	return func(h *Handler) { h.observe = observe }
}

// NewHandler returns a handler for the receivers, whose names must be distinct.
func NewHandler(receivers []Receiver, store Store, opts ...Option) (*Handler, error) {
	h := &Handler{receivers: map[string]Receiver{}, store: store, log: slog.New(slog.DiscardHandler), now: time.Now,
		observe: func(string, string) {}}
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
	return h, nil
}

// ServeHTTP answers one delivery.
func (h *Handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name := strings.TrimPrefix(req.URL.Path, "/hook/")
	r, ok := h.receivers[name]
	if !ok {
		h.writeAnswer(w, "", http.StatusNotFound, "unknown", Event{}, nil)
		return
	}
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		h.writeAnswer(w, name, http.StatusMethodNotAllowed, "malformed", Event{}, errors.New("only POST is answered"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, MaxBody))
	if err != nil {
		status, outcome := http.StatusBadRequest, "malformed"
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			status, outcome = http.StatusRequestEntityTooLarge, "large"
		}
		h.writeAnswer(w, name, status, outcome, Event{}, err)
		return
	}
	e, err := r.Read(req.Header, req.URL.Query().Get("token"), body, h.now())
	switch {
	case errors.Is(err, ErrSignature):
		h.writeAnswer(w, name, http.StatusUnauthorized, "refused", e, err)
	case err != nil:
		h.writeAnswer(w, name, http.StatusBadRequest, "malformed", e, err)
	case len(e.Changes) == 0:
		h.writeAnswer(w, name, http.StatusOK, "ignored", e, nil)
	case !h.store.Watches(e.Changes):
		h.writeAnswer(w, name, http.StatusOK, "unwatched", e, nil)
	default:
		h.putEvent(w, req, e)
	}
}

// putEvent stores the event. A repeated delivery is answered with success, as some senders repeat until they see it (the
// distribution registry does), and has no effect.
func (h *Handler) putEvent(w http.ResponseWriter, req *http.Request, e Event) {
	duplicate, err := h.store.Put(req.Context(), e)
	switch {
	case err != nil:
		w.Header().Set("Retry-After", "5")
		h.writeAnswer(w, e.Receiver, http.StatusServiceUnavailable, "failed", e, err)
	case duplicate:
		h.writeAnswer(w, e.Receiver, http.StatusOK, "duplicate", e, nil)
	default:
		h.writeAnswer(w, e.Receiver, http.StatusAccepted, "stored", e, nil)
	}
}

// writeAnswer tells the sender the outcome and, for a malformed delivery, what is wrong; everything else stays in the log.
func (h *Handler) writeAnswer(w http.ResponseWriter, receiver string, status int, outcome string, e Event, err error) {
	h.observe(receiver, outcome)
	reply := map[string]string{"outcome": outcome}
	if e.ID != "" {
		reply["id"] = e.ID
	}
	if err != nil && outcome == "malformed" {
		reply["error"] = err.Error()
	}
	level := slog.LevelInfo
	if err != nil {
		level = slog.LevelWarn
	}
	h.log.Log(context.Background(), level, "delivery", "receiver", receiver, "outcome", outcome, "event", e.ID, "error", err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(reply)
}
