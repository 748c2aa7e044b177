// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"io"
	"log"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	prerig "github.com/prerig/prerig/pipeline/server"
)

// TestFinding8ReadyMeansPublished changes by hand what pipelines have published to a branch, a proposal and a registry. Each interval
// tells, also of who did it, and nothing is put back.
func TestFinding8ReadyMeansPublished(t *testing.T) {
	registryServer := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer registryServer.Close()
	host := strings.TrimPrefix(registryServer.URL, "http://")
	sink, told := eventSink(t)
	f := prepare(t, nil)
	files := map[string]string{}
	for app, to := range map[string]string{
		"web": "git: {branch: rendered}", "other": "git: {branch: rendered}", "proposed": "git: {branch: env, path: ., propose: {}}",
		"artifact": "oci: {url: \"oci://" + host + "/rendered/web\", insecure: true}",
	} {
		text := pipelineYAML(app, f.repository.URL, "  interval: 2s\n  notify: [{cloudEvent: {url: \""+sink+"\"}}]\n")
		f.write(filepath.Join(f.c.Pipelines, app+".yaml"), strings.Replace(text, "git: {branch: rendered}", to, 1))
		files["apps/"+app+"/app.yaml"] = deployment(app, "image:1")
	}
	f.repository.Commit("first", files)
	f.start()
	f.allReady(4)

	edit := func(branch, subject string, files map[string]string) (commit string) {
		f.repository.InWork("fetch", "-q", "origin", branch)
		f.repository.InWork("checkout", "-q", "-B", branch, "FETCH_HEAD")
		return f.repository.Commit(subject, files)
	}
	drifted := func(app string, texts ...string) {
		t.Helper()
		p := f.becomes("team/"+app, prerig.StateDrifted)
		for _, text := range texts {
			if !strings.Contains(p.Message, text) {
				t.Errorf("%s does not say %q: %s", app, text, p.Message)
			}
		}
	}
	const file = "web/shop/deployment-web.yaml"
	was := f.rendered(file) + "\n"
	commit := edit("rendered", "Scale by hand", map[string]string{file: "kind: edited\n", "README.md": "nobody's"})
	drifted("web", file+" was changed", commit[:12], "Scale by hand", "prerig daemon reconcile --force")
	edit("env-next", "Scale the proposal", map[string]string{"shop/deployment-proposed.yaml": "kind: edited\n"})
	drifted("proposed", "on the branch env-next", "Scale the proposal")
	tag, err := name.NewTag(host+"/rendered/web:latest", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, empty.Image); err != nil {
		t.Fatal(err)
	}
	drifted("artifact", "the tag latest was moved to sha256:")
	// The edit and the files beside it are on the branch of this one, too, which was looked at in the same interval.
	if got := f.states()["team/other"]; got != prerig.StateReady {
		t.Errorf("the other pipeline of the branch is %s", got)
	}
	if got := f.metrics()[`prerig_pipelines{state="Drifted"}`]; got != 3 {
		t.Errorf("%v are counted as drifted", got)
	}
	f.eventually("waiting for the notifications", func() string {
		if slices.Contains(told(), "dev.prerig.run.drifted") {
			return ""
		}
		return strings.Join(told(), " ")
	})
	if got := f.rendered(file); got != "kind: edited" {
		t.Errorf("it was put back: %s", got)
	}
	// Mended by hand, and the branch deleted, over a restart.
	edit("rendered", "take it back", map[string]string{file: was})
	f.becomes("team/web", prerig.StateReady)
	f.stop()
	f.repository.Git("update-ref", "-d", "refs/heads/rendered")
	f.start()
	drifted("web", "the branch rendered was deleted")
	drifted("other", "the branch rendered was deleted")
}
