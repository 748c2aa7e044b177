// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"fmt"
	"slices"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/source/content"
)

// whyNotRead are the reasons for what was not even read.
var whyNotRead = map[files.Why]*content.Reason{
	files.Dangling: {One: "broken link", Many: "broken links", Instead: "their targets do not exist",
		Severity: result.Warning},
	files.LinkedDirectory: {One: "link to a directory", Many: "links to directories",
		Instead: "links to directories are not followed; specify the directories themselves"},
	files.Special: {One: "named pipe, device or socket", Many: "named pipes, devices or sockets",
		Instead: "only regular files are read in a directory"},
	files.Dependencies: {One: "directory of downloaded packages", Many: "directories of downloaded packages",
		Instead: "to read one, specify it"},
	files.Results: {One: "directory of results", Many: "directories of results",
		Instead: "results are not read again"},
	files.Large: {One: "file", Many: "files",
		Instead: fmt.Sprintf("files larger than %d MiB are not read", files.MaxSize>>20), Severity: result.Warning},
}

// Notes reports the skipped objects, one line for each kind, and what was not read as it is written.
func (b *Batch) Notes() result.Results {
	return slices.Concat(content.Notes(b.passed, (*content.Reason).InjectAdvice), b.releaseNote(), b.repeated)
}
