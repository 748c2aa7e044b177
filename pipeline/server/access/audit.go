// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"golang.org/x/time/rate"
)

// Outcomes of what is recorded.
const (
	Done    = "done"
	Refused = "refused"
	Failed  = "failed"
)

// Record is an action that a principal performed or attempted.
type Record struct {
	Who Principal
	// Address that it came from: of a proxy, where one is in between.
	Address string
	// Action is reconcile, suspend, resume, remove, sign-in, sign-out, or an unauthorised request.
	Action    string
	Pipelines []string
	// Outcome is Done, Refused or Failed.
	Outcome string
	// Reason describes in more detail why the action was denied or failed.
	Reason string
}

// Audit records who did what: in the log, and in a file of JSON lines if one is configured. It is safe for
// concurrent use. A nil Audit discards all records.
type Audit struct {
	log  *slog.Logger
	file string
	// mu keeps lines whole.
	mu sync.Mutex
	// refused bounds the lines of those who may not: anybody could fill the disk with them.
	refused *rate.Limiter
	missed  int
}

// refusedPerSecond and refusedAtOnce bound how many refused attempts are recorded.
const (
	refusedPerSecond = 5
	refusedAtOnce    = 50
)

// OpenAudit returns an Audit that writes to the log and, unless file is "", appends to a file that only its owner
// may read. It returns an error if the file cannot be written to.
func OpenAudit(file string, log *slog.Logger) (*Audit, error) {
	a := &Audit{log: log, file: file, refused: rate.NewLimiter(refusedPerSecond, refusedAtOnce)}
	if file == "" {
		return a, nil
	}
	f, err := a.openAuditFile()
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	return a, f.Close()
}

// openAuditFile opens the file for a line. It is opened for each, so that it can be moved away at any time.
func (a *Audit) openAuditFile() (*os.File, error) {
	return os.OpenFile(a.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

// Write records an action. Denied actions and those of unknown principals are rate-limited, and the next record
// contains the number of omitted ones.
func (a *Audit) Write(r Record) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if (r.Outcome == Refused || r.Who.Kind == "") && !a.refused.Allow() {
		a.missed++
		return
	}
	fields := []slog.Attr{slog.String("who", r.Who.String()), slog.String("action", r.Action), slog.String("outcome", r.Outcome), slog.String("address", r.Address)}
	if len(r.Pipelines) > 0 {
		fields = append(fields, slog.Any("pipelines", r.Pipelines))
	}
	if r.Reason != "" {
		fields = append(fields, slog.String("reason", r.Reason))
	}
	if a.missed > 0 {
		fields = append(fields, slog.Int("refusedAndLeftOut", a.missed))
		a.missed = 0
	}
	level := slog.LevelInfo
	if r.Outcome == Refused {
		level = slog.LevelWarn
	}
	a.log.LogAttrs(context.Background(), level, "audit", fields...)
	if a.file == "" {
		return
	}
	f, err := a.openAuditFile()
	if err == nil {
		line := &lineWriter{f: f}
		slog.New(slog.NewJSONHandler(line, nil)).LogAttrs(context.Background(), level, "audit", fields...)
		err = errors.Join(line.err, f.Close())
	}
	if err != nil {
		a.log.Error("the audit log cannot be written to; its line is in this log only", "error", err)
	}
}

// lineWriter keeps the error that a slog handler would swallow.
type lineWriter struct {
	f   *os.File
	err error
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n, err := w.f.Write(p)
	w.err = errors.Join(w.err, err)
	return n, err
}
