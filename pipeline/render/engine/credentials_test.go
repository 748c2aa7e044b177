// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"strings"
	"testing"
)

// TestCredentialsAreWarnedOf: a render tells of credentials in what it builds, in lists too, with the place where it is of a file, and
// never with the value.
func TestCredentialsAreWarnedOf(t *testing.T) {
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata:\n  plain: a\n  url: postgres://app:h-unter2@db/app\n"
	list := "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.TrimSuffix(config, "\n"), "\n", "\n  ") + "\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a file":        {map[string]string{"app.yaml": config}, "warning: app.yaml:6: ConfigMap app data.url"},
		"a list":        {map[string]string{"list.yaml": list}, "warning: list.yaml:9: ConfigMap app data.url"},
		"a Secret":      {map[string]string{"app.yaml": strings.Replace(config, "ConfigMap", "Secret", 1)}, ""},
		"by kustomize":  {map[string]string{"app.yaml": config, "kustomization.yaml": "resources: [app.yaml]\n"}, "warning: ConfigMap app data.url"},
		"nothing there": {map[string]string{"app.yaml": strings.Replace(config, ":h-unter2", "", 1)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			response, _, err := renderFiles(t, test.files, request("."))
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, one := range response.Results {
				lines = append(lines, one.String())
			}
			got := strings.Join(lines, "\n")
			if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) || strings.Contains(got, "h-unter2") {
				t.Errorf("it says %q", got)
			}
		})
	}
}
