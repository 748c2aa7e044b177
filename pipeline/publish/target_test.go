// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// places open a target of each kind on a place that is empty. A new kind is to be added here.
var places = map[string]func(t *testing.T) (publish.Interface, v1alpha1.Publish){
	"git": func(t *testing.T) (publish.Interface, v1alpha1.Publish) {
		to := v1alpha1.Publish{Git: &v1alpha1.GitPublish{URL: gittest.New(t).Repository(t, "config").URL, Branch: "rendered", Path: "shop"}}
		return openTarget(t, to), to
	},
	"oci": func(t *testing.T) (publish.Interface, v1alpha1.Publish) {
		host, _ := startRegistry(t)
		to := v1alpha1.Publish{OCI: &v1alpha1.OCIPublish{URL: "oci://" + host + "/rendered/shop", Tags: []string{"latest"}, Insecure: true}}
		return openTarget(t, to), to
	},
	"externalArtifact": func(t *testing.T) (publish.Interface, v1alpha1.Publish) {
		target, _, _, _ := openArtifact(t)
		return target, toArtifact
	},
}

// repositories reaches registries, and repositories of Git by mirrors in a directory.
type repositories struct {
	registries
	store *git.Store
}

func (r repositories) Repository(_ context.Context, _, url string, _ *meta.LocalObjectReference) (*git.Mirror, *git.Remote, error) {
	mirror, err := r.store.Mirror(url)
	if err != nil {
		return nil, nil, err
	}
	remote, err := git.NewRemote(url, nil, nil)
	return mirror, remote, err
}

// newTargets returns what opens places that nobody else writes to.
func newTargets(reached publish.Repositories) *publish.Targets {
	return publish.NewTargets(reached, nil, func(context.Context, string) (func(), error) { return func() {}, nil }, tree.Limits{}, nil)
}

func openTarget(t *testing.T, to v1alpha1.Publish) publish.Interface {
	t.Helper()
	reached := repositories{store: git.NewStore(t.TempDir(), git.DefaultLimits())}
	targets := newTargets(reached)
	target, err := targets.Open(ctx, "shop", to)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// TestEveryKindOfTarget publishes to each kind of target what whoever calls them relies on, whatever the place: the first result, the same
// again, another, one that a gate refuses, and nothing any more.
func TestEveryKindOfTarget(t *testing.T) {
	for _, kind := range publish.TargetKinds() {
		t.Run(kind, func(t *testing.T) {
			open := places[kind]
			if open == nil {
				t.Fatalf("there is no place of the kind %q to try it with", kind)
			}
			target, to := open(t)
			p := place{t: t, Interface: target}
			if p.Key() == "" {
				t.Error("the key is empty, so that two processes would write at once")
			}
			p.holds(nil)
			first := p.publish(change(t, "shop/web", "shop", configMap("a", "1"), configMap("b", "1")))
			if !first.Changed || first.Revision == "" || len(first.Outcome.Added) != 2 {
				t.Errorf("the first result gave %+v", first)
			}
			same := change(t, "shop/web", "shop", configMap("b", "1"), configMap("a", "1"))
			if again := p.publish(same); again.Changed || again.Revision != first.Revision {
				t.Errorf("the same again gave %+v", again)
			}
			p.holds(same.Files)
			other := change(t, "shop/web", "shop", configMap("a", "2"), configMap("c", "1"))
			second := p.publish(other)
			if !second.Changed || second.Revision == first.Revision {
				t.Errorf("another result gave %+v", second)
			}
			p.changed(second)
			p.holds(other.Files)
			p.refuses(change(t, "shop/web", "shop", configMap("d", "1")), 2)
			p.holds(other.Files)
			if text, err := p.Drift(ctx, publish.Written{Revision: second.Revision, Record: second.Record}); text != "" || err != nil {
				t.Errorf("what nobody has changed has drifted: %q, %v", text, err)
			}
			if waits, err := p.Settle(ctx, "shop/web", publish.Written{Revision: second.Revision, Record: second.Record}); waits != nil || err != nil {
				t.Errorf("%+v waits, %v", waits, err)
			}
			p.removed(to.Removable(), other)
		})
	}
}

// place is a target of a test.
type place struct {
	t *testing.T
	publish.Interface
}

func (p place) publish(c publish.Change) publish.Receipt {
	p.t.Helper()
	receipt, err := p.Publish(ctx, c)
	if err != nil || receipt.Problem != nil || receipt.Held != "" {
		p.t.Fatalf("publishing: %v, %v, %q", err, receipt.Problem, receipt.Held)
	}
	return receipt
}

// holds checks that the place has the files of the pipeline and no others, wherever it has them.
func (p place) holds(files map[string][]byte) {
	p.t.Helper()
	held, err := p.Current(ctx, "shop/web", files)
	if err != nil || held.Refused != nil {
		p.t.Fatalf("reading what is there: %v, %v", err, held.Refused)
	}
	if got, want := texts(held.Files), texts(files); !slices.Equal(got, want) || len(held.Objects) != len(files) {
		p.t.Errorf("it holds %q of the objects %q, not %q", got, held.Objects, want)
	}
}

func texts(files map[string][]byte) (texts []string) {
	for text := range maps.Values(files) {
		texts = append(texts, string(text))
	}
	slices.Sort(texts)
	return texts
}

// changed checks that the receipt of one that came, one that changed and one that went tells of these, with what was there before.
func (p place) changed(r publish.Receipt) {
	p.t.Helper()
	o := r.Outcome
	if len(o.Added) != 1 || len(o.Modified) != 1 || len(o.Deleted) != 1 || r.Old == nil {
		p.t.Fatalf("the outcome is %+v", o)
	}
	was, is := string(r.Old(o.Modified[0])), string(r.Files[o.Modified[0]])
	if was != string(configMap("a", "1").YAML) || is != string(configMap("a", "2").YAML) || r.Old(o.Added[0]) != nil || r.Old(o.Deleted[0]) == nil {
		p.t.Errorf("what has changed was %q and is %q", was, is)
	}
}

// refuses checks that a gate is asked, with the number of objects that are there and those that would go, and that its error is returned.
func (p place) refuses(c publish.Change, there int) {
	p.t.Helper()
	closed := errors.New("closed")
	c.Gate = func(published int, deleted []string) error {
		if published != there || len(deleted) != there {
			p.t.Errorf("the gate was told of %d objects and of %q to delete", published, deleted)
		}
		return closed
	}
	if receipt, err := p.Publish(ctx, c); !errors.Is(err, closed) || receipt.Changed {
		p.t.Errorf("behind a closed gate: %+v, %v", receipt, err)
	}
}

// removed takes away what is there, twice; what cannot be removed says so and stays.
func (p place) removed(removable bool, last publish.Change) {
	p.t.Helper()
	c := publish.Change{Pipeline: "shop/web", Path: "shop", Origin: last.Origin, Tool: last.Tool, Remove: true}
	receipt, err := p.Remove(ctx, c)
	if !removable {
		if err == nil {
			p.t.Errorf("removing gave %+v", receipt)
		}
		p.holds(last.Files)
		return
	}
	if err != nil || !receipt.Changed {
		p.t.Errorf("removing gave %+v, %v", receipt, err)
	}
	p.holds(nil)
	if receipt, err = p.Remove(ctx, c); err != nil || receipt.Changed {
		p.t.Errorf("removing again gave %+v, %v", receipt, err)
	}
}
