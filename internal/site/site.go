// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package site makes the documentation's site, around Hugo: it gathers the pages of the repository for it, and looks at what Hugo has
// made of them, follows every link and writes the index of the search.
package site

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// Menu is site/pages.yaml.
type Menu struct {
	// Home is the file of the first page.
	Home   string  `json:"home"`
	Groups []Group `json:"groups"`
}

// Group is a heading of the menu.
type Group struct {
	Title string `json:"title"`
	// Folded reports whether its pages are shown only after a user unfolds them.
	Folded bool    `json:"folded"`
	Pages  []Entry `json:"pages"`
	// Each is a pattern of files that are pages, too.
	Each string `json:"each"`
}

// Entry is a page of the menu.
type Entry struct {
	File string `json:"file"`
	// Name in the menu; by default the title of the page.
	Name string `json:"name"`
	// Out is the file in the site; by default it follows from File.
	Out string `json:"out"`
}

// Page is one page of the site.
type Page struct {
	// Source is its file in the repository, Out the one in the site.
	Source, Out string
	// Title is the text of its first heading, Body what follows.
	Title, Body string
	// Name is what the menu calls it, and Group the heading above it.
	Name  string
	Group Group
	// Order is the place of the group, Weight that in the group, both from 1. The first page has neither.
	Order, Weight int
}

// IsHome reports whether it is the first page of the site.
func (p Page) IsHome() bool { return p.Order == 0 }

// Pages reads the menu and the pages of the repository at root.
func Pages(root string) ([]Page, error) {
	text, err := os.ReadFile(filepath.Join(root, "site/pages.yaml"))
	if err != nil {
		return nil, fmt.Errorf("reading the menu: %w", err)
	}
	var menu Menu
	if err := yaml.UnmarshalStrict(text, &menu); err != nil {
		return nil, fmt.Errorf("reading the menu: %w", err)
	}
	home, err := readPage(root, Entry{File: menu.Home, Out: "index.html"})
	if err != nil {
		return nil, err
	}
	pages := []Page{home}
	for i, group := range menu.Groups {
		entries, err := group.groupEntries(root)
		if err != nil {
			return nil, err
		}
		for j, entry := range entries {
			page, err := readPage(root, entry)
			if err != nil {
				return nil, err
			}
			page.Group, page.Order, page.Weight = group, i+1, j+1
			pages = append(pages, page)
		}
	}
	return pages, nil
}

func (g Group) groupEntries(root string) ([]Entry, error) {
	if g.Each == "" {
		return g.Pages, nil
	}
	files, err := filepath.Glob(filepath.Join(root, g.Each))
	if err != nil {
		return nil, fmt.Errorf("finding the pages of %s: %w", g.Title, err)
	}
	entries := g.Pages
	for _, file := range files {
		name, err := filepath.Rel(root, file)
		if err != nil {
			return nil, fmt.Errorf("finding the pages of %s: %w", g.Title, err)
		}
		entries = append(entries, Entry{File: filepath.ToSlash(name)})
	}
	return entries, nil
}

// readPage reads a file whose first line is its title.
func readPage(root string, entry Entry) (Page, error) {
	text, err := os.ReadFile(filepath.Join(root, entry.File))
	if err != nil {
		return Page{}, fmt.Errorf("reading a page: %w", err)
	}
	first, body, _ := strings.Cut(string(text), "\n")
	title, isHeading := strings.CutPrefix(first, "# ")
	if !isHeading {
		return Page{}, fmt.Errorf("reading a page: %s does not begin with a heading", entry.File)
	}
	page := Page{Source: entry.File, Out: entry.Out, Title: title, Name: entry.Name, Body: body}
	if page.Out == "" {
		page.Out = sitePathOf(entry.File)
	}
	if page.Name == "" {
		page.Name = headingWithoutMarkup(title)
	}
	return page, nil
}

// sitePathOf is the file in the site for one of docs or examples.
func sitePathOf(file string) string {
	if dir, isReadme := strings.CutSuffix(file, "/README.md"); isReadme {
		return dir + ".html"
	}
	return strings.TrimSuffix(strings.TrimPrefix(file, "docs/"), ".md") + ".html"
}

// relativeSiteLink returns the link from one file of the site to another.
func relativeSiteLink(from, to string) string {
	return strings.Repeat("../", strings.Count(path.Clean(from), "/")) + to
}

// headingWithoutMarkup returns a heading without the marks of code.
func headingWithoutMarkup(text string) string { return strings.ReplaceAll(text, "`", "") }
