// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package baseline keeps the findings that a repository had when it began to be checked, so that only new ones are reported. It reads
// and writes no file itself.
package baseline

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/result"
)

// format is the number of the form of the file.
const format = 1

const header = `# Findings that prerig check knows of and does not report again (--baseline). It is written by --write-baseline.
`

// Entry is a finding without what changes easily: it has no line, and names a container instead of its index.
type Entry struct {
	// Code of the rule, such as PR201.
	Code string `json:"code"`
	// Object such as "Deployment shop/web". It is empty for a finding about the mesh, which is known by its message for all objects.
	Object string `json:"object,omitempty"`
	// Field such as "spec.template.spec.containers[istio-proxy].resources".
	Field string `json:"field,omitempty"`
	// Message is that of a finding about the mesh.
	Message string `json:"message,omitempty"`
	// Count is the number of such findings; 0 means one.
	Count int `json:"count,omitempty"`
}

// String is the entry for people.
func (e Entry) String() string {
	if e.Object == "" {
		return e.Code + ": " + e.Message
	}
	text := e.Code + ": " + e.Object
	if e.Field != "" {
		text += " " + e.Field
	}
	return text
}

func (e Entry) countlessKey() Entry {
	e.Count = 0
	return e
}

// Baseline is a set of findings.
type Baseline struct{ entries []Entry }

// file is what is in the file.
type file struct {
	Version  int     `json:"version"`
	Findings []Entry `json:"findings"`
}

// New returns the baseline of findings that went through [lint.JoinMesh]. Results that no rule made, as of a file that cannot be
// read, are left out: they are not to be accepted.
func New(rs result.Results) *Baseline {
	count := map[Entry]int{}
	for _, r := range rs {
		if r.Tags[result.TagCode] != "" {
			count[entryOf(r)]++
		}
	}
	b := &Baseline{}
	for e, n := range count {
		if n > 1 {
			e.Count = n
		}
		b.entries = append(b.entries, e)
	}
	slices.SortFunc(b.entries, compareEntries)
	return b
}

func compareEntries(a, b Entry) int {
	return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
}

func entryOf(r result.Result) Entry {
	e := Entry{Code: r.Tags[result.TagCode]}
	if r.ResourceRef == nil {
		e.Message = r.Message
		return e
	}
	e.Object = r.ResourceRef.String()
	if r.Field != nil {
		e.Field = stableField(r.Field.Path, r.Tags[lint.TagContainer])
	}
	return e
}

// stableField writes the container's name for its index, which moves when another container is added.
func stableField(path, container string) string {
	if container == "" {
		return path
	}
	for _, list := range []string{"initContainers[", "containers["} {
		before, after, ok := strings.Cut(path, list)
		if _, rest, closed := strings.Cut(after, "]"); ok && closed {
			return before + list + container + "]" + rest
		}
	}
	return path
}

// Parse reads a file that Bytes wrote. Fields and versions that are not known are errors.
func Parse(data []byte) (*Baseline, error) {
	var f file
	if err := yaml.UnmarshalStrict(data, &f); err != nil {
		return nil, fmt.Errorf("reading the baseline: it is not a file that --write-baseline has written: %w; write one with prerig check --write-baseline FILE", err)
	}
	if f.Version != format {
		return nil, fmt.Errorf("reading the baseline: its version is %d, and this prerig reads %d; write it again with --write-baseline", f.Version, format)
	}
	for i, e := range f.Findings {
		if e.Code == "" || e.Object == "" && e.Message == "" {
			return nil, fmt.Errorf("reading the baseline: finding %d has no %s", i+1, map[bool]string{true: "code", false: "object and no message"}[e.Code == ""])
		}
		if e.Count < 0 {
			return nil, errors.New("reading the baseline: a count is below zero")
		}
	}
	return &Baseline{entries: f.Findings}, nil
}

// Bytes is the file, in YAML, sorted, so that a change of one finding is a change of a few lines.
func (b *Baseline) Bytes() ([]byte, error) {
	text, err := yaml.Marshal(file{Version: format, Findings: append([]Entry{}, b.entries...)})
	if err != nil {
		return nil, fmt.Errorf("writing the baseline: %w", err)
	}
	return bytes.Join([][]byte{[]byte(header), text}, nil), nil
}

// Len is the number of entries.
func (b *Baseline) Len() int { return len(b.entries) }

// Filter returns the findings that are not in the baseline, the number of those that are, and the entries that no
// longer match any finding. Findings must have been through [lint.JoinMesh]; one with several places keeps only the
// new ones.
func (b *Baseline) Filter(rs result.Results) (fresh result.Results, known int, gone []Entry) {
	left := map[Entry]int{}
	used := map[Entry]bool{}
	for _, e := range b.entries {
		left[e.countlessKey()] += max(1, e.Count)
	}
	use := func(e Entry) bool {
		if left[e] == 0 {
			return false
		}
		used[e] = true
		if e.Object != "" {
			left[e]--
		}
		return true
	}
	for _, r := range rs {
		if use(Entry{Code: r.Tags[result.TagCode], Message: r.Message}) {
			known++
			continue
		}
		if len(r.Places) == 0 {
			if r.ResourceRef != nil && use(entryOf(r)) {
				known++
				continue
			}
			fresh = append(fresh, r)
			continue
		}
		var places []result.Place
		for _, p := range r.Places {
			if use(entryOf(resultAtPlace(r, p))) {
				known++
				continue
			}
			places = append(places, p)
		}
		switch r.Places = places; len(places) {
		case 0:
		case 1:
			fresh = append(fresh, resultAtPlace(r, places[0]))
		default:
			fresh = append(fresh, r)
		}
	}
	for _, e := range b.entries {
		if !used[e.countlessKey()] {
			gone = append(gone, e)
		}
	}
	return fresh, known, gone
}

// resultAtPlace returns a finding at one of its places.
func resultAtPlace(r result.Result, p result.Place) result.Result {
	r.Places, r.ResourceRef, r.Field, r.File = nil, &p.ResourceRef, p.Field, p.File
	return r
}
