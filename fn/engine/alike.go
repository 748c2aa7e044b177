// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/shape"
)

// Alike finds workloads that an Injector treats alike, for callers that do more with their pods than to inject. It is for one goroutine.
type Alike struct {
	run  *shapeRun
	scan *shape.Scan
}

// NewAlike returns an Alike for workloads beside these items; nil where the Injector treats each workload by itself. Quantities, and what
// Namespaces and LimitRanges among the items have of a namespace, are to be compared by the caller. in may be nil, for no injection.
func NewAlike(in *Injector, items []Item) *Alike {
	if in == nil {
		copied := func(shape.Field) bool { return true }
		return &Alike{scan: shape.NewScan(&shape.Rules{
			Free: copied, FreeLabel: func(string) bool { return true }, Reserved: isOurs, KnownNamespace: func(string) bool { return false },
		})}
	}
	surroundings := readCluster(flattenItems(items))
	plans, results := in.compilePolicies(surroundings)
	if (&Report{Results: results}).Failed() || !readsTextAlone(in, plans) {
		return nil
	}
	r := &shapeRun{in: in, plans: plans, cluster: surroundings, table: newShapeTable()}
	facts := r.newFacts()
	if facts == nil {
		return nil
	}
	facts.limited = false
	r.facts = func() *shapeFacts { return facts }
	rules := r.newRules()
	rules.KnownNamespace = func(name string) bool { return facts.configured || r.isListed(name) }
	return &Alike{run: r, scan: shape.NewScan(rules)}
}

// Scan returns what a document has in common with others; nil where that is not known. It is valid until the next call.
func (a *Alike) Scan(doc *manifest.Document) *shape.Scan {
	meta, ok := doc.Peek()
	if !ok || meta.Name == "" || meta.APIVersion != "apps/v1" || !slices.Contains(shapeKinds, meta.Kind) {
		return nil
	}
	column, block := doc.Block()
	if !block || isShapeless(doc.Text()) || !a.scan.Read(doc.Text(), column) || a.scan.Namespace != meta.Namespace {
		return nil
	}
	return a.scan
}

// AddAccount adds to the key of a scan what the injection knows of the workload's service account.
func (a *Alike) AddAccount(s *shape.Scan) {
	if a.run != nil {
		a.run.addAccount(s)
	}
}
