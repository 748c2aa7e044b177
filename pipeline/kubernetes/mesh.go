// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/prerig/prerig/pipeline/cli/importer"
)

// Mesh tracks the state of a cluster that decides about injection. It implements mesh.Cluster, and is safe for
// concurrent use.
//
// Watches only signal that something changed. The state is then listed again and swapped in at once, so that
// readers never see a partial state while a watch restarts.
type Mesh struct {
	// Settle is how long the state must be unchanged before it is read. It is set before Run.
	Settle time.Duration

	client     *Client
	namespaces []string // of control planes
	log        *slog.Logger

	changed chan struct{} // has room for one sign

	mu      sync.Mutex
	objects []importer.Object
	digest  [sha256.Size]byte
	version uint64
	broken  error
	counts  map[string]int // of each resource, when it last had any
	suspect bool           // a resource has become empty
	readAt  time.Time
}

const (
	// doubtEvery is how often it is checked again if everything that was listed has disappeared.
	doubtEvery = 5 * time.Second
	// meshSettle is how long the state must be unchanged before it is read; settleAtMost is the maximum wait, as a
	// multiple of it.
	meshSettle   = 3 * time.Second
	settleAtMost = 10
	// meshResync is how often everything is read again, whatever the watches report.
	meshResync = time.Minute
)

// WatchMesh reads what decides about injection, of control planes in some namespaces, and follows it until ctx is done.
// It returns when all is known, or why it cannot be.
func WatchMesh(ctx context.Context, client *Client, namespaces []string, log *slog.Logger) (*Mesh, error) {
	m := &Mesh{Settle: meshSettle, client: client, namespaces: namespaces, log: log, changed: make(chan struct{}, 1)}
	if err := m.listAndAdopt(ctx); err != nil {
		return nil, err
	}
	for _, resource := range meshResources() {
		for _, namespace := range m.namespacesOf(resource) {
			if err := m.startMeshInformer(ctx, resource, namespace); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

func (m *Mesh) namespacesOf(resource meshResource) []string {
	if resource.namespaced {
		return m.namespaces
	}
	return []string{metav1.NamespaceAll}
}

// startMeshInformer starts an informer that signals changes. It keeps only the parts of objects that are read.
func (m *Mesh) startMeshInformer(ctx context.Context, resource meshResource, namespace string) error {
	informer := newInformer(m.client.dynamic, resource.GroupVersionResource, namespace)
	err := informer.SetTransform(func(o any) (any, error) {
		object, ok := o.(*unstructured.Unstructured)
		if !ok {
			return o, nil
		}
		return resource.reduceToReadFields(object), nil
	})
	if err != nil {
		return err
	}
	err = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		switch {
		case isMended(err):
		case !resource.isAbsent(err):
			m.recordReadError(m.addMeshRemedy(resource, err))
		case m.hadObjectsOfKind(resource.kind):
			m.signalChange() // reading it reports what is wrong
		}
	})
	if err != nil {
		return err
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { m.signalChange() },
		UpdateFunc: func(old, now any) {
			before, after := contentOf(old), contentOf(now)
			if before != after {
				m.signalChange()
			}
		},
		DeleteFunc: func(any) { m.signalChange() },
	})
	if err != nil {
		return err
	}
	go informer.RunWithContext(ctx)
	return nil
}

// contentOf is equal for objects of which the same is read.
func contentOf(o any) string {
	object, ok := o.(*unstructured.Unstructured)
	if !ok {
		return ""
	}
	plain := object.DeepCopy()
	plain.SetResourceVersion("")
	text, _ := json.Marshal(plain.Object)
	return string(text)
}

// ReadAgain has all read again soon.
func (m *Mesh) ReadAgain() { m.signalChange() }

func (m *Mesh) signalChange() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// addMeshRemedy adds a remedy to an error if one is known.
func (m *Mesh) addMeshRemedy(resource meshResource, err error) error {
	hint := ""
	if apierrors.IsForbidden(err) {
		hint = "; deploy/components/mesh, or mesh.enabled of the chart, allows it"
	}
	return fmt.Errorf("reading %s of the %s: %w%s", resource.Resource, m.client, err, hint)
}

