// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/result"
)

// TestConflictsOfOneDirectory: objects in directories beside each other may be for several clusters.
func TestConflictsOfOneDirectory(t *testing.T) {
	for name, c := range map[string]struct {
		one, other string
		found      bool
	}{
		"the same": {"mesh/a.yaml", "mesh/b.yaml", true}, "below": {"mesh/a.yaml", "mesh/team/b.yaml", true}, "at the top": {"a.yaml", "mesh/b.yaml", true},
		"beside": {"clusters/a/mesh.yaml", "clusters/b/mesh.yaml", false}, "like it": {"mesh/a.yaml", "mesh-b/b.yaml", false},
	} {
		var objects []lint.Object
		for object, file := range map[string]string{"one": c.one, "other": c.other} {
			o := objectOf(decode(t, []byte("apiVersion: telemetry.istio.io/v1\nkind: Telemetry\nmetadata: {name: "+object+", namespace: istio-system}\nspec: {}\n"))[0])
			o.File = &result.File{Path: file}
			objects = append(objects, o)
		}
		rs, _ := lint.CheckSet(nil, lint.Surroundings{Objects: objects}, lint.Severities{})
		if found := codes(rs) == "PR818=warning"; found != c.found {
			t.Errorf("%s: found %v", name, rs)
		}
	}
}

// TestServicesInADirectoryOfTheirOwn: a Service and its workload that name no namespace belong together across directories, unless the
// Service's directory has workloads or several others have fitting ones.
func TestServicesInADirectoryOfTheirOwn(t *testing.T) {
	for name, c := range map[string]struct {
		service string
		pods    []string
		found   bool
	}{
		"the same":             {"app/service.yaml", []string{"app/web.yaml"}, true},
		"beside":               {"app/services/web.yaml", []string{"app/deployments/web.yaml"}, true},
		"above":                {"app/web-service.yaml", []string{"app/deployments/web.yaml"}, true},
		"below":                {"app/services/web.yaml", []string{"app/web.yaml"}, true},
		"far":                  {"app/services/web.yaml", []string{"other/deployments/web.yaml"}, false},
		"alternatives":         {"app/services/web.yaml", []string{"app/v1/web.yaml", "app/v2/web.yaml"}, false},
		"others in one's own":  {"app/services/web.yaml", []string{"app/deployments/web.yaml", "app/services/api.yaml"}, false},
		"two in one directory": {"app/services/web.yaml", []string{"app/deployments/web.yaml", "app/deployments/more.yaml"}, true},
	} {
		var pods []lint.Summary
		for _, file := range c.pods {
			label := "web"
			if strings.Contains(file, "api") {
				label = "api"
			}
			in := input(t, strings.NewReplacer("  namespace: web\n", "", "      annotations:", "      labels: {app: "+label+"}\n      annotations:").Replace(risky))
			in.File = &result.File{Path: file}
			pod, _ := lint.Summarize(in)
			pods = append(pods, pod)
		}
		service := objectOf(decode(t, []byte("apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 8080}]}\n"))[0])
		service.File = &result.File{Path: c.service}
		rs, _ := lint.CheckSet(pods, lint.Surroundings{Objects: []lint.Object{service}}, lint.Severities{})
		if found := codes(rs) == "PR801=info"; found != c.found {
			t.Errorf("%s: found %v", name, rs)
		}
	}
}
