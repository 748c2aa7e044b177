// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command digests runs "prerig inject" over all cases of corpora and over the directories of the examples, with
// each available policy, and prints one digest for each corpus and for the examples. Two binaries that print the
// same digests produce the same results for all of it, to the byte: standard output and the status count, messages
// do not.
//
//	go run ./fn/internal/conformance/cmd/digests -prerig dist/prerig -corpora DIR:DIR -examples examples [-v]
//
// With -v it also prints the digest of each case to standard output, for a comparison with diff.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/internal/conformance"
)

func main() {
	binary := flag.String("prerig", "dist/prerig", "the prerig to run")
	corpora := flag.String("corpora", "", "directories of corpora, with the system's list separator between them")
	examples := flag.String("examples", "", "directory of the examples")
	verbose := flag.Bool("v", false, "print the digest of each case")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, *binary, *corpora, *examples, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "digests:", err)
		os.Exit(1)
	}
}

// invocation is one run of the command. prepare writes what it needs into a directory, and returns its arguments.
type invocation struct {
	name    string
	prepare func(dir string) (args []string, err error)
}

func run(ctx context.Context, out io.Writer, binary, corpora, examples string, verbose bool) error {
	for _, dir := range filepath.SplitList(corpora) {
		all, err := corpusInvocations(dir)
		if err != nil {
			return err
		}
		if err := printDigest(ctx, out, binary, dir, all, verbose); err != nil {
			return err
		}
	}
	if examples == "" {
		return nil
	}
	all, err := exampleInvocations(examples)
	if err != nil {
		return err
	}
	return printDigest(ctx, out, binary, examples, all, verbose)
}

// corpusInvocations inject the input of each case with the policy of its cluster, as the webhook sees the pods and as
// they are written.
func corpusInvocations(dir string) ([]invocation, error) {
	versions, err := conformance.Load(dir)
	if err != nil {
		return nil, err
	}
	var all []invocation
	for _, v := range versions {
		for _, c := range v.Cases {
			for _, admission := range []v1alpha1.Admission{v1alpha1.AdmissionDefaulted, v1alpha1.AdmissionRaw} {
				all = append(all, invocation{name: c.ID() + " " + string(admission), prepare: func(dir string) ([]string, error) {
					return prepareCase(c, admission, dir)
				}})
			}
		}
	}
	return all, nil
}

// prepareCase writes the policy of a case. Only its data is part of the output.
func prepareCase(c *conformance.Case, admission v1alpha1.Admission, dir string) ([]string, error) {
	policy, err := c.Policy()
	if err != nil {
		return nil, err
	}
	policy.Spec.Istio.Admission = admission
	text, err := v1alpha1.Marshal(policy)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return nil, err
	}
	input, err := c.Text(c.Input)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "input.yaml")
	return []string{"inject", "-q", "-n", "default", "-p", name, file}, os.WriteFile(file, input, 0o600)
}

// exampleInvocations inject each directory of the examples with the policy that is found for it, and with each policy
// that is in it.
func exampleInvocations(dir string) ([]invocation, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the examples: %w", err)
	}
	var all []invocation
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		policies, err := policiesIn(path)
		if err != nil {
			return nil, fmt.Errorf("reading the examples: %w", err)
		}
		for _, policy := range append([]string{""}, policies...) {
			args := []string{"inject", "-q", "-n", "default", path}
			if policy != "" {
				args = append(args, "-p", policy)
			}
			all = append(all, invocation{name: path + " " + policy, prepare: func(string) ([]string, error) { return args, nil }})
		}
	}
	return all, nil
}

// policiesIn returns the files of a directory that are policies.
func policiesIn(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := v1alpha1.Parse(text); err == nil {
			out = append(out, path)
		}
		return nil
	})
	return out, err
}

// printDigest runs all invocations, with one worker per processor, and prints the digest of their digests.
func printDigest(ctx context.Context, out io.Writer, binary, name string, all []invocation, verbose bool) error {
	digests, errs := make([]string, len(all)), make([]error, len(all))
	var group sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i := range all {
		slots <- struct{}{}
		group.Go(func() {
			digests[i], errs[i] = all[i].digest(ctx, binary)
			<-slots
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	whole := sha256.New()
	for i, digest := range digests {
		line := digest + "  " + all[i].name + "\n"
		_, _ = io.WriteString(whole, line) // writing to a hash never fails
		if verbose {
			fmt.Fprint(out, line)
		}
	}
	_, err := fmt.Fprintf(out, "%x  %s, %d runs\n", whole.Sum(nil), name, len(all))
	return err
}

// digest runs the command in the present directory.
func (i invocation) digest(ctx context.Context, binary string) (string, error) {
	dir, err := os.MkdirTemp("", "prerig-digests-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	args, err := i.prepare(dir)
	if err != nil {
		return "", fmt.Errorf("preparing %s: %w", i.name, err)
	}
	cmd := exec.CommandContext(ctx, binary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	status := 0
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() < 0 {
			return "", fmt.Errorf("running %s for %s: %w", binary, i.name, err)
		}
		// A rejected input prints no output. Errors other than those of a workload or a policy would make all runs
		// the same.
		status = exit.ExitCode()
		if stderr.Len() == 0 || bytes.Contains(stderr.Bytes(), []byte("--help")) {
			return "", fmt.Errorf("running %s for %s: status %d: %s", binary, i.name, status, stderr.Bytes())
		}
	}
	fmt.Fprintf(&stdout, "\nstatus %d\n", status)
	sum := sha256.Sum256(stdout.Bytes())
	return hex.EncodeToString(sum[:]), nil
}
