// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/storetest"
	"github.com/prerig/prerig/pipeline/secret/tenant"
)

// objects are those of a cluster, as a test has them.
type objects struct {
	specs   map[string]string // by namespace and name
	deleted map[string]string // the last specifications of those that are being deleted
	// noFinalizer says that the deleted ones have gone already.
	noFinalizer bool
	// version is that of each, err why the API server does not answer.
	version queue.ObjectVersion
	err     error
}

func (o *objects) String() string { return "cluster c" }

func (o *objects) IsDeleted(key string) bool {
	_, ok := o.deleted[key]
	return ok && !o.noFinalizer
}

func (o *objects) LastText(key string) []byte {
	if spec, ok := o.deleted[key]; ok {
		return objectText(key, spec)
	}
	return nil
}

func (o *objects) Confirm(context.Context, string, queue.ObjectVersion) error { return o.err }

func (o *objects) Pipelines() (out []catalog.Object, err error) {
	for key, spec := range o.specs {
		namespace, name, _ := strings.Cut(key, "/")
		out = append(out, catalog.Object{Namespace: namespace, Name: name, Version: o.version, Text: objectText(key, spec)})
	}
	slices.SortFunc(out, func(a, b catalog.Object) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	return out, nil
}

func objectText(key, spec string) []byte {
	namespace, name, _ := strings.Cut(key, "/")
	return fmt.Appendf(nil, `{"apiVersion":"prerig.dev/v1alpha1","kind":"RenderPipeline","metadata":{"name":%q,"namespace":%q},"spec":%s}`, name, namespace, spec)
}

// objectSpec is a specification with the deletionPolicy Delete that publishes to a branch of its own.
func objectSpec(branch string) string {
	return fmt.Sprintf(`{"source":{"git":{"url":"https://git.example.com/shop/apps"}},"deletionPolicy":"Delete","publish":[{"git":{"branch":%q}}]}`, branch)
}

const invalidSpec = `{"source":{"git":{"url":"https://git.example.com/shop/apps"}},"build":{"limits":{"memory":"lots"}}}`

// clusterKeeper is a keeper of the pipelines of a cluster, which are all registered.
type clusterKeeper struct {
	*Keeper
	t       *testing.T
	objects *objects
}

func newClusterKeeper(t *testing.T, specs map[string]string, tenants ...tenant.Tenant) *clusterKeeper {
	t.Helper()
	o := &objects{specs: specs, deleted: map[string]string{}}
	c, err := catalog.OpenAll(t.Context(), []catalog.Origin{{Objects: o}}, false, nil, catalog.WithRules(catalog.Rules{Tenants: tenants}))
	if err != nil {
		t.Fatal(err)
	}
	q, store := storetest.Open(t)
	k := &clusterKeeper{&Keeper{Catalog: c, Store: store, Queue: q, MaxShare: 50, Log: slog.New(slog.DiscardHandler)}, t, o}
	k.look()
	return k
}

// delete has somebody delete objects.
func (k *clusterKeeper) delete(keys ...string) {
	for _, key := range keys {
		k.objects.deleted[key] = k.objects.specs[key]
		delete(k.objects.specs, key)
	}
}

// look reads the objects and has the keeper look at them: it registers or marks first, and approves what it finds marked then.
func (k *clusterKeeper) look() {
	k.t.Helper()
	if _, err := k.Catalog.Reload(); err != nil {
		k.t.Fatal(err)
	}
	for range 2 {
		if err := k.Check(k.t.Context()); err != nil {
			k.t.Fatal(err)
		}
		if err := k.Store.Sync(k.t.Context()); err != nil {
			k.t.Fatal(err)
		}
	}
}

// registered returns what is stored of a pipeline.
func (k *clusterKeeper) registered(key string) status.Registration {
	k.t.Helper()
	r, _, err := k.Store.LoadRegistration(k.t.Context(), key)
	if err != nil {
		k.t.Fatal(err)
	}
	return r
}

// TestAnInvalidObjectHoldsNoRemoval has a deleted pipeline removed beside an object of another namespace that was never valid.
func TestAnInvalidObjectHoldsNoRemoval(t *testing.T) {
	k := newClusterKeeper(t, map[string]string{"shop/web": objectSpec("web"), "shop/cart": objectSpec("cart"), "pay/odd": invalidSpec})
	k.delete("shop/web")
	k.look()
	if r := k.registered("shop/web"); r.Removal == nil || !r.Removal.Approved {
		t.Errorf("its removal is %+v, the list %+v", r.Removal, k.Removals())
	}
}

// TestARefusedObjectIsNotGone has a pipeline that worked read what its tenant may not: nothing of it is removed.
func TestARefusedObjectIsNotGone(t *testing.T) {
	shop, err := tenant.New("shop", []string{"shop"}, []string{"https://git.example.com/shop/*"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	k := newClusterKeeper(t, map[string]string{"shop/web": objectSpec("web"), "shop/cart": objectSpec("cart")}, shop)
	if r := k.registered("shop/web"); len(r.Publish) != 1 {
		t.Fatalf("it is registered as %+v", r)
	}
	k.objects.specs["shop/web"] = strings.Replace(objectSpec("web"), "com/shop", "com/pay", 1)
	k.look()
	if r := k.registered("shop/web"); r.Removal != nil || len(r.Publish) != 1 || len(k.Removals()) != 0 {
		t.Errorf("it is registered as %+v", r)
	}
	if e, ok := k.Catalog.Get("shop/web"); !ok || e.Err == nil {
		t.Errorf("it is found %v, as %+v", ok, e)
	}
}

// TestALastWordIsKept has pipelines changed and deleted before anybody has looked: what they say then holds for their files.
func TestALastWordIsKept(t *testing.T) {
	orphan := func(spec string) string { return strings.Replace(spec, `"Delete"`, `"Orphan"`, 1) }
	suspended := func(spec string) string { return strings.Replace(spec, `{`, `{"suspend":true,`, 1) }
	k := newClusterKeeper(t, map[string]string{
		"shop/a": objectSpec("a"), "shop/b": objectSpec("b"), "shop/c": orphan(objectSpec("c")), "shop/d": objectSpec("d"), "shop/e": suspended(objectSpec("e")),
	})
	all := k.objects.specs
	all["shop/a"], all["shop/b"], all["shop/c"], all["shop/e"] = orphan(all["shop/a"]), suspended(all["shop/b"]), objectSpec("c"), objectSpec("e")
	k.MaxShare = 100
	k.delete("shop/a", "shop/b", "shop/c", "shop/d", "shop/e")
	k.look()
	for key, want := range map[string]status.Registration{
		"shop/a": {Policy: v1alpha1.DeletionOrphan}, "shop/b": {Policy: v1alpha1.DeletionDelete, Suspended: true},
		"shop/c": {Policy: v1alpha1.DeletionDelete}, "shop/d": {Policy: v1alpha1.DeletionDelete}, "shop/e": {Policy: v1alpha1.DeletionDelete},
	} {
		r := k.registered(key)
		if r.Policy != want.Policy || r.Suspended != want.Suspended || r.Removal == nil || !r.Removal.Approved {
			t.Errorf("%s: %+v, removal %+v", key, r, r.Removal)
		}
	}
}

// TestALastWordMayComeLate has the policy of a deleted pipeline changed while its removal is held back, and not after that is confirmed.
func TestALastWordMayComeLate(t *testing.T) {
	specs := map[string]string{}
	for _, name := range []string{"a", "b", "c", "d"} {
		specs["shop/"+name] = objectSpec(name)
	}
	k := newClusterKeeper(t, specs)
	k.delete("shop/a", "shop/b", "shop/c", "shop/d")
	k.look()
	if r := k.registered("shop/a"); r.Removal == nil || !r.Removal.Held || r.Policy != v1alpha1.DeletionDelete {
		t.Fatalf("so many are not held: %+v", r)
	}
	if err := k.Confirm(t.Context(), []string{"shop/b"}, false); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"shop/a", "shop/b"} {
		k.objects.deleted[key] = strings.Replace(k.objects.deleted[key], `"Delete"`, `"Orphan"`, 1)
	}
	k.look()
	if r := k.registered("shop/a"); r.Policy != v1alpha1.DeletionOrphan || !r.Removal.Held {
		t.Errorf("the changed one: %+v, removal %+v", r, r.Removal)
	}
	if r := k.registered("shop/b"); r.Policy != v1alpha1.DeletionDelete || !r.Removal.Approved {
		t.Errorf("the confirmed one: %+v, removal %+v", r, r.Removal)
	}
}

// TestALostObjectIsNotADeletedOne has a cluster that is set up anew, without objects: few of each namespace are missing, and nothing is
// removed until somebody says so or they are there again.
func TestALostObjectIsNotADeletedOne(t *testing.T) {
	orphan := strings.Replace(objectSpec("d"), `"Delete"`, `"Orphan"`, 1)
	k := newClusterKeeper(t, map[string]string{"shop/a": objectSpec("a"), "shop/b": objectSpec("b"), "pay/c": objectSpec("c"), "pay/d": orphan})
	k.MaxShare = 100
	before := k.objects.specs
	k.objects.specs = map[string]string{}
	k.look()
	for _, key := range []string{"shop/a", "shop/b", "pay/c"} {
		if r := k.registered(key); r.Removal == nil || !r.Removal.Held || r.Removal.Approved || !strings.Contains(r.Removal.Message, "no deletion was observed") {
			t.Errorf("%s: %+v, removal %+v", key, r, r.Removal)
		}
	}
	if r := k.registered("pay/d"); r.Removal == nil || !r.Removal.Approved {
		t.Errorf("one whose files are left is not let go: %+v", r.Removal)
	}
	if err := k.Confirm(t.Context(), []string{"shop/b"}, false); err != nil {
		t.Fatal(err)
	}
	k.look()
	if r := k.registered("shop/b"); r.Removal == nil || !r.Removal.Approved {
		t.Errorf("the confirmed one: %+v", r.Removal)
	}
	k.objects.specs = map[string]string{"shop/a": before["shop/a"], "pay/c": before["pay/c"]}
	k.look()
	k.delete("pay/c")
	k.look()
	if r := k.registered("shop/a"); r.Removal != nil {
		t.Errorf("the one that is back: %+v", r.Removal)
	}
	if r := k.registered("pay/c"); r.Removal == nil || !r.Removal.Approved {
		t.Errorf("the one that was deleted then: %+v", r.Removal)
	}
}

// TestADeletionIsRemembered has a deletion seen that the next process does not know of.
func TestADeletionIsRemembered(t *testing.T) {
	k := newClusterKeeper(t, map[string]string{"shop/a": objectSpec("a"), "shop/b": objectSpec("b")})
	k.Delay = time.Hour
	k.objects.deleted["shop/a"] = k.objects.specs["shop/a"]
	delete(k.objects.specs, "shop/a")
	k.objects.noFinalizer = true
	k.look()
	if r := k.registered("shop/a"); r.Removal == nil || r.Removal.Approved {
		t.Fatalf("it does not wait: %+v", r.Removal)
	}
	delete(k.objects.deleted, "shop/a")
	k.Delay = 0
	k.look()
	if r := k.registered("shop/a"); r.Removal == nil || !r.Removal.Approved {
		t.Errorf("its removal is %+v", r.Removal)
	}
}

// TestWhatWasLeftCanBeTakenOver has a pipeline go before it has published to its new branch, and another come in its place at the old one.
func TestWhatWasLeftCanBeTakenOver(t *testing.T) {
	at := func(branch string) string {
		return strings.Replace(objectSpec(branch), `"branch"`, `"path":"web","branch"`, 1)
	}
	k := newClusterKeeper(t, map[string]string{"shop/old": at("x"), "shop/other": objectSpec("other")})
	k.objects.specs["shop/old"] = at("y")
	k.look()
	if r := k.registered("shop/old"); len(r.Left) != 1 || len(r.Publish) != 1 {
		t.Fatalf("it is registered as %+v", r)
	}
	var planned []string
	k.Plan = func(heirs []string, _ string) { planned = append(planned, heirs...) }
	k.delete("shop/old")
	k.objects.specs["shop/new"] = at("x")
	k.look()
	e, _ := k.Catalog.Get("shop/new")
	remover := &Remover{Catalog: k.Catalog, Store: k.Store}
	if got := remover.Predecessors(t.Context(), "shop/new", e.Pipeline.Spec.Publish[0]); !slices.Equal(got, []string{"shop/old"}) {
		t.Errorf("it takes over from %q", got)
	}
	if !slices.Equal(planned, []string{"shop/new"}) {
		t.Errorf("looked at are %q", planned)
	}
}
