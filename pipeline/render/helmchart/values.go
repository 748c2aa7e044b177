// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
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

// copyValues returns a copy with nothing in common: templates can change values, and so can the handling of dependencies.
func copyValues(values map[string]any) (map[string]any, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	err = json.Unmarshal(text, &out)
	return out, err
}

// checkSchemas refuses schemas that refer to others by URL, in all charts. skip is the field that leaves the schemas out, if there is one.
func checkSchemas(c *chart.Chart, skip string) error {
	var schema any
	if len(c.Schema) > 0 && json.Unmarshal(c.Schema, &schema) == nil {
		if url := remoteReference(schema); url != "" {
			advice := ""
			if skip != "" {
				advice = "; set " + skip + " to do without"
			}
			return fmt.Errorf("values.schema.json of the chart %s refers to %s, and a render uses no network%s", c.ChartFullPath(), url, advice)
		}
	}
	for _, dependency := range c.Dependencies() {
		if err := checkSchemas(dependency, skip); err != nil {
			return err
		}
	}
	return nil
}

// remoteReference returns the first URL of another document that a schema refers to, "" if there is none. The schemas of
// JSON Schema itself are known to the library.
func remoteReference(schema any) string {
	switch schema := schema.(type) {
	case []any:
		for _, one := range schema {
			if url := remoteReference(one); url != "" {
				return url
			}
		}
	case map[string]any:
		if ref, ok := schema["$ref"].(string); ok && strings.Contains(ref, "://") && !strings.Contains(ref, "://json-schema.org/") {
			return ref
		}
		for _, one := range schema {
			if url := remoteReference(one); url != "" {
				return url
			}
		}
	}
	return ""
}
