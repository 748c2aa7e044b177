// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/pin"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/sidecar"
	"github.com/prerig/prerig/fn/workload"
)

// publishedObjects are the Jobs and bare Pods that are published, and what sidecars have added beside them.
type publishedObjects struct {
	pods map[publishedKey][]map[string]any
	// added are the objects with sidecar.ObjectAnnotation.
	added []map[string]any
}

// publishedKey names an object whatever its version, with the namespace as it is written.
type publishedKey struct{ group, kind, namespace, name string }

func publishedKeyOf(m manifest.Meta) publishedKey {
	group, _, grouped := strings.Cut(m.APIVersion, "/")
	if !grouped {
		group = ""
	}
	return publishedKey{group, m.Kind, m.Namespace, m.Name}
}

// WithPublished returns an Injector that knows what is published: spec.jobs: KeepPublished keeps the Jobs and bare Pods among these
// documents as they are as long as their own spec is unchanged. Without it, and only then, a Job or Pod of the input that carries an
// injection counts as published. Documents that cannot be read, and those of other kinds, are not looked at.
func (in *Injector) WithPublished(docs []*manifest.Document) *Injector {
	known := *in
	known.published = newPublishedObjects(docs)
	return &known
}

// NewKeeper returns an Injector that does not inject: it restores the published state of Jobs and bare Pods whose
// own spec is unchanged (WithPublished), and leaves all other objects unchanged. It is for input that was injected by
// others, with that spec.jobs.
func NewKeeper(docs []*manifest.Document, jobs v1alpha1.Jobs) (*Injector, error) {
	policy := &v1alpha1.InjectionPolicy{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.Kind, Metadata: v1alpha1.Metadata{Name: "published"}}
	policy.Spec.Jobs = jobs
	policy.SetDefaults()
	in, err := New([]*v1alpha1.InjectionPolicy{policy})
	if err != nil {
		return nil, err
	}
	in.published, in.asIs = newPublishedObjects(docs), true
	return in, nil
}

func newPublishedObjects(docs []*manifest.Document) *publishedObjects {
	items := make([]Item, len(docs))
	for i, doc := range docs {
		items[i] = Item{Doc: doc}
	}
	known := &publishedObjects{pods: map[publishedKey][]map[string]any{}}
	for _, u := range flattenItems(items) {
		marked := u.doc.Contains(sidecar.ObjectAnnotation)
		if u.broken || u.elements != nil || !isKeptKind(u.meta) && !marked {
			continue
		}
		obj, err := u.objectWithListType()
		switch {
		case err != nil:
		case isKeptKind(u.meta):
			key := publishedKeyOf(metaOf(obj))
			known.pods[key] = append(known.pods[key], obj)
		default:
			known.added = append(known.added, obj)
		}
	}
	return known
}

// isKeptKind reports whether the pod template of a kind is mostly immutable after creation: a Job's, and a Pod
// itself.
func isKeptKind(m manifest.Meta) bool {
	switch m.Kind {
	case "Job":
		return strings.HasPrefix(m.APIVersion, "batch/")
	case "Pod":
		return m.APIVersion == "v1"
	}
	return false
}

// publishedPod is a Job or bare Pod as it was published.
type publishedPod struct {
	// object is the whole object without its record.
	object map[string]any
	// pod is its pod as published, and unpinned the same with the images that its own containers had before they were pinned.
	pod, unpinned map[string]any
	// original is the pod without any injection, and restored is what is known of it.
	original map[string]any
	restored restoredPod
	// record is the workload's.
	record workloadRecord
	// bare reports whether it is a bare Pod, and inPlace whether it is the input itself.
	bare, inPlace bool
}

// readPublished removes the injection from a published object. It returns nil for one that cannot be read.
func (in *Injector) readPublished(obj map[string]any, names func(string) bool) *publishedPod {
	rest, record, err := splitUndoRecord(obj)
	if err != nil {
		return nil
	}
	templates, err := in.registry.Templates(rest)
	if err != nil || len(templates) != 1 {
		return nil
	}
	t := templates[0]
	p := &publishedPod{object: rest, pod: t.Pod, record: record, bare: len(t.Path) == 0}
	p.unpinned, _ = pin.Restore(t.Pod, record.images[t.Field])
	how := restoreOptions{names: names, bare: p.bare}
	p.restored, p.original, err = restorePod(p.unpinned, t.Owner, record.pods[t.Field], how)
	if err != nil {
		return nil
	}
	return p
}

// publishedOf returns the published state of the pod's object: all objects of its name, or otherwise the input
// itself if it carries an injection and the published state is unknown.
func (a *attempt) publishedOf(record workloadRecord, written workload.Template) []*publishedPod {
	w := a.of
	if w.in.published == nil {
		if !w.restored.injected {
			return nil
		}
		return []*publishedPod{{
			object: w.obj, pod: written.Pod, unpinned: w.template.Pod, original: a.original, restored: w.restored,
			record: record, bare: w.isBarePod(), inPlace: true,
		}}
	}
	var found []*publishedPod
	for _, obj := range w.in.published.pods[publishedKeyOf(w.unit.meta)] {
		if p := w.in.readPublished(obj, containerNamePredicate(w.plans)); p != nil {
			found = append(found, p)
		}
	}
	return found
}

// containsText reports whether a value holds a text.
func containsText(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return v == text
	case map[string]any:
		for _, one := range v {
			if containsText(one, text) {
				return true
			}
		}
	case []any:
		for _, one := range v {
			if containsText(one, text) {
				return true
			}
		}
	}
	return false
}

// keptObjects returns the objects that sidecars have added for pods that are kept, out of those that are published.
func (in *Injector) keptObjects(u *documentUnit) (out []wantedObject) {
	if u.kept == nil || in.published == nil {
		return nil
	}
	for _, obj := range in.published.added {
		if !u.keptPodReferences(metaOf(obj)) {
			continue
		}
		obj = podmap.CopyMap(obj)
		meta, _ := obj["metadata"].(map[string]any)
		annotations, _ := meta["annotations"].(map[string]any)
		name, _ := annotations[sidecar.ObjectAnnotation].(string)
		delete(annotations, sidecar.ObjectAnnotation)
		if len(annotations) == 0 {
			delete(meta, "annotations")
		}
		out = append(out, wantedObject{obj: obj, sidecar: name, owner: u.resourceReference()})
	}
	return out
}

// keptPodReferences reports whether the pod of a unit that is kept refers to an object.
func (u *documentUnit) keptPodReferences(m manifest.Meta) bool {
	return u.kept != nil && m.Name != "" && m.Namespace == u.meta.Namespace && containsText(u.kept.pod["spec"], m.Name)
}
