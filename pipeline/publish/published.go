// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// Published gives the files of a pipeline that a branch holds, by their paths on the branch. A branch that the pipeline was
// never published to gives none.
func Published(branch tree.Reader, pipeline string) (map[string][]byte, error) {
	files := map[string][]byte{}
	text, err := branch.Read(recordFile(pipeline))
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is published: %w", err)
	}
	var record owned
	if err := json.Unmarshal(text, &record); err != nil {
		return nil, fmt.Errorf("reading %s of the branch: %w", recordFile(pipeline), err)
	}
	for _, name := range record.Files {
		content, err := branch.Read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // somebody has removed it
		}
		if err != nil {
			return nil, fmt.Errorf("reading what is published: %w", err)
		}
		files[name] = content
	}
	return files, nil
}
