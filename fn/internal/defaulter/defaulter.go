// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package defaulter asks Kubernetes' own code for the defaults of objects, in tests: by the command in
// fn/internal/upstream/kubernetes, which `make defaulter` builds.
package defaulter

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Command is the built command of one version of Kubernetes.
type Command struct {
	// Version is the version of Kubernetes, such as v1.36.3, and Minor its minor version.
	Version string
	Minor   int
	path    string
}

// Find returns the commands that are built, below the module's root. Without any the test is skipped.
func Find(tb testing.TB, root string) []Command {
	tb.Helper()
	found, err := filepath.Glob(filepath.Join(root, "dist", "upstream", "defaulter*"))
	if err != nil {
		tb.Fatal(err)
	}
	var out []Command
	for _, path := range found {
		version, err := exec.CommandContext(tb.Context(), path, "-version").Output()
		if err != nil {
			tb.Fatalf("running %s: %v", filepath.Base(path), err)
		}
		c := Command{Version: strings.TrimSpace(string(version)), path: path}
		if _, err := fmt.Sscanf(c.Version, "v1.%d.", &c.Minor); err != nil {
			tb.Fatalf("reading the version %q of %s: %v", c.Version, filepath.Base(path), err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		tb.Skip("Kubernetes' own defaults are not there to compare with: make defaulter")
	}
	return out
}

// Objects returns each object as the API server holds it. One that it refuses is a Status.
func (c Command) Objects(tb testing.TB, objects []map[string]any) []map[string]any {
	tb.Helper()
	return c.runWithObjects(tb, objects)
}

// Pods returns the Pod that a controller would make of each object.
func (c Command) Pods(tb testing.TB, objects []map[string]any) []map[string]any {
	tb.Helper()
	return c.runWithObjects(tb, objects, "-pods")
}

// Quotas returns a Status for each list of LimitRanges, ResourceQuotas and a Pod: whether the quotas let the Pod in.
func (c Command) Quotas(tb testing.TB, lists []map[string]any) []map[string]any {
	tb.Helper()
	return c.runWithObjects(tb, lists, "-quotas")
}

func (c Command) runWithObjects(tb testing.TB, objects []map[string]any, args ...string) []map[string]any {
	tb.Helper()
	var in, stderr bytes.Buffer
	encoder := json.NewEncoder(&in)
	for _, obj := range objects {
		if err := encoder.Encode(obj); err != nil {
			tb.Fatal(err)
		}
	}
	cmd := exec.CommandContext(tb.Context(), c.path, args...)
	cmd.Stdin, cmd.Stderr = &in, &stderr
	answer, err := cmd.Output()
	if err != nil {
		tb.Fatalf("running %s: %v: %s", filepath.Base(c.path), err, stderr.Bytes())
	}
	out, err := readAll(answer)
	if err != nil || len(out) != len(objects) {
		tb.Fatalf("%s answered %d of %d objects: %v", filepath.Base(c.path), len(out), len(objects), err)
	}
	return out
}

func readAll(text []byte) ([]map[string]any, error) {
	var out []map[string]any
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, len(text)+1)
	for lines.Scan() {
		var obj map[string]any
		if err := json.Unmarshal(lines.Bytes(), &obj); err != nil {
			return nil, fmt.Errorf("reading the answer: %w", err)
		}
		out = append(out, obj)
	}
	return out, lines.Err()
}

// Refused reports whether an answer is a Status, and why.
func Refused(obj map[string]any) (string, bool) {
	message, _ := obj["message"].(string)
	return message, obj["kind"] == "Status"
}
