// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/internal/defaulter"
	"github.com/prerig/prerig/fn/manifest"
)

var update = flag.Bool("update", false, "record the answers of Kubernetes anew")

// recordedPods is how many pods of each version are recorded.
const recordedPods = 8

// recording is a pod and what Kubernetes made of it.
type recording struct {
	Kubernetes string         `json:"kubernetes"`
	Pod        map[string]any `json:"pod"`
	Defaulted  map[string]any `json:"defaulted"`
}

// TestRecordedDefaults compares with answers of Kubernetes' own code that were recorded: what TestDefaultsAreKubernetes does
// over many pods, for where that code is not built. With -update, and the commands of make defaulters, they are written.
func TestRecordedDefaults(t *testing.T) {
	file := filepath.Join("testdata", "recorded.jsonl")
	if *update {
		record(t, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines, n := bufio.NewScanner(bytes.NewReader(text)), 0
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		v, err := manifest.Decode(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		line, _ := v.(map[string]any)
		version, _ := line["kubernetes"].(string)
		server, err := admission.NewServer(version)
		if err != nil {
			t.Fatal(err)
		}
		pod, _ := line["pod"].(map[string]any)
		want, _ := line["defaulted"].(map[string]any)
		server.Default(pod)
		if diff := cmp.Diff(spec(t, want), spec(t, pod)); diff != "" {
			t.Errorf("line %d, Kubernetes %s (-Kubernetes +ours):\n%s", n+1, version, diff)
		}
		n++
	}
	if n == 0 {
		t.Error("nothing is recorded")
	}
}

func record(t *testing.T, file string) {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for _, command := range defaulter.Find(t, "../..") {
		g := defaulter.NewGenerator(7, command.Minor)
		var objects []map[string]any
		for range recordedPods {
			objects = append(objects, wrap("v1", "Pod", g.Pod()))
		}
		for i, answer := range command.Objects(t, objects) {
			line := recording{Kubernetes: command.Version, Pod: map[string]any{"spec": objects[i]["spec"]}, Defaulted: map[string]any{"spec": answer["spec"]}}
			if err := encoder.Encode(line); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
