// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"fmt"
	"os"
)

// memoryBytes is how much content a Builder that has a directory keeps in memory.
const memoryBytes = 8 << 20

// fileContent is that of a file: in memory, in the builder's file, or known by its size only.
type fileContent struct {
	data []byte
	file *os.File
	at   int64
	size int64
	none bool
}

// spillFile is the file for data that exceeds the memory limit. It has no name, so that it disappears with its
// tree, and with the process if that is killed: os.File closes files that are no longer referenced.
type spillFile struct {
	dir  string
	held int64 // bytes in memory
	file *os.File
	end  int64
}

// keepContent returns a copy of data that lives as long as the tree.
func (s *spillFile) keepContent(data []byte) (fileContent, error) {
	size := int64(len(data))
	if s.dir == "" || s.held+size <= memoryBytes {
		s.held += size
		return fileContent{data: append([]byte{}, data...), size: size}, nil
	}
	if s.file == nil {
		file, err := unnamedFile(s.dir)
		if err != nil {
			return fileContent{}, fmt.Errorf("making a file for large contents: %w", err)
		}
		s.file = file
	}
	if _, err := s.file.WriteAt(data, s.end); err != nil {
		return fileContent{}, fmt.Errorf("storing large contents: %w", err)
	}
	s.end += size
	return fileContent{file: s.file, at: s.end - size, size: size}, nil
}

func (s *spillFile) closeFile() {
	if s.file != nil {
		s.file.Close()
	}
}

func unnamedFile(dir string) (*os.File, error) {
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

// readContent returns the bytes.
func (c fileContent) readContent() ([]byte, error) {
	if c.file == nil {
		return c.data, nil
	}
	data := make([]byte, c.size)
	if _, err := c.file.ReadAt(data, c.at); err != nil {
		return nil, fmt.Errorf("reading large contents: %w", err)
	}
	return data, nil
}
