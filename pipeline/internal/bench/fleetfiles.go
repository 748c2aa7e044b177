// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
)

// fleetFiles are the files of the repository: applications as in the other benchmarks, but the policy is one of the
// pipelines, and the first of them have a base in common.
func fleetFiles(n int) map[string]string {
	content := map[string]string{"base/kustomization.yaml": "resources: [defaults.yaml]\n",
		"base/defaults.yaml": fleetBase("1")}
	maps.Copy(content, fleetPolicy("1.29.0"))
	for i := range n {
		maps.Copy(content, fleetApp(i, "1"))
	}
	return content
}

func fleetApp(i int, tag string) map[string]string {
	files := appFiles(appName(i), tag)
	resources := "[app.yaml]"
	if i < sharing {
		resources = "[app.yaml, ../../base]"
	}
	files["apps/"+appName(i)+"/kustomization.yaml"] = "namespace: shop\nresources: " + resources + "\n"
	return files
}

func fleetPolicy(version string) map[string]string {
	return map[string]string{"policy.yaml": policyFiles(version)["policy/policy.yaml"]}
}

func fleetBase(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: defaults}\ndata: {value: \"" + value + "\"}\n"
}

// fleetPipelines is a file for each application's pipeline.
func fleetPipelines(n int, url string) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("%03d/%s.yaml", i/100, appName(i))] = fleetPipeline(i, url, "")
	}
	return files
}

func fleetPipeline(i int, url, more string) string {
	return fmt.Sprintf(`apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: %[1]s}
spec:
  source: {git: {url: %[2]s, ref: {branch: main}}}
  build: {path: apps/%[1]s}
  policies: [{path: policy.yaml}]
  publish: [{git: {branch: rendered}}]
%[3]s`, appName(i), url, more)
}
