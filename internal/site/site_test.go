// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const root = "../.."

// TestTheMenuHasEveryPage compares the menu with the pages of docs and examples.
func TestTheMenuHasEveryPage(t *testing.T) {
	pages, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	inMenu, outs := map[string]bool{}, map[string]string{}
	for _, page := range pages {
		if other, twice := outs[page.Out]; twice {
			t.Errorf("%s and %s are the same page of the site, %s", page.Source, other, page.Out)
		}
		inMenu[page.Source], outs[page.Out] = true, page.Source
	}
	for _, dir := range []string{"docs", "examples"} {
		found := 0
		err := filepath.WalkDir(filepath.Join(root, dir), func(file string, entry fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(file) != ".md" || dir == "examples" && entry.Name() != "README.md" {
				return err
			}
			found++
			name, err := filepath.Rel(root, file)
			if !inMenu[filepath.ToSlash(name)] {
				t.Errorf("%s is not in site/pages.yaml", name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if found < 20 {
			t.Errorf("found only %d pages in %s", found, dir)
		}
	}
}

// TestGather gathers the repository's own pages: what links name is there, and the heads can be read.
func TestGather(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pages")
	if err := Gather(root, dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "tutorials/flux.md"))
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	var head map[string]any
	if err := decoder.Decode(&head); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"title": "GitOps with Flux", "source": "docs/tutorials/flux.md", "url": "/tutorials/flux.html", "root": "../", "group": "Tutorials",
	} {
		if head[key] != want {
			t.Errorf("%s is %v, want %v", key, head[key], want)
		}
	}
	body := string(text)[decoder.InputOffset():]
	if strings.Contains(body, "<!--") {
		t.Errorf("the marks of tests are in the page:\n%s", body)
	}
	if !strings.Contains(body, "](../examples/flux.html)") {
		t.Errorf("the link to the example is not that of the site:\n%s", body)
	}
}

func TestLinksOfPages(t *testing.T) {
	pages := []Page{
		{Source: "docs/README.md", Out: "index.html"}, {Source: "docs/cli.md", Out: "cli.html"},
		{Source: "examples/flux/README.md", Out: "examples/flux.html"}, {Source: "fn/lint/RULES.md", Out: "reference/lint-rules.html"},
	}
	for _, tc := range []struct{ from, line, want string }{
		{"docs/cli.md", "see [rules](../fn/lint/RULES.md#pr101).", "see [rules](reference/lint-rules.html#pr101)."},
		{"docs/cli.md", "see [an example](../examples/flux)", "see [an example](examples/flux.html)"},
		{"docs/cli.md", "see [an example](../examples/flux/)", "see [an example](examples/flux.html)"},
		{"examples/flux/README.md", "[`cli`](../../docs/cli.md), [home](../../docs/README.md)", "[`cli`](../cli.html), [home](../index.html)"},
		{"docs/cli.md", "[here](#here) and [there](https://example.org/a_(b))", "[here](#here) and [there](https://example.org/a_(b))"},
		{"docs/cli.md", "`[no](link.md)` and [go.mod](../go.mod)", "`[no](link.md)` and [go.mod](" + repository + "/blob/main/go.mod)"},
		{"docs/cli.md", "[fn](../fn)", "[fn](" + repository + "/tree/main/fn)"},
		{"examples/flux/README.md", "![a picture](../../docs/images/mesh-upgrade.svg)", "![a picture](../images/mesh-upgrade.svg)"},
	} {
		got, err := Page{Source: tc.from, Out: outFor(pages, tc.from)}.lineWithSiteLinks(tc.line, root, pages)
		if err != nil {
			t.Errorf("%s: %v", tc.line, err)
		}
		if got != tc.want {
			t.Errorf("%s in %s became %s, want %s", tc.line, tc.from, got, tc.want)
		}
	}
	if got, err := pages[1].lineWithSiteLinks("[x](missing.md)", root, pages); err == nil {
		t.Errorf("a link to what is not there became %s", got)
	}
}

func outFor(pages []Page, source string) string {
	for _, page := range pages {
		if page.Source == source {
			return page.Out
		}
	}
	return ""
}

// TestFollow has each way in which a link can lead nowhere.
func TestFollow(t *testing.T) {
	page := func(body string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("<html><body>" + body + "</body></html>")}
	}
	for name, tc := range map[string]struct{ body, want string }{
		"all right":       {`<h2 id="here"></h2><a href="#here"></a><a href="b/c.html#there"></a><a href="https://example.org"></a><img src="icon.svg">`, ""},
		"no such file":    {`<a href="d.html">`, `a.html: the link "d.html": there is no such file`},
		"no such place":   {`<a href="b/c.html#here">`, `a.html: the link "b/c.html#here": b/c.html has no such place`},
		"not here":        {`<a href="#there">`, `a.html: the link "#there": a.html has no such place`},
		"a directory":     {`<a href="b/">`, `a.html: the link "b/": there is no such file`},
		"outside":         {`<a href="../a.html">`, `a.html: the link "../a.html": there is no such file`},
		"from the root":   {`<script src="/site.js"></script>`, `a.html: the link "/site.js": is not relative, and leads elsewhere from a file or below a path`},
		"two of one name": {`<p id="x"></p><p id="x"></p>`, "a.html: the id x is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			site := fstest.MapFS{"a.html": page(tc.body), "b/c.html": page(`<p id="there"></p>`), "icon.svg": {}}
			documents, err := readDocuments(site)
			if err != nil {
				t.Fatal(err)
			}
			followed, err := checkDocumentLinks(site, documents)
			if got := message(err); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if tc.want == "" && followed != 3 {
				t.Errorf("followed %d links, want 3", followed)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestSections has what the search finds: the text below each heading, without menus and footers.
func TestSections(t *testing.T) {
	site := fstest.MapFS{"a.html": {Data: []byte(`<nav>menu</nav><main><h1>The <code>title</code></h1><details>contents</details><p>First</p><p>second.</p>
<h2 id="part">A part <a class="anchor" href="#part">#</a></h2><pre>$ run</pre><footer>next</footer></main>`)}}
	documents, err := readDocuments(site)
	if err != nil {
		t.Fatal(err)
	}
	want := []section{{"a.html", "The title", "The title", "First second."}, {"a.html#part", "The title", "A part", "$ run"}}
	if diff := cmp.Diff(want, documents[0].sections); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
