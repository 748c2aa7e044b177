// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"embed"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

//go:embed written/*.yaml
var writtenFiles embed.FS

// Written are installations with workloads that are written by hand, for what the drawn ones rarely or never have. Each
// is a file of the directory written: the chart's values, the version of the kubelets, and the workloads.
func Written() []Installation {
	entries, err := writtenFiles.ReadDir("written")
	if err != nil {
		panic(err) // it is embedded
	}
	var out []Installation
	for _, entry := range entries {
		text, err := writtenFiles.ReadFile(path.Join("written", entry.Name()))
		if err != nil {
			panic(err)
		}
		var file struct {
			Values    map[string]any   `json:"values"`
			Kubelet   string           `json:"kubelet"`
			Workloads []map[string]any `json:"workloads"`
		}
		if err := yaml.UnmarshalStrict(text, &file); err != nil {
			panic("reading " + entry.Name() + ": " + err.Error())
		}
		i := Installation{Name: "written-" + strings.TrimSuffix(entry.Name(), ".yaml"), Values: file.Values,
			Kubelet: file.Kubelet, Workloads: file.Workloads}
		if i.Values == nil {
			i.Values = map[string]any{}
		}
		if i.Kubelet == "" {
			i.Kubelet = "v1.34.1"
		}
		out = append(out, i)
	}
	return out
}

// beyondBuiltIn are the values that the built-in policy refuses by their name, because its templates do not read them.
var beyondBuiltIn = [][]string{
	{"sidecarInjectorWebhook", "templates"}, {"global", "platform"}, {"global", "externalIstiod"},
	{"global", "mountMtlsCerts"},
	{"global", "caName"}, {"global", "sts"}, {"global", "proxy", "tracer"},
}

// BeyondBuiltIn reports whether an installation has values that the built-in policy does not take, such as templates of
// its own.
func (i Installation) BeyondBuiltIn() bool {
	return slices.ContainsFunc(beyondBuiltIn, func(path []string) bool {
		var at any = i.Values
		for _, key := range path {
			m, _ := at.(map[string]any)
			at = m[key]
		}
		return at != nil
	})
}
