// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/publish"
)

// A template of a commit message runs in the daemon, while the branch is locked: none goes on for ever, or makes anything huge.
func TestTemplateWithoutAnEndIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a loop that prints nothing": {`{{range 100000000000}}{{end}}x`, "more than 1000 steps"},
		"a template of itself":       {`{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`, "more than 1000 steps"},
		"loops in loops":             {`{{range 1000}}{{range 1000}}{{end}}{{end}}`, "more than 1000 steps"},
		"a wide number":              {`{{printf "%2000000000d" 1}}`, "more than 1048576 bytes"},
		"a text that doubles":        {`{{$x := "ab"}}{{range 900}}{{$x = printf "%s%s" $x $x}}{{end}}`, "more than"},
		"a long text":                {strings.Repeat("{{.Name}}", 4000), "more than 16384 bytes"},
	} {
		if err := publish.CheckSubject(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := publish.CheckSubject(`{{range 100}}x{{end}} {{printf "%.20s" .Source.Subject}}`); err != nil {
		t.Errorf("a template that ends: %v", err)
	}
}

// Who writes commits to a source says neither which checks run on the rendered branch, nor what a terminal does.
func TestSourceSubjectInstructsNobody(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	for i, c := range []struct{ subject, want string }{
		{"fix [skip ci]", "Render apps/shop: fix (skip ci)"},
		{"fix [CI-Skip] ***NO_CI***", "Render apps/shop: fix (CI-Skip) (NO_CI)"},
		{"fix [no actions]", "Render apps/shop: fix (no actions)"},
		{"red \x1b[31malert\x07", "Render apps/shop: red ?[31malert?"},
		{"price \u202e1", "Render apps/shop: price 1"},
		{"ümläut 👩\u200d💻 [ci]", "Render apps/shop: ümläut 👩\u200d💻 [ci]"},
	} {
		change := change(t, "apps/shop", "shop", configMap("a", strings.Repeat("x", i+1)))
		change.Origin.Subject = c.subject
		run(t, b, change)
		if got := repository.Git("log", "-1", "--format=%s", "rendered"); got != strings.Replace(c.want, "apps/shop", "shop", 1) {
			t.Errorf("%q: got %q", c.subject, got)
		}
	}
}

// A template that cuts is tried with long texts before, and may get a short one.
func TestTemplateThatASubjectDoesNotFit(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	cutting := func(pipeline, value string) publish.Change {
		c := change(t, pipeline, pipeline, configMap("a", value))
		c.Subject, c.Origin.Subject = "{{slice .Source.Subject 0 20}}", "fix typo"
		return c
	}
	if err := publish.CheckSubject(cutting("shop", "").Subject); err != nil {
		t.Fatal(err)
	}
	for want, changes := range map[string][]publish.Change{
		"Render shop: fix typo":        {cutting("shop", "1")},
		"Render 2 pipelines: fix typo": {cutting("shop", "2"), cutting("cart", "2")},
	} {
		run(t, b, changes...)
		if got := repository.Git("log", "-1", "--format=%s", "rendered"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestLongCommitsOfTheSourceArePublished: a first line of megabytes, and such a name of the author, neither keep a
// result from being published nor come to the branch, whatever the template does with them.
func TestLongCommitsOfTheSourceArePublished(t *testing.T) {
	long := strings.Repeat("long \x1b[31m\u202e", 1<<15)
	for name, template := range map[string]string{
		"default": "", "both": "{{.Source.Author}} {{.Source.Subject}}", "often": strings.Repeat("{{.Source.Subject}}{{.Source.Author}}", 300),
	} {
		t.Run(name, func(t *testing.T) {
			repository := gittest.New(t).Repository(t, "config")
			b := branch(t, repository, "rendered")
			b.Propose = true
			change := change(t, "apps/shop", "shop", configMap("a", "1"))
			change.Subject = template
			change.Origin.Subject, change.Origin.Author, change.Origin.AuthorEmail, change.Origin.Body = long, long, long, long
			run(t, b, change)
			subject := repository.Git("log", "-1", "--format=%s", "rendered-next")
			if subject == "" || len(subject) > 200 || strings.ContainsAny(subject, "\x1b\u202e") || !strings.Contains(subject, "long") {
				t.Errorf("the subject is %.300q", subject)
			}
			if size := len(repository.Git("cat-file", "-p", "rendered-next")); size > 4000 {
				t.Errorf("the commit has %d bytes", size)
			}
			if size := len(repository.Git("show", "rendered-next:shop/hydrator.metadata")); size > 150<<10 {
				t.Errorf("hydrator.metadata has %d bytes", size)
			}
		})
	}
}
