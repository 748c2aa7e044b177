// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

// logText is a log that is read while it is written.
type logText struct {
	sync.Mutex
	bytes.Buffer
}

func (l *logText) Write(text []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.Buffer.Write(text)
}

func (l *logText) has(text string) bool {
	l.Lock()
	defer l.Unlock()
	return strings.Contains(l.String(), text)
}

// TestServerThatRefusesIsNamed: the log names the reason at once, while Open goes on trying, and so does the error.
func TestServerThatRefusesIsNamed(t *testing.T) {
	const reason = "connection refused"
	log := &logText{}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for !log.has(reason) && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	_, err := Open(ctx, Options{URL: "nats://127.0.0.1:1", AckWait: time.Second, Remember: time.Hour, MaxStore: 40 << 20, Log: slog.New(slog.NewTextHandler(log, nil))})
	if err == nil || !strings.Contains(err.Error(), "connecting to NATS: ") || !strings.Contains(err.Error(), reason) || !log.has(reason) {
		t.Errorf("have the error %v, and the log %s", err, log)
	}
}
