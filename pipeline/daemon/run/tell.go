// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"sync"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/notify"
)

// maxNotices is how many notifications of one pipeline to one receiver may wait, as one that does not answer must not fill the memory.
const maxNotices = 50

// notifyReceivers notifies the receivers of a run. They must not hold up the queue. A receiver that was already
// notified of a run that this one repeats is not notified again.
func (a *attempt) notifyReceivers(ctx context.Context, entry status.Run, stage *StageError) {
	if a.r.Notifier == nil {
		return
	}
	told := notify.Run{Namespace: a.p.Metadata.Namespace, Name: a.p.Metadata.Name, Run: entry.Run, Published: a.state.Status.Published,
		Changed: a.published.hasChanged() || a.staleRemoved || a.unsure && len(a.published) > 0 && a.published.reasonToWait() == "", Waits: stage == nil && a.published.waitsForTurn(a.staleRemoved)}
	last := &a.state.Runs[0]
	told.Run.ID = last.ID // who has heard of it after all knows it again
	if a.snapshot != nil {
		told.SourceURL = a.snapshot.URL
		if a.snapshot.Commit != nil {
			told.Commit = a.snapshot.Digest
		}
	}
	if a.r.ExternalURL != "" {
		told.Page = a.r.ExternalURL + "/runs?pipeline=" + url.QueryEscape(a.entry.Key) + "&run=" + last.ID
	}
	ctx = a.entry.BindNotifications(context.WithoutCancel(ctx))
	for i, to := range a.p.Spec.Notify {
		if last.Repeats > 0 && a.state.Told.Run != last.ID && !triggersFluxReconcile(to, told) {
			continue
		}
		subject := fmt.Sprintf("%s, notification %d", a.entry.Key, i)
		step := watchdog.Step{Name: watchdog.StepNotify, Subject: subject, Limit: notify.Timeout}
		n := &notice{to: to, run: told, replaced: make(chan struct{}), hurried: make(chan struct{}), log: a.log}
		n.run.Replaced, n.run.Hurry = n.replaced, n.hurried
		n.send = func() error {
			_, err := watchdog.Run(ctx, a.r.Watchdog, step, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, a.r.Notifier.Send(ctx, []v1alpha1.Notification{to}, n.run)
			})
			return err
		}
		a.r.notices.enqueueNotice(queueKey{a.entry.Key, receiverOf(to)}, n)
	}
}

// triggersFluxReconcile reports whether a notification makes Flux reconcile at once. That is not about the run: it is
// sent each time.
func triggersFluxReconcile(to v1alpha1.Notification, r notify.Run) bool {
	return to.FluxReceiver != nil && r.Changed
}

