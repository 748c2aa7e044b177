// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/prerig/prerig/internal/testprograms"
)

// gateWithValidation returns prerig in a directory with its renderer and prerig-validate.
func gateWithValidation(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := testprograms.Install(dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "prerig")
}

// brokenSeed and brokenCount are those of PRERIG_BROKEN_SEED and PRERIG_BROKEN_N.
func brokenSeed() uint64 {
	seed, err := strconv.ParseUint(os.Getenv("PRERIG_BROKEN_SEED"), 10, 64)
	if err != nil {
		return 1
	}
	return seed
}

func brokenCount() int {
	n, err := strconv.Atoi(os.Getenv("PRERIG_BROKEN_N"))
	if err != nil {
		return 500
	}
	return n
}

// TestGateFindsMistakes makes one mistake in each of many objects, and gives them to the API server's dry run and to prerig gate: the gate is
// to find 95 % of what the server rejects, and nothing that it accepts.
func TestGateFindsMistakes(t *testing.T) {
	program := gateWithValidation(t)
	p := programs(t)
	c := started(t, p, Options{})
	drawn, err := drawBroken(brokenSeed(), brokenCount())
	if err != nil {
		t.Fatal(err)
	}
	found := gateFindings(t, program, objectsOf(drawn))
	rejected, missed, ways, kinds := 0, 0, map[string]bool{}, map[string]bool{}
	for i, b := range drawn {
		_, refused := c.Try(t.Context(), newUnstructuredObject(b.object))
		switch {
		case refused == nil && b.kind == "LimitRange" && b.mistake == "no name":
			// A create makes up a name for it (pkg/registry/core/limitrange/strategy.go); an apply needs one.
		case refused == nil && hasErrors(found[i]):
			t.Errorf("%s with %s: the API server accepts it, prerig gate finds %+v", b.kind, b.mistake, found[i])
		case refused == nil || meta.IsNoMatchError(refused):
			t.Logf("%s with %s: the API server accepts it", b.kind, b.mistake)
		default:
			rejected++
			ways[b.mistake], kinds[b.kind] = true, true
			if !hasErrors(found[i]) {
				missed++
				t.Logf("%s with %s: prerig gate misses %v", b.kind, b.mistake, refused)
			}
		}
	}
	t.Logf("%d of %d objects are rejected, with %d kinds of mistakes in %d kinds; %d are missed", rejected, len(drawn), len(ways), len(kinds), missed)
	if missed*20 > rejected || len(ways) < 60 || len(kinds) < 15 {
		t.Errorf("prerig gate misses %d of %d rejected objects", missed, rejected)
	}
}

// TestGateFindsMistakesAlone holds prerig gate against what was broken, without a cluster: nearly all mistakes are ones, and sound objects
// have none.
func TestGateFindsMistakesAlone(t *testing.T) {
	program := gateWithValidation(t)
	drawn, err := drawBroken(brokenSeed(), brokenCount())
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	found := gateFindings(t, program, objectsOf(drawn))
	t.Logf("prerig gate takes %s for %d objects", time.Since(start).Round(time.Millisecond), len(drawn))
	missed := map[string]int{}
	count := 0
	for i, b := range drawn {
		if !hasErrors(found[i]) {
			missed[b.kind+" with "+b.mistake]++
			count++
		}
	}
	t.Logf("%d of %d mistakes are not found: %v", count, len(drawn), missed)
	if count*20 > len(drawn) {
		t.Errorf("prerig gate finds %d of %d mistakes", len(drawn)-count, len(drawn))
	}
	random := rand.New(rand.NewPCG(brokenSeed(), 2))
	var sounds []*unstructured.Unstructured
	for i := range 10 * len(allKinds()) {
		one, err := drawSound(random, allKinds()[i%len(allKinds())], i)
		if err != nil {
			t.Fatal(err)
		}
		sounds = append(sounds, newUnstructuredObject(one))
	}
	for i, f := range gateFindings(t, program, sounds) {
		if hasErrors(f) {
			t.Errorf("a sound %s: %+v", sounds[i].GetKind(), f)
		}
	}
}

func objectsOf(drawn []broken) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, b := range drawn {
		out = append(out, newUnstructuredObject(b.object))
	}
	return out
}

func hasErrors(found []gateFinding) bool {
	for _, f := range found {
		if f.Severity == "error" {
			return true
		}
	}
	return false
}
