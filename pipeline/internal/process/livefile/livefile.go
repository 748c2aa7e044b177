// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package livefile holds the content of files, such as tokens and certificates, and reads them again while the
// daemon runs: a mounted Secret changes at runtime.
package livefile

import (
	"bytes"
	"log/slog"
	"sync"
	"time"
)

// interval is how long a value is used before its files are looked at again.
const interval = time.Second

// Value is the parsed content of files. It is safe for concurrent use. It has no background goroutine: files are
// read on demand.
type Value[T any] struct {
	name  string
	read  func() ([]byte, error)
	parse func([]byte) (T, error)
	log   *slog.Logger

	mu      sync.Mutex
	looked  time.Time
	data    []byte
	value   T
	problem string // that was logged last, "" where all is well
}

// Open reads the files for the first time. name describes their content, for the log. read returns everything that
// parse needs, so that equal bytes mean no change. The error is that of read or parse.
func Open[T any](name string, log *slog.Logger, read func() ([]byte, error), parse func([]byte) (T, error)) (*Value[T], error) {
	v := &Value[T]{name: name, read: read, parse: parse, log: log, looked: time.Now()}
	if err := v.reloadIfChanged(); err != nil {
		return nil, err
	}
	return v, nil
}

// Get returns the current content of the files, at most a second old. While they cannot be read or are invalid, it
// returns the last valid content, and logs that once.
func (v *Value[T]) Get() T {
	v.mu.Lock()
	defer v.mu.Unlock()
	if time.Since(v.looked) < interval {
		return v.value
	}
	v.looked = time.Now()
	before := v.data
	err := v.reloadIfChanged()
	switch {
	case err != nil && err.Error() != v.problem:
		v.problem = err.Error()
		v.log.Error("a changed file cannot be used; its earlier content stays in effect", "of", v.name, "error", err)
	case err == nil && (v.problem != "" || !bytes.Equal(before, v.data)):
		v.problem = ""
		v.log.Info("a changed file was read again", "of", v.name)
	}
	return v.value
}

func (v *Value[T]) reloadIfChanged() error {
	data, err := v.read()
	if err != nil || v.data != nil && bytes.Equal(data, v.data) {
		return err
	}
	value, err := v.parse(data)
	if err != nil {
		return err
	}
	v.data, v.value = data, value
	return nil
}
