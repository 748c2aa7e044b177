// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command injector answers as the injection webhook of one istiod does, with Istio's own code.
//
//	injector INSTALLATION.json ANSWERS < requests
//
// The first file describes what the istiod has been installed with. Its environment is that of the process, which
// Istio reads when it starts. Each line of the standard input is a pod as JSON with its namespace; each line of the
// second file is the answer, with the pod that the API server would have. It is a file because Istio logs to
// standard output from the start.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxLine is the maximum size of a request in bytes: the API server accepts 3 MiB at most.
const maxLine = 16 << 20

func main() {
	if err := run(os.Args[1:], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "injector:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader) error {
	if len(args) != 2 {
		return errors.New("usage: injector INSTALLATION.json ANSWERS")
	}
	if err := silenceLog(); err != nil {
		return fmt.Errorf("configuring Istio's log: %w", err)
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return fmt.Errorf("reading the installation: %w", err)
	}
	var i Installation
	if err := json.Unmarshal(data, &i); err != nil {
		return fmt.Errorf("reading the installation: %w", err)
	}
	stop := make(chan struct{})
	defer close(stop)
	webhook, err := newWebhook(i, stop)
	if err != nil {
		return err
	}
	out, err := os.Create(args[1])
	if err != nil {
		return fmt.Errorf("writing the answers: %w", err)
	}
	return errors.Join(answerAll(webhook, in, out), out.Close())
}

// answerAll answers the requests in their order, one a line.
func answerAll(w *webhook, in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	enc := json.NewEncoder(out)
	for lines.Scan() {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		a, err := w.answer(r)
		if err != nil {
			return err
		}
		if err := enc.Encode(a); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
	return lines.Err()
}
