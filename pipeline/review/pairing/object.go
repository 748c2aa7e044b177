// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"path"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// object is the only object of a file.
type object struct {
	build   *Build
	path    string
	cluster string // "" where it is not known
	id      gate.Identity
	text    []byte
}

// stem is the identity without the hash of a generator, and whether the name has one.
func (o *object) stem() (gate.Identity, bool) {
	id := o.id
	if id.Group != "" || id.Kind != "ConfigMap" && id.Kind != "Secret" {
		return id, false
	}
	name, ok := withoutHash(id.Name)
	id.Name = name
	return id, ok
}

// Lengths and letters of the hash that kustomize appends to the names of generated objects (api/hasher/hasher.go).
const (
	hashLength  = 10
	hashLetters = "2456789bcdfghkmt"
)

// withoutHash returns a name without the hash of a generator, and whether it has one.
func withoutHash(name string) (stem string, ok bool) {
	at := len(name) - hashLength - 1
	if at < 1 || name[at] != '-' || strings.Trim(name[at+1:], hashLetters) != "" {
		return name, false
	}
	return name[:at], true
}

// objectsOf returns the objects of files that hold one object each, by their paths.
func objectsOf(b *Build, files map[string][]byte, after bool) map[string]*object {
	out := map[string]*object{}
	for name, text := range files {
		file, err := manifest.Parse(name, text)
		if err != nil || len(file.Docs) != 1 {
			continue
		}
		meta, ok := file.Docs[0].Peek()
		if !ok || meta.Name == "" {
			continue
		}
		group, _, hasGroup := strings.Cut(meta.APIVersion, "/")
		if !hasGroup {
			group = ""
		}
		id := gate.Identity{Group: group, Kind: meta.Kind, Namespace: meta.Namespace, Name: meta.Name}
		out[name] = &object{build: b, path: name, id: id, text: text}
		if b.Cluster != nil {
			out[name].cluster = b.Cluster(name, after)
		}
	}
	return out
}

// sameEnd counts the parts that two paths have in common at their ends.
func sameEnd(a, b string) (n int) {
	for a != "." && b != "." && a != "/" && path.Base(a) == path.Base(b) {
		n++
		a, b = path.Dir(a), path.Dir(b)
	}
	return n
}
