// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package applied

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// request and answer are those of prerig-validate; package validation of its module describes them.
type request struct {
	Operation string         `json:"operation"`
	Object    map[string]any `json:"object"`
	Old       map[string]any `json:"old,omitempty"`
}

type answer struct {
	Known    bool      `json:"known"`
	Problems []problem `json:"problems"`
	Error    string    `json:"error"`
}

type problem struct {
	Field   string `json:"field"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

// validator is a running prerig-validate.
type validator struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	// Kubernetes is its release.
	Kubernetes string
}

func startValidator(ctx context.Context, path string) (*validator, error) {
	command := exec.CommandContext(ctx, path)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting the validation: %w", err)
	}
	v := &validator{command: command, in: in, out: json.NewDecoder(bufio.NewReader(out))}
	var greeting struct{ Kubernetes string }
	if err := v.out.Decode(&greeting); err != nil {
		return nil, fmt.Errorf("reading the greeting of the validation: %w", err)
	}
	v.Kubernetes = greeting.Kubernetes
	return v, nil
}

func (v *validator) close() error { return errors.Join(v.in.Close(), v.command.Wait()) }

// sendRequests returns the answers to requests.
func (v *validator) sendRequests(requests []request) ([]answer, error) {
	sent := make(chan error, 1)
	go func() {
		writer := bufio.NewWriter(v.in)
		encoder := json.NewEncoder(writer)
		for _, r := range requests {
			if err := encoder.Encode(r); err != nil {
				sent <- err
				return
			}
		}
		sent <- writer.Flush()
	}()
	answers := make([]answer, len(requests))
	for i := range answers {
		if err := v.out.Decode(&answers[i]); err != nil {
			return nil, fmt.Errorf("reading the answer about an object: %w", err)
		}
		if answers[i].Error != "" {
			return nil, fmt.Errorf("validating an object: %s", answers[i].Error)
		}
	}
	return answers, <-sent
}
