// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"
	"sync"
)

// Once asks for each thing once, also where several want it at the same time, and remembers the answers. The zero value is
// ready. It is safe for concurrent use.
type Once[T any] struct {
	// Last is how many answers are remembered, the newest ones, and no errors: whoever has waited for somebody else's answer
	// in vain asks for itself. 0 remembers everything, errors too.
	Last int

	mu      sync.Mutex
	answers map[string]func() (T, error)
	order   []string // of the keys, the oldest first, where they are bounded
}

// Get returns what ask gives for a key, now or when it was asked before.
func (o *Once[T]) Get(key string, ask func() (T, error)) (T, error) {
	mine := false
	o.mu.Lock()
	answer, known := o.answers[key]
	if !known {
		answer = o.remember(key, sync.OnceValues(func() (T, error) { mine = true; return ask() }))
	}
	o.mu.Unlock()
	got, err := answer()
	if err == nil || o.Last == 0 {
		return got, err
	}
	if mine {
		o.forget(key)
		return got, err
	}
	return ask()
}

// remember enters an answer that may be still to come. The caller holds mu.
func (o *Once[T]) remember(key string, answer func() (T, error)) func() (T, error) {
	if o.answers == nil {
		o.answers = map[string]func() (T, error){}
	}
	o.answers[key] = answer
	if o.Last == 0 {
		return answer
	}
	if o.order = append(o.order, key); len(o.order) > o.Last {
		delete(o.answers, o.order[0])
		o.order = o.order[1:]
	}
	return answer
}

func (o *Once[T]) forget(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.answers, key)
	o.order = slices.DeleteFunc(o.order, func(other string) bool { return other == key })
}
