// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// Watcher knows the objects of a cluster, and follows them. It implements catalog.Objects and build.PolicyObjects, and
// is safe for concurrent use.
type Watcher struct {
	client     *Client
	namespaces []string // "" for all
	log        *slog.Logger
	// mendEvery and checkEvery are the constants of these names but in tests.
	mendEvery, checkEvery time.Duration

	changed chan struct{} // has room for one sign

	mu      sync.Mutex
	objects map[schema.GroupVersionResource]map[string]*known
	deleted map[string]deletedObject // pipelines whose deletion was observed, and that no longer exist
	broken  error                    // why objects cannot be read now
	touched map[string]bool
	policy  map[string]bool
}

// known is an object as it was seen last.
type known struct {
	object *unstructured.Unstructured
	text   []byte
}

// syncTimeout bounds the first reading of all objects.
const syncTimeout = time.Minute

// Watch reads the objects of some namespaces, or of all where none is named, and follows them until ctx is done. It
// returns when all are known, or why they cannot be.
func Watch(ctx context.Context, client *Client, namespaces []string, log *slog.Logger) (*Watcher, error) {
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	w := newWatcher(client, namespaces, log)
	if err := w.startAndSync(ctx); err != nil {
		return nil, err
	}
	return w, nil
}

// newWatcher returns one that knows no objects yet.
func newWatcher(client *Client, namespaces []string, log *slog.Logger) *Watcher {
	return &Watcher{
		client: client, namespaces: namespaces, log: log, mendEvery: mendEvery, checkEvery: checkEvery,
		changed: make(chan struct{}, 1), touched: map[string]bool{}, policy: map[string]bool{},
		objects: map[schema.GroupVersionResource]map[string]*known{pipelines: {}, policies: {}},
		deleted: map[string]deletedObject{},
	}
}

// startAndSync reads the objects, and has them followed until ctx is done.
func (w *Watcher) startAndSync(ctx context.Context) error {
	// An informer would try for ever.
	if err := w.probeListAccess(ctx); err != nil {
		return err
	}
	var synced []cache.InformerSynced
	for _, resource := range []schema.GroupVersionResource{pipelines, policies} {
		for _, namespace := range w.namespaces {
			one, err := w.startInformer(ctx, resource, namespace)
			if err != nil {
				return err
			}
			synced = append(synced, one)
		}
	}
	waiting, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if !cache.WaitForCacheSync(waiting.Done(), synced...) {
		return fmt.Errorf("reading the objects of the %s: %w", w.client, cmp.Or(w.Problem(), waiting.Err()))
	}
	go w.pollForRecovery(ctx)
	return nil
}

// startInformer starts an informer for the objects of a namespace.
func (w *Watcher) startInformer(ctx context.Context, resource schema.GroupVersionResource,
	namespace string) (cache.InformerSynced, error) {
	informer := newInformer(w.client.dynamic, resource, namespace)
	if err := informer.SetTransform(withoutNoise); err != nil {
		return nil, err
	}
	if err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) { w.recordWatchError(resource, err) }); err != nil {
		return nil, err
	}
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.storeObject(resource, o) },
		UpdateFunc: func(_, o any) { w.storeObject(resource, o) },
		DeleteFunc: func(o any) { w.forgetDeletedObject(resource, o) },
	})
	if err != nil {
		return nil, err
	}
	go informer.RunWithContext(ctx)
	return handler.HasSynced, nil
}

// withoutNoise drops what is large and never read before an object is kept.
func withoutNoise(o any) (any, error) {
	if object, ok := o.(*unstructured.Unstructured); ok {
		object.SetManagedFields(nil)
	}
	return o, nil
}

// probeListAccess asks for the objects once.
func (w *Watcher) probeListAccess(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, resource := range []schema.GroupVersionResource{pipelines, policies} {
		for _, namespace := range w.namespaces {
			_, err := w.client.dynamic.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 1})
			if err != nil {
				return w.addWatchRemedy(resource, err)
			}
		}
	}
	return nil
}

// addWatchRemedy adds a remedy to an error if one is known.
func (w *Watcher) addWatchRemedy(resource schema.GroupVersionResource, err error) error {
	hint := ""
	switch {
	case apierrors.IsNotFound(err):
		hint = "; are the definitions of deploy/crds installed?"
	case apierrors.IsForbidden(err):
		hint = "; the ClusterRole prerig of deploy/base allows it"
	}
	return fmt.Errorf("reading %s of the %s: %w%s", resource.Resource, w.client, err, hint)
}

// recordWatchError keeps why objects cannot be followed. What the informer mends by itself at once is none.
func (w *Watcher) recordWatchError(resource schema.GroupVersionResource, err error) {
	if isMended(err) {
		return
	}
	w.setProblem(w.addWatchRemedy(resource, err))
}

// isMended reports whether an error of a watch is one that the informer mends by itself at once.
func isMended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || apierrors.IsResourceExpired(err) ||
		apierrors.IsGone(err)
}

func (w *Watcher) setProblem(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if (err == nil) != (w.broken == nil) {
		w.wakeRunLoop()
	}
	w.broken = err
}

// Problem returns why objects cannot be read now, nil where they can.
func (w *Watcher) Problem() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.broken
}

const (
	// mendEvery is how often it is looked whether objects can be read again.
	mendEvery = 2 * time.Second
	// checkEvery is how often it is asked whether objects can still be read.
	checkEvery = 15 * time.Second
)

