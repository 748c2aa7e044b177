// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
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
