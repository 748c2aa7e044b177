// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// pointerStart is how each pointer of Git LFS begins (git-lfs, docs/spec.md). Later versions of the specification have other numbers.
var pointerStart = []byte("version https://git-lfs.github.com/spec/v")

// pointerReader notes which files are pointers of Git LFS.
type pointerReader struct {
	tree.Reader
	pointers []string
}

// Read implements tree.Reader.
func (p *pointerReader) Read(name string) ([]byte, error) {
	content, err := p.Reader.Read(name)
	if err == nil && bytes.HasPrefix(content, pointerStart) {
		p.pointers = append(p.pointers, strings.TrimPrefix(name, "/"))
	}
	return content, err
}

// explainPointerError adds that a build failed because of a pointer, if its error names one.
func (p *pointerReader) explainPointerError(err error) error {
	for _, name := range p.pointers {
		if strings.Contains(err.Error(), path.Base(name)) {
			return fmt.Errorf("%s is a pointer of Git LFS, and LFS content is not fetched; commit the file itself (git lfs untrack): %w", name, err)
		}
	}
	return err
}
