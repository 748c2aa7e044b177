// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"os"
)

// memoryBytes is how much content a Builder that has a directory keeps in memory.
const memoryBytes = 8 << 20

// content is that of a file: in memory, in the builder's file, or known by its size only.
type content struct {
	data []byte
	file *os.File
	at   int64
	size int64
	none bool
}

// spill is the file that takes what is too much for memory. It has no name, so that it goes with the tree that it belongs
// to, and with the process if that is killed: os.File closes what nobody holds any more.
type spill struct {
	dir  string
	held int64 // bytes in memory
	file *os.File
	end  int64
}

// keep returns a copy of data that lives as long as the tree.
func (s *spill) keep(data []byte) (content, error) {
	size := int64(len(data))
	if s.dir == "" || s.held+size <= memoryBytes {
		s.held += size
		return content{data: append([]byte{}, data...), size: size}, nil
	}
	if s.file == nil {
		file, err := unnamed(s.dir)
		if err != nil {
			return content{}, fmt.Errorf("making a file for large contents: %w", err)
		}
		s.file = file
	}
	if _, err := s.file.WriteAt(data, s.end); err != nil {
		return content{}, fmt.Errorf("storing large contents: %w", err)
	}
	s.end += size
	return content{file: s.file, at: s.end - size, size: size}, nil
}

func (s *spill) close() {
	if s.file != nil {
		s.file.Close()
	}
}

func unnamed(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(dir, "contents-")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// read returns the bytes.
func (c content) read() ([]byte, error) {
	if c.file == nil {
		return c.data, nil
	}
	data := make([]byte, c.size)
	if _, err := c.file.ReadAt(data, c.at); err != nil {
		return nil, fmt.Errorf("reading large contents: %w", err)
	}
	return data, nil
}
