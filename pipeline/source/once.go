// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"slices"
	"sync"
)

// Once asks for each thing once, also where several want it at the same time, and remembers the answers. The zero value
// is ready. It is safe for concurrent use.
type Once[T any] struct {
	// Last is the number of newest answers to remember, not counting errors: a caller that has waited in vain for
	// the answer of another one asks itself. 0 remembers everything, errors too.
	Last int

	mu      sync.Mutex
	answers map[string]func() (T, error)
	order   []string // of the keys, the oldest first, where they are bounded
}

// Get returns the result of ask for a key, from this call or an earlier one.
func (o *Once[T]) Get(key string, ask func() (T, error)) (T, error) {
	mine := false
	o.mu.Lock()
	answer, known := o.answers[key]
	if !known {
		answer = o.rememberPendingAnswer(key, sync.OnceValues(func() (T, error) { mine = true; return ask() }))
	}
	o.mu.Unlock()
	got, err := answer()
	if err == nil || o.Last == 0 {
		return got, err
	}
	if mine {
		o.forgetAnswer(key)
		return got, err
	}
	return ask()
}

// rememberPendingAnswer enters an answer that may be still to come. The caller holds mu.
func (o *Once[T]) rememberPendingAnswer(key string, answer func() (T, error)) func() (T, error) {
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

func (o *Once[T]) forgetAnswer(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.answers, key)
	o.order = slices.DeleteFunc(o.order, func(other string) bool { return other == key })
}
