// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"strings"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/internal/lazyregexp"
)

var containerField = lazyregexp.New(`^spec\.(initContainers|containers)\[\d+\]`)

// PathIn returns the path of a result's field in the pod as a file has it, before injection: in the file the
// container may have another index, or be in the other list. template is the path of the pod template, empty for a
// Pod. If the file has no such container, the path is that of the pod's spec, as the nearest thing that a user can
// inspect.
func PathIn(pod map[string]any, template string, r result.Result) string {
	if r.Field == nil {
		return template
	}
	prefix := ""
	if template != "" {
		prefix = template + "."
	}
	below, ok := strings.CutPrefix(r.Field.Path, prefix)
	name := r.Tags[TagContainer]
	at := containerField.FindString(below)
	if !ok || name == "" || at == "" {
		return r.Field.Path
	}
	spec, _ := pod["spec"].(map[string]any)
	for _, key := range []string{"initContainers", "containers"} {
		for _, c := range containersOf(spec, key, key == "initContainers") {
			if c.name == name {
				return fmt.Sprintf("%s%s%s", prefix, c.path, below[len(at):])
			}
		}
	}
	return prefix + "spec"
}
