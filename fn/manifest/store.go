// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"sync"
)

// nodeStore allocates nodes and frees all of them at once. Decoding needs a document's nodes only briefly, and they
// were most of the allocations of a large run.
type nodeStore struct {
	slabSize   int
	slabs      [][]yamlNode
	slab, used int
}

const (
	pooledSlab = 256 // size of the slabs of the stores in nodeStores
	// keptSlabs bounds what a store holds on to after a large document.
	keptSlabs = 64
)

var nodeStores = sync.Pool{New: func() any { return &nodeStore{slabSize: pooledSlab} }}

func (s *nodeStore) newNode() *yamlNode {
	if s.slab == len(s.slabs) {
		s.slabs = append(s.slabs, make([]yamlNode, s.slabSize))
	}
	n := &s.slabs[s.slab][s.used]
	if s.used++; s.used == s.slabSize {
		s.slab, s.used = s.slab+1, 0
	}
	return n
}

// releaseNodes clears the nodes, so that they hold no references to text, and returns the store to the pool.
func (s *nodeStore) releaseNodes() {
	for i := range s.slab {
		clear(s.slabs[i])
	}
	if s.slab < len(s.slabs) {
		clear(s.slabs[s.slab][:s.used])
	}
	if len(s.slabs) > keptSlabs {
		s.slabs = slices.Clone(s.slabs[:keptSlabs])
	}
	s.slab, s.used = 0, 0
	nodeStores.Put(s)
}
