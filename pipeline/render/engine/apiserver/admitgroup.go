// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"slices"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/openapi"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// admitGroup is a group of documents.
type admitGroup struct {
	*render.AdmitGroup

	server *openapi.Server
	// entries are the documents in their order, and objects those of all but the candidates.
	entries []*entry
	objects []gate.Object
	// candidates may be admitted with others that are alike.
	candidates []*entry
}

// sharesAlways reports whether all workloads are admitted in both ways, which is so in tests.
func sharesAlways() bool {
	bench := flag.Lookup("test.bench")
	return bench != nil && bench.Value.String() == ""
}

// readGroup reads the documents of a group. Those of candidates are not decoded.
func readGroup(c *checker, asked *render.AdmitGroup, shares bool) (*admitGroup, error) {
	g := &admitGroup{AdmitGroup: asked, server: c.server}
	for _, one := range asked.Documents {
		document, err := one.Document.Decode()
		if err != nil {
			return nil, err
		}
		e := &entry{document: document, path: one.Path}
		g.entries = append(g.entries, e)
		if meta, ok := document.Peek(); ok && shares && one.Source == nil && meta.APIVersion == "apps/v1" && meta.Name != "" {
			g.candidates = append(g.candidates, e)
			continue
		}
		if one.Source == nil {
			e.objects, err = g.read(document, one.Path)
		} else {
			e.objects, err = g.readWritten(document, one)
		}
		if err != nil {
			return nil, err
		}
		g.objects = append(g.objects, e.objects...)
	}
	return g, nil
}

// read returns the objects of a document.
func (g *admitGroup) read(document *manifest.Document, path string) ([]gate.Object, error) {
	objects, err := gate.ReadDocument(document, document, path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", document, err)
	}
	return g.inNamespace(objects), nil
}

func (g *admitGroup) readWritten(document *manifest.Document, one render.GateDocument) ([]gate.Object, error) {
	source, err := one.Source.Decode()
	if err != nil {
		return nil, err
	}
	objects, err := gate.ReadDocument(document, source, one.Path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", document, err)
	}
	return g.inNamespace(objects), nil
}

// inNamespace returns objects in the namespace that they will have: the target, or otherwise the default where they set none.
func (g *admitGroup) inNamespace(objects []gate.Object) []gate.Object {
	if g.Namespace == "" && g.TargetNamespace == "" {
		return objects
	}
	out := slices.Clone(objects)
	for i, o := range out {
		namespace := cmp.Or(g.TargetNamespace, o.Ref().Namespace, g.AdmitGroup.Namespace)
		kind, ok := g.server.Lookup(o.Ref().APIVersion, o.Ref().Kind)
		if ok && !kind.Namespaced || namespace == "" {
			continue
		}
		out[i].Value = inOwnNamespace(o.Value, namespace)
	}
	return out
}

// admitGroup admits the workloads of a group, and adds their pods.
func (p *prediction) admitGroup(ctx context.Context, g *admitGroup, out *render.Admitted) error {
	var rest []*entry
	for _, e := range g.entries {
		if !slices.Contains(g.candidates, e) {
			rest = append(rest, e)
		}
	}
	a := newAlikeness(p, g)
	candidates := g.candidates
	if a.scanner == nil {
		rest, candidates = append(rest, candidates...), nil
	}
	shapes, err := a.admitAlike(ctx, rest, candidates)
	if err != nil {
		return err
	}
	for _, e := range g.entries {
		for _, pod := range e.pods {
			if pod.Shape > 0 {
				pod.Shape += len(out.Shapes)
			}
			out.Pods = append(out.Pods, pod)
		}
	}
	out.Shapes = append(out.Shapes, shapes...)
	return nil
}
