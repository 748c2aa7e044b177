// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/internal/oracle"
)

// verified is what prerig verify -o json says, as far as the tests read it.
type verified struct {
	Counts map[string]int
	Unread []string
	Pods   []struct {
		Namespace, Name, Workload, State, Message string
		Commit                                    *struct {
			ID     string
			Behind int
		}
		Differences []struct {
			Field            string
			Committed, Found any
			Cause            struct {
				Kind    string
				By      []string
				Certain bool
			}
		}
	}
	Sidecars []struct {
		Container     string
		Pods, Arrived int
	}
}

// repository is a Git repository with what is committed for a cluster.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{t, t.TempDir()}
	r.git("init", "-q", "-b", "rendered")
	return r
}

func (r *repository) git(args ...string) {
	r.t.Helper()
	command := exec.CommandContext(r.t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	command.Dir = r.dir
	if out, err := command.CombinedOutput(); err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// commit commits objects, each in a file of its own.
func (r *repository) commit(subject string, objects ...*unstructured.Unstructured) {
	r.t.Helper()
	for _, obj := range objects {
		text, err := yaml.Marshal(obj.Object)
		if err != nil {
			r.t.Fatal(err)
		}
		name := filepath.Join(r.dir, obj.GetNamespace(), strings.ToLower(obj.GetKind())+"-"+obj.GetName()+".yaml")
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	r.git("add", "-A")
	r.git("commit", "-q", "-m", subject)
}

// spent is what a run of prerig verify took: by the clock, and of processors.
type spent struct{ clock, processor time.Duration }

func (s spent) String() string {
	return fmt.Sprintf("%s (%s of processors)", s.clock.Round(10*time.Millisecond), s.processor.Round(10*time.Millisecond))
}

// verify runs prerig verify, and returns what it says, how it exits, and what it took.
func (r *repository) verify(program, kubeconfig string, args ...string) (out verified, exit int, took spent) {
	r.t.Helper()
	command := exec.CommandContext(r.t.Context(), program, append([]string{"verify", "--rendered", r.dir, "--kubeconfig", kubeconfig, "-o", "json"}, args...)...)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	began := time.Now()
	err := command.Run()
	took = spent{clock: time.Since(began)}
	if state := command.ProcessState; state != nil {
		took.processor = state.UserTime() + state.SystemTime()
	}
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) || command.ProcessState.ExitCode() == 2 {
		r.t.Fatalf("prerig verify: %v\n%s", err, stderr.Bytes())
	}
	if err := json.Unmarshal(stdout.Bytes(), &out); err != nil {
		r.t.Fatalf("reading the report: %v\n%.2000s", err, stdout.Bytes())
	}
	return out, command.ProcessState.ExitCode(), took
}

// run runs prerig verify and returns what it says on both streams.
func (r *repository) run(program, kubeconfig string, args ...string) (string, error) {
	command := exec.CommandContext(r.t.Context(), program, append([]string{"verify", "--rendered", r.dir, "--kubeconfig", kubeconfig}, args...)...)
	out, err := command.CombinedOutput()
	return string(out), err
}

// named leaves out workloads whose names the API server makes.
func named(workloads []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(workloads, func(w *unstructured.Unstructured) bool { return w.GetName() == "" })
}

// awaitPods waits until each workload has a pod, and returns those that get none.
func (c *Cluster) awaitPods(ctx context.Context, workloads []*unstructured.Unstructured) (without map[owner]string, err error) {
	waiting, namespaces := map[owner]bool{}, map[string]bool{}
	for _, w := range workloads {
		namespaces[w.GetNamespace()] = true
		if w.GetKind() != "Pod" {
			waiting[owner{w.GetNamespace(), w.GetKind(), w.GetName()}] = true
		}
	}
	without = map[owner]string{}
	for deadline := time.Now().Add(settled); len(waiting) > 0; {
		for namespace := range namespaces {
			found, err := c.collectWorkloadOutcomes(ctx, namespace)
			if err != nil {
				return nil, err
			}
			for o, outcome := range found {
				if !waiting[o] {
					continue
				}
				delete(waiting, o)
				if outcome.Pod == nil {
					without[o] = outcome.Refused
				}
			}
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("waiting for the pods of %d workloads: none after %s; one is %v", len(waiting), settled, slices.Collect(maps.Keys(waiting))[0])
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
	return without, nil
}

// pods are those of the cluster.
var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// fleet has a cluster make pods of workloads that Prerig has injected into and that are committed.
type fleet struct {
	*Cluster
	repository *repository
	program    string
	workloads  []*unstructured.Unstructured
}

// newFleet makes the pods of so many workloads.
func newFleet(t *testing.T, n int) *fleet {
	t.Helper()
	program := builtPrerig(t)
	f := &fleet{Cluster: started(t, programs(t, "etcd", "kube-apiserver", "kube-controller-manager"), Options{}), repository: newRepository(t), program: program}
	installation := oracle.Installations()[0]
	var names []string
	for _, namespace := range installation.Namespaces() {
		if err := f.AddNamespace(t.Context(), namespace.Name, namespace.Labels, namespace.Annotations); err != nil {
			t.Fatal(err)
		}
		names = append(names, namespace.Name)
	}
	if err := f.Furnish(t.Context(), names, []string{"web", "old-name"}, "own"); err != nil {
		t.Fatal(err)
	}
	prerig := &Prerig{Program: program, Policy: "istio"}
	workloads := named(generatedN(t, f.Cluster, installation.Name, n))
	for _, w := range workloads {
		if w.GetNamespace() == "" {
			w.SetNamespace("default")
		}
	}
	// CronJobs make pods each minute, and finish in none.
	workloads = slices.DeleteFunc(workloads, func(w *unstructured.Unstructured) bool { return w.GetKind() == "CronJob" })
	injected, err := prerig.InjectAll(t.Context(), workloads)
	if err != nil {
		t.Fatal(err)
	}
	for _, out := range injected {
		if _, err := f.Create(t.Context(), out); err == nil {
			f.workloads = append(f.workloads, out)
		}
	}
	f.repository.commit("Render", f.workloads...)
	return f
}

// TestVerifyFindsNothing has real controllers make pods of random workloads that Prerig has injected into: all are as committed.
func TestVerifyFindsNothing(t *testing.T) {
	f := newFleet(t, setting(t, "PRERIG_CLUSTER_PODS", 60))
	if _, err := f.awaitPods(t.Context(), f.workloads); err != nil {
		t.Fatal(err)
	}
	found, exit, took := f.repository.verify(f.program, f.Kubeconfig)
	t.Logf("Kubernetes %s: %v of %d workloads, exit code %d, after %s", f.programs.Kubernetes, found.Counts, len(f.workloads), exit, took)
	for run := 2; run <= setting(t, "PRERIG_CLUSTER_RUNS", 1); run++ {
		_, _, took = f.repository.verify(f.program, f.Kubeconfig)
		t.Logf("run %d: %d pods after %s", run, len(found.Pods), took)
	}
	for _, pod := range found.Pods {
		if pod.State == "Current" {
			continue
		}
		t.Errorf("%s/%s of %s: %s %s", pod.Namespace, pod.Name, pod.Workload, pod.State, pod.Message)
		for _, d := range pod.Differences {
			t.Logf("  %s: %v, committed %v (%s %v)", d.Field, d.Found, d.Committed, d.Cause.Kind, d.Cause.By)
		}
	}
}
