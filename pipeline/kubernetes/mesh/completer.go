// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/pipeline/cli/importer"
	"github.com/prerig/prerig/pipeline/internal/packed"
)

// Cluster is a cluster that policies are completed from. It is safe for concurrent use.
type Cluster interface {
	// Objects returns the objects that decide about injection, as last read and in any order; they must not be
	// modified. The version changes whenever they do. The error is why they currently cannot be read.
	Objects() (objects []importer.Object, version uint64, err error)
}

// Memory keeps values by their names. queue.Queue implements it.
type Memory interface {
	Load(ctx context.Context, name string) (data []byte, revision uint64, ok bool, err error)
	Save(ctx context.Context, name string, data []byte) error
	Forget(ctx context.Context, name string) error
}

// MemoryPrefix begins the names of what is remembered; the id of a policy follows.
const MemoryPrefix = "mesh/"

// Completer completes policies. It is safe for concurrent use.
type Completer struct {
	Cluster Cluster
	// Memory stores the last completed policies across restarts; nil stores none.
	Memory Memory
	Log    *slog.Logger

	mu    sync.Mutex
	known map[string]*entry // by the ids of policies

	sweeping sync.Mutex
	missing  map[string]bool // IDs of policies that did not exist in the last Sweep
}

// entry is what is known of a policy. What is remembered is read and written under its own lock: a policy waits for
// that, others do not.
type entry struct {
	mu         sync.Mutex
	written    [sha256.Size]byte // digest of the text that was read last
	*knowledge                   // nil before a text of it could be read
}

// knowledge is what is known about a policy as long as its text does not change.
type knowledge struct {
	says    [sha256.Size]byte // digestOf its text
	policy  *v1alpha1.InjectionPolicy
	version uint64
	broken  string
	now     *Completed
	last    *v1alpha1.InjectionPolicy // that was completed
	at      time.Time
	saved   string // digest of what is remembered
	err     error
}

// lastCompleted is what is remembered of a policy.
type lastCompleted struct {
	Says   string    `json:"says"` // digestOf the policy
	Policy string    `json:"policy"`
	At     time.Time `json:"at"`
}

// remembered is how what was completed is kept: at most 64 MiB are read of one.
var remembered = packed.New(64 << 20)

// ErrMemory is in errors about what is remembered: it may be read the next time.
var ErrMemory = errors.New("what is remembered cannot be read now")

// memoryTimeout bounds how long it is waited for what is remembered.
const memoryTimeout = 10 * time.Second

// Asks reports whether a policy may be one to complete. It is quick; Complete is certain.
func Asks(text []byte) bool {
	return bytes.Contains(text, []byte("from")) && bytes.Contains(text, []byte(v1alpha1.FromCluster))
}

// ObjectID is the id of a policy that is an object of the cluster.
func ObjectID(namespace, name string) string { return objectPrefix + namespace + "/" + name }

const objectPrefix = "InjectionPolicy "

// Complete returns a policy completed with the cluster's state, or nil if the policy does not ask for that. The id
// identifies a policy, whose text may change.
func (c *Completer) Complete(id string, text []byte) (*Completed, error) {
	if !Asks(text) {
		return nil, nil
	}
	e := c.entryOf(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	objects, version, unreadable := c.Cluster.Objects() // only now, or what is older could come after what is newer
	broken := ""
	if unreadable != nil {
		broken = unreadable.Error()
	}
	before := e.knowledge
	if sum := sha256.Sum256(text); before == nil || e.written != sum {
		fresh, err := c.loadPolicyKnowledge(id, e.knowledge, text)
		if fresh == nil || err != nil {
			return nil, err
		}
		e.knowledge, e.written = fresh, sum
	}
	if e.knowledge == before && (e.policy == nil || e.version == version && e.broken == broken) {
		return e.now, e.err
	}
	e.version, e.broken = version, broken
	if e.policy != nil {
		e.now, e.err = c.completeEntry(id, e.knowledge, objects)
	}
	return e.now, e.err
}

// digestOf returns a digest of a policy's content without its labels and annotations, which people and controllers
// change at any time.
func digestOf(text []byte) [sha256.Size]byte {
	doc, err := strict.ReadOne(text, v1alpha1.MaxBytes)
	if err != nil {
		return sha256.Sum256(text) // the consumer will report it
	}
	if object, ok := doc.Value.(map[string]any); ok {
		if metadata, ok := object["metadata"].(map[string]any); ok {
			delete(metadata, "labels")
			delete(metadata, "annotations")
		}
	}
	if content, err := json.Marshal(doc.Value); err == nil {
		text = content
	}
	return sha256.Sum256(text)
}

// entryOf returns what is known about a policy, which is initially empty.
func (c *Completer) entryOf(id string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[string]*entry{}
	}
	e := c.known[id]
	if e == nil {
		e = &entry{}
		c.known[id] = e
	}
	return e
}

