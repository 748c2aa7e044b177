// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import "bytes"

// share finds the objects without a partner that another build or unit of the same cluster has at the second end: they
// are neither deleted nor added.
func (p *pairer) share(builds []*Build) {
	for _, old := range p.leaving(builds...) {
		if holder := p.holder(old, 1); holder != nil {
			delete(old.build.Before, old.path)
			if was, known := holder.build.Before[holder.path]; known && bytes.Equal(was, holder.text) {
				holder.build.Before[holder.path] = old.text // the cluster has either of the two
			}
			p.addShared(old, holder, false)
		}
	}
	for _, now := range p.entering(builds...) {
		was, holder := p.holder(now, 0), p.holder(now, 1)
		if was != nil && holder != nil && now.build.Before[now.path] == nil {
			now.build.addBefore(now.path, was.text)
			p.addShared(now, holder, true)
		}
	}
}

// holder returns another object at an end that is the same one in the cluster, or nil.
func (p *pairer) holder(o *object, end int) *object {
	for _, other := range p.holders[end][o.id] {
		isOther := other != o && (other.build != o.build || other.path != o.path)
		if isOther && other.cluster == o.cluster && (o.cluster != "" || other.build == o.build) {
			return other
		}
	}
	return nil
}

func (p *pairer) addShared(o, holder *object, gained bool) {
	p.pairs.Shared = append(p.pairs.Shared, Shared{Object: o.id, Build: holder.build.Key, Path: holder.path,
		From: o.build.Key, FromPath: o.path, Gained: gained})
}

func (b *Build) addBefore(path string, text []byte) {
	if b.Before == nil {
		b.Before = map[string][]byte{}
	}
	b.Before[path] = text
}
