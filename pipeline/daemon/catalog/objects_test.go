// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/secret/tenant"
)

// objects are those of a cluster, as a test has them.
type objects struct {
	all     map[string]string // specifications by namespace and name
	deleted string
	last    string // the text of the deleted one
	err     error
}

func (o *objects) String() string            { return "cluster c" }
func (o *objects) IsDeleted(key string) bool { return key == o.deleted }

func (o *objects) LastText(key string) []byte {
	if key != o.deleted {
		return nil
	}
	return []byte(o.last)
}

func (o *objects) Confirm(context.Context, string, queue.ObjectVersion) error { return o.err }

func (o *objects) Pipelines() (out []catalog.Object, err error) {
	for key, spec := range o.all {
		namespace, name, _ := strings.Cut(key, "/")
		text := fmt.Sprintf(`{"apiVersion":"prerig.dev/v1alpha1","kind":"RenderPipeline","metadata":{"name":%q,"namespace":%q},"spec":%s}`, name, namespace, spec)
		out = append(out, catalog.Object{Namespace: namespace, Name: name, Text: []byte(text)})
	}
	slices.SortFunc(out, func(a, b catalog.Object) int { return strings.Compare(a.Name, b.Name) })
	return out, o.err
}

const (
	objectSpec  = `{"source":{"git":{"url":"https://git.example.com/shop/apps"}},"publish":[{"git":{"branch":"rendered"}}]}`
	invalidSpec = `{"source":{"git":{"url":"https://git.example.com/shop/apps"}},"build":{"limits":{"memory":"lots"}}}`
)

// TestObjectsOfACluster reads objects, tells which have changed, and keeps all while the API server does not answer.
func TestObjectsOfACluster(t *testing.T) {
	o := &objects{all: map[string]string{"shop/web": objectSpec, "shop/odd": invalidSpec}, deleted: "shop/old"}
	c, err := catalog.OpenAll(t.Context(), []catalog.Origin{{Objects: o}}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := c.Get("shop/web"); !ok || e.Pipeline == nil || e.Pipeline.Metadata.Namespace != "shop" {
		t.Errorf("the object is read as %+v", e)
	}
	e, _ := c.Get("shop/odd")
	if e.Err == nil || e.Opaque || !strings.Contains(e.Err.Error(), "spec.build.limits.memory") || strings.Contains(e.Err.Error(), "line 1") {
		t.Errorf("an invalid object has the error %v", e.Err)
	}
	if !c.IsDeleted("shop/old") || c.IsDeleted("shop/web") || !c.TellsAll("shop/web") || !c.TellsAll("shop/") {
		t.Error("the catalog does not know what is in the cluster")
	}
	o.all["shop/odd"] = strings.Replace(objectSpec, "rendered", "odd", 1)
	if changed, err := c.Reload(); err != nil || !slices.Equal(changed, []string{"shop/odd"}) {
		t.Errorf("%q changed, %v", changed, err)
	}
	o.all, o.err = nil, errors.New("the API server does not answer")
	if changed, err := c.Reload(); err == nil || len(changed) > 0 || len(c.All()) != 2 || c.Status().Error == "" {
		t.Errorf("%q changed, %v; the status is %+v", changed, err, c.Status())
	}
	o.err = nil
	if changed, err := c.Reload(); err != nil || len(changed) != 2 || c.Status().Error != "" {
		t.Errorf("%q changed, %v", changed, err)
	}
}

// TestTenantsOfACluster has the namespace as the directory of a tenant, again and again.
func TestTenantsOfACluster(t *testing.T) {
	shop, err := tenant.New("shop", []string{"shop"}, []string{"https://git.example.com/shop/*"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &objects{all: map[string]string{"shop/web": objectSpec, "shop/far": strings.Replace(objectSpec, "com/shop", "com/pay", 1), "pay/web": objectSpec}}
	c, err := catalog.OpenAll(t.Context(), []catalog.Origin{{Objects: o}}, false, nil, catalog.WithRules(catalog.Rules{Tenants: []tenant.Tenant{shop}}))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, e := range c.All() {
			if valid := e.Key == "shop/web"; valid != (e.Err == nil) {
				t.Errorf("%s: %v", e.Key, e.Err)
			}
		}
		if changed, err := c.Reload(); err != nil || len(changed) > 0 {
			t.Errorf("%q changed, %v", changed, err)
		}
	}
}

// TestRefusedObjectsKeepTheirNames has a tenant's object refused, one that is not valid, and those of a namespace that no tenant has: each
// is found by its own name, so that its status can be written, and is no other pipeline.
func TestRefusedObjectsKeepTheirNames(t *testing.T) {
	shop, err := tenant.New("shop", []string{"shop"}, []string{"https://git.example.com/shop/*"}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, rules := range map[string]catalog.Rules{"without tenants": {}, "with tenants": {Tenants: []tenant.Tenant{shop}}} {
		t.Run(name, func(t *testing.T) {
			far := strings.Replace(objectSpec, "com/shop", "com/pay", 1)
			o := &objects{all: map[string]string{"shop/web": objectSpec, "shop/odd": invalidSpec, "pay/odd": invalidSpec, "pay/far": far}}
			c, err := catalog.OpenAll(t.Context(), []catalog.Origin{{Objects: o}}, false, nil, catalog.WithRules(rules))
			if err != nil {
				t.Fatal(err)
			}
			o.all["shop/web"] = far
			if _, err := c.Reload(); err != nil {
				t.Fatal(err)
			}
			refused := map[string]bool{"shop/web": name == "with tenants", "shop/odd": true, "pay/odd": true, "pay/far": name == "with tenants"}
			for key, want := range refused {
				e, ok := c.Get(key)
				if !ok || (e.Err != nil) != want || (e.Pipeline == nil) != want {
					t.Errorf("%s: found %v, error %v", key, ok, e.Err)
				}
				if e.Err == nil {
					continue
				}
				for _, gone := range []string{"shop/gone", "pay/gone"} {
					if c.MayHold(e, gone) {
						t.Errorf("%s may be %s", key, gone)
					}
				}
				if !c.MayHold(e, key) {
					t.Errorf("%s may not be itself", key)
				}
			}
			if len(c.All()) != len(refused) {
				t.Errorf("%d entries", len(c.All()))
			}
		})
	}
}

// TestLastWord reads what becomes of the files of a deleted object, whatever else is wrong with it.
func TestLastWord(t *testing.T) {
	o := &objects{all: map[string]string{"shop/web": objectSpec}}
	c, err := catalog.OpenAll(t.Context(), []catalog.Origin{{Objects: o}}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if word, ok := c.LastWordOf("shop/web"); ok {
		t.Errorf("of one that nobody has deleted: %+v", word)
	}
	o.deleted = "shop/web"
	for text, want := range map[string]catalog.LastWord{
		`{"spec":{"deletionPolicy":"Delete","build":{"limits":{"memory":"lots"}}}}`: {Policy: v1alpha1.DeletionDelete},
		`{"spec":{"deletionPolicy":"Delete","suspend":true}}`:                       {Policy: v1alpha1.DeletionDelete, Suspended: true},
		`{"spec":{"deletionPolicy":"Orphan"}}`:                                      {Policy: v1alpha1.DeletionOrphan},
		`{"spec":{}}`:                                                               {Policy: v1alpha1.DeletionOrphan},
		`{"spec":{"deletionPolicy":[]}}`:                                            {},
	} {
		o.last = text
		if word, ok := c.LastWordOf("shop/web"); !ok || word != want {
			t.Errorf("%s: %+v, %v", text, word, ok)
		}
	}
}
