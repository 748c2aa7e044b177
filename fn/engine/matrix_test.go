// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/engine"
	"github.com/prerig/prerig/fn/internal/conformance"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
)

// TestOwnFieldsMatrixOfCorpus takes every field that an injection of any version of the corpus sets in a minimal pod, and puts it
// into the pod beforehand: with the value that the injection gives it, with another one, and empty. Whatever the version and
// the policy that follows, injecting twice is injecting once, a check finds nothing to do, a change of the policy gives what
// injecting the original gives, and removing the injection gives the original back. Of a Pod, which has no place for a
// record, a warning may take the place of the last two.
//
// PRERIG_MATRIX=full runs over all policies of the corpora in PRERIG_CORPUS, which may be several directories, and follows the
// first one of each version by that of every other version; else only one policy of each version is run. All other policies are
// followed by the next one, for every fourth case.
func TestOwnFieldsMatrixOfCorpus(t *testing.T) {
	policies := matrixPolicies(t)
	fields := injectedFields(t, policies)
	full := os.Getenv("PRERIG_MATRIX") == "full"
	cases, changes, pods := 0, 0, 0
	for i, a := range policies {
		m := newMatrix(t, a, fields)
		cases += len(m.docs)
		m.twice(t)
		m.back(t, m.injected, "removing the injection")
		for j, b := range policies {
			next := j == (i+1)%len(policies)
			every := full && a.first && b.first
			if i == j || !next && !every {
				continue
			}
			from := m
			if !every {
				from = m.sample(4)
			}
			n, warned := from.change(t, b)
			changes, pods = changes+n, pods+warned
		}
		t.Logf("%d of %d policies, %s: %d cases and %d changes so far", i+1, len(policies), a.name, cases, changes)
	}
	t.Logf("%d fields, %d policies: %d cases, %d changes of the policy, of which %d in Pods with a warning", len(fields), len(policies), cases, changes, pods)
}

// matrixPolicy is a policy of the corpus.
type matrixPolicy struct {
	name   string
	policy *v1alpha1.InjectionPolicy
	// first says that it is the version's first.
	first bool
	// appends says that the version, up to 1.8, replaces containers of the pod's own that have the names of its own.
	appends bool
}

// matrixPolicies are the different policies of the corpora: a few of each version, or all of them.
func matrixPolicies(t *testing.T) []matrixPolicy {
	t.Helper()
	seen := map[string]bool{}
	own := builtIn(v1alpha1.ModeInject)
	own.Spec.Jobs = v1alpha1.JobsFollow // one policy is applied over the other
	out := []matrixPolicy{{"built-in", own, true, false}}
	for _, dir := range filepath.SplitList(os.Getenv("PRERIG_CORPUS")) {
		versions, err := conformance.Load(dir)
		if err != nil {
			t.Skipf("the conformance corpus is not there (%v); set PRERIG_CORPUS to its directory", err)
		}
		for _, v := range versions {
			n := 0
			for _, c := range v.Cases {
				p, err := c.Policy()
				if err != nil {
					t.Fatal(err)
				}
				text, err := json.Marshal(p.Spec)
				if err != nil {
					t.Fatal(err)
				}
				if c.ExpectError != "" || seen[string(text)] || n > 0 && os.Getenv("PRERIG_MATRIX") != "full" {
					continue
				}
				seen[string(text)] = true
				p.Spec.Jobs = v1alpha1.JobsFollow
				out = append(out, matrixPolicy{v.Version.String() + " " + c.Name, p, n == 0, v.Version.Minor <= 8})
				n++
			}
		}
	}
	return out
}

// docResult is what a run said about one document.
type docResult struct{ errors, warnings []string }

// doubts reports whether a warning tells that something of the original is not known.
func (r docResult) doubts() bool {
	return slices.ContainsFunc(r.warnings, func(w string) bool { return strings.Contains(w, "taking an earlier injection out") })
}

// runAll runs a policy over documents, each in a file of its own.
func runAll(t *testing.T, p *v1alpha1.InjectionPolicy, mode v1alpha1.Mode, docs []*manifest.Document) ([]docResult, []*manifest.Document) {
	t.Helper()
	with := *p
	with.Spec.Mode = mode
	in, err := engine.New([]*v1alpha1.InjectionPolicy{&with})
	if err != nil {
		t.Fatal(err)
	}
	items := make([]engine.Item, len(docs))
	for i, d := range docs {
		items[i] = engine.Item{Doc: d, Path: fmt.Sprint(i)}
	}
	report, err := in.Run(t.Context(), items)
	if err != nil {
		t.Fatal(err)
	}
	results, out := make([]docResult, len(docs)), make([]*manifest.Document, len(docs))
	for i, item := range report.Items {
		out[i] = item.Doc
	}
	for _, r := range report.Results {
		if r.File == nil {
			continue
		}
		var i int
		if _, err := fmt.Sscan(r.File.Path, &i); err != nil {
			t.Fatal(err)
		}
		switch r.Severity {
		case result.Error:
			results[i].errors = append(results[i].errors, r.String())
		case result.Warning:
			results[i].warnings = append(results[i].warnings, r.String())
		}
	}
	return results, out
}

