// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"os"
	"path/filepath"
)

// chartIndex finds the Helm charts that files belong to.
type chartIndex struct {
	known map[string]bool // by the directory of the chart
}

// templateChart returns the directory of the chart that has the file among its templates; empty for a file that Helm does not render.
// Helm renders all that is below templates in a chart, which is a directory with the file Chart.yaml. Its crds are plain
// manifests. Where Chart.yaml is itself made by a build, the partial templates that only Helm has tell the same.
func (c *chartIndex) templateChart(path string) string {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	up := ""
	for dir := filepath.Dir(absolute); filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "templates" && c.isChart(dir) {
			return filepath.Join(filepath.Dir(path), up, "..")
		}
		up = filepath.Join(up, "..")
	}
	return ""
}

// isChart reports whether Helm renders what is in a directory of the name templates.
func (c *chartIndex) isChart(templates string) bool {
	is, ok := c.known[templates]
	if !ok {
		for _, sign := range []string{"../Chart.yaml", "_helpers.tpl", "NOTES.txt"} {
			if _, err := os.Stat(filepath.Join(templates, sign)); err == nil {
				is = true
				break
			}
		}
		if c.known == nil {
			c.known = map[string]bool{}
		}
		c.known[templates] = is
	}
	return is
}
