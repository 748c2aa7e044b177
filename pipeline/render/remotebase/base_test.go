// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package remotebase_test

import (
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/resource"

	"github.com/prerig/prerig/internal/testprograms"
	"github.com/prerig/prerig/pipeline/render/remotebase"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

const commit = "0123456789abcdef0123456789abcdef01234567"

// forms are URLs as people write them.
var forms = map[string]struct{ repository, ref, directory string }{
	"https://git.example.com/org/repo//dir/sub?ref=" + commit:                    {"https://git.example.com/org/repo", commit, "dir/sub"},
	"https://git.example.com/org/repo/dir?ref=" + commit:                         {"https://git.example.com/org/repo", commit, "dir"},
	"https://git.example.com/org/repo.git/dir?ref=v1":                            {"https://git.example.com/org/repo.git", "v1", "dir"},
	"https://git.example.com/a/b/c/repo.git//dir?ref=" + commit:                  {"https://git.example.com/a/b/c/repo.git", commit, "dir"},
	"https://git.example.com:8443/org/repo":                                      {"https://git.example.com:8443/org/repo", "", "."},
	"hTTps://git.example.com/org/repo?version=" + commit:                         {"https://git.example.com/org/repo", commit, "."},
	"https://git.example.com/org/repo?version=v1&ref=" + commit:                  {"https://git.example.com/org/repo", commit, "."},
	"https://git.example.com/org/repo?timeout=2m&submodules=false&ref=" + commit: {"https://git.example.com/org/repo", commit, "."},
	"https://me@dev.azure.com/org/project/_git/repo/dir?ref=" + commit:           {"https://me@dev.azure.com/org/project/_git/repo", commit, "dir"},
	"git::https://git.example.com/org/repo//dir?ref=" + commit:                   {"https://git.example.com/org/repo", commit, "dir"},
	"GIT::ssh://git@git.example.com/org/repo//dir?ref=" + commit:                 {"ssh://git@git.example.com/org/repo", commit, "dir"},
	"ssh://git@git.example.com:7999/org/repo.git/dir?ref=" + commit:              {"ssh://git@git.example.com:7999/org/repo.git", commit, "dir"},
	"git@git.example.com:org/repo?ref=" + commit:                                 {"git@git.example.com:org/repo", commit, "."},
	"git@git.example.com:org/repo.git//dir?ref=" + commit:                        {"git@git.example.com:org/repo.git", commit, "dir"},
	"git@github.com/org/repo//dir?ref=" + commit:                                 {"git@github.com:org/repo", commit, "dir"},
	"github.com/org/repo/dir?ref=" + commit:                                      {"https://github.com/org/repo", commit, "dir"},
	"GitHub.com/org/repo?ref=" + commit:                                          {"https://github.com/org/repo", commit, "."},
	"http://github.com/org/repo?ref=" + commit:                                   {"https://github.com/org/repo", commit, "."},
	"https://git.example.com/org/repo//a/../b?ref=" + commit:                     {"https://git.example.com/org/repo", commit, "b"},
	"https://git.example.com/org/repo//notCloned?ref=" + commit:                  {"https://git.example.com/org/repo", commit, "notCloned"},
	"https://git.example.com/org/repo//dir?ref=%zz":                              {"https://git.example.com/org/repo", "", "dir"},
	"https://git.example.com/org/repo//%2e%2e/dir?ref=" + commit:                 {"https://git.example.com/org/repo", commit, "%2e%2e/dir"},
}

func TestParse(t *testing.T) {
	for entry, want := range forms {
		got, err := remotebase.Parse(entry)
		if err != nil {
			t.Errorf("%s: %v", entry, err)
			continue
		}
		if diff := cmp.Diff([]string{want.repository, want.ref, want.directory}, []string{got.Repository, got.Ref, got.Directory}); diff != "" {
			t.Errorf("%s: %s", entry, diff)
		}
		found, err := got.Commit()
		if pinned := want.ref == commit; pinned != (err == nil) || pinned && found != commit || err != nil && !errors.Is(err, remotebase.ErrUnpinned) {
			t.Errorf("%s: got the commit %q, %v", entry, found, err)
		}
	}
	b, err := remotebase.Parse("https://git.example.com/org/repo?ref=" + strings.ToUpper(commit))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := b.Commit(); err != nil || found != commit {
		t.Errorf("got %s, %v", found, err)
	}
}

// local are entries that kustomize takes for paths.
var local = []string{"base", "../base", "/abs", "base?ref=" + commit, "a@b", "src/github.com/org/repo", "https://git.example.com/repo", "git://git.example.com/org/repo", "x:y/z", "C:/x"}

// The real command calls git with exactly what Parse finds. git is a program here that writes down what it is asked for.
func TestParseAsKustomize(t *testing.T) {
	built, err := testprograms.Build(testprograms.Kustomize)
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	log := filepath.Join(bin, "log")
	script := "#!/bin/sh\nif [ \"$1\" = fetch ]; then shift 2; printf '%s\\n%s\\n' \"$@\" >" + log + "; exit 1; fi\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	ask := func(entry string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte("components: ['"+entry+"']\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(log); err != nil {
			t.Fatal(err)
		}
		command := exec.Command(filepath.Join(built, testprograms.Kustomize.Name), "build", dir)
		command.Env = []string{"PATH=" + bin + ":/bin:/usr/bin", "HOME=" + dir}
		if out, err := command.CombinedOutput(); err == nil {
			t.Fatalf("%s was built: %s", entry, out)
		}
		asked, err := os.ReadFile(log)
		if err != nil {
			return ""
		}
		return string(asked)
	}
	for entry, form := range forms {
		want := form.repository + "\n" + form.ref + "\n"
		if form.ref == "" {
			want = form.repository + "\nHEAD\n"
		}
		if diff := cmp.Diff(want, ask(entry)); diff != "" || !remotebase.Looks(entry) {
			t.Errorf("%s: %s", entry, diff)
		}
	}
	for _, entry := range local {
		if asked := ask(entry); asked != "" || remotebase.Looks(entry) {
			t.Errorf("%s: kustomize asked git for %q", entry, asked)
		}
	}
}

