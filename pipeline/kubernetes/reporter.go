// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

// Reporter writes what is known about the objects of a cluster into them: status, finalizer and events. All of it
// is derived from the queue, so that any successor can write it again. It is safe for concurrent use.
type Reporter struct {
	Client  *Client
	Watcher *Watcher
	Catalog *catalog.Catalog
	Store   *status.Store
	// RequestDigest is that of build.Builder.
	RequestDigest func(p *v1alpha1.RenderPipeline) string
	// Stale is that of mesh.Completer; it may be nil.
	Stale func(id string, text []byte) (string, error)
	// Removals are those of prune.Keeper.
	Removals func() []prune.Removal
	// TryLead is that of queue.Queue: of several processes one writes.
	TryLead func(ctx context.Context, name string) (held func() bool, unlock func(), ok bool, err error)
	Log     *slog.Logger

	mu     sync.Mutex
	queue  workqueue.TypedRateLimitingInterface[item] // nil while another process writes
	untold untoldEvents                               // nil then, too

	judgements judgements
}

// item is an object that is to be looked at.
type item struct {
	resource schema.GroupVersionResource
	key      string
}

const (
	// leadEvery is how often it is tried to become the one who writes.
	leadEvery = 2 * time.Second
	// resyncEvery is how often all objects are looked at, whatever has changed.
	resyncEvery = 30 * time.Second
	// reporters is how many objects are looked at at the same time.
	reporters = 4
)

// Run writes for as long as no other process does, until ctx is done.
func (r *Reporter) Run(ctx context.Context) {
	tick := time.NewTicker(leadEvery)
	defer tick.Stop()
	for {
		held, unlock, ok, err := r.TryLead(ctx, "kubernetes/status")
		if err != nil && ctx.Err() == nil {
			r.Log.Debug("it is not known who writes the status of objects", "error", err)
		}
		if ok {
			r.writeWhileHeld(ctx, held)
			unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Look has pipelines, by their keys, and policies looked at soon.
func (r *Reporter) Look(changed, policy []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.queue == nil {
		return
	}
	for _, key := range changed {
		r.queue.Add(item{pipelines, key})
	}
	for _, key := range policy {
		r.queue.Add(item{policies, key})
	}
}

// LookAtPolicies has all policies looked at soon.
func (r *Reporter) LookAtPolicies() { r.Look(nil, r.Watcher.existingObjectKeys(policies)) }

// writeWhileHeld writes until ctx is done or another process may write.
func (r *Reporter) writeWhileHeld(ctx context.Context, held func() bool) {
	r.Log.Info("this process writes the status of the cluster's objects")
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[item](100*time.Millisecond, time.Minute))
	r.mu.Lock()
	r.queue = queue
	r.mu.Unlock()
	endTelling := r.startEventWorkers(ctx)
	var group sync.WaitGroup
	for range reporters {
		group.Go(func() {
			for r.processNextItem(ctx, queue, held) {
			}
		})
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for next := time.Now(); ctx.Err() == nil && held(); {
		if !time.Now().Before(next) {
			r.Look(r.Watcher.existingObjectKeys(pipelines), r.Watcher.existingObjectKeys(policies))
			r.forgetRemoved(ctx)
			next = time.Now().Add(resyncEvery)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	r.mu.Lock()
	r.queue = nil
	r.mu.Unlock()
	queue.ShutDown()
	group.Wait()
	endTelling()
}

// processNextItem processes one object, and reports whether more may follow.
func (r *Reporter) processNextItem(ctx context.Context, queue workqueue.TypedRateLimitingInterface[item], held func() bool) bool {
	one, end := queue.Get()
	if end {
		return false
	}
	defer queue.Done(one)
	if ctx.Err() != nil || !held() {
		return true // the queue ends soon
	}
	asking, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := r.reconcileObject(asking, one)
	switch {
	case err == nil || apierrors.IsNotFound(err):
		queue.Forget(one)
	case apierrors.IsConflict(err) || errors.Is(err, context.Canceled):
		queue.AddRateLimited(one) // it has changed meanwhile
	default:
		r.Log.Warn("the status of an object cannot be written; it is tried again", "object",
			one.resource.Resource+" "+one.key, "error", err)
		queue.AddRateLimited(one)
	}
	return true
}

// reconcileObject brings one object up to date.
func (r *Reporter) reconcileObject(ctx context.Context, one item) error {
	known := r.Watcher.lastSeenObject(one.resource, one.key)
	switch {
	case known == nil:
		if one.resource == policies {
			r.judgements.forget(one.key)
		}
		return nil
	case one.resource == policies:
		return r.reportPolicy(ctx, known)
	case isDeleted(known.object):
		return r.reportDeleted(ctx, one.key, known.object)
	}
	return r.reportPipeline(ctx, one.key, known)
}
