// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
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

// question is a request of the program authorizer: one state of the cluster, and calls.
type question struct {
	Manifests  string   `json:"manifests"`
	MeshConfig string   `json:"meshConfig"`
	Sidecars   []string `json:"sidecars,omitempty"`
	Calls      []call   `json:"calls"`
}

// decisions are its answer.
type decisions struct {
	Invalid   []string   `json:"invalid"`
	Decisions []decision `json:"decisions"`
}

type decision struct {
	Allowed bool     `json:"allowed"`
	By      string   `json:"by"`
	Asked   []string `json:"asked"`
	Audited bool     `json:"audited"`
}

// outcome is what callers and operators see of a decision, as it is stored.
func (d decision) outcome() string {
	out := "-"
	if d.Allowed {
		out = "+"
	}
	if len(d.Asked) > 0 {
		out += "c"
	}
	if d.Audited {
		out += "a"
	}
	return out
}

func (d decision) String() string { return strings.TrimSpace(d.outcome() + " " + d.By) }

// digest identifies a question in the stored answers.
func (q question) digest(t *testing.T) string {
	t.Helper()
	data, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// ask returns what each question is answered with: by the program, or as it answered when the answers were stored.
func ask(t *testing.T, questions []question) (out [][]decision) {
	t.Helper()
	if *authorizer == "" {
		return stored(t, questions)
	}
	for some := range slices.Chunk(questions, questionsAtOnce) {
		out = append(out, run(t, some)...)
	}
	return out
}

// questionsAtOnce bounds the memory of the program: istiod's discovery server returns little of it when it ends.
const questionsAtOnce = 32

func run(t *testing.T, questions []question) (out [][]decision) {
	t.Helper()
	var in, errs bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, q := range questions {
		if err := enc.Encode(q); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(*authorizer)
	cmd.Env = append(os.Environ(), "PILOT_ENABLE_AMBIENT=true")
	cmd.Stdin, cmd.Stderr = &in, &errs
	data, err := cmd.Output()
	if err != nil {
		t.Fatal(err, errs.String())
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<24)
	for _, q := range questions {
		var a decisions
		if !lines.Scan() {
			t.Fatal("an answer is missing")
		}
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		if len(a.Invalid) > 0 {
			t.Fatalf("Istio's validation: %s\n%s", strings.Join(a.Invalid, "\n"), q.Manifests)
		}
		out = append(out, a.Decisions)
	}
	return out
}

func stored(t *testing.T, questions []question) (out [][]decision) {
	t.Helper()
	data, err := os.ReadFile(decisionsFile)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]string{}
	if err := json.Unmarshal(data, &have); err != nil {
		t.Fatal(err)
	}
	for _, q := range questions {
		line, ok := have[q.digest(t)]
		if !ok {
			t.Fatal("the steps write other files than those that istiod was asked about: run make ambient-oracle UPDATE=-update")
		}
		var list []decision
		for _, one := range strings.Fields(line) {
			d := decision{Allowed: one[0] == '+', Audited: strings.Contains(one, "a")}
			if strings.Contains(one, "c") {
				d.Asked = []string{"ext"}
			}
			list = append(list, d)
		}
		out = append(out, list)
	}
	return out
}

// store writes the answers for runs without the program.
func store(t *testing.T, questions []question, found [][]decision) {
	t.Helper()
	answers := map[string]string{}
	for i, q := range questions {
		var line []string
		for _, d := range found[i] {
			line = append(line, d.outcome())
		}
		answers[q.digest(t)] = strings.Join(line, " ")
	}
	data, err := json.MarshalIndent(answers, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(decisionsFile, append(data, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

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
