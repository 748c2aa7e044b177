// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"sync"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// maxRepeated bounds what is kept of answers, in bytes. What is more is asked again.
const maxRepeated = 8 << 20

// cacheReaderAnswers keeps the answers of a reader, so that a render that is done again does not count twice for the
// limits of what is read.
func cacheReaderAnswers(files tree.Reader) tree.Reader {
	var mu sync.Mutex
	kept, bytes := map[tree.Question]tree.Answer{}, 0
	return tree.Answering(func(q tree.Question) tree.Answer {
		mu.Lock()
		defer mu.Unlock()
		if a, ok := kept[q]; ok {
			return a
		}
		a := q.Ask(files)
		if bytes += len(a.Content) + len(q.Path) + 64*len(a.List) + 256; bytes <= maxRepeated {
			kept[q] = a
		}
		return a
	})
}
