// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/ambient"
)

var (
	authorizer = flag.String("authorizer", "", "the program fn/internal/upstream/istio/authorizer, to ask anew what istiod's configuration allows")
	sets       = flag.Int("sets", storedSets, "how many random sets of policies to compare; more than the stored ones need the program")
	firstSeed  = flag.Uint64("seed", 39, "the first seed")
	writeTo    = flag.String("to", "", "a directory for sets with routes, which TestServerAcceptsAmbientSteps of fn/internal/cluster moves")
)

const (
	storedSets    = 24
	decisionsFile = "testdata/decisions.json"
)

// state is a state of the cluster on the way: after a step, before or after the pods restart.
type state struct {
	after    string
	sidecars bool
}

// moment is a state, and the clients whose calls are compared there.
type moment struct {
	state
	mode string // that of the clients
}

// moments are compared with the first one. Calls of clients outside of the mesh and of sidecars pass no waypoint, so that they are compared only
// while the pods have sidecars; docs/ambient.md has that among the gaps. The last two are for clients outside of the mesh.
var moments = []moment{
	{state{"", true}, "sidecar"},
	{state{"policies", true}, "sidecar"}, {state{"limit", true}, "sidecar"}, {state{"label", true}, "sidecar"}, {state{"label", true}, "ambient"},
	{state{"sidecars", true}, "ambient"}, {state{"sidecars", false}, "ambient"}, {state{"cleanup", false}, "ambient"},
	{state{"enforce", false}, "ambient"},
	{state{"", true}, ""}, {state{"enforce", false}, ""},
}

// set is a random set of policies in a namespace of its own, with its way to ambient mode.
type set struct {
	seed      uint64
	namespace string
	calls     []call
	files     map[string]string // after each step
	plan      *ambient.Plan
}

func newSet(t *testing.T, seed uint64) *set {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 39))
	text := randomSet(r)
	s := &set{seed: seed, namespace: fmt.Sprintf("shop%d", seed), calls: randomCalls(r, text)}
	s.files = map[string]string{"": strings.ReplaceAll(text, "shop", s.namespace)}
	for i, c := range s.calls {
		c.Pod, c.Service = strings.ReplaceAll(c.Pod, "shop", s.namespace), strings.ReplaceAll(c.Service, "shop", s.namespace)
		c.Host, c.Client.Namespace = strings.ReplaceAll(c.Host, "shop", s.namespace), strings.ReplaceAll(c.Client.Namespace, "shop", s.namespace)
		s.calls[i] = c
	}
	m, err := manifest.Parse("all.yaml", []byte(s.files[""]))
	if err != nil {
		t.Fatal(err)
	}
	files := []ambient.File{{Path: "all.yaml", Docs: m.Docs}}
	if s.plan, err = ambient.New(files, ambient.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	for _, step := range ambient.Steps {
		if files, _, err = ambient.Apply(files, ambient.Options{}, step.Name); err != nil {
			t.Fatal(err)
		}
		s.files[step.Name] = string(files[0].Bytes())
	}
	return s
}

// pack is some sets in one cluster.
type pack []*set

// packs puts sets together; those with a policy of the root namespace stay alone.
func packs(sets []*set) (out []pack) {
	var shared []*set
	for _, s := range sets {
		if strings.Contains(s.files[""], "namespace: istio-system") {
			out = append(out, pack{s})
		} else {
			shared = append(shared, s)
		}
	}
	for some := range slices.Chunk(shared, 20) {
		out = append(out, pack(some))
	}
	return out
}

// states are those of the moments.
func states() (out []state) {
	for _, m := range moments {
		if !slices.Contains(out, m.state) {
			out = append(out, m.state)
		}
	}
	return out
}

// question is about one state, with the calls of all its moments.
func (p pack) question(at state) question {
	q := question{Manifests: surroundings, MeshConfig: meshConfig}
	for _, s := range p {
		q.Manifests = "---\n" + s.files[at.after] + q.Manifests
		if at.sidecars {
			q.Sidecars = append(q.Sidecars, s.namespace+"/api", s.namespace+"/web", s.namespace+"/worker")
		}
	}
	for _, m := range moments {
		if m.state != at {
			continue
		}
		for _, s := range p {
			for _, c := range s.calls {
				c.Client.Mode = m.mode
				q.Calls = append(q.Calls, c)
			}
		}
	}
	return q
}

// decided returns the decisions about the calls of each set at each moment, from the answers about states.
func (p pack) decided(answers [][]decision) (out [][][]decision) {
	for _, m := range moments {
		i := slices.Index(states(), m.state)
		var of [][]decision
		for _, s := range p {
			of = append(of, answers[i][:len(s.calls)])
			answers[i] = answers[i][len(s.calls):]
		}
		out = append(out, of)
	}
	return out
}