// matrix is one policy with the documents that it injects.
type matrix struct {
	matrixPolicy
	docs, injected []*manifest.Document
	// names say what is in each document.
	names []string
	kinds []string
}

func newMatrix(t *testing.T, p matrixPolicy, fields []ownField) *matrix {
	t.Helper()
	var bare map[string]any
	if err := json.Unmarshal([]byte(minimalPod), &bare); err != nil {
		t.Fatal(err)
	}
	all := &matrix{matrixPolicy: p}
	for _, f := range fields {
		for _, variant := range slices.Sorted(maps.Keys(f.variants(p.name))) {
			v := f.variants(p.name)[variant]
			for _, kind := range []string{"Deployment", "Pod"} {
				all.docs = append(all.docs, workloadOf(kind, withField(bare, f.path, v)))
				all.names = append(all.names, fmt.Sprintf("%s with %s %s", kind, variant, strings.Join(f.path, ".")))
				all.kinds = append(all.kinds, kind)
			}
		}
	}
	results, injected := runAll(t, p.policy, v1alpha1.ModeInject, all.docs)
	m := &matrix{matrixPolicy: p}
	for i := range all.docs {
		if len(results[i].errors) > 0 {
			continue // the version refuses it
		}
		m.docs, m.injected = append(m.docs, all.docs[i]), append(m.injected, injected[i])
		m.names, m.kinds = append(m.names, all.names[i]), append(m.kinds, all.kinds[i])
	}
	return m
}

// sample returns every nth pair of documents.
func (m *matrix) sample(n int) *matrix {
	out := &matrix{matrixPolicy: m.matrixPolicy}
	for i := range m.docs {
		if i/2%n == 0 {
			out.docs, out.injected = append(out.docs, m.docs[i]), append(out.injected, m.injected[i])
			out.names, out.kinds = append(out.names, m.names[i]), append(out.kinds, m.kinds[i])
		}
	}
	return out
}

// twice injects again, and checks.
func (m *matrix) twice(t *testing.T) {
	t.Helper()
	results, again := runAll(t, m.policy, v1alpha1.ModeInject, m.injected)
	checks, _ := runAll(t, m.policy, v1alpha1.ModeCheck, m.injected)
	for i := range m.docs {
		if len(results[i].errors)+len(checks[i].errors) > 0 {
			t.Errorf("%s, %s: %v %v", m.name, m.names[i], results[i].errors, checks[i].errors)
		}
		if !bytes.Equal(again[i].Raw(), m.injected[i].Raw()) {
			t.Errorf("%s, %s: injecting twice is not injecting once:\n%s", m.name, m.names[i], cmp.Diff(string(m.injected[i].Raw()), string(again[i].Raw())))
		}
	}
}

// back removes the injection, and gives the number of Pods that came back different, with a warning.
func (m *matrix) back(t *testing.T, injected []*manifest.Document, what string) int {
	t.Helper()
	results, back := runAll(t, m.policy, v1alpha1.ModeRemove, injected)
	warned := 0
	for i := range m.docs {
		if bytes.Equal(back[i].Raw(), m.docs[i].Raw()) || sameObject(t, back[i], m.docs[i]) {
			continue
		}
		if m.kinds[i] == "Pod" && results[i].doubts() {
			warned++
			continue
		}
		t.Errorf("%s, %s: %s gives something else, without a warning:\n%s", m.name, m.names[i], what, cmp.Diff(string(m.docs[i].Raw()), string(back[i].Raw())))
	}
	return warned
}

// change injects with another policy over what this one has injected. It gives the number of cases, and of those that a
// warning tells of.
func (m *matrix) change(t *testing.T, to matrixPolicy) (cases, warned int) {
	t.Helper()
	direct, want := runAll(t, to.policy, v1alpha1.ModeInject, m.docs)
	over, got := runAll(t, to.policy, v1alpha1.ModeInject, m.injected)
	next := &matrix{matrixPolicy: to}
	next.name = m.name + " to " + to.name
	for i := range m.docs {
		if len(direct[i].errors) > 0 {
			continue // the next version refuses it
		}
		cases++
		switch {
		case bytes.Equal(want[i].Raw(), got[i].Raw()):
		case m.appends && strings.Contains(m.names[i], ".istio-") && sameObject(t, want[i], got[i]):
			// The text of an own container was replaced. Its record has the values, but not the order in which they were written.
		case m.kinds[i] == "Pod" && over[i].doubts():
			warned++
		default:
			t.Errorf("%s, %s: injecting again is not injecting the original, without a warning (%v):\n%s", next.name, m.names[i], over[i].errors, cmp.Diff(string(want[i].Raw()), string(got[i].Raw())))
			continue
		}
		next.docs, next.injected = append(next.docs, m.docs[i]), append(next.injected, got[i])
		next.names, next.kinds = append(next.names, m.names[i]), append(next.kinds, m.kinds[i])
	}
	next.twice(t)
	next.back(t, next.injected, "removing the second injection")
	return cases, warned
}
