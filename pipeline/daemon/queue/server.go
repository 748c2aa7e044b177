// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/prerig/prerig/pipeline/internal/process/filelock"
)

const (
	// startup is how long an embedded server may take to read its files.
	startup = 2 * time.Minute
	// handover is how long a process waits for another that uses the directory to end: a process that was asked to
	// end needs a moment for it.
	handover = 10 * time.Second
)

// openEmbedded starts the embedded server. It reads the directory only after locking it. After an error no resource
// is left open.
func (q *Queue) openEmbedded(ctx context.Context) (err error) {
	dir := q.opts.Dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the directory of the queue: %w", err)
	}
	if q.unlock, err = lockDir(ctx, dir, handover, q.opts.Log); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			q.Close()
		}
	}()
	used, err := isUsed(dir)
	if err != nil {
		return err
	}
	lost, err := emptyStreams(dir)
	if err != nil {
		return err
	}
	if err := forgetDeliveries(dir); err != nil {
		return err
	}
	if err := q.startEmbedded(ctx, dir, q.opts.MaxStore); err != nil {
		return err
	}
	if err := q.forgetDamagedDescriptions(ctx, dir); err != nil {
		return err
	}
	if err := q.prepareStreams(ctx); err != nil {
		return err
	}
	return q.reportDamage(ctx, used, lost)
}

// startEmbedded starts a server without a listener whose JetStream keeps its files under dir, and connects to it in-process. Every
// write reaches the disk before it is acknowledged.
func (q *Queue) startEmbedded(ctx context.Context, dir string, maxStore int64) error {
	s, err := server.NewServer(&server.Options{
		ServerName:         "prerig",
		DontListen:         true,
		JetStream:          true,
		StoreDir:           filepath.Clean(dir),
		SyncAlways:         true,
		NoSigs:             true,
		NoLog:              true,
		JetStreamMaxMemory: -1,
		JetStreamMaxStore:  maxStore,
	})
	if err != nil {
		return fmt.Errorf("setting up the embedded NATS server: %w", err)
	}
	s.SetLoggerV2(serverLog{q.opts.Log, &q.broken}, false, false, false)
	started := make(chan struct{})
	go func() { s.Start(); close(started) }()
	q.server, q.local = s, newLocalLocks()
	for begin := time.Now(); !s.ReadyForConnections(100 * time.Millisecond); {
		err := ctx.Err()
		if err == nil && (isClosed(started) || time.Since(begin) > startup) && !s.ReadyForConnections(time.Second) {
			err = errors.New("it did not become ready")
		}
		if err != nil {
			<-started // a server that has begun to read the files must not continue after the directory is released
			return fmt.Errorf("starting the embedded NATS server: %w", err)
		}
	}
	if q.nc, err = nats.Connect("", nats.InProcessServer(s), nats.MaxReconnects(-1), nats.Name("prerig")); err != nil {
		return fmt.Errorf("connecting to the embedded NATS server: %w", err)
	}
	return nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// lockDir keeps a second process out of the directory, whose files would not survive two servers. The lock ends with the
// process.
func lockDir(ctx context.Context, dir string, patience time.Duration, log *slog.Logger) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "prerig.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the directory of the queue: %w", err)
	}
	told := false
	for begin := time.Now(); ; {
		have, err := filelock.Try(file)
		if have {
			return func() { file.Close() }, nil
		}
		over := time.Since(begin) > patience || ctx.Err() != nil
		switch {
		case over && err == nil:
			file.Close()
			return nil, fmt.Errorf("locking the directory of the queue %s: another process uses it: end that one, or give this one a "+
				"state directory of its own (--state)", dir)
		case err != nil:
			file.Close()
			return nil, fmt.Errorf("locking the directory of the queue %s: %w", dir, err)
		case !told:
			log.Warn("another process uses the directory of the queue; waiting until it exits", "directory", dir, "at most", patience)
			told = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// dialCluster connects to a cluster and keeps reconnecting for as long as the connection exists. A node that
// disappears silently, as with its machine, is detected after about ten seconds, and the wait for another one that
// does not respond is short.
func (q *connection) dialCluster(url string, opts []nats.Option) (*nats.Conn, error) {
	warn := func(_ *nats.Conn, err error) {
		if !errors.Is(err, nats.ErrNoServers) && q.refused.Swap(&err) == nil { // a server has a more exact one
			q.opts.Log.Warn("NATS cannot be reached; trying again", "error", err)
		}
	}
	opts = append([]nats.Option{nats.Name("prerig"), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectErrHandler(warn),
		nats.ReconnectWait(500 * time.Millisecond), nats.Timeout(3 * time.Second),
		nats.PingInterval(4 * time.Second), nats.MaxPingsOutstanding(2)}, opts...)
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	return nc, nil
}
