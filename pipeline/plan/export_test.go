// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/prerig/prerig/pipeline/event"

// IsSettled reports whether an event about these changes is answered from what is remembered of a source, where that does not differ.
func (p *Planner) IsSettled(changes []event.Change) bool {
	entries := p.runnableEntries(p.Catalog.Match(changes))
	return len(entries) > 0 && p.lastSettled(p.sourceKey(entries[0]), entries, nil, Cause{}) != nil
}

// HasLooked reports whether the source of a pipeline was looked at.
func (p *Planner) HasLooked(pipeline string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, looked := p.looked[pipeline]
	return looked
}