// loadPolicyKnowledge parses a policy, and loads what it was last completed to. If the text has not changed, the
// previous knowledge is kept.
func (c *Completer) loadPolicyKnowledge(id string, before *knowledge, text []byte) (*knowledge, error) {
	policy, err := v1alpha1.Parse(text)
	if err != nil {
		return nil, nil // the consumer will report it
	}
	e := &knowledge{says: digestOf(text)}
	if before != nil && before.says == e.says {
		return before, nil
	}
	if policy.Spec.From != v1alpha1.FromCluster {
		return e, nil
	}
	e.policy = policy
	if c.Memory == nil {
		return e, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), memoryTimeout)
	defer cancel()
	data, _, ok, err := c.Memory.Load(ctx, memoryName(id))
	if err != nil {
		return nil, fmt.Errorf("reading what %s was completed to: %w: %w", id, ErrMemory, err)
	}
	var last lastCompleted
	if !ok || remembered.Decode(data, &last) != nil || last.Says != fmt.Sprintf("%x", e.says) {
		return e, nil
	}
	if e.last, err = v1alpha1.Parse([]byte(last.Policy)); err != nil {
		e.last = nil // from another version: it is recreated
	}
	e.at = last.At
	return e, nil
}

func memoryName(id string) string { return MemoryPrefix + id }

// completeEntry completes a policy, or leaves it as it was completed last.
func (c *Completer) completeEntry(id string, e *knowledge, objects []importer.Object) (*Completed, error) {
	fresh, warnings, err := completeFromCluster(e.policy, objects)
	reason := ""
	switch {
	case err != nil && e.last == nil:
		return nil, fmt.Errorf("completing it from the cluster: %w", err)
	case err != nil:
		reason = err.Error()
	case e.last != nil:
		reason = describeLostCompletion(e.last, fresh)
	}
	if reason != "" {
		return newCompleted(e.last, fmt.Sprintf("what the cluster had at %s is used, as %s", e.at.UTC().Format(time.RFC3339), reason))
	}
	now, err := newCompleted(fresh, "")
	if err != nil {
		return nil, err
	}
	now.Warnings = warnings
	if e.saved != now.Digest && c.storeCompletedPolicy(id, e, now) {
		e.saved = now.Digest
	}
	e.last, e.at = fresh, time.Now()
	if e.broken != "" {
		now.Stale = "what was read of the cluster last is used, as it cannot be read now: " + e.broken
	}
	return now, nil
}

// storeCompletedPolicy keeps what a policy was completed to. Where that cannot be, it is only not known after a
// restart.
func (c *Completer) storeCompletedPolicy(id string, e *knowledge, now *Completed) (done bool) {
	if c.Memory == nil || e.broken != "" {
		return false // what is skipped is remembered when the cluster can be read again
	}
	ctx, cancel := context.WithTimeout(context.Background(), memoryTimeout)
	defer cancel()
	data, err := remembered.Encode(lastCompleted{Says: fmt.Sprintf("%x", e.says), Policy: string(now.text), At: time.Now().UTC()})
	if err == nil {
		err = c.Memory.Save(ctx, memoryName(id), data)
	}
	if err != nil && c.Log != nil {
		c.Log.Warn("what a policy was completed to from the cluster is not remembered", "policy", id, "error", err)
	}
	return err == nil
}

// Stale returns why a policy uses something other than the current state of the cluster, or "" if it does not. The
// error is why it cannot be used.
func (c *Completer) Stale(id string, text []byte) (string, error) {
	now, err := c.Complete(id, text)
	if now == nil || err != nil {
		return "", err
	}
	return now.Stale, nil
}
