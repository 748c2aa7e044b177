// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command charts renders Istio's own charts, that of the control plane where no other is asked for, as istioctl does; of an
// IstioOperator document what istioctl makes of it.
//
//	charts < installations > manifests
//
// Each line of the standard input is JSON with a chart's values; each line of the output is the manifests as a text of
// YAML documents.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/version"

	"istio.io/istio/operator/pkg/component"
	"istio.io/istio/operator/pkg/helm"
	operator "istio.io/istio/operator/pkg/render"
	"istio.io/istio/operator/pkg/values"
	istioversion "istio.io/istio/pkg/version"
)

// Request asks for one rendering.
type Request struct {
	// Values are the chart's values.
	Values map[string]any `json:"values"`
	// Chart is the chart's path below charts/, and Release its release's name; without them the control plane's.
	Chart   string `json:"chart,omitempty"`
	Release string `json:"release,omitempty"`
	// Namespace of the release; istio-system where it is "".
	Namespace string `json:"namespace,omitempty"`
	// KubernetesVersion is the cluster's version, with its v, as charts see it; v1.34.0 where it is "".
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Directory holds charts/ of another Istio; without it the charts are those of the version that this is built with.
	Directory string `json:"directory,omitempty"`
	// Operator is an IstioOperator document as YAML. If set, the rendering is what istioctl generates from the
	// document, including its profile; the answer contains only the manifests of the control plane, and the rest of
	// the request is ignored.
	Operator string `json:"operator,omitempty"`
}

// Answer is what came of it.
type Answer struct {
	// Manifests are YAML documents.
	Manifests string `json:"manifests,omitempty"`
	// Error is the reason why no manifests exist.
	Error string `json:"error,omitempty"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "charts:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<24)
	enc := json.NewEncoder(out)
	for lines.Scan() {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		if err := enc.Encode(render(r)); err != nil {
			return fmt.Errorf("writing manifests: %w", err)
		}
	}
	return lines.Err()
}

func render(r Request) Answer {
	if r.Operator != "" {
		return renderOperator(r.Operator)
	}
	iop := values.Map{"spec": map[string]any{"values": r.Values, "installPackagePath": r.Directory}}
	kubernetes := cmp.Or(r.KubernetesVersion, "v1.34.0")
	parts := strings.SplitN(strings.TrimPrefix(kubernetes, "v"), ".", 3)
	if len(parts) < 3 {
		return Answer{Error: fmt.Sprintf("reading the Kubernetes version %q: want one such as v1.34.0", kubernetes)}
	}
	manifests, _, err := helm.Render(cmp.Or(r.Release, "istiod"), cmp.Or(r.Namespace, "istio-system"), cmp.Or(r.Chart, "istio-control/istio-discovery"), iop,
		&version.Info{Major: parts[0], Minor: parts[1], GitVersion: kubernetes})
	if err != nil {
		return Answer{Error: err.Error()}
	}
	texts := make([]string, len(manifests))
	for i, m := range manifests {
		texts[i] = m.Content
	}
	return Answer{Manifests: strings.Join(texts, "\n---\n")}
}

// The hub and the tag that are built into the istioctl of a release.
const releasedHub, releasedTag = "docker.io/istio", "1.31.1"

// renderOperator renders as istioctl manifest generate does, which reads files only.
func renderOperator(document string) Answer {
	istioversion.DockerInfo.Hub, istioversion.DockerInfo.Tag = releasedHub, releasedTag
	file, err := os.CreateTemp("", "operator-*.yaml")
	if err != nil {
		return Answer{Error: err.Error()}
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.WriteString(document)
	if err := errors.Join(err, file.Close()); err != nil {
		return Answer{Error: err.Error()}
	}
	sets, _, err := operator.GenerateManifest([]string{file.Name()}, nil, false, nil, nil)
	if err != nil {
		return Answer{Error: err.Error()}
	}
	var texts []string
	for _, set := range sets {
		if set.Component != component.PilotComponentName {
			continue
		}
		for _, m := range set.Manifests {
			texts = append(texts, m.Content)
		}
	}
	return Answer{Manifests: strings.Join(texts, "\n---\n")}
}
