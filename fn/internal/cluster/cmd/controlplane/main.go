// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command controlplane runs etcd, kube-apiserver and kube-controller-manager for the tests of other packages, until
// its standard input ends. It prints the path of a kubeconfig for the administrator once they are ready, in one
// line. With -flux or -argocd it starts no process: it builds kustomize-controller or Argo CD, and prints its path
// and those of its definitions, each in a line. With -build it builds all that make e2e-cluster runs.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/prerig/prerig/fn/internal/cluster"
)

func main() {
	upstream := flag.String("upstream", "", "directory of the modules that pin the programs")
	cache := flag.String("cache", "", "directory where they are kept")
	flux := flag.Bool("flux", false, "build kustomize-controller instead")
	argocd := flag.Bool("argocd", false, "build Argo CD instead")
	all := flag.Bool("build", false, "build everything that tests of a cluster run, but Argo CD")
	flag.Parse()
	do := run
	switch {
	case *all:
		do = buildAll
	case *flux:
		do = buildFlux
	case *argocd:
		do = buildArgoCD
	}
	if err := do(*upstream, *cache); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func buildFlux(upstream, cache string) error {
	return build(upstream, cache, cluster.KustomizeController, func(p *cluster.Programs) string { return p.Flux }, cluster.FluxDefinitions)
}

func buildArgoCD(upstream, cache string) error {
	return build(upstream, cache, cluster.ArgoCD, func(p *cluster.Programs) string { return p.ArgoCD }, cluster.ArgoCDManifests)
}

// build builds a program, and prints its path and those that the definitions are in.
func build(
	upstream, cache, name string, path func(*cluster.Programs) string, definitions func(context.Context, string) ([]string, error),
) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	programs, err := cluster.Builder{Upstream: upstream, Cache: cache, Say: say}.Build(ctx, name)
	if err != nil {
		return err
	}
	defined, err := definitions(ctx, upstream)
	if err != nil {
		return err
	}
	for _, line := range append([]string{path(programs)}, defined...) {
		fmt.Println(line)
	}
	return nil
}

func buildAll(upstream, cache string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	builder := cluster.Builder{Upstream: upstream, Cache: cache, Say: say}
	if _, err := builder.Build(ctx); err != nil {
		return err
	}
	_, err := builder.Build(ctx, cluster.KustomizeController)
	return err
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func run(upstream, cache string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	programs, err := cluster.Builder{Upstream: upstream, Cache: cache, Say: say}.Build(ctx, "etcd", "kube-apiserver", "kube-controller-manager")
	if err != nil {
		return err
	}
	c, err := cluster.Start(ctx, programs, cluster.Options{Say: say})
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Println(c.Kubeconfig)
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	return nil
}
