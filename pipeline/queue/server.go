// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"golang.org/x/sys/unix"
)

// startup is how long an embedded server may take to read its files.
const startup = 30 * time.Second

// embed starts a server without a listener whose JetStream keeps its files under dir, and connects to it in-process. Every
// write reaches the disk before it is acknowledged.
func embed(dir string, maxStore int64, log *slog.Logger) (_ *server.Server, _ *nats.Conn, unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, nil, fmt.Errorf("making the directory of the queue: %w", err)
	}
	unlock, err = lockDir(dir)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err != nil {
			unlock()
		}
	}()
	if err = forgetConsumers(dir); err != nil {
		return nil, nil, unlock, err
	}
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
		return nil, nil, unlock, fmt.Errorf("setting up the embedded NATS server: %w", err)
	}
	s.SetLoggerV2(serverLog{log}, false, false, false)
	go s.Start()
	if !s.ReadyForConnections(startup) {
		s.Shutdown()
		return nil, nil, unlock, errors.New("starting the embedded NATS server: it did not become ready")
	}
	nc, err := nats.Connect("", nats.InProcessServer(s), nats.MaxReconnects(-1), nats.Name("prerig"))
	if err != nil {
		s.Shutdown()
		return nil, nil, unlock, fmt.Errorf("connecting to the embedded NATS server: %w", err)
	}
	return s, nc, unlock, nil
}

// lockDir keeps a second process out of the directory, whose files would not survive two servers. The lock ends with the
// process.
func lockDir(dir string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(dir, "prerig.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the directory of the queue: %w", err)
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, fmt.Errorf("locking the directory of the queue %s: another process uses it: %w", dir, err)
	}
	return func() { file.Close() }, nil
}

// dial connects to a cluster, and goes on trying for as long as it lives.
func dial(url string, opts []nats.Option) (*nats.Conn, error) {
	opts = append([]nats.Option{nats.Name("prerig"), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true),
		nats.ReconnectWait(500 * time.Millisecond), nats.Timeout(5 * time.Second)}, opts...)
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	return nc, nil
}
