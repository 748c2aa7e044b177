// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"bytes"
	"fmt"

	"helm.sh/helm/v4/pkg/chart/v2/loader"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// readValues returns the values of a release that are not the chart's own, as helm template merges those of --values: files
// in their order, then the inline values.
func readValues(files tree.Reader, release *v1alpha1.Helm) (map[string]any, error) {
	values := map[string]any{}
	for _, name := range release.ValuesFiles {
		content, err := files.Read(name)
		if err != nil {
			return nil, fmt.Errorf("reading the values: %w", err)
		}
		read, err := loader.LoadValues(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf("reading the values of %s: %w", name, err)
		}
		values = loader.MergeMaps(values, read)
	}
	return loader.MergeMaps(values, release.Values), nil
}

// copyValues returns a deep copy: templates can change values, and so can the processing of dependencies. Numbers
// keep their type, which templates see: those from files are float64 and those from --set int64.
func copyValues(values map[string]any) map[string]any {
	return copyValue(values).(map[string]any)
}

func copyValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for name, one := range value {
			out[name] = copyValue(one)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, one := range value {
			out[i] = copyValue(one)
		}
		return out
	}
	return value
}