// origin returns what kustomize itself reads from an entry: it notes with objects where they are from. Its prefix git:: makes it log.
func origin(entry string) *resource.Origin {
	log.SetOutput(io.Discard)
	return (&resource.Origin{}).Append(entry)
}

// compareEntry compares what is read from an entry with what kustomize reads.
func compareEntry(t *testing.T, entry string) {
	t.Helper()
	want := origin(entry)
	if looks := remotebase.Looks(entry); looks != (want.Repo != "") {
		t.Fatalf("%q looks like a base: %v, want repository %q", entry, looks, want.Repo)
	}
	b, err := remotebase.Parse(entry)
	if err == nil && (b.Repository != want.Repo || b.Ref != want.Ref || b.OriginPath() != want.Path) {
		t.Fatalf("%q is read as %q, %q, %q, want %+v", entry, b.Repository, b.Ref, b.OriginPath(), want)
	}
}

func TestEntriesAreReadAsByKustomize(t *testing.T) {
	pieces := []string{"https://", "HTTP://", "ssh://", "file://", "git::", "git@", "user-1@", "1a@", "github.com", "GitHub.com", "git.example.com", "host:8443",
		"/", "/", "/", "//", ":", "org", "repo", "repo.git", "_git/", "..", ".", "dir", "?ref=main", "?version=v1", "&ref=x", "?submodules=false", "?", "%2f", "é", ""}
	random := rand.New(rand.NewPCG(1, 1))
	bases := 0
	for range 200_000 {
		var entry strings.Builder
		for range random.IntN(9) {
			entry.WriteString(pieces[random.IntN(len(pieces))])
		}
		compareEntry(t, entry.String())
		if remotebase.Looks(entry.String()) {
			bases++
		}
	}
	if bases < 10_000 {
		t.Errorf("%d entries are bases, want at least 10,000", bases)
	}
}

