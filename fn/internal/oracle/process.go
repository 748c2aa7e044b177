// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
)

// Tools are the commands of the upstream modules.
type Tools struct {
	// Injector answers as Istio's webhook.
	Injector string
	// Charts renders Istio's charts.
	Charts string
	// Defaulter defaults as Kubernetes' API server.
	Defaulter string
}

// exchangeJSONLines runs a command that answers each line of JSON with one, and decodes the answers.
func exchangeJSONLines[Q, A any](ctx context.Context, questions []Q, name string, args ...string) ([]A, error) {
	in, err := linesOf(questions)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", name, err)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin, cmd.Stdout = in, &out
	if err := runWithOutputTail(cmd); err != nil {
		return nil, err
	}
	return answersOf[A](out.Bytes(), len(questions), name)
}

// runWithOutputTail runs a command to its end; the error contains the end of its output.
func runWithOutputTail(cmd *exec.Cmd) error {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running %s: %w: %s", cmd.Path, err, lastBytes(stderr.String(), 2000))
	}
	return nil
}

func linesOf[Q any](questions []Q) (*bytes.Buffer, error) {
	in := &bytes.Buffer{}
	enc := json.NewEncoder(in)
	enc.SetEscapeHTML(false)
	for _, q := range questions {
		if err := enc.Encode(q); err != nil {
			return nil, err
		}
	}
	return in, nil
}

func answersOf[A any](out []byte, n int, name string) ([]A, error) {
	answers := make([]A, 0, n)
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var a A
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return nil, fmt.Errorf("reading the answers of %s: %w", name, err)
		}
		answers = append(answers, a)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the answers of %s: %w", name, err)
	}
	if len(answers) != n {
		return nil, fmt.Errorf("reading the answers of %s: there are %d for %d questions", name, len(answers), n)
	}
	return answers, nil
}

func lastBytes(s string, n int) string { return s[max(0, len(s)-n):] }

// defaultObjects returns the objects as the API server has them after reading them, and the reason for those that it
// cannot read.
func (t Tools) defaultObjects(ctx context.Context, objects []map[string]any) ([]map[string]any, []string, error) {
	answers, err := exchangeJSONLines[map[string]any, map[string]any](ctx, objects, t.Defaulter)
	if err != nil {
		return nil, nil, err
	}
	refusals := make([]string, len(answers))
	for i, a := range answers {
		if a["kind"] == "Status" {
			refusals[i], _ = a["message"].(string)
			answers[i] = nil
		}
	}
	return answers, refusals, nil
}
