// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
)

// serverLog hands on what the embedded server has to say about its files; the rest of it is of no use to anybody.
type serverLog struct{ log *slog.Logger }

func (s serverLog) Noticef(string, ...any) {}
func (s serverLog) Debugf(string, ...any)  {}
func (s serverLog) Tracef(string, ...any)  {}

func (s serverLog) Warnf(format string, v ...any) {
	s.log.Warn("the embedded NATS server", "says", fmt.Sprintf(format, v...))
}

func (s serverLog) Errorf(format string, v ...any) {
	s.log.Error("the embedded NATS server", "says", fmt.Sprintf(format, v...))
}

func (s serverLog) Fatalf(format string, v ...any) { s.Errorf(format, v...) }

// forgetConsumers removes what the last server kept about deliveries under way: they are begun anew, and a file of it that
// was damaged would keep the server from making the consumer.
func forgetConsumers(dir string) error {
	known, err := filepath.Glob(filepath.Join(dir, "jetstream", "*", "streams", "*", "obs", "*"))
	if err != nil {
		return fmt.Errorf("listing consumers: %w", err)
	}
	for _, name := range known {
		if err := os.RemoveAll(name); err != nil {
			return fmt.Errorf("removing what is left of a consumer: %w", err)
		}
	}
	return nil
}

// openedName is saved first of all, so that it is known whether there was any state.
const openedName = "queue/opened"

// reportDamage says what the embedded server could not read of its files. Events and jobs that are lost do no harm, as all
// pipelines are looked at when the daemon starts; what people have asked for is worth a look by them. The directory was
// used before or is new.
func (q *Queue) reportDamage(ctx context.Context, used bool) error {
	_, _, opened, err := q.Load(ctx, openedName)
	if err != nil {
		return err
	}
	var lost []string
	if used && !opened {
		lost = append(lost, q.name("STATE"))
	}
	for _, name := range []string{q.name("EVENTS"), q.name("WORK"), "KV_" + q.name("STATE")} {
		answer, err := q.nc.RequestWithContext(ctx, "$JS.API.STREAM.INFO."+name, nil)
		if err != nil {
			return fmt.Errorf("looking at the stream %s: %w", name, err)
		}
		var info struct {
			State struct {
				Lost *struct{} `json:"lost"`
			} `json:"state"`
		}
		if err := json.Unmarshal(answer.Data, &info); err != nil {
			return fmt.Errorf("looking at the stream %s: %w", name, err)
		}
		if info.State.Lost != nil {
			lost = append(lost, name)
		}
	}
	if len(lost) > 0 {
		q.opts.Log.Error("files of the queue were damaged and a part of what they held is gone; all pipelines are looked at again. "+
			"Suspensions by prerig suspend may be gone too: see prerig status", "directory", q.opts.Dir, "lost", lost)
	}
	if opened {
		return nil
	}
	return q.Save(ctx, openedName, []byte("1"))
}
