// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/prerig/prerig/fn/istio"
)

// Options describes what to compare.
type Options struct {
	Tools Tools
	// Version is the version of Istio that is passed to the charts as the one they install, such as 1.31.0-rc.0.
	Version string
	// Charts is the directory manifests of another Istio than the one that the command charts is built with.
	Charts string
	// Seed and Count determine the workloads, which are distributed among the installations.
	Seed  uint64
	Count int
	// Raw passes pods to the webhook that no API server has defaulted, as istioctl kube-inject does; the policy is
	// set accordingly.
	Raw bool
	// BuiltIn compares the policy istio that comes with Prerig, with the values of the installations over its own.
	BuiltIn bool
	// ByChart compares with what Prerig makes with the chart's own configuration, for releases whose injector is not at
	// hand.
	ByChart bool
	// Installations are those to compare.
	Installations []Installation
}

// Run processes all cases both ways and returns the report. It processes as many installations concurrently as the
// machine has processors.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	if o.Installations, err = supportedInstallations(o); err != nil {
		return nil, err
	}
	if len(o.Installations) == 0 {
		return nil, fmt.Errorf("comparing: there is no installation of this name in Istio %s", o.Version)
	}
	clusters, err := renderInstallations(ctx, o)
	if err != nil {
		return nil, err
	}
	report = newReport(o)
	var group sync.WaitGroup
	var lock sync.Mutex
	var failed error
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	shares := o.workloadShares()
	for n, c := range clusters {
		count := shares[n]
		group.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			numbers := make([]int, count)
			for i := range numbers {
				numbers[i] = i
			}
			cases, err := c.processCases(ctx, o.Tools, o.Seed, numbers)
			lock.Lock()
			defer lock.Unlock()
			if err != nil && failed == nil {
				failed = err
			}
			report.addInstallationCases(c.Name, cases)
		})
	}
	group.Wait()
	return report, failed
}

// workloadShares returns how many workloads each installation gets: those that are written by hand all of theirs, and
// the others an equal share of the count.
func (o Options) workloadShares() []int {
	out := make([]int, len(o.Installations))
	drawn := 0
	for _, i := range o.Installations {
		if i.Workloads == nil {
			drawn++
		}
	}
	at := 0
	for n, i := range o.Installations {
		if i.Workloads != nil {
			out[n] = len(i.Workloads)
			continue
		}
		out[n] = o.Count / drawn
		if at < o.Count%drawn {
			out[n]++
		}
		at++
	}
	return out
}

// supportedInstallations returns the installations that the version supports.
func supportedInstallations(o Options) ([]Installation, error) {
	version, ok := istio.ParseVersion(o.Version)
	if !ok {
		return nil, fmt.Errorf("reading the version of Istio %q: want one such as 1.31.0", o.Version)
	}
	return slices.DeleteFunc(slices.Clone(o.Installations), func(i Installation) bool { return i.Since > version.Minor }), nil
}

// Show processes one case both ways and returns it in full.
func Show(ctx context.Context, o Options, number int) (*Case, error) {
	if len(o.Installations) != 1 {
		return nil, fmt.Errorf("showing a case: there is no installation of this name")
	}
	clusters, err := renderInstallations(ctx, o)
	if err != nil {
		return nil, err
	}
	cases, err := clusters[0].processCases(ctx, o.Tools, o.Seed, []int{number})
	if err != nil {
		return nil, err
	}
	return cases[0], nil
}
