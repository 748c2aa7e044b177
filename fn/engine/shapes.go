// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"hash/crc64"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/shape"
)

// Workloads whose text differs only in names are injected once: from the results for one workload, and for the same with made-up names, the
// result for the others is put together. fn/shape decides what they have in common, and the templates which names may be left out of it.

// Bounds of what a table of shapes keeps.
const (
	maxShapes = 2048
	maxSeen   = 1 << 16
	maxKeys   = 16 << 20 // bytes of all keys
)

// checkedShare is how many workloads are injected for each one that is also injected by itself, and compared.
const checkedShare = 256

// shapeTable keeps what is known of the shapes of workloads under the same policies and the same facts about the cluster. It is safe for
// concurrent use.
type shapeTable struct {
	mu     sync.RWMutex
	shapes map[string]*learnedShape // nil for those that cannot be used
	seen   map[uint64]struct{}      // hashes of keys that were seen once
	size   int
	// candidates counts workloads: the first ones are injected without a scan, as there may be no others.
	candidates atomic.Int64
	compared   atomic.Int64 // how many results were compared with those of the full way
	words      atomic.Pointer[map[string]bool]
}

func newShapeTable() *shapeTable {
	return &shapeTable{shapes: map[string]*learnedShape{}, seen: map[uint64]struct{}{}}
}

// find returns the shape of a key; ok reports whether it was learned, even if it cannot be used.
func (t *shapeTable) find(key []byte) (found *learnedShape, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	found, ok = t.shapes[string(key)]
	return found, ok
}

var keyTable = crc64.MakeTable(crc64.ECMA)

// second reports whether the key was seen before, and notes it.
func (t *shapeTable) second(key []byte) bool {
	hash := crc64.Checksum(key, keyTable)
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.seen[hash]; ok {
		return len(t.shapes) < maxShapes && t.size < maxKeys
	}
	if len(t.seen) >= maxSeen {
		clear(t.seen)
	}
	t.seen[hash] = struct{}{}
	return false
}

// put keeps a shape, or nil for one that cannot be used.
func (t *shapeTable) put(key []byte, learned *learnedShape) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.shapes[string(key)]; !ok {
		t.size += len(key)
	}
	t.shapes[string(key)] = learned
}

// shapeRun is the use of shapes in a run.
type shapeRun struct {
	in      *Injector
	plans   []*compiledPolicy
	cluster *cluster
	table   *shapeTable
	scans   sync.Pool
	facts   func() *shapeFacts
	// always has every workload take both ways.
	always bool
}

// newShapeRun returns nil where workloads are injected one by one: where the result of one may depend on more than its text, the policies and
// what is known of its namespace.
func (in *Injector) newShapeRun(plans []*compiledPolicy, s *cluster) *shapeRun {
	if in.shapes == nil || in.mode != v1alpha1.ModeInject || in.keepPods || in.trace || in.asIs || s.decides || len(plans) == 0 {
		return nil
	}
	plain := len(s.namespaces)+len(s.accounts)+len(s.limits)+len(s.configMaps)+len(s.proxyConfigs)+len(s.webhooks)+len(s.locks)+len(s.planes) == 0
	for _, pl := range plans {
		if !pl.allowsShapes() {
			return nil
		}
	}
	r := &shapeRun{in: in, plans: plans, cluster: s, table: in.shapes, always: in.checksShapes}
	if !plain {
		r.table = newShapeTable()
	}
	r.facts = sync.OnceValue(r.newFacts)
	r.scans.New = func() any { return shape.NewScan(r.newRules()) }
	return r
}

// shapeKinds are the kinds whose workloads have shapes. The API server changes nothing of these that depends on more than one field, and
// nothing in them is kept as it was published.
var shapeKinds = []string{"Deployment", "StatefulSet", "DaemonSet"}

// shapeless are words in texts that have no shape: those of earlier injections, of other templates, and of fields that the scan does not know.
var shapeless = []string{"prerig.dev", "istio-", "istio.io/status", "istio.io/overrides", "istio.io/templates", "serviceAccount:"}

// minCandidates is how many workloads an injector has seen before it looks for shapes: the second of a shape is learned from.
const minCandidates = 2

