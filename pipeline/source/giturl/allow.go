// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package giturl

import (
	"errors"
	"slices"
	"strings"
)

// Pattern is one allowed repository, or all of them below a path.
type Pattern struct {
	text string
	all  bool // everything below the path
	at   Address
}

// String returns the pattern as it was written.
func (p Pattern) String() string { return p.text }

// MarshalText returns the pattern as written.
func (p Pattern) MarshalText() ([]byte, error) { return []byte(p.text), nil }

// everything is the suffix of a pattern for all repositories below a path.
const everything = "/*"

// ParsePattern reads an element of a list of allowed repositories: the URL of one repository, or a URL that ends in /*
// for every repository below it, at any depth.
func ParsePattern(text string) (Pattern, error) {
	p := Pattern{text: text}
	repository, all := strings.CutSuffix(text, everything)
	p.all = all
	if all {
		// A repository name replaces the suffix, so that one parser handles both forms.
		repository += "/x"
	}
	if i := strings.Index(repository, "://"); i >= 0 {
		repository = strings.ToLower(repository[:i]) + repository[i:]
	}
	if strings.Contains(repository, "*") {
		return p, errors.New("* is allowed only at the end, as /*, for all repositories below")
	}
	var err error
	if p.at, err = ParseAddress(repository); err != nil {
		return p, errors.New("it is not the URL of a repository such as https://HOST/ORG/REPO, nor https://HOST/ORG/* for all below: " + err.Error())
	}
	if p.all {
		p.at.path = p.at.path[:len(p.at.path)-1]
	}
	return p, nil
}

// Match reports whether a repository is allowed, and which URL is to be fetched: it begins as the pattern does.
func (p *Pattern) Match(a *Address) (fetch string, ok bool) {
	if !p.all {
		return p.text, p.at.equalTo(a)
	}
	n := len(p.at.path)
	if len(a.path) <= n {
		return "", false
	}
	above := *a
	above.path = a.path[:n]
	if !p.at.equalTo(&above) {
		return "", false
	}
	rest := strings.Join(a.path[n:], "/")
	if strings.HasSuffix(a.text, ".git") {
		rest += ".git"
	}
	return strings.TrimSuffix(p.text, "*") + rest, true
}

// Best returns the index of the pattern that matches a repository most specifically, and the URL to fetch, or -1 if
// none allows it. A single repository is more specific than all below a path, and a longer path than a shorter one.
func Best(patterns []Pattern, a *Address) (index int, fetch string) {
	index = -1
	best := -1
	for i := range patterns {
		from, ok := patterns[i].Match(a)
		if !ok {
			continue
		}
		weight := len(patterns[i].at.path) * 2
		if !patterns[i].all {
			weight++
		}
		if weight > best {
			index, best, fetch = i, weight, from
		}
	}
	return index, fetch
}

// OverHTTPS returns the URL of a repository of artifacts (oci://) as that of the server that it is on, and any other as
// it is.
func OverHTTPS(url string) string {
	if rest, ok := strings.CutPrefix(url, "oci://"); ok {
		return "https://" + rest
	}
	return url
}

// Allows reports whether a pattern has a URL, which may be that of artifacts. What is written in a roundabout way is in
// none.
func Allows(patterns []Pattern, url string) bool {
	address, err := ParseAddress(strings.TrimSuffix(OverHTTPS(url), "/"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(patterns, func(p Pattern) bool { _, ok := p.Match(&address); return ok })
}
