// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
)

// localLocks are the locks of a queue with an embedded server: only this process can reach it, and a process
// releases its locks when it ends. They are not stored, because two writes to the disk would be a good part of the
// cost of a job.
type localLocks struct {
	closed atomic.Bool // the directory may be another queue's

	mu   sync.Mutex
	held map[string]bool
}

func newLocalLocks() *localLocks { return &localLocks{held: map[string]bool{}} }

// errClosed is of a queue that was closed: another one may have its directory, and its locks.
var errClosed = errors.New("the queue is closed")

// tryAcquireLock returns false if the lock is held.
func (l *localLocks) tryAcquireLock(name string) (*heldLock, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return nil, false, errClosed
	}
	if l.held[name] {
		return nil, false, nil
	}
	l.held[name] = true
	h := &heldLock{local: l}
	h.unlock = func() {
		if h.dropped.Swap(true) {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.held, name)
	}
	return h, true, nil
}

// hasLockWithPrefix reports whether a lock is held whose name begins with a prefix.
func (l *localLocks) hasLockWithPrefix(prefix string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.held {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
