// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/shape"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/chain"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/policy"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// madeUp is a workload with made-up values in the place of those of another one.
type madeUp struct {
	object gate.Object
	// values are the made-up ones, as pods have them. Those of slots that are in the key are empty.
	values []string
	slots  []madeSlot
	// touches are what policies read, read the numbers of the values among that, and labels the keys of labels.
	touches *policy.Touches
	read    map[int]bool
	labels  map[string]bool
}

// madeSlot is a slot with the label that it is the value of.
type madeSlot struct {
	shape.Slot

	label string
}

// Where a made-up workload is, if workloads are in files.
const (
	madePath = "zqp/j.yaml"
	madeLine = 971_918_273
)

// makeUp returns a workload that is like another one but for its values; nil where there can be none.
func (a *alikeness) makeUp(e *entry) *madeUp {
	s := a.scan(e.document)
	if s == nil {
		return nil
	}
	a.count++
	text, facts := e.document.Text(), a.factsOf(a.namespaceOf(s))
	m := &madeUp{values: make([]string, len(s.Values)), touches: a.touches, read: map[int]bool{}, labels: map[string]bool{}}
	written := slices.Clone(s.Values)
	for _, slot := range s.Slots {
		one := madeSlot{Slot: slot}
		if slot.Field == shape.ObjectLabel || slot.Field == shape.Selected || slot.Field == shape.Label {
			one.label = labelKey(text, slot.Start)
		}
		m.slots = append(m.slots, one)
		if e.seen.fixed[slot.Value] || m.values[slot.Value] != "" {
			continue
		}
		made, unit := a.madeValue(s, slot, text, facts)
		if made == "" || strings.Contains(text, made+unit) {
			return nil
		}
		written[slot.Value], m.values[slot.Value] = made, made+unit
	}
	key, namespace, account := string(s.Key), a.namespaceOf(s), s.Account
	document := e.document.Rewritten(s.With(written))
	if s = a.scan(document); s == nil || string(s.Key) != key {
		return nil
	}
	objects, err := a.read(document, e.path)
	if err != nil || len(objects) != 1 {
		return nil
	}
	m.object = objects[0]
	if m.object.File != nil && m.object.File.Path != "" {
		m.object.File, m.object.Line = &result.File{Path: madePath, Line: madeLine}, func([]any) int { return madeLine }
	}
	if a.addNamespace(namespace, a.namespaceOf(s)) != nil || a.addAccount(namespace, account, a.namespaceOf(s), s.Account) != nil {
		return nil
	}
	return m
}

// madeValue returns a made-up value for a slot, and the unit that follows it. The value is "" where there is none.
func (a *alikeness) madeValue(s *shape.Scan, slot shape.Slot, text string, facts *namespaceFacts) (made, unit string) {
	own := s.Values[slot.Value]
	switch slot.Field {
	case shape.Image:
		made = fmt.Sprintf("zqc%dg%d/j", slot.Value, a.count)
		if a.chain.Server.PullPolicy(own) != "Always" {
			made += ":7q"
		}
		return made, ""
	case shape.Quantity:
		unit = unitAt(text, slot.End)
		order, _ := facts.orderOf(own + unit)
		for _, base := range []int{97001, 9701, 971, 97, 11} {
			made = fmt.Sprint(base + 2*slot.Value)
			if its, ok := facts.orderOf(made + unit); ok && its == order && !strings.Contains(text, made+unit) {
				return made, unit
			}
		}
		return "", ""
	}
	made = s.StandIn(slot, 0)
	if slot.IsName() && strings.HasPrefix(made, "zqx-") {
		made += fmt.Sprintf("g%dk", a.count) // the names of namespaces and accounts are those of one workload
	}
	return made, ""
}

