// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command news looks for new releases of what the repository names, writes them into its files, and lists what is left to do. It runs
// in the root of the repository.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/internal/news"
)

// watched are releases that a person has to take over, with what to do.
var watched = []struct{ source, known, do string }{
	{"istio.io/api", "v" + release.Newest(release.NewestMinor).String(), "a version of Istio: see ARCHITECTURE.md"},
	{"k8s.io/kubernetes", "v1.37.2", "a version of Kubernetes to the gate: see ARCHITECTURE.md"},
	{"github.com/dapr/dapr", "v1.18.3", "fn/internal/upstream/dapr, then make dapr"},
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "looking for news:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	found, err := news.Update(ctx, ".", news.Places, news.List)
	if err != nil {
		return err
	}
	for _, f := range found {
		if f.Problem != nil {
			fmt.Printf("not known: %v\n", f.Problem)
			continue
		}
		fmt.Printf("changed: %s: %s %s, was %s; left: make definitions\n", f.File, f.Source, f.Newest, f.Known)
	}
	for _, w := range watched {
		versions, err := news.List(ctx, w.source)
		if err != nil {
			fmt.Printf("not known: %v\n", err)
			continue
		}
		if newest := news.Newest(append(versions, w.known)); newest != w.known {
			fmt.Printf("left: %s %s, known is %s: %s\n", w.source, newest, w.known, w.do)
		}
	}
	return nil
}
