// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"sync"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
)

// Texts remembers the objects of one result as they are written: findings are placed in them, and each place gets them.
// The zero value remembers none yet, and nil never does. It is safe for concurrent use.
type Texts struct {
	mu    sync.Mutex
	known map[textKey][]byte
}

// textKey identifies the text of an object by its location in memory, which is never modified, and its style.
type textKey struct {
	text  *byte
	size  int
	style v1alpha1.Style
}

// textOfObject writes an object in a style. The result must not be modified.
func (t *Texts) textOfObject(object render.Object, style v1alpha1.Style) ([]byte, error) {
	if t == nil || len(object.YAML) == 0 {
		return formatText(object, style)
	}
	key := textKey{&object.YAML[0], len(object.YAML), style}
	t.mu.Lock()
	text, ok := t.known[key]
	t.mu.Unlock()
	if ok {
		return text, nil
	}
	text, err := formatText(object, style)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[textKey][]byte{}
	}
	t.known[key] = text
	return text, nil
}
