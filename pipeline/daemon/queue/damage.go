// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
)

// serverLog forwards the messages of the embedded server about its files; the rest of its log is not useful.
type serverLog struct {
	log *slog.Logger
	// broken is set when the server reports that it could not write: after that a stream neither stores nor removes
	// messages, not even expired ones. Waiting for a lock that cannot be dropped would block forever without an
	// error.
	broken *atomic.Bool
}

func (s serverLog) Noticef(string, ...any) {}
func (s serverLog) Debugf(string, ...any)  {}
func (s serverLog) Tracef(string, ...any)  {}

func (s serverLog) Warnf(format string, v ...any) {
	s.log.Warn("the embedded NATS server", "says", fmt.Sprintf(format, v...))
}

func (s serverLog) Errorf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	if strings.Contains(text, writeFailed) {
		s.broken.Store(true)
	}
	s.log.Error("the embedded NATS server", "says", text)
}

// writeFailed is part of the message that nats-server (2.15.2, server/filestore.go, setWriteErr) logs when it
// abandons a stream's files.
const writeFailed = "Critical write error"

func (s serverLog) Fatalf(format string, v ...any) { s.Errorf(format, v...) }

// openedName is saved before any other state, so that it is known whether any existed.
const openedName = "queue/opened"

// reportDamage reports the files that the embedded server could not read. Lost events and jobs do no harm, because
// all pipelines are planned when the daemon starts; lost requests of people deserve their attention. used reports
// whether the directory was used before; lost lists streams already known to be lost.
func (q *Queue) reportDamage(ctx context.Context, used bool, lost []string) error {
	_, _, opened, err := q.Load(ctx, openedName)
	if err != nil {
		return err
	}
	state := "KV_" + q.prefixedName("STATE")
	if used && !opened {
		lost = append(lost, state)
	}
	for _, name := range []string{q.prefixedName("EVENTS"), q.prefixedName("WORK"), state} {
		some, err := q.lostMessages(ctx, name)
		if err != nil {
			return err
		}
		if some {
			lost = append(lost, name)
		}
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		q.opts.Log.Error("files of the queue were damaged and some of their records are lost; all pipelines are checked again. "+
			"If state is among them, suspensions may be lost, and all pipelines are held: see prerig daemon status and prerig daemon resume", "directory", q.opts.Dir, "lost", slices.Compact(lost))
	}
	if slices.Contains(lost, state) {
		if err := q.holdPipelines(ctx); err != nil {
			return err
		}
	}
	if !opened {
		if err := q.Save(ctx, openedName, []byte("1")); err != nil {
			return err
		}
	}
	if used {
		return nil
	}
	return markDirectoryUsed(q.opts.Dir)
}

// maxDetails bounds for how many messages that were removed the server is asked for details: it lists every one.
const maxDetails = 500_000

// lostMessages reports whether messages of a stream could not be read. The server reports them only together with
// all removed messages.
func (q *connection) lostMessages(ctx context.Context, name string) (bool, error) {
	var info struct {
		State struct {
			Removed int       `json:"num_deleted"`
			Lost    *struct{} `json:"lost"`
		} `json:"state"`
	}
	for _, question := range []string{"", `{"deleted_details":true}`} {
		answer, err := q.nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+name, []byte(question))
		if err == nil {
			err = json.Unmarshal(answer.Data, &info)
		}
		if err != nil {
			return false, fmt.Errorf("looking at the stream %s: %w", name, err)
		}
		if info.State.Removed > maxDetails {
			break
		}
	}
	return info.State.Lost != nil, nil
}
