// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/render/remotebase"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// heap returns the bytes that are in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// chain returns kustomizations below each other, the first in d0, each with a text, and one at the end.
func chain(length int, text, last string) map[string]string {
	files := map[string]string{fmt.Sprintf("d%d/kustomization.yaml", length): last}
	for i := range length {
		files[fmt.Sprintf("d%d/kustomization.yaml", i)] = strings.ReplaceAll(text, "NEXT", fmt.Sprintf("../d%d", i+1))
	}
	return files
}

// While the searches are at the end of a chain of kustomizations, they keep little of those above.
func TestChainOfLargeKustomizationsCostsLittle(t *testing.T) {
	const most = 12 << 20
	last := "resources: [\"https://git.example.com/org/r?ref=" + strings.Repeat("a", 40) + "\"]\n"
	remotes := ""
	for i := range 9000 {
		remotes += fmt.Sprintf(", 'https://git.example.com/org/r%d?ref=%s'", i, strings.Repeat("a", 40))
	}
	for name, text := range map[string]string{
		"values":  "resources: [NEXT]\nx: {" + strings.Repeat("a,", 45_000) + "}\n",
		"entries": "resources: [NEXT" + strings.Repeat(",a", 30_000) + "]\n",
		"bases":   "resources: [NEXT" + remotes + "]\n",
	} {
		t.Run(name, func(t *testing.T) {
			files := build(t, chain(6, text, last))
			limits := render.DefaultLimits()
			before, kept, reached := heap(), int64(0), false
			measure := func() { kept, reached = heap()-before, true } // less than nothing where others have let go of something
			fetch := func(context.Context, string, *remotebase.Base) (reference.Fetched, error) {
				measure()
				return reference.Fetched{}, reference.ErrNotAllowed
			}
			_, _, err := reference.FindBases(ctx, tree.NewView(files, limits.Read), request("d0"), fetch)
			if !errors.Is(err, reference.ErrNotAllowed) || !reached || kept > most {
				t.Errorf("the end was reached: %t; %d bytes are kept while bases are looked for: %v", reached, kept, err)
			}
			before, reached = heap(), false
			reader := watchedReader{tree.NewView(files, limits.Read), func(name string) {
				if name == "d6/kustomization.yaml" {
					measure()
				}
			}}
			if _, err := reference.FindCharts(ctx, reader, request("d0")); err != nil || !reached || kept > most {
				t.Errorf("the end was reached: %t; %d bytes are kept while charts are looked for: %v", reached, kept, err)
			}
		})
	}
}

// Values are bounded in all kustomizations, also in those without aliases, and entries in all of them together.
func TestValuesAndEntriesOfKustomizationsAreBounded(t *testing.T) {
	none := func(context.Context, string, *remotebase.Base) (reference.Fetched, error) {
		return reference.Fetched{}, errors.New("nothing is to be fetched")
	}
	entries := "resources: [NEXT" + strings.Repeat(",a", 45_000) + ",a,a,a]\n"
	for want, files := range map[string]map[string]string{
		"number of values in d0/kustomization.yaml is over the limit of 100000": {"d0/kustomization.yaml": "x: {" + strings.Repeat("a,", 60_000) + "}\n"},
		"number of entries of kustomizations is over the limit of 500000":       chain(12, entries, "namePrefix: x\n"),
	} {
		_, _, err := reference.FindBases(ctx, tree.NewView(build(t, files), render.DefaultLimits().Read), request("d0"), none)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Bases are found in the order in which kustomize comes to them: what is below a kustomization goes before what it names itself, and before what
// is named after it, wherever that is named too.
func TestOrderOfBases(t *testing.T) {
	url := func(name string) string {
		return "'https://git.example.com/org/" + name + "?ref=" + strings.Repeat("a", 40) + "'"
	}
	files := map[string]string{
		"app/kustomization.yaml": "resources: [" + url("last") + ", ../one, ../two, ../one, ../three]\n",
		"one/kustomization.yaml": "resources: [../three, " + url("second") + ", " + url("last") + "]\n", "one/Kustomization": "resources: [../four]\n",
		"two/kustomization.yaml": "resources: [" + url("second") + ", " + url("fifth") + "]\n", "three/kustomization.yaml": "resources: [" + url("first") + "]\n",
		"four/kustomization.yaml": "resources: [" + url("fourth") + "]\n",
	}
	var got []string
	_, _, err := reference.FindBases(ctx, tree.NewView(build(t, files), tree.Limits{}), request("app"), func(_ context.Context, _ string, base *remotebase.Base) (reference.Fetched, error) {
		got = append(got, base.Repository[strings.LastIndex(base.Repository, "/")+1:])
		return reference.Fetched{Files: build(t, map[string]string{"kustomization.yaml": "namePrefix: x\n"})}, nil
	})
	if names := strings.Join(got, " "); err != nil || names != "first second last fourth fifth" {
		t.Errorf("got %q, %v", names, err)
	}
}
