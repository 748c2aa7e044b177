// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/ambient"
)

// manyNamespaces are files of namespaces that are alike.
func manyNamespaces(t testing.TB, count int) (files []ambient.File) {
	t.Helper()
	for i := range count {
		name := fmt.Sprintf("shop-%d", i)
		text := strings.NewReplacer("namespace: shop", "namespace: "+name, "name: shop,", "name: "+name+",").Replace(cluster + "---\n" + getOnly)
		m, err := manifest.Parse(name+".yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, ambient.File{Path: name + ".yaml", Docs: m.Docs})
	}
	return files
}

// TestPlanGrowsWithItsFiles: the memory that a plan takes in all, as a measure of its work, grows with the number of namespaces and not with its
// square.
func TestPlanGrowsWithItsFiles(t *testing.T) {
	work := func(count int) uint64 {
		files := manyNamespaces(t, count)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		plan, err := ambient.New(files, ambient.Options{}, nil)
		if err != nil || len(plan.Namespaces) != count {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	work(2) // what is prepared once
	few, many := work(20), work(80)
	if many > 7*few {
		t.Errorf("a plan of 80 namespaces takes %d MiB, and one of 20 takes %d", many>>20, few>>20)
	}
}

func BenchmarkPlan(b *testing.B) {
	files := manyNamespaces(b, 200)
	for b.Loop() {
		if _, err := ambient.New(files, ambient.Options{}, nil); err != nil {
			b.Fatal(err)
		}
	}
}