// hostile are URLs that try to lead elsewhere than to https://git.example.com/org/ and ssh://git@git.example.com/org/, and
// what is said of them: "" where they are well formed, but not on the list.
var hostile = map[string]string{
	"https://evil.example.net/org/repo?ref=" + commit:                    "",
	"https://git.example.com@evil.example.net/org/repo?ref=" + commit:    "",
	"https://user:pw@git.example.com/org/repo?ref=" + commit:             "holds a password",
	"https://git.example.com:pw@evil.example.net/org/repo?ref=" + commit: "holds a password",
	"https://a@b@git.example.com/org/repo?ref=" + commit:                 "holds a password",
	"https://git.example.com\\@evil.example.net/org/repo?ref=" + commit:  "holds a password",
	"https://git.example.com%2f@evil.example.net/org/repo?ref=" + commit: "holds a password",
	"https://git.example.com%00.evil.example.net/org/repo?ref=" + commit: "not a plain host name",
	"https://git.example.com#.evil.example.net/org/repo?ref=" + commit:   "not a plain host name",
	"https://git.example.com./org/repo?ref=" + commit:                    "not a plain host name",
	"https://git.example.com\t/org/repo?ref=" + commit:                   "not a plain host name",
	"https://git.exаmple.com/org/repo?ref=" + commit:                     "not a plain host name", // a Cyrillic letter
	"https://[::1]/org/repo?ref=" + commit:                               "not a plain host name",
	"https://-oProxyCommand=x/org/repo?ref=" + commit:                    "not a plain host name",
	"https://git.example.com:/org/repo?ref=" + commit:                    "not a plain host name",
	"https://git.example.com:0443/org/repo?ref=" + commit:                "not a plain host name",
	"https://git.example.com.evil.example.net/org/repo?ref=" + commit:    "",
	"https://169.254.169.254/org/repo?ref=" + commit:                     "",
	"https://2852039166/org/repo?ref=" + commit:                          "",
	"https://localhost/org/repo?ref=" + commit:                           "",
	"https://git.example.com:8443/org/repo?ref=" + commit:                "",
	"https://git.example.com:22/org/repo?ref=" + commit:                  "",
	"http://git.example.com/org/repo?ref=" + commit:                      "",
	"http://git.example.com:443/org/repo?ref=" + commit:                  "",
	"https://git.example.com/other/repo?ref=" + commit:                   "",
	"https://git.example.com/ORG/repo?ref=" + commit:                     "",
	"https://git.example.com/org2/repo?ref=" + commit:                    "",
	"https://git.example.com/org.git/repo?ref=" + commit:                 "",
	"https://git.example.com/org/../other/repo.git?ref=" + commit:        "relative or encoded",
	"https://git.example.com/org/%2e%2e/other/repo.git?ref=" + commit:    "relative or encoded",
	"https://git.example.com/org%2frepo/x.git?ref=" + commit:             "relative or encoded",
	"https://git.example.com/org/./repo.git?ref=" + commit:               "relative or encoded",
	"https://git.example.com/org/re po?ref=" + commit:                    "relative or encoded",
	"https://git.example.com/org/repo;x?ref=" + commit:                   "relative or encoded",
	"https://git.example.com/org/repo\n?ref=" + commit:                   "relative or encoded",
	"https://git.example.com/org/repo//a/../../x?ref=" + commit:          "form that kustomize accepts",
	"https://git.example.com/org/repo//a\\..\\..\\x?ref=" + commit:       "character that is not allowed",
	"https://git.example.com/org/repo//deploy.yaml?ref=" + commit:        "single file",
	"https://git.example.com/org/repo/raw/" + commit + "/deploy.yaml":    "single file",
	"file:///srv/org/repo?ref=" + commit:                                 "never over file",
	"file://git.example.com/org/repo?ref=" + commit:                      "never over file",
	"git::file:///srv/repo?ref=" + commit:                                "never over file",
	"git::git::https://git.example.com/org/repo?ref=" + commit:           "form that kustomize accepts",
	"ext::sh -c id": "form that kustomize accepts",
	"git@git.example.com/org/repo?ref=" + commit:                                  "local path",
	"git@evil.example.net:org/repo?ref=" + commit:                                 "",
	"git@git.example.com:../org/repo?ref=" + commit:                               "relative or encoded",
	"ssh://git.example.com:2222/org/repo?ref=" + commit:                           "",
	"ssh://-oProxyCommand=x@git.example.com/org/repo?ref=" + commit:               "holds a password",
	"github.com/org/repo?ref=" + commit:                                           "",
	"https://git.example.com/org/" + strings.Repeat("a", 3000) + "?ref=" + commit: "longer than",
}

func TestHostileURLs(t *testing.T) {
	patterns := parseAll(t, "https://git.example.com/org/*", "ssh://git@git.example.com/org/*")
	for entry, want := range hostile {
		b, err := remotebase.Parse(entry)
		if err != nil {
			if want == "" || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw") {
				t.Errorf("%q: got %v, want %q", entry, err, want)
			}
			continue
		}
		if want != "" {
			t.Errorf("%q: it was read as %+v, want an error with %q", entry, b, want)
		}
		if i, url := giturl.Best(patterns, &b.Address); i >= 0 {
			t.Errorf("%q: it is allowed, and would be fetched from %s", entry, url)
		}
	}
}