// pollForRecovery polls until ctx is done: after an error, whether objects can be read again, and from time to time
// whether they still can. An informer does not report a server that refuses connections, or rejects every request as
// one too many: it retries forever.
func (w *Watcher) pollForRecovery(ctx context.Context) {
	tick := time.NewTicker(w.mendEvery)
	defer tick.Stop()
	checked := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if w.Problem() != nil {
			// A responding API server is not enough: until the informers have caught up with it, the known state is
			// from before the error.
			if caughtUp, err := w.isCaughtUp(ctx); err == nil && caughtUp {
				w.setProblem(nil)
			}
			continue
		}
		if time.Since(checked) < w.checkEvery {
			continue
		}
		if err := w.probeListAccess(ctx); err != nil && ctx.Err() == nil {
			w.setProblem(err)
		}
		checked = time.Now()
	}
}

// storeObject keeps an object.
func (w *Watcher) storeObject(resource schema.GroupVersionResource, o any) {
	object, ok := o.(*unstructured.Unstructured)
	if !ok || !w.isWatched(object.GetNamespace()) {
		return // an answer about one that was not asked for
	}
	text, err := marshalUserFields(object)
	if err != nil {
		w.log.Error("an object of the cluster cannot be read", "object", keyOf(object), "error", err)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	all, key := w.objects[resource], keyOf(object)
	old := all[key]
	all[key] = &known{object, text}
	if resource == pipelines {
		delete(w.deleted, key)
	}
	if old == nil || !bytes.Equal(old.text, text) || isDeleted(old.object) != isDeleted(object) ||
		objectVersion(old.object) != objectVersion(object) {
		w.markObjectChanged(resource, key)
	}
}

// isWatched reports whether objects of a namespace are read.
func (w *Watcher) isWatched(namespace string) bool {
	return namespace != "" && (slices.Contains(w.namespaces, metav1.NamespaceAll) || slices.Contains(w.namespaces, namespace))
}

// markObjectChanged notes that an object is another one. The caller holds the lock.
func (w *Watcher) markObjectChanged(resource schema.GroupVersionResource, key string) {
	if resource == policies {
		w.policy[key] = true
	} else {
		w.touched[key] = true
	}
	w.wakeRunLoop()
}

// wakeRunLoop wakes Run up.
func (w *Watcher) wakeRunLoop() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// settle is how long is waited for further changes: many objects are applied at once.
const settle = 50 * time.Millisecond

// Run calls f with the keys of pipelines and of policies that are new, changed or deleted, or with none when they
// become readable or unreadable, until ctx is done.
func (w *Watcher) Run(ctx context.Context, f func(pipelines, policies []string)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changed:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(settle):
		}
		w.mu.Lock()
		touched, policy := slices.Sorted(maps.Keys(w.touched)), slices.Sorted(maps.Keys(w.policy))
		w.touched, w.policy = map[string]bool{}, map[string]bool{}
		w.mu.Unlock()
		f(touched, policy)
	}
}

// String implements catalog.Objects.
func (w *Watcher) String() string {
	if w.namespaces[0] == metav1.NamespaceAll {
		return w.client.String()
	}
	return w.client.String() + " " + strings.Join(w.namespaces, ",")
}

// Pipelines implements catalog.Objects.
func (w *Watcher) Pipelines() ([]catalog.Object, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return nil, w.broken
	}
	var out []catalog.Object
	for _, one := range w.objects[pipelines] {
		if !isDeleted(one.object) {
			out = append(out, catalog.Object{Namespace: one.object.GetNamespace(), Name: one.object.GetName(), Version: objectVersion(one.object), Text: one.text})
		}
	}
	slices.SortFunc(out, func(a, b catalog.Object) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	return out, nil
}

// confirmTimeout bounds the question for one object, which a run waits for.
const confirmTimeout = 5 * time.Second

// Confirm implements catalog.Objects.
func (w *Watcher) Confirm(ctx context.Context, key string, version queue.ObjectVersion) error {
	if err := w.Problem(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	namespace, name, _ := strings.Cut(key, "/")
	object, err := w.client.dynamic.Resource(pipelines).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && isDeleted(object):
		return fmt.Errorf("pipeline %s was deleted in the %s, which this process has not seen yet", key, w.client)
	case err != nil:
		return w.addWatchRemedy(pipelines, err)
	case objectVersion(object) != version:
		return fmt.Errorf("pipeline %s is another one in the %s than this process has seen", key, w.client)
	}
	return nil
}

// Policy implements build.PolicyObjects.
func (w *Watcher) Policy(namespace, name string) ([]byte, error) {
	one := w.lastSeenObject(policies, namespace+"/"+name)
	if one == nil || isDeleted(one.object) {
		return nil, fmt.Errorf("there is no InjectionPolicy %s/%s in the %s", namespace, name, w.client)
	}
	return one.text, nil
}

// PolicyVersion returns the last seen version of a policy, or the zero value if it does not exist.
func (w *Watcher) PolicyVersion(namespace, name string) queue.ObjectVersion {
	one := w.lastSeenObject(policies, namespace+"/"+name)
	if one == nil {
		return queue.ObjectVersion{}
	}
	return objectVersion(one.object)
}

// lastSeenObject returns an object as last seen, or nil if it does not exist.
func (w *Watcher) lastSeenObject(resource schema.GroupVersionResource, key string) *known {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.objects[resource][key]
}

// existingObjectKeys lists the existing objects.
func (w *Watcher) existingObjectKeys(resource schema.GroupVersionResource) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Collect(maps.Keys(w.objects[resource]))
}
