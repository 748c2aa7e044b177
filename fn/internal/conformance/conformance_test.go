// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"

	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/internal/corpustest"
	"github.com/prerig/prerig/internal/cputime"
)

// TestCorpus runs every case and wants it equal.
func TestCorpus(t *testing.T) {
	versions, err := Load(corpustest.Dir(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range versions {
		t.Run(v.Version.String(), func(t *testing.T) {
			t.Parallel()
			for _, c := range v.Cases {
				o := c.Run()
				if o.Status != Equal && o.Status != EqualButWebhookOnly {
					t.Errorf("%s: %s\n%s", c.Name, o.Status, o.Detail)
				}
			}
		})
	}
}

// BenchmarkInject injects a Deployment of one container with the newest default configuration of the corpus.
func BenchmarkInject(b *testing.B) {
	versions, err := Load(corpustest.Dir(b))
	if err != nil {
		b.Fatal(err)
	}
	newest := versions[len(versions)-1]
	for _, c := range newest.Cases {
		if c.Name != "hello-old-version" {
			continue
		}
		in, err := c.InjectorSeeing(istio.AdmissionDefaulted)
		if err != nil {
			b.Fatal(err)
		}
		objects, err := c.Objects(c.Input)
		if err != nil {
			b.Fatal(err)
		}
		registry, err := workload.NewRegistry(nil)
		if err != nil {
			b.Fatal(err)
		}
		templates, err := registry.Templates(objects[0])
		if err != nil {
			b.Fatal(err)
		}
		req := inject.Request{Pod: templates[0].Pod, Owner: templates[0].Owner}
		b.ReportAllocs()
		start := cputime.Used(b)
		for b.Loop() {
			if _, err := inject.Istio(in, req); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(cputime.Used(b)-start)/float64(b.N), "cpu-ns/op")
		return
	}
	b.Skip("the corpus has no case hello-old-version")
}

// BenchmarkNew reads the newest default configuration of the corpus.
func BenchmarkNew(b *testing.B) {
	versions, err := Load(corpustest.Dir(b))
	if err != nil {
		b.Fatal(err)
	}
	c := versions[len(versions)-1].Cases[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Injector(); err != nil {
			b.Fatal(err)
		}
	}
}
