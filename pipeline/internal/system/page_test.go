// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
)

// TestPageShowsTheMesh renders, injects and publishes, and reads the pages about it: what a
// run has decided, and the manifests as they are published.
func TestPageShowsTheMesh(t *testing.T) {
	f := prepare(t, nil)
	files := map[string]string{}
	for _, app := range []string{"web", "host"} {
		f.write(filepath.Join(f.c.Pipelines, app+".yaml"), pipelineYAML(app, f.repository.URL, ""))
		files["apps/"+app+"/app.yaml"] = deployment(app, "image:1")
	}
	files["apps/host/app.yaml"] = strings.Replace(
		files["apps/host/app.yaml"],
		"      containers:",
		"      hostNetwork: true\n      containers:",
		1,
	)
	f.repository.Commit("first", files)
	f.start()
	f.allReady(2)
	page := func(path string) string {
		t.Helper()
		response, err := http.Get("http://" + f.page + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %v", path, response.Status, err)
		}
		return html.UnescapeString(string(text))
	}
	expect := func(path string, want ...string) {
		t.Helper()
		text := page(path)
		for _, one := range want {
			if !strings.Contains(text, one) {
				t.Errorf("%s lacks %q:\n%s", path, one, text)
			}
		}
	}
	expect(
		"/mesh",
		"<strong>2</strong> workloads",
		"<strong>1</strong> injected",
		"1.32.",
		"host network",
		"2 commits",
	)
	expect("/workloads", "Deployment shop/web", "Deployment shop/host", "skipped")
	workload := func(pipeline, name string) string {
		return "/workload?" + url.Values{"pipeline": {pipeline}, "workload": {name}}.Encode()
	}
	expect(
		workload("team/web", "Deployment shop/web"),
		"shop/deployment-web.yaml",
		"are injected",
		"istio-proxy",
		"image:1",
	)
	expect(workload("team/host", "Deployment shop/host"), "No line is injected", "hostNetwork: true")
	expect("/pipeline?name=team/web", "feeds 2 pipelines", "Last 1 run", "shop/deployment-web.yaml")
}
