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
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Prerig is the built program with a policy, as used by a user who has only these.
type Prerig struct {
	// Program is the path of the binary, Policy that of the policy, or "" for the one that comes with it.
	Program, Policy string
	// Flags are further flags of inject.
	Flags []string
}

var proxyConfigs = schema.GroupVersionResource{Group: "networking.istio.io", Version: "v1beta1", Resource: "proxyconfigs"}

// Import runs a program to create a policy from the state of a cluster, following the README, and writes it to a
// directory.
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
		{"", serviceAccounts},
		{"", schema.GroupVersionResource{Version: "v1", Resource: "limitranges"}},
		{"", proxyConfigs},
	} {
		found, err := c.dynamic.Resource(from.resource).Namespace(from.namespace).List(ctx, metav1.ListOptions{})
		if from.resource == proxyConfigs && apierrors.IsNotFound(err) {
			continue
		}
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

// Inject runs the program to inject into a workload. If the program rejects it, refused holds the reason.
func (p *Prerig) Inject(ctx context.Context, workload *unstructured.Unstructured) (out *unstructured.Unstructured, refused string, err error) {
	out, said, err := p.injectWorkload(ctx, workload, "-q")
	if out != nil || err != nil {
		return out, "", err
	}
	return nil, said, nil
}

// InjectAll has the program inject into many workloads with names at once, and returns what comes of those that it does not refuse.
func (p *Prerig) InjectAll(ctx context.Context, workloads []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	for left := workloads; len(left) > 0; {
		var text []byte
		for _, obj := range left {
			one, err := yaml.Marshal(obj.Object)
			if err != nil {
				return nil, err
			}
			text = append(append(text, "---\n"...), one...)
		}
		injected, said, err := p.run(ctx, text, append([]string{"inject", "-q", "-p", p.Policy}, p.Flags...)...)
		if err == nil {
			out, err := decodeAll(injected)
			if err == nil && len(out) != len(left) {
				err = fmt.Errorf("injecting into %d workloads: there are %d", len(left), len(out))
			}
			return out, err
		}
		// The program writes no output if it rejects a workload, and names all that it rejects.
		rejected := errorLines(said)
		kept := slices.DeleteFunc(slices.Clone(left), func(w *unstructured.Unstructured) bool {
			about := fmt.Sprintf(": %s %s/%s", w.GetKind(), w.GetNamespace(), w.GetName())
			return bytes.Contains(rejected, []byte(about+" ")) || bytes.Contains(rejected, []byte(about+":")) // a field of it, or all of it
		})
		if len(kept) == len(left) {
			return nil, fmt.Errorf("injecting into %d workloads: %w\n%.2000s", len(left), err, said)
		}
		left = kept
	}
	return nil, nil
}

// errorLines returns the lines of messages that are errors: a workload that only warnings name is not rejected.
func errorLines(said []byte) []byte {
	var out []byte
	for line := range bytes.Lines(said) {
		if bytes.HasPrefix(line, []byte("error: ")) {
			out = append(out, line...)
		}
	}
	return out
}

// injectWorkload runs the program to inject into a workload, and returns its messages. If both the error and the object
// are nil, the program rejects the workload.
func (p *Prerig) injectWorkload(ctx context.Context, workload *unstructured.Unstructured, flags ...string) (*unstructured.Unstructured, string, error) {
	text, err := yaml.Marshal(workload.Object)
	if err != nil {
		return nil, "", err
	}
	injected, said, err := p.run(ctx, text, append([]string{"inject", "-p", p.Policy}, flags...)...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 2 {
		return nil, string(said), nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("injecting into the %s %s: %w\n%s", workload.GetKind(), workload.GetName(), err, said)
	}
	out, err := singleObject(injected)
	if err != nil {
		return nil, "", fmt.Errorf("reading what was injected into the %s %s: %w", workload.GetKind(), workload.GetName(), err)
	}
	return out, string(said), nil
}

// Remove has the program take the injection out of a workload.
func (p *Prerig) Remove(ctx context.Context, workload *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	text, err := yaml.Marshal(workload.Object)
	if err != nil {
		return nil, err
	}
	original, said, err := p.run(ctx, text, "inject", "--remove", "-q", "-p", p.Policy)
	if err != nil {
		return nil, fmt.Errorf("taking the injection out of the %s %s: %w\n%s", workload.GetKind(), workload.GetName(), err, said)
	}
	out, err := singleObject(original)
	if err != nil {
		return nil, fmt.Errorf("reading the %s %s without its injection: %w", workload.GetKind(), workload.GetName(), err)
	}
	return out, nil
}

// singleObject returns the object of a stream that holds one.
func singleObject(stream []byte) (*unstructured.Unstructured, error) {
	objects, err := decodeAll(stream)
	if err == nil && len(objects) != 1 {
		err = fmt.Errorf("there are %d objects instead of one", len(objects))
	}
	if err != nil {
		return nil, err
	}
	return objects[0], nil
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