// receiverOf returns the receiver of a notification and its kind. URLs of hooks are secrets: it omits them.
func receiverOf(to v1alpha1.Notification) string {
	text, _ := json.Marshal(to)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// notices holds the notifications still to be sent. Those of one pipeline to one receiver are sent one after
// another, in the order of its runs: otherwise a retried one could arrive after a newer one and replace its
// content. No receiver waits for another.
type notices struct {
	sending sync.WaitGroup

	mu     sync.Mutex
	queues map[queueKey][]*notice // the first of each is being sent
	told   map[string]status.Told // of the newest run, by the pipeline
	ending bool                   // see hurry
}

type queueKey struct{ pipeline, receiver string }

// notice is one notification of one run.
type notice struct {
	to       v1alpha1.Notification
	run      notify.Run
	replaced chan struct{} // closed when a newer one reports another state of the same commit
	hurried  chan struct{} // closed when others wait for it and the process ends
	log      *slog.Logger
	send     func() error
}

// replacesOlderNotice reports whether an older notice is obsolete: a commit has one status of a name.
func (n *notice) replacesOlderNotice(older *notice) bool {
	return n.to.CommitStatus != nil && n.run.Commit == older.run.Commit
}

// enqueueNotice queues a notification after those added before, unless its receiver was notified of the run, or is
// about to be.
func (s *notices) enqueueNotice(key queueKey, n *notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.queues[key]
	about := s.told[key.pipeline]
	isTold := about.Run == n.run.Run.ID && slices.Contains(about.Receivers, key.receiver)
	isTold = isTold || slices.ContainsFunc(waiting, func(other *notice) bool { return other.run.Run.ID == n.run.Run.ID })
	if isTold && !triggersFluxReconcile(n.to, n.run) {
		return
	}
	if len(waiting) > 0 {
		first := waiting[0]
		if n.replacesOlderNotice(first) {
			closeOnce(first.replaced)
		}
		later := slices.DeleteFunc(waiting[1:], n.replacesOlderNotice)
		if len(later) == maxNotices {
			later[0].log.Warn("a notification is left out, as too many wait to be sent", "run", later[0].run.Run.ID)
			later = later[1:]
		}
		s.queues[key] = append([]*notice{first}, append(later, n)...)
		s.hurryFirst(key)
		return
	}
	if s.queues == nil {
		s.queues = map[queueKey][]*notice{}
	}
	s.queues[key] = []*notice{n}
	s.sending.Go(func() {
		for n != nil {
			err := n.send()
			switch {
			case errors.Is(err, notify.ErrReplaced):
				n.log.Debug("a notification was not sent", "run", n.run.Run.ID, "error", err)
			case err != nil:
				n.log.Warn("a notification was not sent", "run", n.run.Run.ID, "error", err)
			}
			n = s.nextNoticeAfter(key, err == nil)
		}
	})
}

// nextNoticeAfter returns the notification after the first; sent reports whether the first was sent. It returns nil if
// none is left.
func (s *notices) nextNoticeAfter(key queueKey, sent bool) *notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	if about := s.told[key.pipeline]; sent && about.Run == s.queues[key][0].run.Run.ID && !slices.Contains(about.Receivers, key.receiver) {
		about.Receivers = append(about.Receivers, key.receiver)
		s.told[key.pipeline] = about
	}
	left := s.queues[key][1:]
	if len(left) == 0 {
		delete(s.queues, key)
		return nil
	}
	s.queues[key] = left
	s.hurryFirst(key)
	return left[0]
}

// sendPendingOnce has each notification that is still to be sent sent once. The last to a receiver is tried again as
// ever: none waits for it.
func (s *notices) sendPendingOnce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	for key := range s.queues {
		s.hurryFirst(key)
	}
}

// hurryFirst has the first of a queue not tried again where the process ends and others wait. It is called with the lock held.
func (s *notices) hurryFirst(key queueKey) {
	if waiting := s.queues[key]; s.ending && len(waiting) > 1 {
		closeOnce(waiting[0].hurried)
	}
}

// logUnsent logs those that are not sent, when the process does not wait for them any more.
func (s *notices) logUnsent() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, waiting := range s.queues {
		for i, n := range waiting {
			n.log.Warn("a notification was not sent, as the process ends", "run", n.run.Run.ID, "begun", i == 0)
		}
	}
}

// recordNotifiedReceivers records in a state which receivers were notified of the newest run of the history, as far as
// this process knows.
func (s *notices) recordNotifiedReceivers(pipeline string, state *status.State) {
	last := &state.Runs[0]
	if last.Repeats == 0 {
		state.Told = status.Told{Run: last.ID}
	}
	if state.Told.Run == last.ID {
		state.Told = s.mergeNotifiedReceivers(pipeline, state.Told)
	}
}

// mergeNotifiedReceivers returns the receivers notified of a pipeline's newest run, according to the state and to this
// process, and continues with these.
func (s *notices) mergeNotifiedReceivers(pipeline string, stored status.Told) status.Told {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil {
		s.told = map[string]status.Told{}
	}
	all := status.Told{Run: stored.Run, Receivers: slices.Clone(stored.Receivers)}
	if known := s.told[pipeline]; known.Run == stored.Run {
		all.Receivers = append(all.Receivers, known.Receivers...)
	}
	slices.Sort(all.Receivers)
	all.Receivers = slices.Compact(all.Receivers)
	s.told[pipeline] = status.Told{Run: all.Run, Receivers: slices.Clone(all.Receivers)}
	return all
}

// closeOnce closes a channel that may be closed already. It is called with the lock held.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}
