// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// indexFile is what the search reads.
const indexFile = "search-index.js"

// section is a part of a page that the search finds.
type section struct {
	URL     string `json:"u"`
	Title   string `json:"t"`
	Heading string `json:"h"`
	Text    string `json:"x"`
}

// document is a page as it was made.
type document struct {
	name     string
	ids      map[string]bool
	links    []string
	sections []section
	title    string
	problems []string
}

// Finish follows all links of a site that Hugo has made and writes the index of its search. It returns how many links
// lead to places in the site; that any does not is the error, with each of them.
func Finish(dir string) (followed int, err error) {
	documents, err := readDocuments(os.DirFS(dir))
	if err != nil {
		return 0, err
	}
	var sections []section
	for _, d := range documents {
		sections = append(sections, d.sections...)
	}
	data, err := json.Marshal(sections)
	if err != nil {
		return 0, fmt.Errorf("writing the index: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, indexFile), slices.Concat([]byte("prerigIndex("), data, []byte(");\n")), 0o644); err != nil {
		return 0, fmt.Errorf("writing the index: %w", err)
	}
	return checkDocumentLinks(os.DirFS(dir), documents)
}

func readDocuments(site fs.FS) (documents []document, err error) {
	err = fs.WalkDir(site, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".html" {
			return err
		}
		text, err := fs.ReadFile(site, name)
		if err != nil {
			return err
		}
		root, err := html.Parse(bytes.NewReader(text))
		if err != nil {
			return err
		}
		d := document{name: name, ids: map[string]bool{}}
		d.readPageElements(root, false)
		documents = append(documents, d)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the site: %w", err)
	}
	return documents, nil
}

// readPageElements walks the elements of a page. Text inside of main counts for the search, except for what the layouts
// add to it.
func (d *document) readPageElements(n *html.Node, inMain bool) {
	if n.Type == html.TextNode && inMain && len(d.sections) > 0 {
		last := &d.sections[len(d.sections)-1]
		last.Text += n.Data
	}
	if n.Type == html.ElementNode {
		d.recordElement(n)
		switch n.DataAtom {
		case atom.Main:
			inMain = true
		case atom.Footer, atom.Details, atom.Script:
			inMain = false
		case atom.H1, atom.H2, atom.H3, atom.H4:
			if inMain {
				d.beginSection(n)
				inMain = false
			}
		}
	}
	for child := range n.ChildNodes() {
		d.readPageElements(child, inMain)
	}
	if n.DataAtom == atom.Main {
		for i := range d.sections {
			d.sections[i].Text = strings.Join(strings.Fields(d.sections[i].Text), " ")
		}
	}
	if len(d.sections) > 0 && isBlock[n.DataAtom] && inMain {
		d.sections[len(d.sections)-1].Text += " "
	}
}

// isBlock has elements after which a word does not go on.
var isBlock = map[atom.Atom]bool{atom.P: true, atom.Td: true, atom.Th: true, atom.Li: true, atom.Pre: true,
	atom.Tr: true}

// recordElement notes the names and links of an element.
func (d *document) recordElement(n *html.Node) {
	for _, a := range n.Attr {
		switch a.Key {
		case "id":
			if d.ids[a.Val] {
				d.problems = append(d.problems, "the id "+a.Val+" is there twice")
			}
			d.ids[a.Val] = true
		case "href", "src":
			d.links = append(d.links, a.Val)
		}
	}
}

// beginSection begins a section at its heading.
func (d *document) beginSection(heading *html.Node) {
	text := strings.TrimSpace(textOf(heading))
	s := section{URL: d.name, Title: text, Heading: text}
	if heading.DataAtom == atom.H1 {
		d.title = text
	} else {
		s.Title = d.title
		for _, a := range heading.Attr {
			if a.Key == "id" {
				s.URL += "#" + a.Val
			}
		}
	}
	d.sections = append(d.sections, s)
}

// textOf is the text of an element without its links to itself.
func textOf(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	for _, a := range n.Attr {
		if a.Key == "class" && a.Val == "anchor" {
			return ""
		}
	}
	var text strings.Builder
	for child := range n.ChildNodes() {
		text.WriteString(textOf(child))
	}
	return text.String()
}

// checkDocumentLinks looks for the place of each link.
func checkDocumentLinks(site fs.FS, documents []document) (followed int, err error) {
	ids := map[string]map[string]bool{}
	for _, d := range documents {
		ids[d.name] = d.ids
	}
	var problems []error
	for _, d := range documents {
		for _, problem := range d.problems {
			problems = append(problems, fmt.Errorf("%s: %s", d.name, problem))
		}
		for _, link := range d.links {
			inside, err := resolvePageLink(site, ids, d.name, link)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: the link %q: %w", d.name, link, err))
			} else if inside {
				followed++
			}
		}
	}
	return followed, errors.Join(problems...)
}

// resolvePageLink looks for what a link of a page leads to. It reports false for what is in another site.
func resolvePageLink(site fs.FS, ids map[string]map[string]bool, from, link string) (inside bool, err error) {
	to, err := url.Parse(link)
	if err != nil {
		return false, err
	}
	if to.Scheme != "" || to.Host != "" {
		return false, nil
	}
	if strings.HasPrefix(to.Path, "/") {
		return false, errors.New("is not relative, and leads elsewhere from a file or below a path")
	}
	name := from
	if to.Path != "" {
		name = path.Join(path.Dir(from), to.Path)
	}
	if info, err := fs.Stat(site, name); err != nil || info.IsDir() {
		return false, errors.New("there is no such file")
	}
	if to.Fragment != "" && !ids[name][to.Fragment] {
		return false, fmt.Errorf("%s has no such place", name)
	}
	return true, nil
}