// recordReadError records why the state cannot be read.
func (m *Mesh) recordReadError(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if (err == nil) != (m.broken == nil) {
		m.signalChange()
	}
	m.broken = err
}

// listAndAdopt lists the state, and adopts it if all of it could be listed. A resource that the cluster does not know
// any more keeps its last state.
func (m *Mesh) listAndAdopt(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var all []importer.Object
	var lost error
	counts := map[string]int{}
	for _, resource := range meshResources() {
		for _, namespace := range m.namespacesOf(resource) {
			err := m.client.forEachListedObject(ctx, resource.GroupVersionResource, namespace, func(o *unstructured.Unstructured) error {
				if content := resource.reduce(o); content != nil {
					content["kind"], content["apiVersion"] = resource.kind, resource.GroupVersion().String()
					counts[resource.kind]++
					all = append(all, importer.Object{Path: m.client.String(), Value: content})
				}
				return nil
			})
			switch {
			case err == nil:
			case !resource.isAbsent(err):
				return m.addMeshRemedy(resource, err)
			case m.hadObjectsOfKind(resource.kind):
				lost, counts[resource.kind] = m.addMeshRemedy(resource, err), 1
				all = append(all, m.lastObjectsOfKind(resource.kind)...)
			}
		}
	}
	texts := make([]string, len(all))
	for i, one := range all {
		text, err := json.Marshal(one.Value)
		if err != nil {
			return err
		}
		texts[i] = string(text)
	}
	slices.Sort(texts)
	texts = slices.Compact(texts) // many nodes have the same kubelet
	digest := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = lost
	if m.digest != digest {
		m.objects, m.digest, m.version = all, digest, m.version+1
	}
	m.suspect, m.readAt = false, time.Now()
	for _, resource := range meshResources() {
		m.suspect = m.suspect || !resource.mayEnd && m.counts[resource.kind] > 0 && counts[resource.kind] == 0
	}
	if !m.suspect {
		m.counts = counts
	}
	return nil
}

// lastObjectsOfKind returns the objects of a kind as they were read last.
func (m *Mesh) lastObjectsOfKind(kind string) []importer.Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.objects), func(o importer.Object) bool { return o.Value["kind"] != kind })
}

// hadObjectsOfKind reports whether the last state had objects of a kind.
func (m *Mesh) hadObjectsOfKind(kind string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[kind] > 0
}

// isDue reports whether everything is to be read again although no change was signalled.
func (m *Mesh) isDue() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.broken != nil || m.suspect && time.Since(m.readAt) > doubtEvery || time.Since(m.readAt) > meshResync
}

// Objects implements mesh.Cluster.
func (m *Mesh) Objects() ([]importer.Object, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.objects, m.version, m.broken
}

// Run reads again when something is different, and calls f where it was, or where it cannot be read or can be again,
// until ctx is done.
func (m *Mesh) Run(ctx context.Context, f func()) {
	tick := time.NewTicker(mendEvery)
	defer tick.Stop()
	var told uint64
	broken := false
	for {
		again := false
		select {
		case <-ctx.Done():
			return
		case <-m.changed:
			again = true
		case <-tick.C:
			again = m.isDue()
		}
		if !again {
			continue
		}
		if !m.waitForQuiet(ctx) {
			return
		}
		if err := m.listAndAdopt(ctx); err != nil && ctx.Err() == nil {
			m.setBroken(err)
		}
		_, version, err := m.Objects()
		if version != told || (err != nil) != broken {
			told, broken = version, err != nil
			f()
		}
	}
}

// waitForQuiet waits for a period without changes, so that an upgrade of a control plane, which changes
// one object after the other, is seen as one change. It returns false if ctx is done.
func (m *Mesh) waitForQuiet(ctx context.Context) bool {
	longest := time.After(settleAtMost * m.Settle)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-longest:
			return true
		case <-time.After(m.Settle):
			return true
		case <-m.changed:
		}
	}
}

func (m *Mesh) setBroken(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = err
}