func parseAll(t *testing.T, texts ...string) []giturl.Pattern {
	t.Helper()
	var out []giturl.Pattern
	for _, text := range texts {
		p, err := giturl.ParsePattern(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		out = append(out, p)
	}
	return out
}

func TestBest(t *testing.T) {
	patterns := parseAll(t, "https://git.example.com/org/*", "https://git.example.com/org/team/*", "HTTPS://Git.Example.com:443/org/library.git", "http://plain.example.com/a/b",
		"git@ssh.example.com:org/*", "ssh://git@ssh.example.com:7999/org/repo", "https://all.example.com/*")
	for repository, want := range map[string]string{
		"https://git.example.com/org/repo":          "https://git.example.com/org/repo",
		"https://GIT.example.com:443/org/repo.git":  "https://git.example.com/org/repo.git",
		"https://git.example.com/org/a/b/repo.git":  "https://git.example.com/org/a/b/repo.git",
		"https://git.example.com/org/team/repo.git": "https://git.example.com/org/team/repo.git",
		"https://git.example.com/org/library":       "HTTPS://Git.Example.com:443/org/library.git",
		"git@git.example.com:org/library.git":       "HTTPS://Git.Example.com:443/org/library.git",
		"ssh://git@git.example.com:22/org/repo":     "https://git.example.com/org/repo",
		"https://me@git.example.com/org/repo":       "https://git.example.com/org/repo",
		"http://plain.example.com:80/a/b.git":       "http://plain.example.com/a/b",
		"https://plain.example.com/a/b":             "",
		"ssh://git@ssh.example.com/org/repo":        "git@ssh.example.com:org/repo",
		"ssh://git@ssh.example.com:7999/org/repo":   "ssh://git@ssh.example.com:7999/org/repo",
		"https://all.example.com/any/thing":         "https://all.example.com/any/thing",
		"https://git.example.com/organisation/repo": "",
		"https://git.example.com/org.git":           "",
	} {
		b, err := remotebase.Parse(repository + "?ref=" + commit)
		if err != nil && want != "" {
			t.Errorf("%s: %v", repository, err)
		}
		if err != nil {
			continue
		}
		if _, got := giturl.Best(patterns, &b.Address); got != want {
			t.Errorf("%s: got %q, want %q", repository, got, want)
		}
	}
	if i, _ := giturl.Best(patterns, &mustParse(t, "https://git.example.com/org/team/repo?ref="+commit).Address); i != 0 {
		// Two segments are the repository here, so that it is org/team; the rest is a directory.
		t.Errorf("got %d", i)
	}
	if i, _ := giturl.Best(patterns, &mustParse(t, "https://git.example.com/org/team/repo.git?ref="+commit).Address); i != 1 {
		t.Errorf("got %d, want the longer path", i)
	}
	if i, _ := giturl.Best(patterns, &mustParse(t, "https://git.example.com/org/library?ref="+commit).Address); i != 2 {
		t.Errorf("got %d, want the repository itself", i)
	}
}

func mustParse(t *testing.T, entry string) *remotebase.Base {
	t.Helper()
	b, err := remotebase.Parse(entry)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRedacted(t *testing.T) {
	for entry, want := range map[string]string{
		"https://me:s3cr3t@git.example.com/org/repo?ref=main&token=s3cr3t": "https://git.example.com/org/repo?ref=main",
		"https://s3cr3t@git.example.com/org/repo":                          "https://git.example.com/org/repo",
		"git::https://s3cr3t@git.example.com/org/repo":                     "git::https://git.example.com/org/repo",
		"me:s3cr3t@git.example.com/org/repo":                               "git.example.com/org/repo",
		"git@git.example.com:org/repo?ref=v1":                              "git@git.example.com:org/repo?ref=v1",
		"ssh://git@git.example.com/org/repo":                               "ssh://git@git.example.com/org/repo",
		"ssh://git:s3cr3t@git.example.com/org/repo":                        "ssh://git.example.com/org/repo",
	} {
		if got := remotebase.Redacted(entry); got != want {
			t.Errorf("%s: got %s", entry, got)
		}
	}
}

// Whatever is written, what is fetched begins with what was allowed, and has nothing in it that means something else.
func FuzzParse(f *testing.F) {
	for entry := range forms {
		f.Add(entry)
	}
	for entry := range hostile {
		f.Add(entry)
	}
	var patterns []giturl.Pattern
	for _, text := range []string{"https://git.example.com/org/*", "git@git.example.com:team/*"} {
		p, err := giturl.ParsePattern(text)
		if err != nil {
			f.Fatal(err)
		}
		patterns = append(patterns, p)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		_ = remotebase.Redacted(entry)
		compareEntry(t, entry)
		b, err := remotebase.Parse(entry)
		if err != nil {
			return
		}
		if !remotebase.Looks(entry) {
			t.Errorf("%q is read, and is nothing to kustomize", entry)
		}
		if d := b.Directory; d == ".." || strings.HasPrefix(d, "../") || strings.HasPrefix(d, "/") || d == "" {
			t.Errorf("%q leads to %q", entry, d)
		}
		if found, err := b.Commit(); err == nil && len(found) != 40 {
			t.Errorf("%q has the commit %q", entry, found)
		}
		i, url := giturl.Best(patterns, &b.Address)
		if i < 0 {
			return
		}
		rest, ok := strings.CutPrefix(url, []string{"https://git.example.com/org/", "git@git.example.com:team/"}[i])
		if !ok || rest == "" || strings.Contains(rest, "..") && strings.Contains("/"+rest+"/", "/../") || strings.ContainsAny(rest, "\\%?#@: \n") {
			t.Errorf("%q is fetched from %q", entry, url)
		}
	})
}
