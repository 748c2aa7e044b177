// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/base64"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/daemon"
	"github.com/prerig/prerig/pipeline/server"
)

// TestASecretIsNotShown: a Secret that can be read is not published unless the pipeline says so, and nothing but the branch and the
// mirror of the source holds its values.
func TestASecretIsNotShown(t *testing.T) {
	l := &leaky{fixture: prepare(t, nil), canaries: map[string]string{}}
	secret := func(value string) string {
		l.canaries[value], l.canaries[value+" in base64"] = value, base64.StdEncoding.EncodeToString([]byte(value))
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData:\n  password: " + value + "\n"
	}
	pipeline := filepath.Join(l.c.Pipelines, "web.yaml")
	l.write(pipeline, pipelineYAML("web", l.repository.URL))
	l.repository.Commit("first", map[string]string{"apps/web/app.yaml": deployment("web", "web:1"), "apps/web/db.yaml": secret("c4nary-secret-5e1")})
	l.startWith(daemon.Options{Log: slog.New(slog.NewTextHandler(&l.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if p := l.becomes("team/web", server.StateStalled); !strings.Contains(p.Message, "v1 Secret shop/db has values that can be read") {
		t.Errorf("it says %q", p.Message)
	}
	if got := l.repository.Git("branch", "--list", "rendered"); got != "" {
		t.Error("it was published")
	}
	l.write(pipeline, strings.Replace(pipelineYAML("web", l.repository.URL), "{branch: rendered}", "{branch: rendered}, secrets: Allow", 1))
	const file = "web/shop/secret-db.yaml"
	l.shows(file, "c4nary-secret-5e1")
	l.push(l.repository.Commit("second", map[string]string{"apps/web/db.yaml": secret("c4nary-secret-6f2")}))
	l.shows(file, "c4nary-secret-6f2")
	l.eventually("waiting for the difference", func() string {
		found := ""
		for path, text := range l.outputs() {
			if strings.HasPrefix(path, "/api/v1/diff") {
				found += text
			}
			if strings.HasPrefix(path, "/api/v1/diff") && strings.Contains(text, "password: *** (before)") && strings.Contains(text, "password: *** (after)") {
				return ""
			}
		}
		return "there are " + found
	})
	outputs := l.outputs()
	l.stop()
	outputs["logs"] = l.logs.String()
	l.stored(outputs)
	delete(outputs, "commits")
	for where, text := range outputs {
		for name, value := range l.canaries {
			if strings.Contains(text, value) && !strings.Contains(where, l.c.TokenFile()) {
				t.Errorf("%s is in %s", name, where)
			}
		}
	}
}
