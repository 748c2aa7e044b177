// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package giturl_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/source/giturl"
)

func TestNormal(t *testing.T) {
	for _, group := range [][]string{
		{"https://Git.Example.com/Org/App.git", "git@git.example.com:org/app", "ssh://git@git.example.com/org/app.git/", "https://git.example.com:443/org/app?x=1", "http://git.example.com/org/app"},
		{"https://git.example.com:8443/a", "https://git.example.com:8443/a.git"},
		{"https://git.example.com/Org/App", "https://git.example.com/Org/App.GIT", "git@git.example.com:org/app.Git/", "GIT.EXAMPLE.COM/ORG/APP.GIT"},
	} {
		for _, u := range group[1:] {
			if got, want := giturl.Normal(u), giturl.Normal(group[0]); got != want {
				t.Errorf("%s is %s, %s is %s", u, got, group[0], want)
			}
		}
	}
	if giturl.Normal("https://a/b") == giturl.Normal("https://a/c") || giturl.Normal("https://a:81/b") == giturl.Normal("https://a/b") {
		t.Error("different repositories have one normal URL")
	}
}

func TestSameServer(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"https://git.example.com/org/app", "https://git.example.com/other.git", true},
		{"https://git.example.com/org/app", "http://git.example.com/org/app", false},
		{"https://git.example.com/org/app", "https://git.example.com:8443/org/app", false},
		{"https://git.example.com/org/app", "https://git.example.com.evil.example.net/org/app", false},
		{"https://git.example.com/org/app", "ssh://git@git.example.com/org/app", false},
		{"ssh://git@git.example.com/org/app", "git@git.example.com:org/app", false},
		{"git@git.example.com:org/app", "git@git.example.com:other", true},
		{"git@git.example.com:org/app", "me@git.example.com:org/app", false},
		{"git.example.com:org/app", "git.example.com:other", false},
		{"git@git.example.com:org/app", "git@git.example.com", false},
		{"/srv/app", "/srv/app", false},
	} {
		if got := giturl.SameServer(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: got %t", c.a, c.b, got)
		}
	}
}

func TestResolve(t *testing.T) {
	for _, c := range [][3]string{
		{"https://git.example.com/org/app.git", "../library.git", "https://git.example.com/org/library.git"},
		{"https://git.example.com/org/app", "./sub", "https://git.example.com/org/app/sub"},
		{"https://git.example.com/app", "../../../etc", "https://git.example.com/etc"},
		{"git@git.example.com:org/app.git", "../library.git", "git@git.example.com:org/library.git"},
		{"git@git.example.com:org/app.git", "../../../library.git", "git@git.example.com:library.git"},
		{"https://git.example.com/org/app.git", "https://other.example.com/x", "https://other.example.com/x"},
	} {
		if got := giturl.Resolve(c[0], c[1]); got != c[2] {
			t.Errorf("%s in %s: got %s", c[1], c[0], got)
		}
	}
}

func TestCheck(t *testing.T) {
	for raw, want := range map[string]string{
		"https://git.example.com/org/app": "", "http://git.example.com:3000/app.git": "", "ssh://git@git.example.com:7999/app": "", "git@git.example.com:org/app": "",
		"https://me:pw@git.example.com/app": "credentials", "https://me@git.example.com/app": "credentials", "ssh://git:pw@git.example.com/app": "credentials",
		"https://git.example.com/app?x=pw": "a query", "git.example.com:app": "must start", "git@git.example.com:/app": "must start",
		"git://git.example.com/app": "must start", "file:///srv/app": "must start", "/srv/app": "must start", "": "must start",
	} {
		got := strings.Join(giturl.Check(raw), "; ")
		if !strings.Contains(got, want) || (want == "") != (got == "") || strings.Contains(got, "pw") {
			t.Errorf("%s: got %q", raw, got)
		}
	}
}

func FuzzNormal(f *testing.F) {
	for _, u := range []string{"https://u:p@h:443/A.git", "git@h:o/a", "ssh://git@[::1]:22/a", ":", "a:b:c", "//", "%zz"} {
		f.Add(u)
	}
	f.Fuzz(func(t *testing.T, u string) {
		got := giturl.Normal(u)
		if strings.HasPrefix(got, "/") && !strings.Contains(u, "//") && !strings.Contains(u, "/") {
			t.Errorf("%q has the path %q without a host", u, got)
		}
		if user, _, ok := strings.Cut(u, ":secret@"); ok && strings.HasPrefix(user, "https://") && strings.Contains(got, ":secret@") {
			if _, err := url.Parse(u); err == nil {
				t.Errorf("%q keeps its password: %q", u, got)
			}
		}
	})
}
