// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package giturl_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/giturl"
)

func TestStatusURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://github.com/org/app.git": "https://api.github.com", "https://GitHub.com/org/app": "https://api.github.com",
		"git@github.com:org/app.git": "https://api.github.com", "ssh://git@ssh.github.com:443/org/app.git": "https://api.github.com",
		"git@ssh.github.com:org/app.git": "https://api.github.com", "ssh://git@ghe.example:7999/org/app.git": "https://ghe.example/api/v3",
		"https://ghe.example:8443/org/app/": "https://ghe.example:8443/api/v3",
	} {
		u, err := giturl.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		if got := u.StatusURL(giturl.GitHub, "", "c0"); got != want+"/repos/org/app/statuses/c0" {
			t.Errorf("%s: got %s", url, got)
		}
	}
	u, err := giturl.Parse("ssh://git@altssh.gitlab.com:443/org/group/app.git")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{giturl.GitLab, "", "https://gitlab.com/api/v4/projects/org%2Fgroup%2Fapp/statuses/c0"},
		{giturl.GitLab, "https://api.example.com/v4/", "https://api.example.com/v4/projects/org%2Fgroup%2Fapp/statuses/c0"},
		{giturl.Gitea, "", "https://gitlab.com/api/v1/repos/org/group/app/statuses/c0"}, {"CVS", "", ""},
	} {
		if got := u.StatusURL(c[0], c[1], "c0"); got != c[2] {
			t.Errorf("%s: got %s", c[0], got)
		}
	}
}

func TestCommitPage(t *testing.T) {
	hash := strings.Repeat("ab", 20)
	for target, want := range map[string]string{
		"https://github.com/org/app.git":            "https://github.com/org/app/commit/" + hash,
		"https://gitlab.example.com/a/b/app.git":    "https://gitlab.example.com/a/b/app/-/commit/" + hash,
		"https://bitbucket.org/org/app":             "https://bitbucket.org/org/app/commits/" + hash,
		"http://gitea.internal:3000/org/app/":       "http://gitea.internal:3000/org/app/commit/" + hash,
		"https://user:secret@git.example.com/a.git": "https://git.example.com/a/commit/" + hash,
		"git@github.com:org/app.git":                "",
		"ssh://git@github.com/org/app.git":          "",
		"oci://registry.example.com/app:latest":     "",
		"javascript:alert(1)//":                     "",
		"":                                          "",
	} {
		if got := giturl.CommitPage(target, hash); got != want {
			t.Errorf("%s: got %q", target, got)
		}
	}
	if got := giturl.CommitPage("https://github.com/org/app", strings.Repeat("ab", 32)); got != "" {
		t.Errorf("a digest gives %q", got)
	}
}
