// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command controlplane runs etcd, kube-apiserver and kube-controller-manager for the tests of other packages, until its standard input
// ends. It prints the path of a kubeconfig for the administrator once they are ready, in one line. With -flux it starts nothing: it
// builds kustomize-controller, and prints its path and the files of its definitions, each in a line.
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
	flag.Parse()
	do := run
	if *flux {
		do = buildFlux
	}
	if err := do(*upstream, *cache); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func buildFlux(upstream, cache string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	programs, err := cluster.Build(ctx, upstream, cache, say, cluster.KustomizeController)
	if err != nil {
		return err
	}
	definitions, err := cluster.FluxDefinitions(ctx, upstream)
	if err != nil {
		return err
	}
	fmt.Println(programs.Flux)
	for _, file := range definitions {
		fmt.Println(file)
	}
	return nil
}

func run(upstream, cache string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	say := func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }
	programs, err := cluster.Build(ctx, upstream, cache, say, "etcd", "kube-apiserver", "kube-controller-manager")
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
