// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package prune

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// newSharedKeeper is a keeper of a cluster without tenants that has so many pipelines in each namespace.
func newSharedKeeper(t *testing.T, namespaces map[string]int) *clusterKeeper {
	specs := map[string]string{}
	for namespace, n := range namespaces {
		for i := range n {
			specs[fmt.Sprintf("%s/%d", namespace, i)] = objectSpec(fmt.Sprintf("%s-%d", namespace, i))
		}
	}
	return newClusterKeeper(t, specs)
}

// deleteSome has somebody delete the first pipelines of a namespace.
func (k *clusterKeeper) deleteSome(namespace string, n int) {
	for i := range n {
		k.delete(fmt.Sprintf("%s/%d", namespace, i))
	}
}

// reason returns why a pipeline is held, "" where its removal is approved.
func (k *clusterKeeper) reason(key string) string {
	k.t.Helper()
	r := k.registered(key).Removal
	switch {
	case r == nil:
		k.t.Fatalf("%s is not gone", key)
	case !r.Approved && r.Held:
		return r.Message
	case !r.Approved:
		return "it waits"
	}
	return ""
}

// TestOneNamespaceHoldsNoOthersRemovals has a namespace of many pipelines emptied, with and without a finalizer: single deletions of others
// go on, while its own are held.
func TestOneNamespaceHoldsNoOthersRemovals(t *testing.T) {
	k := newSharedKeeper(t, map[string]int{"many": 30, "shop": 6, "pay": 1, "cart": 1})
	k.Delay = time.Hour
	k.deleteSome("many", 30)
	k.deleteSome("shop", 1) // at the same time
	k.look()
	k.deleteSome("pay", 1)
	k.look()
	for key, want := range map[string]string{"many/7": "30 of 30 pipelines were deleted at once", "shop/0": "", "pay/0": ""} {
		if got := k.reason(key); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q", key, got)
		}
	}

	k = newSharedKeeper(t, map[string]int{"many": 30, "shop": 6})
	k.Delay, k.objects.noFinalizer = time.Hour, true
	k.deleteSome("many", 30)
	k.look()
	k.objects.noFinalizer = false
	k.deleteSome("shop", 1)
	for name := range k.objects.deleted {
		if strings.HasPrefix(name, "many/") {
			delete(k.objects.deleted, name)
		}
	}
	k.look()
	if waits, got := k.reason("many/7"), k.reason("shop/0"); waits != "it waits" || got != "" {
		t.Errorf("while they wait for the delay: %q, and another: %q", waits, got)
	}
}

// TestANamespaceIsGivenUp has all pipelines of a namespace deleted, which are few of all: they go, also while another namespace is held.
func TestANamespaceIsGivenUp(t *testing.T) {
	k := newSharedKeeper(t, map[string]int{"many": 99, "shop": 6, "pay": 5, "cart": 20})
	k.deleteSome("pay", 5)
	k.look()
	if got := k.reason("pay/0"); got != "" {
		t.Errorf("5 of 130: %q", got)
	}
	k.deleteSome("many", 99)
	k.look()
	if got := k.reason("many/0"); !strings.HasPrefix(got, "99 of 99 pipelines") {
		t.Errorf("99 of 125: %q", got)
	}
	k.deleteSome("shop", 6)
	k.look()
	if got := k.reason("shop/0"); got != "" {
		t.Errorf("6 of 26 beside what is held: %q", got)
	}
}

// TestManyNamespacesAtOnceWaitForAWord has the pipelines of all namespaces deleted, few of each, as where their definition is.
func TestManyNamespacesAtOnceWaitForAWord(t *testing.T) {
	for name, namespaces := range map[string]map[string]int{
		"few of each":        {"a": 2, "b": 2, "c": 1, "d": 1},
		"three of two":       {"a": 3, "b": 3},
		"many of one":        {"a": 9, "b": 2, "c": 1, "d": 1},
		"many of two":        {"a": 9, "b": 5, "c": 1},
		"one that is larger": {"a": 9, "b": 9, "c": 2, "d": 2},
	} {
		k := newSharedKeeper(t, namespaces)
		for namespace, n := range namespaces {
			k.deleteSome(namespace, n)
		}
		k.look()
		for key := range k.objects.deleted {
			if got := k.reason(key); !strings.Contains(got, "were deleted at once, more than removals.max_share (50 %)") {
				t.Errorf("%s: %s: %q", name, key, got)
			}
		}
	}
	k := newSharedKeeper(t, map[string]int{"a": 2, "b": 2, "c": 9})
	k.deleteSome("a", 2)
	k.deleteSome("b", 2)
	k.look()
	if got := k.reason("a/0"); got != "" {
		t.Errorf("4 of 13: %q", got)
	}
}
