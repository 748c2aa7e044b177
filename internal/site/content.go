// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// repository is where files are shown that are no pages.
const repository = "https://github.com/prerig/prerig"

// pictures is the directory that make site copies to images in the site.
const pictures = "docs/images/"

// Gather writes the pages of the repository at root to a directory in the form that Hugo reads: with a head, and
// with links that lead to pages of the site, relative to the page, or otherwise to the file at the Git host.
func Gather(root, dir string) error {
	pages, err := Pages(root)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("clearing the directory of pages: %w", err)
	}
	for i, page := range pages {
		body, err := page.textWithSiteLinks(root, pages)
		if err != nil {
			return err
		}
		head, err := json.MarshalIndent(page.frontMatter(pages, i), "", "  ")
		if err != nil {
			return fmt.Errorf("writing %s: %w", page.Source, err)
		}
		file := filepath.Join(dir, strings.TrimSuffix(page.Out, ".html")+".md")
		if page.IsHome() {
			file = filepath.Join(dir, "_index.md")
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("writing %s: %w", page.Source, err)
		}
		if err := os.WriteFile(file, []byte(string(head)+"\n\n"+body), 0o644); err != nil {
			return fmt.Errorf("writing %s: %w", page.Source, err)
		}
	}
	return nil
}

// neighbour is a page that can be turned to.
type neighbour struct {
	Href string `json:"href"`
	Nav  string `json:"nav"`
}

// frontMatter returns what the layouts know of a page.
func (p Page) frontMatter(pages []Page, i int) map[string]any {
	head := map[string]any{
		"title": p.Title, "source": p.Source, "out": p.Out, "nav": p.Name, "description": p.firstParagraph(),
		"root":  relativeSiteLink(p.Out, ""),
		"group": p.Group.Title, "order": fmt.Sprintf("%02d", p.Order), "weight": p.Weight, "folded": p.Group.Folded,
		"toc": strings.Count(p.Body, "\n## ") > 1,
	}
	if !p.IsHome() {
		head["url"] = "/" + p.Out
	}
	if i > 1 {
		head["before"] = neighbour{relativeSiteLink(p.Out, pages[i-1].Out), pages[i-1].Name}
	}
	if i > 0 && i+1 < len(pages) {
		head["after"] = neighbour{relativeSiteLink(p.Out, pages[i+1].Out), pages[i+1].Name}
	}
	return head
}

// firstParagraph returns the first paragraph, as search engines show it.
func (p Page) firstParagraph() string {
	for paragraph := range strings.SplitSeq(p.Body, "\n\n") {
		text := strings.TrimSpace(paragraph)
		if text == "" || strings.ContainsAny(text[:1], "<|`#-") {
			continue
		}
		text = linkTo.ReplaceAllString(strings.ReplaceAll(text, "\n", " "), "$1")
		return strings.NewReplacer("`", "", "*", "").Replace(text)
	}
	return p.Name
}

var (
	// linkTo is a link with a text, without one inside; the destination may have pairs of parentheses.
	linkTo = regexp.MustCompile(`\[([^\]]*)\]\(([^()\s]+(?:\([^()]*\)[^()\s]*)?)\)`)
	// target is what follows the text of a link.
	target = regexp.MustCompile(`\]\(([^()\s]+(?:\([^()]*\)[^()\s]*)?)\)`)
	// code is what has no links in it.
	code = regexp.MustCompile("`[^`]*`")
	// scheme begins a link to another site.
	scheme = regexp.MustCompile(`^[a-z]+:`)
)

// textWithSiteLinks returns the text with its links as they are in the site, and without the marks that only tests
// read.
func (p Page) textWithSiteLinks(root string, pages []Page) (string, error) {
	lines := strings.Split(p.Body, "\n")
	out := lines[:0]
	fenced := false
	for n, line := range lines {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			fenced = !fenced
		}
		if !fenced && !fence {
			if strings.HasPrefix(line, "<!--") && strings.HasSuffix(line, "-->") {
				continue
			}
			var err error
			if line, err = p.lineWithSiteLinks(line, root, pages); err != nil {
				return "", fmt.Errorf("%s:%d: %w", p.Source, n+2, err)
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n"), nil
}

// lineWithSiteLinks has the links of one line, outside of code, as they are in the site.
func (p Page) lineWithSiteLinks(line, root string, pages []Page) (string, error) {
	var wrong error
	replaced := func(text string) string {
		return target.ReplaceAllStringFunc(text, func(found string) string {
			to, err := p.siteLinkDestination(found[2:len(found)-1], root, pages)
			if err != nil {
				wrong = err
			}
			return "](" + to + ")"
		})
	}
	var out strings.Builder
	from := 0
	for _, at := range code.FindAllStringIndex(line, -1) {
		// The text of a link may be code: the text in between is processed together with the closing bracket.
		out.WriteString(replaced(line[from:at[0]]))
		out.WriteString(line[at[0]:at[1]])
		from = at[1]
	}
	out.WriteString(replaced(line[from:]))
	return out.String(), wrong
}

// siteLinkDestination returns where a link of the page leads in the site.
func (p Page) siteLinkDestination(to, root string, pages []Page) (string, error) {
	if scheme.MatchString(to) || strings.HasPrefix(to, "#") {
		return to, nil
	}
	file, anchor, hasAnchor := strings.Cut(to, "#")
	file = path.Join(path.Dir(p.Source), file)
	if hasAnchor {
		anchor = "#" + anchor
	}
	for _, page := range pages {
		if page.Source == file || page.Source == file+"/README.md" {
			return relativeSiteLink(p.Out, page.Out) + anchor, nil
		}
	}
	info, err := os.Stat(filepath.Join(root, file))
	if err != nil {
		return "", fmt.Errorf("the link %s leads nowhere", to)
	}
	if picture, ok := strings.CutPrefix(file, pictures); ok {
		return relativeSiteLink(p.Out, "images/"+picture), nil
	}
	return repository + "/" + kindOf(info) + "/main/" + file + anchor, nil
}

// kindOf returns the part of a Git host's URLs that selects what is shown.
func kindOf(info fs.FileInfo) string {
	if info.IsDir() {
		return "tree"
	}
	return "blob"
}
