// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

// HasLooked reports whether the source of a pipeline was looked at.
func (p *Planner) HasLooked(pipeline string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, looked := p.looked[pipeline]
	return looked
}