// scan returns what the unit has in common with others, or nil. It is to be released.
func (r *shapeRun) scan(u *documentUnit) *shape.Scan {
	if u.byList || u.meta.Name == "" || u.meta.APIVersion != "apps/v1" || !slices.Contains(shapeKinds, u.meta.Kind) {
		return nil
	}
	column, ok := u.doc.Block()
	if !ok || !r.always && r.table.candidates.Add(1) <= minCandidates {
		return nil
	}
	text := u.doc.Text()
	for _, word := range shapeless {
		if strings.Contains(text, word) {
			return nil
		}
	}
	if meta, ok := u.doc.Peek(); !ok || meta != u.meta {
		return nil
	}
	s := r.scans.Get().(*shape.Scan)
	if !s.Read(text, column) || s.Namespace != u.meta.Namespace {
		r.scans.Put(s)
		return nil
	}
	r.addContext(s, u)
	return s
}

// addContext adds to the key what is known of the place of the document and of its service account.
func (r *shapeRun) addContext(s *shape.Scan, u *documentUnit) {
	if u.path == "" && (s.Origin[0] != "" || s.Origin[2] != "") {
		s.Key = append(s.Key, "\x01origin"...)
	}
	if u.path != "" {
		s.Key = append(s.Key, "\x01path"...)
	}
	if u.doc.Path() != "" {
		s.Key = append(s.Key, "\x01file"...)
	}
	name := s.Account
	if name == "" {
		name = "default"
	}
	for _, pl := range r.plans {
		if len(r.cluster.accounts) == 0 && len(pl.policy.Spec.Namespaces) == 0 {
			continue
		}
		resolved := pl.namespaceCandidates(s.Namespace, r.cluster)[0].Name
		account := pl.resolveServiceAccount(r.cluster, name, s.Namespace, resolved)
		s.Key = fmt.Appendf(s.Key, "\x01account %t %q", account.Known, account.PullSecrets)
	}
}

// shapeDiffers is the panic of a test whose workload is injected in another way by its shape.
type shapeDiffers string

// process injects into a unit by its shape, where one is known, and learns it otherwise. full injects without.
func (r *shapeRun) process(u *documentUnit, full func(*documentUnit)) {
	s := r.scan(u)
	if s == nil {
		full(u)
		return
	}
	defer r.scans.Put(s)
	before := *u
	learned, ok := r.table.find(s.Key)
	switch {
	case learned != nil && !r.always && !isChecked(s):
		learned.apply(u, s)
	case learned != nil:
		full(u)
		r.compare(u, &before, s, learned)
	default:
		full(u)
		if r.always && !ok || !ok && r.table.second(s.Key) {
			learned := r.learn(u, &before, s, full)
			r.table.put(s.Key, learned)
			if r.always && learned != nil {
				r.tryOthers(&before, s, learned, full)
			}
		}
	}
}

// isChecked reports whether a workload is injected in both ways. It depends on its own text alone.
func isChecked(s *shape.Scan) bool {
	var hash uint64
	for _, v := range s.Values {
		for i := range len(v) {
			hash = (hash ^ uint64(v[i])) * 1099511628211
		}
	}
	return (hash^hash>>32)%checkedShare == 0
}

// compare drops a shape whose result for the unit is not the one that the unit has by itself.
func (r *shapeRun) compare(u, before *documentUnit, s *shape.Scan, learned *learnedShape) {
	r.table.compared.Add(1)
	other := *before
	learned.apply(&other, s)
	difference := unitDifference(&other, u)
	if difference == "" {
		return
	}
	if r.always {
		panic(shapeDiffers(difference))
	}
	r.table.put(s.Key, nil)
	u.addResult(result.Warning, "", "this workload gets another injection by itself than with others of its shape, and gets its own; "+
		"please report it with the workload and the policy: "+difference[:min(len(difference), 4*maxQuoted)])
}

// unitDifference describes what differs between the results of two ways; "" if nothing does.
func unitDifference(byShape, full *documentUnit) string {
	text := func(d *manifest.Document) string {
		if d == nil {
			return ""
		}
		return d.Text()
	}
	a, b := text(byShape.changed), text(full.changed)
	switch {
	case a != b || (byShape.changed == nil) != (full.changed == nil):
		i := 0
		for i < min(len(a), len(b)) && a[i] == b[i] {
			i++
		}
		line := strings.Count(a[:i], "\n")
		return fmt.Sprintf("line %d is %q and not %q", line+1, lineOf(a, line), lineOf(b, line))
	case byShape.path != full.path || byShape.index != full.index || byShape.meta != full.meta:
		return fmt.Sprintf("the place is %s:%d %v and not %s:%d %v", byShape.path, byShape.index, byShape.meta, full.path, full.index, full.meta)
	}
	return resultsDifference(byShape, full)
}

// maxQuoted bounds what a difference quotes of a line.
const maxQuoted = 120

func lineOf(text string, n int) string {
	lines := strings.Split(text, "\n")
	line := lines[min(n, len(lines)-1)]
	return line[:min(len(line), maxQuoted)]
}
