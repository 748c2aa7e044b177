// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command analyzer runs all of the analyzers of istioctl analyze over files, without a cluster.
//
//	analyzer < requests > answers
//
// Each line of the standard input is a Request as JSON, and each line of the output its Answer.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"istio.io/istio/pkg/config/analysis/analyzers"
	"istio.io/istio/pkg/config/analysis/local"
	"istio.io/istio/pkg/log"
)

// Request asks for one analysis.
type Request struct {
	// Directory holds the files, whose paths below it are listed in Files and, if set, MeshConfig and MeshNetworks.
	Directory    string   `json:"directory"`
	Files        []string `json:"files"`
	MeshConfig   string   `json:"meshConfig,omitempty"`
	MeshNetworks string   `json:"meshNetworks,omitempty"`
}

// Answer is what was found.
type Answer struct {
	// Messages are the messages of the analyzers about all objects in the files, as for a cluster that holds them.
	Messages []Message `json:"messages,omitempty"`
	// Command lists the messages of istioctl analyze --use-kube=false --all-namespaces: from files it reads no
	// Services, Pods, Namespaces, Nodes and Secrets.
	Command []Message `json:"command,omitempty"`
	// Errors are what could not be read.
	Errors string `json:"errors,omitempty"`
}

// Message is one message of an analyzer.
type Message struct {
	Code  string `json:"code"`
	Level string `json:"level"`
	// Object is the kind and, with its namespace where it names one, the name of the object.
	Object string `json:"object,omitempty"`
	Text   string `json:"text"`
}

func main() {
	options := log.DefaultOptions()
	options.OutputPaths = []string{"stderr"} // the standard output is for answers
	if err := log.Configure(options); err != nil {
		fmt.Fprintln(os.Stderr, "analyzer:", err)
		os.Exit(1)
	}
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "analyzer:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	enc := json.NewEncoder(out)
	for lines.Scan() {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		a, err := answer(r)
		if err != nil {
			return fmt.Errorf("analyzing %s: %w", strings.Join(r.Files, ", "), err)
		}
		if err := enc.Encode(a); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
	return lines.Err()
}

func answer(r Request) (Answer, error) {
	var a Answer
	var err error
	if a.Messages, a.Errors, err = analyze(r, (*local.IstiodAnalyzer).AddTestReaderKubeSource); err != nil {
		return a, err
	}
	a.Command, _, err = analyze(r, (*local.IstiodAnalyzer).AddReaderKubeSource)
	return a, err
}

// analyze reads the files with add, and adds the ingress gateway that istioctl assumes to exist.
func analyze(r Request, add func(*local.IstiodAnalyzer, []local.ReaderSource) error) (messages []Message, unread string, err error) {
	sa := local.NewIstiodAnalyzer(analyzers.AllCombined(), "", "istio-system", nil)
	if r.MeshConfig != "" {
		if err := sa.AddFileKubeMeshConfig(filepath.Join(r.Directory, r.MeshConfig)); err != nil {
			return nil, "", fmt.Errorf("reading the mesh config: %w", err)
		}
	}
	if r.MeshNetworks != "" {
		if err := sa.AddFileKubeMeshNetworks(filepath.Join(r.Directory, r.MeshNetworks)); err != nil {
			return nil, "", fmt.Errorf("reading the mesh networks: %w", err)
		}
	}
	var sources []local.ReaderSource
	for _, name := range r.Files {
		text, err := os.ReadFile(filepath.Join(r.Directory, name))
		if err != nil {
			return nil, "", err
		}
		sources = append(sources, local.ReaderSource{Name: name, Reader: strings.NewReader(string(text))})
	}
	if err := add(sa, sources); err != nil {
		unread = err.Error()
	}
	if err := sa.AddDefaultResources(); err != nil {
		return nil, "", fmt.Errorf("adding the default gateway: %w", err)
	}
	cancel := make(chan struct{})
	defer close(cancel)
	result, err := sa.Analyze(cancel)
	if err != nil {
		return nil, "", err
	}
	for i := range result.Messages {
		m := &result.Messages[i]
		one := Message{Code: m.Type.Code(), Level: m.Type.Level().String(), Text: fmt.Sprintf(m.Type.Template(), m.Parameters...)}
		if m.Resource != nil {
			one.Object = m.Resource.Origin.FriendlyName()
		}
		messages = append(messages, one)
	}
	return messages, unread, nil
}
