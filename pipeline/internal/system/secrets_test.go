// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/base64"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

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

// TestAnEncryptedSecretIsNotShown: with secrets: Encrypt nothing but the source and its mirror holds the values, and nothing at all the
// seed; and what is published stays as it is as long as the Secret does, also where the state is lost.
func TestAnEncryptedSecretIsNotShown(t *testing.T) {
	l := &leaky{fixture: prepare(t, nil), canaries: map[string]string{}}
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	secret := func(value string) string {
		l.canaries[value], l.canaries[value+" in base64"] = value, base64.StdEncoding.EncodeToString([]byte(value))
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData:\n  password: " + value + "\n"
	}
	const seed = "c4nary-seed-7a3-0123456789abcdef0123456789"
	l.canaries["seed"], l.canaries["seed in base64"] = seed, base64.StdEncoding.EncodeToString([]byte(seed))
	pipeline := filepath.Join(l.c.Pipelines, "web.yaml")
	l.write(pipeline, strings.Replace(pipelineYAML("web", l.repository.URL), "{branch: rendered}",
		"{branch: rendered}, secrets: Encrypt, encryption: {age: ["+identity.Recipient().String()+"], secretRef: {name: shop}}", 1))
	l.repository.Commit("first", map[string]string{"apps/web/app.yaml": deployment("web", "web:1"), "apps/web/db.yaml": secret("c4nary-secret-5e1")})
	l.startWith(daemon.Options{Log: slog.New(slog.NewTextHandler(&l.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	l.becomes("team/web", server.StateFailing)
	l.write(filepath.Join(l.c.Secrets, "team/shop/seed"), seed)
	const file = "web/shop/secret-db.yaml"
	l.shows(file, "password: ENC[")
	first := l.rendered(file)
	l.push(l.repository.Commit("second", map[string]string{"apps/web/app.yaml": deployment("web", "web:2")}))
	l.shows("web/shop/deployment-web.yaml", "web:2")
	if now := l.rendered(file); now != first {
		t.Errorf("it was encrypted anew without need:\n%s\n%s", first, now)
	}
	l.push(l.repository.Commit("third", map[string]string{"apps/web/db.yaml": secret("c4nary-secret-6f2"), "apps/web/app.yaml": deployment("web", "web:3")}))
	l.shows("web/shop/deployment-web.yaml", "web:3")
	third := l.rendered(file)
	if third == first {
		t.Error("another value is published as the first")
	}
	l.eventually("waiting for the difference", func() string {
		for path, text := range l.outputs() {
			if strings.HasPrefix(path, "/api/v1/diff") && strings.Contains(text, "password: *** (after)") {
				return ""
			}
		}
		return "none shows a password"
	})
	outputs := l.outputs()
	l.stop()
	outputs["logs"] = l.logs.String()
	l.stored(outputs)
	outputs["commits"] = l.repository.Git("log", "rendered", "-p", "--format=%an %ae %cn %ce %B %N")
	for where, text := range outputs {
		for name, value := range l.canaries {
			if strings.Contains(text, value) && !strings.Contains(where, l.c.TokenFile()) {
				t.Errorf("%s is in %s", name, where)
			}
		}
	}
	if err := os.RemoveAll(l.c.State); err != nil {
		t.Fatal(err)
	}
	l.repository.Commit("fourth", map[string]string{"apps/web/app.yaml": deployment("web", "web:4")})
	l.startWith(daemon.Options{})
	l.shows("web/shop/deployment-web.yaml", "web:4")
	if now := l.rendered(file); now != third {
		t.Errorf("without its state it encrypts anew:\n%s\n%s", third, now)
	}
}
