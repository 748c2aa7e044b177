// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/kubernetes/mesh"
)

// TestSnapshotsAreBounded keeps what a history names however old it is, what is young however much that is, and of the rest the newest.
func TestSnapshotsAreBounded(t *testing.T) {
	s, ctx := store(t), t.Context()
	var all []string
	save := func(age time.Duration) (digest string) {
		t.Helper()
		digest = mesh.DigestOf(fmt.Append(nil, len(all)))
		data, err := encodeJSON(storedSnapshot{"text", time.Now().Add(-age)})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.q.Save(ctx, snapshotPrefix+digest, data); err != nil {
			t.Fatal(err)
		}
		all = append(all, digest)
		return digest
	}
	kept := map[string]bool{}
	published, inHistory := save(72*time.Hour), save(5*time.Hour)
	kept[published], kept[inHistory] = true, true
	save(25 * time.Hour)
	for i := range maxUnnamed + 50 {
		digest := save(2*time.Hour + time.Duration(i)*time.Minute)
		if i < maxUnnamed {
			kept[digest] = true
		}
	}
	for range 20 {
		kept[save(time.Minute)] = true
	}
	state := &State{}
	state.Status.Published = []v1alpha1.Published{{Snapshots: []string{published}}}
	state.Runs = []Run{{Run: v1alpha1.Run{ID: "1"}, Published: []v1alpha1.Published{{Snapshots: []string{inHistory}}}}}
	if _, err := s.Save(ctx, "shop/web", state, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.SweepSnapshots(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	for i, digest := range all {
		if _, ok := s.Snapshot(digest); ok != kept[digest] {
			t.Errorf("number %d is kept: %v, want %v", i, ok, kept[digest])
		}
	}
}

// TestASnapshotThatIsUsedAgainIsYoung has one be used again that nothing names: a sweep before the run names it leaves it.
func TestASnapshotThatIsUsedAgainIsYoung(t *testing.T) {
	s, ctx := store(t), t.Context()
	snapshot := mesh.Snapshot{Digest: mesh.DigestOf([]byte("text")), Text: []byte("text")}
	data, err := encodeJSON(storedSnapshot{"text", time.Now().Add(-10 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.q.Save(ctx, snapshotPrefix+snapshot.Digest, data); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.SaveSnapshots(ctx, []mesh.Snapshot{snapshot}); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(ctx); err != nil {
		t.Fatal(err)
	}
	if stored, ok := s.loadStoredSnapshot(snapshot.Digest); !ok || time.Since(stored.At) > keepYoung/2 {
		t.Errorf("it is %+v, %v", stored, ok)
	}
}
