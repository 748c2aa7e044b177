// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/shape"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/chain"
)

// Workloads whose text differs only in values that the chain copies are admitted once: the pods of the others are put together from the pod of
// one with made-up values. Package fn/shape finds what they have in common, the templates of the injection which values they read, and the
// expressions of policies what those read. The plugins of the API server read no more of the values than keyOf adds to the key.

// alikeness finds the workloads of a group that are admitted alike.
type alikeness struct {
	*prediction

	*admitGroup

	scanner *fn.Alike
	// pinned are the fields that a policy reads, and pinnedLabels the labels: workloads with different values of them are not alike.
	pinned       map[shape.Field]bool
	pinnedLabels map[string]bool
	// facts are what is known of each namespace, beside its name.
	facts map[string]*namespaceFacts
	// count is how many workloads have made-up values.
	count int
	// always has each workload admitted in both ways.
	always bool
}

// namespaceFacts are all that steps read of a namespace, beside its name.
type namespaceFacts struct {
	text string
	// bounds are the amounts of LimitRanges, with which those of pods are compared, and sums reports whether the latter are added up. least and
	// most are the closest bounds of each resource outside of which a pod is rejected.
	bounds      []resource.Quantity
	sums        bool
	least, most map[string]resource.Quantity
}

// newAlikeness returns what finds workloads that are alike. Its scanner is nil where each is to be admitted by itself.
func newAlikeness(p *prediction, group *admitGroup) *alikeness {
	a := &alikeness{
		prediction: p, admitGroup: group, facts: map[string]*namespaceFacts{}, always: sharesAlways(),
		pinned: map[shape.Field]bool{}, pinnedLabels: map[string]bool{},
	}
	if len(group.candidates) == 0 {
		return a
	}
	if !a.touches.All {
		a.scanner = fn.NewAlike(p.webhooks.injector, p.webhooks.cluster)
	}
	// The reasons name containers in paths, and objects of namespaces with their places.
	a.pinned[shape.Container] = p.why
	a.pinned[shape.Namespace] = p.why || a.touches.Namespace
	return a
}

