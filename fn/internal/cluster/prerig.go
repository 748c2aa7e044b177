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
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// Prerig is the built program with a policy, as somebody uses it who has only that.
type Prerig struct {
	// Program is the path of the binary, Policy that of the policy, or "" for the one that comes with it.
	Program, Policy string
	// Beside are objects that it is given with every workload, such as the ProxyConfigs of the cluster.
	Beside []*unstructured.Unstructured
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
	out, said, err := p.inject(ctx, workload, "-q")
	if out != nil || err != nil {
		return out, "", err
	}
	return nil, said, nil
}

// together is how many workloads the program is given at once.
const together = 100

// InjectEach does what Inject does with each of many workloads, most of them together: starting the program and reading the policy takes
// longer than injecting. It writes nothing where it refuses one, and names all that it refuses; these are then given to it alone.
func (p *Prerig) InjectEach(ctx context.Context, workloads []*unstructured.Unstructured) (out []*unstructured.Unstructured, refused []string, err error) {
	out, refused = make([]*unstructured.Unstructured, len(workloads)), make([]string, len(workloads))
	var alone, named []int
	seen := map[string]bool{}
	for i, w := range workloads {
		if about := aboutOf(w); w.GetName() == "" || seen[about] {
			alone = append(alone, i)
		} else {
			seen[about] = true
			named = append(named, i)
		}
	}
	for chunk := range slices.Chunk(named, together) {
		rejected, err := p.injectChunk(ctx, workloads, chunk, out)
		if err != nil {
			return nil, nil, err
		}
		alone = append(alone, rejected...)
	}
	for _, i := range alone {
		if out[i], refused[i], err = p.Inject(ctx, workloads[i]); err != nil {
			return nil, nil, err
		}
	}
	return out, refused, nil
}

// injectChunk injects into some of the workloads, and returns those that it refuses.
func (p *Prerig) injectChunk(ctx context.Context, workloads []*unstructured.Unstructured, chunk []int, out []*unstructured.Unstructured) (rejected []int, err error) {
	for left := chunk; len(left) > 0; {
		var some []*unstructured.Unstructured
		for _, i := range left {
			some = append(some, workloads[i])
		}
		injected, said, err := p.injectTogether(ctx, some)
		if err != nil {
			return nil, err
		}
		if injected != nil {
			for at, i := range left {
				out[i] = injected[at]
			}
			return rejected, nil
		}
		var kept []int
		for _, i := range left {
			if isNamed(said, workloads[i]) {
				rejected = append(rejected, i)
			} else {
				kept = append(kept, i)
			}
		}
		if len(kept) == len(left) {
			return append(rejected, left...), nil // what is refused is not named: each tells for itself
		}
		left = kept
	}
	return rejected, nil
}

// aboutOf is how the program names a workload.
func aboutOf(w *unstructured.Unstructured) string {
	return fmt.Sprintf(": %s %s/%s", w.GetKind(), w.GetNamespace(), w.GetName())
}

// isNamed reports whether a message is about a field of a workload, or all of it.
func isNamed(said string, w *unstructured.Unstructured) bool {
	return strings.Contains(said, aboutOf(w)+" ") || strings.Contains(said, aboutOf(w)+":")
}

// InjectAll has the program inject into many workloads with names at once, and returns what comes of those that it does not refuse.
func (p *Prerig) InjectAll(ctx context.Context, workloads []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	for left := workloads; len(left) > 0; {
		injected, said, err := p.injectTogether(ctx, left)
		if injected != nil || err != nil {
			return injected, err
		}
		kept := slices.DeleteFunc(slices.Clone(left), func(w *unstructured.Unstructured) bool { return isNamed(said, w) })
		if len(kept) == len(left) {
			return nil, fmt.Errorf("injecting into %d workloads: it names none that it refuses\n%.2000s", len(left), said)
		}
		left = kept
	}
	return nil, nil
}

// injectTogether has the program inject into workloads at once, in their order. Without an error and objects it refuses, and says what.
func (p *Prerig) injectTogether(ctx context.Context, workloads []*unstructured.Unstructured) ([]*unstructured.Unstructured, string, error) {
	all := slices.Concat(p.Beside, workloads)
	var text []byte
	for _, obj := range all {
		one, err := yaml.Marshal(obj.Object)
		if err != nil {
			return nil, "", err
		}
		text = append(append(text, "---\n"...), one...)
	}
	injected, said, err := p.run(ctx, text, "inject", "-q", "-p", p.Policy)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 2 {
		return nil, string(said), nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("injecting into %d workloads: %w\n%.2000s", len(workloads), err, said)
	}
	out, err := decodeAll(injected)
	if err == nil && len(out) != len(all) {
		err = fmt.Errorf("there are %d objects instead of %d", len(out), len(all))
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading what was injected into %d workloads: %w", len(workloads), err)
	}
	return out[len(p.Beside):], "", nil
}

// inject has the program inject into a workload, and returns what it says. Without an error and an object it refuses.
func (p *Prerig) inject(ctx context.Context, workload *unstructured.Unstructured, flags ...string) (*unstructured.Unstructured, string, error) {
	var text []byte
	for _, obj := range append(slices.Clone(p.Beside), workload) {
		one, err := yaml.Marshal(obj.Object)
		if err != nil {
			return nil, "", err
		}
		text = append(append(text, "---\n"...), one...)
	}
	injected, said, err := p.run(ctx, text, append([]string{"inject", "-p", p.Policy}, flags...)...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 2 {
		return nil, string(said), nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("injecting into the %s %s: %w\n%s", workload.GetKind(), workload.GetName(), err, said)
	}
	out, err := lastOf(injected, 1+len(p.Beside))
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
	out, err := lastOf(original, 1)
	if err != nil {
		return nil, fmt.Errorf("reading the %s %s without its injection: %w", workload.GetKind(), workload.GetName(), err)
	}
	return out, nil
}

// lastOf returns the last object of a stream that holds so many.
func lastOf(stream []byte, n int) (*unstructured.Unstructured, error) {
	objects, err := decodeAll(stream)
	if err == nil && len(objects) != n {
		err = fmt.Errorf("there are %d objects instead of %d", len(objects), n)
	}
	if err != nil {
		return nil, err
	}
	return objects[n-1], nil
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
