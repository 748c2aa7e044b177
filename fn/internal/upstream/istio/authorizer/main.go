// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command authorizer decides which calls Istio allows, from the configuration that istiod itself generates.
//
//	authorizer < requests > answers
//
// Each line of the standard input is a Request as JSON, and each line of the output its Answer. What istiod does is Istio's own code: its
// discovery server reads the manifests, selects policies for proxies, generates the listeners of sidecars and waypoints, converts policies for
// ztunnel, attaches these to pods and Services to waypoints, and its validation checks the manifests.
//
// What Envoy and ztunnel do is not: they are written in C++ and Rust, so that no Go program can link them. envoy.go and ztunnel.go evaluate
// the RBAC and JWT filters and the Authorizations that istiod has generated, and nothing else of a listener: they are small, and fail on
// everything that they do not know.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"istio.io/istio/pilot/pkg/features"
	"istio.io/istio/pkg/log"
)

// Request describes one state of a cluster, and calls in it.
type Request struct {
	// Manifests are the objects of the cluster, as documents of YAML. Pods are listed themselves, not by their owners.
	Manifests string `json:"manifests"`
	// MeshConfig is the mesh config; empty means the default.
	MeshConfig string `json:"meshConfig,omitempty"`
	// Sidecars are the pods with a sidecar, as namespace/name.
	Sidecars []string `json:"sidecars,omitempty"`
	Calls    []Call   `json:"calls,omitempty"`
}

// Call is one request from a client to a pod.
type Call struct {
	Client Client `json:"client"`
	// Pod is the namespace/name of the pod that gets the request.
	Pod string `json:"pod"`
	// Service is the namespace/name of the Service that the client calls; empty means that it calls the address of the pod.
	Service string `json:"service,omitempty"`
	// Port is the port of the Service, or of the pod if there is no Service.
	Port    uint32            `json:"port"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Host    string            `json:"host"`
	Headers map[string]string `json:"headers,omitempty"`
	// Claims are those of a valid token; nil means that there is none.
	Claims map[string]any `json:"claims,omitempty"`
}

// Client is who calls.
type Client struct {
	// Mode is sidecar or ambient; empty means that the client is not in the mesh.
	Mode           string `json:"mode,omitempty"`
	Namespace      string `json:"namespace"`
	ServiceAccount string `json:"serviceAccount"`
	IP             string `json:"ip"`
}

// Answer is what istiod's configuration means.
type Answer struct {
	// Invalid are the errors of Istio's validation, and what could not be decoded.
	Invalid []string `json:"invalid,omitempty"`
	// Decisions are those about the calls.
	Decisions []Decision `json:"decisions,omitempty"`
}

// Decision is what happens to a call.
type Decision struct {
	Allowed bool `json:"allowed"`
	// Proxies are those that the call passes: sidecar, waypoint, ztunnel.
	Proxies []string `json:"proxies,omitempty"`
	// By is the proxy and the filter that rejects the call.
	By string `json:"by,omitempty"`
	// Asked are the external authorizers that are asked, and Audited reports whether an AUDIT policy matches.
	Asked   []string `json:"asked,omitempty"`
	Audited bool     `json:"audited,omitempty"`
}

func main() {
	if err := start(); err != nil {
		fmt.Fprintln(os.Stderr, "authorizer:", err)
		os.Exit(1)
	}
}

func start() error {
	options := log.DefaultOptions()
	options.OutputPaths = []string{"stderr"} // the standard output is for answers
	options.SetDefaultOutputLevel(log.OverrideScopeName, log.NoneLevel)
	if err := log.Configure(options); err != nil {
		return err
	}
	if !features.EnableAmbient {
		return fmt.Errorf("PILOT_ENABLE_AMBIENT is not true: Istio reads it when a program starts")
	}
	return run(os.Stdin, os.Stdout)
}

func run(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 64<<20)
	enc := json.NewEncoder(out)
	for lines.Scan() {
		var r Request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("reading a request: %w", err)
		}
		a, err := answer(r)
		if err != nil {
			return fmt.Errorf("answering a request: %w", err)
		}
		if err := enc.Encode(a); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
	return lines.Err()
}