// readBounds notes what amounts of pods are compared with.
func (f *namespaceFacts) readBounds(ranges []chain.LimitRange, quotas int) {
	f.sums = quotas > 0
	f.least, f.most = map[string]resource.Quantity{}, map[string]resource.Quantity{}
	add := func(lists ...corev1.ResourceList) {
		for _, list := range lists {
			f.bounds = slices.AppendSeq(f.bounds, maps.Values(list))
		}
	}
	for _, one := range ranges {
		add(one.Requests, one.Limits)
		for _, item := range one.Items {
			f.sums = f.sums || item.Type == corev1.LimitTypePod || len(item.MaxLimitRequestRatio) > 0
			add(item.Min, item.Max, item.Default, item.DefaultRequest)
			f.readRejected(item)
		}
	}
	slices.SortFunc(f.bounds, func(x, y resource.Quantity) int { return x.Cmp(y) })
	f.bounds = slices.CompactFunc(f.bounds, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// readRejected notes which amounts are rejected.
func (f *namespaceFacts) readRejected(item corev1.LimitRangeItem) {
	for name, q := range item.Min {
		if known, ok := f.least[string(name)]; !ok || q.Cmp(known) > 0 {
			f.least[string(name)] = q
		}
	}
	for name, q := range item.Max {
		if known, ok := f.most[string(name)]; !ok || q.Cmp(known) < 0 {
			f.most[string(name)] = q
		}
	}
}

// mayReject reports whether a pod may be rejected for an amount of a resource. The API server names equal amounts once.
func (f *namespaceFacts) mayReject(name, amount string) bool {
	q, err := resource.ParseQuantity(amount)
	least, hasLeast := f.least[name]
	most, hasMost := f.most[name]
	return err != nil || hasLeast && q.Cmp(least) < 0 || hasMost && q.Cmp(most) > 0
}

// marker begins what is added to the key of a scan.
const marker = "\x01"

// seen is a workload as the scan reads it.
type seen struct {
	key string
	// values are what is in the slots, as pods have it: quantities with their units.
	values []string
	// fixed are the values that are in the key.
	fixed map[int]bool
}

// keyOf reads a document; nil where it has nothing in common with others.
func (a *alikeness) keyOf(doc *manifest.Document) *seen {
	s := a.scan(doc)
	if s == nil {
		return nil
	}
	out := &seen{values: s.Values}
	namespace := a.namespaceOf(s)
	a.scanner.AddAccount(s)
	account, ok := a.accountFacts(namespace, cmp.Or(s.Account, "default"))
	facts := a.factsOf(namespace)
	if !ok || !a.addSlots(out, s, doc.Text(), facts) {
		return nil
	}
	s.Key = append(append(append(s.Key, marker...), facts.text...), account...)
	if a.pinned[shape.Namespace] {
		s.Key = append(append(s.Key, marker...), namespace...)
	}
	if doc.Path() != "" {
		s.Key = append(s.Key, marker+"path"...)
	}
	out.key = string(s.Key)
	return out
}

// scan returns what the text has in common with others; nil where that is nothing.
func (a *alikeness) scan(doc *manifest.Document) *shape.Scan {
	text := doc.Text()
	if strings.Contains(text, "local-config") || strings.Contains(text, "sops:") || !isPlainPath(doc.Path()) {
		return nil
	}
	s := a.scanner.Scan(doc)
	if s == nil || s.Origin != [4]string{} {
		return nil
	}
	return s
}

// isPlainPath reports whether a path is printed as it is.
func isPlainPath(path string) bool {
	return !strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' })
}

// namespaceOf returns the namespace that the workload will be in.
func (a *alikeness) namespaceOf(s *shape.Scan) string {
	return cmp.Or(a.AdmitGroup.TargetNamespace, s.Namespace, a.AdmitGroup.Namespace, "default")
}

// factsOf returns what is known of a namespace.
func (a *alikeness) factsOf(name string) *namespaceFacts {
	if known := a.facts[name]; known != nil {
		return known
	}
	c := a.chain
	var own any
	if ns := c.Namespaces[name]; ns != nil {
		nameless := *ns
		nameless.Name, nameless.Labels = "", withoutName(ns.Labels)
		own = nameless
	}
	text, err := json.Marshal([]any{own, c.LimitRanges[name], c.Quotas[name]})
	known := &namespaceFacts{text: string(text)}
	if err != nil {
		known.text = strconv.Quote(name)
	}
	known.readBounds(c.LimitRanges[name], len(c.Quotas[name]))
	a.facts[name] = known
	return known
}

// withoutName returns the labels of a namespace without the one that every namespace has.
func withoutName(labels map[string]string) map[string]string {
	out := maps.Clone(labels)
	delete(out, corev1.LabelMetadataName)
	return out
}

// accountFacts returns what is known of a ServiceAccount beside its name; false where it restricts to which Secrets pods may refer.
func (a *alikeness) accountFacts(namespace, name string) (string, bool) {
	account := a.chain.Accounts[namespace+"/"+name]
	if account == nil {
		return "", true
	}
	if chain.EnforcesSecrets(account) {
		return "", false
	}
	mounts := "unset"
	if account.AutomountServiceAccountToken != nil {
		mounts = strconv.FormatBool(*account.AutomountServiceAccountToken)
	}
	out := fmt.Sprintf("%saccount %s %q", marker, mounts, account.ImagePullSecrets)
	if a.why {
		out += fmt.Sprint(a.placeOf(chain.Cause{Object: "ServiceAccount " + namespace + "/" + name}))
	}
	return out, true
}

// addSlots adds to the key what steps read of the values in slots.
func (a *alikeness) addSlots(out *seen, s *shape.Scan, text string, facts *namespaceFacts) bool {
	out.fixed = map[int]bool{}
	for _, slot := range s.Slots {
		v := s.Values[slot.Value]
		fixed := a.pinned[slot.Field]
		switch slot.Field {
		case shape.Image:
			s.Key = append(append(s.Key, marker...), a.chain.Server.PullPolicy(v)...)
			fixed = fixed || !manifest.PlainSafe(v)
		case shape.Checksum, shape.Variable, shape.Argument, shape.Command, shape.Reference, shape.Volume:
			fixed = fixed || !manifest.PlainSafe(v)
		case shape.Quantity:
			unit := unitAt(text, slot.End)
			order, ok := facts.orderOf(v + unit)
			s.Key = append(append(s.Key, marker...), order...)
			fixed = fixed || !ok || facts.mayReject(labelKey(text, slot.Start), v+unit)
			out.values[slot.Value] = v + unit
		case shape.ObjectLabel, shape.Selected, shape.Label:
			key := labelKey(text, slot.Start)
			fixed = fixed || key == "" || a.pinnedLabels[key] || a.touches.ReadsLabel(key)
		case shape.Origin:
			return false
		}
		if fixed && !out.fixed[slot.Value] {
			out.fixed[slot.Value] = true
			s.Key = fmt.Appendf(s.Key, "%s%d=%s", marker, slot.Value, v)
		}
	}
	return true
}

// unitAt returns the unit of a quantity whose number ends at an offset.
func unitAt(text string, end int) string {
	n := end
	for n < len(text) && (text[n] >= 'A' && text[n] <= 'Z' || text[n] >= 'a' && text[n] <= 'z') {
		n++
	}
	return text[end:n]
}

// orderOf returns how an amount compares with the bounds. It returns false for one that no other amount can take the place of: where amounts are
// added up, for one of the bounds, and for one that the API server writes in another way.
func (f *namespaceFacts) orderOf(text string) (string, bool) {
	q, err := resource.ParseQuantity(text)
	if err != nil || f.sums || q.String() != text {
		return "", false
	}
	n := 0
	for n < len(f.bounds) && q.Cmp(f.bounds[n]) > 0 {
		n++
	}
	return strconv.Itoa(n), n == len(f.bounds) || q.Cmp(f.bounds[n]) != 0
}

// labelKey returns the key of the label whose value begins at an offset; "" where it is not known.
func labelKey(text string, start int) string {
	before := strings.TrimRight(text[:start], " \"'")
	key, ok := strings.CutSuffix(before, ":")
	if !ok {
		return ""
	}
	key = strings.TrimRight(key, " \"'")
	return key[strings.LastIndexAny(key, " \n{,\"'")+1:]
}
