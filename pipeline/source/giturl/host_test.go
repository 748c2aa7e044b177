// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package giturl_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/source/giturl"
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

// What follows from the ways to write a repository of hosts whose API is not below a fixed path.
func TestStatusURLsOfBitbucketAndAzure(t *testing.T) {
	const builds, statuses = "/commits/c0/builds", "/commits/c0/statuses?api-version=7.0"
	for _, c := range [][3]string{
		{giturl.Gitea, "http://gitea.internal:3000/org/app.git", "http://gitea.internal:3000/api/v1/repos/org/app/statuses/c0"},
		{giturl.Gitea, "ssh://git@gitea.internal:2222/org/app.git", "https://gitea.internal/api/v1/repos/org/app/statuses/c0"},
		{giturl.BitbucketCloud, "git@bitbucket.org:shop/app.git", "https://api.bitbucket.org/2.0/repositories/shop/app/commit/c0/statuses/build"},
		{giturl.BitbucketServer, "https://bb.example:8443/scm/SHOP/app.git", "https://bb.example:8443/rest/api/latest/projects/SHOP/repos/app" + builds},
		{giturl.BitbucketServer, "https://bb.example/git/scm/~ann/app.git", "https://bb.example/git/rest/api/latest/projects/~ann/repos/app" + builds},
		{giturl.BitbucketServer, "ssh://git@bb.example:7999/shop/app.git", "https://bb.example/rest/api/latest/projects/shop/repos/app" + builds},
		{giturl.BitbucketServer, "http://bb.internal:7990/scm/shop/app.git", "http://bb.internal:7990/rest/api/latest/projects/shop/repos/app" + builds},
		{giturl.BitbucketServer, "https://bb.example/a/b/c", ""},
		{giturl.AzureDevOps, "https://dev.azure.com/org/pro/_git/app", "https://dev.azure.com/org/pro/_apis/git/repositories/app" + statuses},
		{giturl.AzureDevOps, "https://org@dev.azure.com/org/My%20Project/_git/my%20app", "https://dev.azure.com/org/My%20Project/_apis/git/repositories/my%20app" + statuses},
		{giturl.AzureDevOps, "https://dev.azure.com/org/_git/app", "https://dev.azure.com/org/app/_apis/git/repositories/app" + statuses},
		{giturl.AzureDevOps, "git@ssh.dev.azure.com:v3/org/pro/app", "https://dev.azure.com/org/pro/_apis/git/repositories/app" + statuses},
		{giturl.AzureDevOps, "https://org.visualstudio.com/pro/_git/app", "https://org.visualstudio.com/pro/_apis/git/repositories/app" + statuses},
		{giturl.AzureDevOps, "https://org.visualstudio.com/DefaultCollection/_git/app", "https://org.visualstudio.com/app/_apis/git/repositories/app" + statuses},
		{giturl.AzureDevOps, "https://tfs.example/tfs/Coll/pro/_git/app", "https://tfs.example/tfs/Coll/pro/_apis/git/repositories/app" + statuses},
		{giturl.AzureDevOps, "https://dev.azure.com/org/app", ""},
	} {
		u, err := giturl.Parse(c[1])
		if err != nil {
			t.Fatal(err)
		}
		if got := u.StatusURL(c[0], "", "c0"); got != c[2] {
			t.Errorf("%s, %s:\ngot  %s\nwant %s", c[0], c[1], got, c[2])
		}
	}
}

func TestKindOf(t *testing.T) {
	for url, want := range map[string]string{
		"https://github.com/org/app": giturl.GitHub, "git@github.com:org/app.git": giturl.GitHub, "ssh://git@ssh.github.com:443/org/app": giturl.GitHub,
		"https://github.example.com/org/app": giturl.GitHub, "https://gitlab.com/a/b/c": giturl.GitLab, "http://gitlab.internal:8080/a/b": giturl.GitLab,
		"git@altssh.gitlab.com:a/b": giturl.GitLab, "ssh://git@altssh.gitlab.com:443/a/b": giturl.GitLab, "https://codeberg.org/a/b": giturl.Gitea,
		"https://gitea.example.com:3000/a/b": giturl.Gitea, "https://forgejo.example.com/a/b": giturl.Gitea, "https://bitbucket.org/a/b": giturl.BitbucketCloud,
		"https://git.example.com/scm/SHOP/app.git": giturl.BitbucketServer, "https://dev.azure.com/o/p/_git/r": giturl.AzureDevOps,
		"git@ssh.dev.azure.com:v3/o/p/r": giturl.AzureDevOps, "https://o.visualstudio.com/p/_git/r": giturl.AzureDevOps,
		"https://tfs.example.com/tfs/c/p/_git/r": giturl.AzureDevOps, "https://git.example.com/a/b": "", "https://notgithub.com/a/b": "", "https://mygitlab.example.com/a/b": "",
	} {
		u, err := giturl.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		if got := u.KindOf(); got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
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
