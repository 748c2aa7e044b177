// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/definitions"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// knownKind is a kind whose definition is built in: as several releases of its product define it, from the oldest to the newest.
type knownKind struct {
	product definitions.Product
	all     []definitions.Definition
	decoded []*definition
}

// at returns a definition, decoded when it is first needed; nil if it cannot be read.
func (k *knownKind) at(i int) *definition {
	if k.decoded[i] == nil {
		var value map[string]any
		if json.Unmarshal(k.all[i].Object, &value) != nil {
			return nil
		}
		_, k.decoded[i], _ = newDefinition(gate.Object{Value: value})
	}
	return k.decoded[i]
}

// release names the newest release with a definition.
func (k *knownKind) release(i int) string {
	releases := k.all[i].Releases
	return k.product.Name + " " + releases[len(releases)-1]
}

// builtIn looks up built-in definitions, and keeps those that were looked for.
type builtIn struct {
	library definitions.Library
	found   map[groupKind][]*knownKind
	// istioVersions are those that the policies follow.
	istioVersions []string
}

// serving returns the built-in definitions of a kind that serve a version, or nil if none does: those of its product, or else
// those of the catalogue.
func (b *builtIn) serving(id groupKind, version string) *knownKind {
	all, ok := b.found[id]
	if !ok {
		products, err := definitions.ProductsOf(id.group, id.kind)
		if err != nil {
			return nil
		}
		for _, product := range products {
			if k := b.read(product, id); k != nil {
				all = append(all, k)
			}
		}
		if b.found == nil {
			b.found = map[groupKind][]*knownKind{}
		}
		b.found[id] = all
	}
	for _, k := range all {
		if _, v := k.serves(version); v != nil {
			return k
		}
	}
	return nil
}

// servedVersions are the versions of a kind that a product serves.
type servedVersions struct {
	product  string
	versions []string
}

// text continues a sentence about another version.
func (s servedVersions) text() string {
	if len(s.versions) == 0 {
		return ""
	}
	return " (" + s.product + " has " + strings.Join(s.versions, ", ") + ")"
}

// otherVersions returns the versions of a kind that serving was asked for: those of its own product.
func (b *builtIn) otherVersions(id groupKind) servedVersions {
	if len(b.found[id]) == 0 {
		return servedVersions{}
	}
	k := b.found[id][0]
	known := map[string]bool{}
	for i := range k.all {
		if d := k.at(i); d != nil {
			for version := range d.versions {
				known[version] = true
			}
		}
	}
	return servedVersions{k.product.Name, slices.Sorted(maps.Keys(known))}
}

// read returns the definitions of a kind by a product, or nil if it has none. Those of Istio are of the versions that the policies
// follow.
func (b *builtIn) read(product definitions.Product, id groupKind) *knownKind {
	releases := []string{""}
	if product.Name == definitions.Istio && len(b.istioVersions) > 0 {
		releases = b.istioVersions
	}
	k := &knownKind{product: product}
	for _, release := range releases {
		found, err := b.library.Of(product, id.group, id.kind, release)
		if err != nil {
			return nil
		}
		for _, d := range found {
			if !slices.ContainsFunc(k.all, func(o definitions.Definition) bool { return string(o.Object) == string(d.Object) }) {
				k.all = append(k.all, d)
			}
		}
	}
	if len(k.all) == 0 {
		return nil
	}
	k.decoded = make([]*definition, len(k.all))
	return k
}

// serves returns the newest built-in definition that serves a version; both are nil where none does.
func (k *knownKind) serves(version string) (*definition, *definedVersion) {
	for i := range slices.Backward(k.all) {
		if d := k.at(i); d != nil && d.versions[version] != nil {
			return d, d.versions[version]
		}
	}
	return nil, nil
}

// checkKnown checks a custom resource by the built-in definitions of its kind. Which release the cluster has is unknown, so the object
// passes if one release reports no finding; otherwise the release with the fewest findings counts, the newest of these on a tie. It
// returns false, and adds nothing, if no release serves the version.
func (c *checker) checkKnown(ctx context.Context, o gate.Object, k *knownKind) bool {
	_, version, _ := strings.Cut(o.Ref().APIVersion, "/")
	before, checked := c.results, false
	var least result.Results
	for i := range slices.Backward(k.all) {
		d := k.at(i)
		if d == nil || d.versions[version] == nil || d.versions[version].prepareValidators() != nil {
			continue
		}
		c.results = nil
		c.checkCustom(ctx, o, d)
		if found := c.results; !checked || len(found) < len(least) {
			least = k.describe(found, i)
		}
		checked = true
		if len(least) == 0 {
			break
		}
	}
	c.results = append(before, least...)
	return checked
}

// describe adds the release to the messages. A cluster can have another release, and sources can be completed by patches, so what the
// definition lacks, requires or limits is at most a warning, and of the catalogue also its types. Istio's version is that of the policies.
func (k *knownKind) describe(found result.Results, i int) result.Results {
	for at := range found {
		found[at].Message += fmt.Sprintf(" (by the definition of %s)", k.release(i))
		if k.product.Name == definitions.Istio || found[at].Severity != result.Error {
			continue
		}
		switch found[at].Tags[result.TagCode] {
		case gate.CodeUnknownField, gate.CodeRequired, gate.CodeWrongValue, gate.CodeCustomRule:
			found[at].Severity = result.Warning
		case gate.CodeWrongType:
			if k.product.Name == definitions.Catalogue {
				found[at].Severity = result.Warning
			}
		}
	}
	return found
}
