// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"fmt"
	"hash/crc64"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/shape"
)

// Workloads whose text differs only in names are injected once: from the results for one workload, and for the same with made-up names, the
// result for the others is put together. fn/shape decides what they have in common, and the templates which names may be left out of it.

// Bounds of what a table of shapes keeps, and of the workloads that a run keeps to learn from.
const (
	maxShapes = 2048
	maxSeen   = 1 << 16
	maxKeys   = 16 << 20 // bytes of all keys
	maxFirsts = 1 << 12
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

// second reports whether the hash of a key was seen before, and notes it.
func (t *shapeTable) second(hash uint64) bool {
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
	// firsts are the first workloads of shapes in this run, by the hashes of their keys. Those whose shape is being learned are nil.
	firsts  map[uint64]*firstSight
	guarded sync.Mutex // firsts
	// always has every workload take both ways.
	always bool
}

// newShapeRun returns nil where workloads are injected one by one: where the result of one may depend on more than its text, the policies and
// what is known of its namespace.
func (in *Injector) newShapeRun(plans []*compiledPolicy, s *cluster) *shapeRun {
	if in.shapes == nil || in.keepPods || in.trace || s.decides || !readsTextAlone(in, plans) {
		return nil
	}
	plain := len(s.namespaces)+len(s.accounts)+len(s.limits)+len(s.configMaps)+len(s.proxyConfigs)+len(s.webhooks)+len(s.locks)+len(s.planes) == 0
	r := &shapeRun{in: in, plans: plans, cluster: s, table: in.shapes, firsts: map[uint64]*firstSight{}, always: in.checksShapes}
	if !plain {
		r.table = newShapeTable()
	}
	r.facts = sync.OnceValue(r.newFacts)
	r.scans.New = func() any { return shape.NewScan(r.newRules()) }
	return r
}

// readsTextAlone reports whether the policies inject each workload by its text, and by what is known of its namespace and account.
func readsTextAlone(in *Injector, plans []*compiledPolicy) bool {
	if in.mode != v1alpha1.ModeInject || in.asIs || len(plans) == 0 || writesPolicies(plans) {
		return false
	}
	return !slices.ContainsFunc(plans, func(pl *compiledPolicy) bool { return !pl.allowsShapes() })
}

// shapeKinds are the kinds whose workloads have shapes. The API server changes nothing of these that depends on more than one field, and
// nothing in them is kept as it was published.
var shapeKinds = []string{"Deployment", "StatefulSet", "DaemonSet"}

// isShapeless reports whether a text has words of an earlier injection, of other templates, or of a field that the scan does not know.
func isShapeless(text string) bool {
	for rest := text; ; {
		_, after, found := strings.Cut(rest, "istio")
		if !found {
			return strings.Contains(text, "prerig.dev") || strings.Contains(text, "serviceAccount:")
		}
		for _, word := range []string{"-", ".io/status", ".io/overrides", ".io/templates"} {
			if strings.HasPrefix(after, word) {
				return true
			}
		}
		rest = after
	}
}

// minCandidates is how many workloads an injector has seen before it looks for shapes: the second of a shape is learned from.
const minCandidates = 2

// scan returns what the unit has in common with others, or nil. It is to be released.
func (r *shapeRun) scan(u *documentUnit) *shape.Scan {
	if u.byList || !u.peeked || u.meta.Name == "" || u.meta.APIVersion != "apps/v1" || !slices.Contains(shapeKinds, u.meta.Kind) {
		return nil
	}
	column, ok := u.doc.Block()
	if !ok || !r.always && r.table.candidates.Add(1) <= minCandidates {
		return nil
	}
	text := u.doc.Text()
	if isShapeless(text) {
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

// addContext adds to the key what is known of the place of the document, and of its service account.
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
	r.addAccount(s)
}

// addAccount adds to the key what is known of the workload's service account.
func (r *shapeRun) addAccount(s *shape.Scan) {
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
	case ok:
		full(u)
	case r.always:
		full(u)
		learned = r.learn(newFirstSight(u, &before), &before, s, full)
		r.table.put(s.Key, learned)
		if learned != nil {
			r.tryOthers(&before, s, learned, full)
		}
	default:
		r.processNew(u, s, full)
	}
}

// processNew injects into a unit whose shape is not known. The first of a shape is injected by itself. The second is injected with made-up names
// only: the result becomes the shape, if the shape also yields the result of the first.
func (r *shapeRun) processNew(u *documentUnit, s *shape.Scan, full func(*documentUnit)) {
	before := *u
	hash := crc64.Checksum(s.Key, keyTable)
	first := r.takeFirst(hash)
	if first == nil {
		full(u)
		first = newFirstSight(u, &before)
		if !r.table.second(hash) {
			r.keepFirst(hash, first)
			return
		}
		// It was seen in an earlier run, whose results are not kept.
	}
	learned := r.learn(first, &before, s, full)
	r.table.put(s.Key, learned)
	switch {
	case first.after.doc == u.doc:
	case learned == nil:
		full(u)
	default:
		learned.apply(u, s)
	}
}

// takeFirst returns the first workload of a shape to the one that learns it; nil where there is none, or another worker has it.
func (r *shapeRun) takeFirst(hash uint64) *firstSight {
	r.guarded.Lock()
	defer r.guarded.Unlock()
	first := r.firsts[hash]
	if first != nil {
		r.firsts[hash] = nil
	}
	return first
}

func (r *shapeRun) keepFirst(hash uint64, first *firstSight) {
	r.guarded.Lock()
	defer r.guarded.Unlock()
	if _, ok := r.firsts[hash]; !ok && len(r.firsts) < maxFirsts {
		r.firsts[hash] = first
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

// firstSight is the first workload of a shape, without the text of its result.
type firstSight struct {
	before, after documentUnit
	digest        [sha256.Size]byte // of the text
	changed       bool
}

func newFirstSight(u, before *documentUnit) *firstSight {
	f := &firstSight{before: *before, after: *u, digest: sha256.Sum256([]byte(changedText(u))), changed: u.changed != nil}
	f.after.changed = nil
	return f
}

// isResult reports whether a unit has the result of the first one.
func (f *firstSight) isResult(byShape *documentUnit) bool {
	return (byShape.changed != nil) == f.changed && sha256.Sum256([]byte(changedText(byShape))) == f.digest && reportDifference(byShape, &f.after) == ""
}

// changedText returns the text that a unit becomes; "" where it does not change.
func changedText(u *documentUnit) string {
	if u.changed == nil {
		return ""
	}
	return u.changed.Filled().Text()
}

// unitDifference describes what differs between the results of two ways; "" if nothing does.
func unitDifference(byShape, full *documentUnit) string {
	a, b := changedText(byShape), changedText(full)
	if a == b && (byShape.changed == nil) == (full.changed == nil) {
		return reportDifference(byShape, full)
	}
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	line := strings.Count(a[:i], "\n")
	return fmt.Sprintf("line %d is %q and not %q", line+1, lineOf(a, line), lineOf(b, line))
}

// reportDifference describes what differs in anything but the texts; "" if nothing does.
func reportDifference(byShape, full *documentUnit) string {
	switch {
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