// reported reports whether the plan has a note about a policy that is for a pod, or that is for it by a Service only, which the note names.
func (s *set) reported(t *testing.T, pod string) bool {
	t.Helper()
	labels := map[string]map[string]string{
		"web": {"app": "web", "tier": "a"}, "api": {"app": "api", "tier": "a"}, "worker": {"app": "worker"},
	}[strings.TrimPrefix(pod, s.namespace+"/")]
	for _, o := range policiesOf(t, s.files[""]) {
		if !selects(o, labels) {
			continue
		}
		name := o["metadata"].(map[string]any)["name"].(string)
		for _, n := range s.plan.Namespaces[0].Open {
			if strings.HasSuffix(n.Object, "/"+name) {
				return true
			}
		}
	}
	return slices.ContainsFunc(s.plan.Namespaces[0].Open, func(n ambient.Note) bool { return strings.Contains(n.Message, "Pod "+pod+",") })
}

func policiesOf(t *testing.T, text string) (out []map[string]any) {
	t.Helper()
	m, err := manifest.Parse("all.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range m.Docs {
		o, err := d.Object()
		if err != nil {
			t.Fatal(err)
		}
		if o["kind"] == "AuthorizationPolicy" || o["kind"] == "RequestAuthentication" {
			out = append(out, o)
		}
	}
	return out
}

func selects(o map[string]any, pod map[string]string) bool {
	spec, _ := o["spec"].(map[string]any)
	selector, _ := spec["selector"].(map[string]any)
	labels, _ := selector["matchLabels"].(map[string]any)
	for k, v := range labels {
		if pod[k] != v {
			return false
		}
	}
	return true
}

// TestEnforcementIsIstios compares what sidecars decide about calls with what ztunnel and waypoints decide, at each step of the way, by the
// configuration that istiod generates for the files. A difference is an error unless the plan names a policy of the pod. After the step enforce,
// no call from outside of the mesh is allowed that a sidecar rejected.
func TestEnforcementIsIstios(t *testing.T) {
	if *authorizer == "" && (*sets > storedSets || *firstSeed != 39) {
		t.Fatal("other sets than the stored ones need -authorizer")
	}
	var all []*set
	for i := range uint64(*sets) {
		all = append(all, newSet(t, *firstSeed+i))
	}
	var questions []question
	for _, p := range packs(all) {
		for _, at := range states() {
			questions = append(questions, p.question(at))
		}
	}
	found := ask(t, questions)
	asked := found
	equal, noted, moved, calls := 0, 0, 0, 0
	for _, p := range packs(all) {
		decided := p.decided(slices.Clone(found[:len(states())]))
		found = found[len(states()):]
		for i, s := range p {
			if len(s.plan.Namespaces[0].Open) > 0 {
				noted++
			}
			if s.plan.Namespaces[0].Waypoint != "" {
				moved++
			}
			for j := range moments[:len(moments)-2] {
				calls += len(s.calls)
				equal += s.compare(t, j, decided[0][i], decided[j][i])
			}
			s.checkOutside(t, decided[len(moments)-2][i], decided[len(moments)-1][i])
		}
	}
	if *update && *authorizer != "" && !t.Failed() {
		store(t, questions, asked)
	}
	t.Logf("%d sets: %d have notes, %d need a waypoint; %d of %d decisions are equal", *sets, noted, moved, equal, calls)
}

// compare returns how many decisions of a moment are as before.
func (s *set) compare(t *testing.T, j int, before, then []decision) (equal int) {
	t.Helper()
	failed := false
	for k, is := range then {
		if is.outcome() == before[k].outcome() {
			equal++
		} else if c := s.calls[k]; !failed && !s.reported(t, c.Pod) {
			failed = true
			t.Errorf("seed %d, after step %q (%+v): %+v: %s, and a sidecar %s\n%s---- after\n%s",
				s.seed, moments[j].after, moments[j], c, is, before[k], s.files[""], s.files[moments[j].after])
		}
	}
	return equal
}

func (s *set) checkOutside(t *testing.T, before, then []decision) {
	t.Helper()
	for k, is := range then {
		if c := s.calls[k]; !before[k].Allowed && is.Allowed && !s.reported(t, c.Pod) {
			t.Errorf("seed %d: after step enforce, a client outside of the mesh may call: %+v\n%s", s.seed, c, s.files[""])
			return
		}
	}
}

// TestWriteSets writes random sets for a real API server.
func TestWriteSets(t *testing.T) {
	if *writeTo == "" {
		t.Skip("no directory for the sets; make ambient-server names one")
	}
	if err := os.MkdirAll(*writeTo, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(*sets) {
		seed := *firstSeed + i
		r := rand.New(rand.NewPCG(seed, 40))
		text := strings.ReplaceAll(randomSet(r)+randomRoutes(r), "shop", fmt.Sprintf("shop%d", seed))
		if err := os.WriteFile(filepath.Join(*writeTo, fmt.Sprintf("set%d.yaml", seed)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
