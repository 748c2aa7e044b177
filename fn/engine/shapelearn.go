// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/shape"
)

// learnedShape is what becomes of the workloads of a shape.
type learnedShape struct {
	// mould is the text of the injected document; nil where it does not change.
	mould   *manifest.Mould
	outcome outcomeMould
	results []resultMould
}

// learn injects into a workload with made-up names, and returns what the result and that of the first workload of the shape have in common. It
// returns nil where that does not give both of them again, byte for byte.
func (r *shapeRun) learn(first *firstSight, before *documentUnit, s *shape.Scan, full func(*documentUnit)) (learned *learnedShape) {
	defer func() {
		// A defect must not take the results of the workloads away.
		if p := recover(); p != nil {
			if r.always {
				panic(p)
			}
			learned = nil
		}
	}()
	made := standIns(s, 0)
	other, ok := r.renamed(before, s, made)
	if !ok || isAnyIn(made, s.Values, before.doc) {
		return nil
	}
	full(other)
	if learned = newLearnedShape(s, other, made); learned == nil {
		return nil
	}
	again := *before
	again.doc, again.meta = other.doc, other.meta
	values := *s
	values.Values, values.Origin = made, originOf(s, made)
	if learned.apply(&again, &values); unitDifference(&again, other) != "" {
		return nil
	}
	own := r.scan(&first.before)
	if own == nil {
		return nil
	}
	defer r.scans.Put(own)
	again = first.before
	learned.apply(&again, own)
	if !bytes.Equal(own.Key, s.Key) || !first.isResult(&again) {
		return nil
	}
	return learned
}

// originOf returns the origin of the document with other values.
func originOf(s *shape.Scan, values []string) [4]string {
	out := s.Origin
	for i, old := range s.Origin {
		for n, v := range s.Values {
			if old != "" && v == old && s.IsOrigin(n) {
				out[i] = values[n]
			}
		}
	}
	return out
}

// renamed returns a unit whose document has other values in its slots.
func (r *shapeRun) renamed(before *documentUnit, s *shape.Scan, values []string) (*documentUnit, bool) {
	other := *before
	other.doc = before.doc.Rewritten(s.With(values))
	meta, ok := other.doc.Peek()
	other.meta, other.peeked = meta, ok
	return &other, ok
}

// standIns returns a made-up value for each of the slots, of its class. Those of different rounds differ.
func standIns(s *shape.Scan, round int) []string {
	out := make([]string, len(s.Values))
	for _, slot := range s.Slots {
		out[slot.Value] = s.StandIn(slot, round)
	}
	for i, v := range out {
		if v == "" {
			out[i] = s.Values[i] // it is in the key
		}
	}
	return out
}

// isAnyIn reports whether a made-up value is in the workload, so that it could not be found again.
func isAnyIn(made, values []string, doc *manifest.Document) bool {
	for i, v := range made {
		if v != values[i] && doc.Contains(v) {
			return true
		}
	}
	return false
}

// newLearnedShape takes the result for made-up names apart. It returns nil where that is not possible.
func newLearnedShape(s *shape.Scan, other *documentUnit, made []string) *learnedShape {
	if len(other.outcomes) != 1 || len(other.objects)+len(other.summaries)+len(other.suppressed) > 0 || other.kept != nil || other.dropped {
		return nil
	}
	c := &cutter{}
	for _, slot := range s.Slots {
		c.add(slot.Value, made[slot.Value])
	}
	learned := &learnedShape{}
	if other.changed != nil {
		text := other.changed.Text()
		if !keepsLines(s, made, other.doc.Text(), text) {
			return nil
		}
		learned.mould = c.cut(text)
	}
	var ok bool
	if learned.outcome, ok = newOutcomeMould(c, &other.outcomes[0]); !ok {
		return nil
	}
	for i := range other.results {
		one, ok := newResultMould(c, other, &other.results[i])
		if !ok {
			return nil
		}
		learned.results = append(learned.results, one)
	}
	return learned
}

// keepsLines reports whether each value that is no name is once in the result, in the same line as before, and no name is a key there.
func keepsLines(s *shape.Scan, made []string, before, after string) bool {
	seen := make([]bool, len(made))
	for _, slot := range s.Slots {
		v := made[slot.Value]
		if slot.IsName() && !seen[slot.Value] && isKeyIn(after, v) {
			return false
		}
		if !slot.IsName() && (strings.Count(after, v) != 1 || lineWith(before, v) != lineWith(after, v)) {
			return false
		}
		seen[slot.Value] = true
	}
	return true
}

// isKeyIn reports whether a name is somewhere in a text before a colon.
func isKeyIn(text, name string) bool {
	for {
		_, tail, found := strings.Cut(text, name)
		if !found {
			return false
		}
		if text = strings.TrimLeft(tail, `"'\`); strings.HasPrefix(text, ":") {
			return true
		}
	}
}

// lineWith returns the line that a value is in, without the blanks and the dash before it.
func lineWith(text, value string) string {
	at := strings.Index(text, value)
	start := strings.LastIndexByte(text[:at], '\n') + 1
	end := strings.IndexByte(text[at:], '\n')
	if end < 0 {
		end = len(text) - at
	}
	return strings.TrimLeft(text[start:at+end], " -")
}

// cutter finds made-up values in texts.
type cutter struct {
	values  []string
	numbers []int
}

func (c *cutter) add(number int, value string) {
	for _, had := range c.numbers {
		if had == number {
			return
		}
	}
	c.values, c.numbers = append(c.values, value), append(c.numbers, number)
}

// cut returns the text with gaps where the values are.
func (c *cutter) cut(text string) *manifest.Mould {
	return manifest.CutMould(text, c.values, c.numbers)
}

// has reports whether a value is in a text.
func (c *cutter) has(text string) bool {
	for _, v := range c.values {
		if strings.Contains(text, v) {
			return true
		}
	}
	return false
}

// apply sets the result of the shape on a unit.
func (l *learnedShape) apply(u *documentUnit, s *shape.Scan) {
	if u.path == "" {
		u.takeOrigin(s.Origin)
	}
	if l.mould != nil {
		u.changed = u.doc.FillLater(l.mould, s.Values)
	}
	u.outcomes = []Outcome{l.outcome.outcome(u, s.Values)}
	if len(l.results) == 0 {
		return
	}
	places := u.fileLocation()
	for i := range l.results {
		u.results = append(u.results, l.results[i].result(u, places, s.Values))
	}
}

// tryOthers compares the results for further names, which tests do for each shape.
func (r *shapeRun) tryOthers(before *documentUnit, s *shape.Scan, learned *learnedShape, full func(*documentUnit)) {
	for round := 1; round <= 2; round++ {
		values := standIns(s, round)
		other, ok := r.renamed(before, s, values)
		if !ok {
			panic(shapeDiffers("a renamed workload has no name: " + other.doc.Text()))
		}
		again := r.scan(other)
		if again == nil || string(again.Key) != string(s.Key) {
			if again != nil {
				r.scans.Put(again)
			}
			continue // other names are words that the injection knows, or are in the rest of the text
		}
		byShape := *other
		learned.apply(&byShape, again)
		r.scans.Put(again)
		full(other)
		r.table.compared.Add(1)
		if difference := unitDifference(&byShape, other); difference != "" {
			panic(shapeDiffers(fmt.Sprintf("%s\n%s", difference, other.doc.Text())))
		}
	}
}
