// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
)

// ErrBroken means that the embedded server could not write for a while, and that it must be opened again: it keeps the
// errors of its files, and would neither store nor hand out anything any more.
var ErrBroken = errors.New("the embedded NATS server could not write to its directory and is started again")

// noted remembers that a write failed.
func (q *Queue) noted(err error) error {
	own := errors.Is(err, ErrChanged) || errors.Is(err, context.Canceled) || errors.Is(err, nats.ErrMaxPayload)
	if err != nil && q.server != nil && !own {
		q.broken.Store(true)
	}
	return err
}

// Watch returns ErrBroken after a write failed, as soon as the directory can be written again. It returns nil when ctx is
// done. Servers elsewhere are watched by others.
func (q *Queue) Watch(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if q.broken.Load() && writable(q.opts.Dir) {
				return ErrBroken
			}
		}
	}
}

// writable tries whether there is room for more than a handful of messages.
func writable(dir string) bool {
	name := filepath.Join(dir, "prerig.probe")
	defer os.Remove(name)
	file, err := os.Create(name)
	if err != nil {
		return false
	}
	defer file.Close()
	if _, err := file.Write(make([]byte, 1<<20)); err != nil {
		return false
	}
	return file.Sync() == nil
}