// addNamespace adds a namespace of which the same is known as of another one.
func (a *alikeness) addNamespace(of, name string) error {
	if of == name {
		return nil
	}
	c := a.chain
	if known := c.Namespaces[of]; known != nil {
		ns := known.DeepCopy()
		ns.Name = name
		if _, ok := ns.Labels[corev1.LabelMetadataName]; ok {
			ns.Labels[corev1.LabelMetadataName] = name
		}
		c.Namespaces[name] = ns
	}
	if limits := c.LimitRanges[of]; limits != nil {
		c.LimitRanges[name] = limits
	}
	if quotas := c.Quotas[of]; quotas != nil {
		c.Quotas[name] = quotas
	}
	for _, o := range a.known {
		switch ref := o.Ref(); ref.Kind {
		case "Namespace":
			if ref.Name == of {
				if err := a.addRenamed(o, map[string]any{"name": name}); err != nil {
					return err
				}
			}
		case "LimitRange", "ResourceQuota":
			if cmp.Or(ref.Namespace, "default") == of {
				if err := a.addRenamed(o, map[string]any{"namespace": name}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// addAccount adds a ServiceAccount of which the same is known as of another one.
func (a *alikeness) addAccount(ofNamespace, of, namespace, name string) error {
	of, name = cmp.Or(of, "default"), cmp.Or(name, "default")
	known := a.chain.Accounts[ofNamespace+"/"+of]
	if known == nil || ofNamespace == namespace && of == name {
		return nil
	}
	account := known.DeepCopy()
	account.Namespace, account.Name = namespace, name
	a.chain.Accounts[namespace+"/"+name] = account
	o, ok := a.written[kindAndName{"ServiceAccount", ofNamespace, of}]
	if !ok {
		return nil
	}
	a.written[kindAndName{"ServiceAccount", namespace, name}] = o
	return a.addRenamed(o, map[string]any{"namespace": namespace, "name": name})
}

// addRenamed shows the injection an object with other metadata.
func (a *alikeness) addRenamed(o gate.Object, names map[string]any) error {
	if a.webhooks.injector == nil {
		return nil
	}
	object := maps.Clone(o.Value)
	metadata, _ := object["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	maps.Copy(metadata, names)
	object["metadata"] = metadata
	item, err := itemOf(object, "")
	if err == nil {
		a.webhooks.cluster = append(a.webhooks.cluster, item)
	}
	return err
}

// readsNothing reports whether no step reads made-up values.
func (m *madeUp) readsNothing() bool { return len(m.read)+len(m.labels) == 0 }

// see notes which of the values are where a policy reads. It is called with each pod that policies see.
func (m *madeUp) see(pod *corev1.Pod) {
	if m.touches.Any() {
		m.seeValue(chain.Map(pod), nil)
	}
}

func (m *madeUp) seeValue(v any, path []any) {
	switch v := v.(type) {
	case map[string]any:
		for key, child := range v {
			m.seeValue(child, append(path, key))
		}
	case []any:
		for i, child := range v {
			m.seeValue(child, append(path, i))
		}
	case string:
		for n, made := range m.values {
			if made == "" || !strings.Contains(v, made) || !m.touches.Reads(path) {
				continue
			}
			key := labelAt(path)
			if key != "" {
				m.labels[key] = true
			}
			if key == "" || !m.holdsLabel(n, key) {
				m.read[n] = true
			}
		}
	}
}

// holdsLabel reports whether the workload has a value as a label of a key. The pod may have it as that of another key, from a webhook.
func (m *madeUp) holdsLabel(value int, key string) bool {
	return slices.ContainsFunc(m.slots, func(s madeSlot) bool { return s.Value == value && s.label == key })
}

// seeAdded notes whether policies have added containers to those of the file: the injection sorts them by their names.
func (m *madeUp) seeAdded(pod *corev1.Pod, file map[string]any) {
	spec, _ := file["spec"].(map[string]any)
	for key, containers := range map[string][]corev1.Container{"containers": pod.Spec.Containers, "initContainers": pod.Spec.InitContainers} {
		if list, _ := spec[key].([]any); len(list) == len(containers) {
			continue
		}
		for _, slot := range m.slots {
			if slot.Field == shape.Container && m.values[slot.Value] != "" {
				m.read[slot.Value] = true
			}
		}
	}
}

// seeOrder notes which values are in what an order decides: the texts about that are sorted.
func (m *madeUp) seeOrder(missing []string) {
	for _, text := range missing {
		for n, made := range m.values {
			if made != "" && strings.HasPrefix(text, orderText) && strings.Contains(text, made) {
				m.read[n] = true
			}
		}
	}
}

// labelAt returns the key of the label at a path of a pod; "" for another field.
func labelAt(path []any) string {
	if len(path) != 3 || path[0] != "metadata" || path[1] != "labels" {
		return ""
	}
	key, _ := path[2].(string)
	return key
}
