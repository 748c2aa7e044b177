// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Prerig is the built program with a policy, as somebody uses it who has only that.
type Prerig struct {
	// Program is the path of the binary, Policy that of the policy, or "" for the one that comes with it.
	Program, Policy string
}

// Import has a program make a policy of what is in a cluster, as the README tells to get it, and writes it to a directory.
func Import(ctx context.Context, c *Cluster, program, dir string) (*Prerig, error) {
	var objects unstructured.UnstructuredList
	objects.SetAPIVersion("v1")
	objects.SetKind("List")
	for _, from := range []struct {
		namespace string
		resource  schema.GroupVersionResource
	}{
		{istioNamespace, schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}},
		{istioNamespace, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}},
		{"", schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"}},
		{"", schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}},
		{"", schema.GroupVersionResource{Version: "v1", Resource: "nodes"}},
	} {
		found, err := c.dynamic.Resource(from.resource).Namespace(from.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("listing the %s: %w", from.resource.Resource, err)
		}
		objects.Items = append(objects.Items, found.Items...)
	}
	text, err := yaml.Marshal(objects.UnstructuredContent())
	if err != nil {
		return nil, err
	}
	p := &Prerig{Program: program, Policy: filepath.Join(dir, "prerig.yaml")}
	policy, said, err := p.run(ctx, text, "import")
	if err != nil {
		return nil, fmt.Errorf("importing the cluster's objects: %w\n%s", err, said)
	}
	return p, os.WriteFile(p.Policy, policy, 0o600)
}

// Inject has the program inject into a workload. Where it refuses, refused says why.
func (p *Prerig) Inject(ctx context.Context, workload *unstructured.Unstructured) (out *unstructured.Unstructured, refused string, err error) {
	text, err := yaml.Marshal(workload.Object)
	if err != nil {
		return nil, "", err
	}
	injected, said, err := p.run(ctx, text, "inject", "-q", "-p", p.Policy)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 2 {
		return nil, string(said), nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("injecting into the %s %s: %w\n%s", workload.GetKind(), workload.GetName(), err, said)
	}
	objects, err := decodeAll(injected)
	if err != nil || len(objects) != 1 {
		return nil, "", fmt.Errorf("reading what was injected into the %s %s: %d objects, %w", workload.GetKind(), workload.GetName(), len(objects), err)
	}
	return objects[0], "", nil
}

func (p *Prerig) run(ctx context.Context, input []byte, args ...string) (stdout, stderr []byte, err error) {
	command := exec.CommandContext(ctx, p.Program, args...)
	command.Stdin = bytes.NewReader(input)
	command.Dir = filepath.Dir(p.Program) // where no policy lies
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	err = command.Run()
	return out.Bytes(), said.Bytes(), err
}
