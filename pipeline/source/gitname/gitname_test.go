// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gitname_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/source/gitname"
)

// pieces are what names are made of in the comparison with git: all that its own rules look at, and ordinary text.
var pieces = []string{
	".", "..", ".git", ".GIT", ".Git", "git", "git~1", "GIT~1", "GIT~2", "gitmod~1", "gi7eba~1", ".gitmodules", ".gitattributes", ".gitignore",
	"~1", " ", "  ", ":", "::$INDEX_ALLOCATION", ":stream", "\\", "/", "/", "/", "//", "\u200c", "\u200d", "\u202a", "\u202e", "\u206f", "\ufeff",
	"g", "i", "t", ".g", "it", "x", "web", "-", "_", "@", "@{", "~", "^", "?", "*", "[", ".lock", "HEAD", "head", "refs", "heads", "con", "aux.txt",
	"nul ", "COM1", "lpt9.", "ä", "a\u0308", "é", "K", "ſ", "\x01", "\t", "\n", "\x7f", "\u0085", "\u00a0", "\u3164", "\U000e0041", "\xff", "日本",
	"pipeline", "prerig", "0123456789", "<", ">", "|", "\"",
}

func randomName(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(5) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

func git(t *testing.T, dir, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "core.protectNTFS=true", "-c", "core.protectHFS=true", "-c", "core.quotePath=false"}, args...)...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = append(cmd.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b.example",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b.example")
	out, err := cmd.CombinedOutput()
	return string(bytes.TrimSpace(out)), err
}

func mustGit(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	out, err := git(t, dir, stdin, args...)
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

// A clone of a branch with every generated path that is accepted has all of these files, with the protections of NTFS and HFS+.
func TestGitChecksOutEveryAcceptedPath(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	repository, clone := t.TempDir(), t.TempDir()
	mustGit(t, repository, "", "init", "-q", "-b", "rendered")
	blob := mustGit(t, repository, "text", "hash-object", "-w", "--stdin")
	var index strings.Builder
	accepted, refused := map[string]string{}, 0
	for range 20_000 {
		name := randomName(r)
		if gitname.CheckPath(name) != nil {
			refused++
			continue
		}
		at := name + "/file.yaml"
		if accepted[gitname.Key(at)] == "" {
			accepted[gitname.Key(at)] = at
			fmt.Fprintf(&index, "100644 %s\t%s\x00", blob, at)
		}
	}
	if len(accepted) < 200 || refused < 5000 {
		t.Fatalf("%d paths are accepted and %d refused: too few to compare", len(accepted), refused)
	}
	mustGit(t, repository, index.String(), "update-index", "-z", "--index-info")
	mustGit(t, repository, "", "commit", "-q", "-m", "Render")
	mustGit(t, clone, "", "clone", "-q", "-b", "rendered", repository, ".")
	if listed := strings.Count(mustGit(t, clone, "", "ls-files", "-z"), "\x00"); listed != len(accepted) {
		t.Errorf("the clone has %d files, want %d", listed, len(accepted))
	}
	if changed := mustGit(t, clone, "", "status", "--porcelain"); changed != "" {
		t.Errorf("the clone differs from the branch: %s", changed)
	}
}

// Each of these paths makes git refuse to check a branch out.
func TestPathsThatGitRefusesAreRefused(t *testing.T) {
	repository := t.TempDir()
	mustGit(t, repository, "", "init", "-q")
	blob := mustGit(t, repository, "text", "hash-object", "-w", "--stdin")
	for _, name := range []string{
		"x/.git::$INDEX_ALLOCATION/x", "x/GIT~1/y", "x/.git /y", "x/.git./y", "x/.git:y/z", "x/.GIT/hooks", "x/.g\u200cit/y", ".\ufeffgit", "git~1",
		"x/.git . ./y", "x/.git\\hooks", "x/git~1.", "x/.G\u200dI\u202eT/y", "x/../y", "x//y", "./y", "x/.Git::$DATA",
	} {
		// Whether git ends with an error or leaves the path out depends on the command; this one leaves it out.
		_, err := git(t, repository, fmt.Sprintf("100644 %s\t%s\x00", blob, name), "update-index", "-z", "--index-info")
		if err == nil && mustGit(t, repository, "", "ls-files") != "" {
			t.Errorf("git accepts %q, so that the case proves nothing", name)
		}
		if gitname.CheckPath(name) == nil {
			t.Errorf("%q is accepted", name)
		}
	}
}

// Other systems than the one of the daemon cannot check these out, would change them, or show them as something else.
func TestPathsThatSomeSystemCannotKeepAreRefused(t *testing.T) {
	for _, name := range []string{
		"con", "x/AUX/y", "nul.yaml", "com1", "LPT9.txt", "com¹", "conin$", "prn .x", "web.", "web ", "x/web. ", "a:b", "a\\b", "a*b", "a?b", "a\"b", "a<b",
		"a|b", "gitmod~1", "GI7EBA~1", "progra~1", "x/.gitmodules/y", ".GITATTRIBUTES", ".gitmodules ", "a\u202eb", "a\u200bb", "a\x1bb", "a\nb",
		"a\u2028b", "a\u00a0b", "a\u3164b", "a\ufe0fb", "a\U000e0041b", "a\xffb", "a\u0308", "\u212b", "\u2067x",
		strings.Repeat("a", 256), strings.Repeat("a/", 600) + "a",
	} {
		if err := gitname.CheckPath(name); err == nil {
			t.Errorf("%q is accepted", name)
		} else if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == '\u202e' }) {
			t.Errorf("the error about %q has its characters: %q", name, err)
		}
	}
}

func TestUsualPathsAreAccepted(t *testing.T) {
	for _, name := range []string{
		"web", "apps/shop.example.com/web-1.2", "clusters/eu/.well-known", "a b/c", "x/.github2", "git", "x/.gitkeep", "Web", "über/日本", "~/x", "a~b", "console",
		"auxiliary", "com10", "x/_con", "a@b", "a+b=c,d", "a'b", "x/git-repo", "(1)", "a%20b", "100%",
	} {
		if err := gitname.CheckPath(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestKeyIsEqualForNamesThatASystemTakesForTheSame(t *testing.T) {
	for _, same := range [][]string{
		{"web", "WEB", "Web"}, {"ä", "Ä", "a\u0308", "A\u0308"}, {"straße", "STRASSE", "STRAẞE"}, {"k", "\u212a"}, {"σ", "ς", "Σ"}, {"s", "ſ"},
	} {
		for _, name := range same[1:] {
			if gitname.Key(name) != gitname.Key(same[0]) {
				t.Errorf("%q and %q have other keys", name, same[0])
			}
		}
	}
	if gitname.Key("web") == gitname.Key("web-1") || gitname.Key("a") == gitname.Key("ä") {
		t.Error("names that all systems tell apart have one key")
	}
}

// Git accepts every generated branch that is accepted, and can clone it.
func TestGitAcceptsEveryAcceptedBranch(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	repository := t.TempDir()
	mustGit(t, repository, "", "init", "-q", "-b", "rendered")
	mustGit(t, repository, "", "commit", "-q", "--allow-empty", "-m", "first")
	commit := mustGit(t, repository, "", "rev-parse", "HEAD")
	seen, refs, refused := map[string]bool{}, []string{}, 0
	for range 20_000 {
		name := randomName(r)
		if gitname.CheckBranch(name) != nil {
			refused++
			continue
		}
		// No branch is a directory of another, so each has one of its own around it.
		if key := gitname.Key(name); !seen[key] && len(refs) < 400 {
			seen[key] = true
			refs = append(refs, fmt.Sprintf("%s-%d", name, len(refs)))
		}
	}
	if len(refs) < 200 || refused < 5000 {
		t.Fatalf("%d branches are accepted and %d refused: too few to compare", len(refs), refused)
	}
	var create strings.Builder
	for i, name := range refs {
		if strings.Contains(name, "/") {
			name = strings.ReplaceAll(name, "/", fmt.Sprintf("-%d/", i))
		}
		if gitname.CheckBranch(name) == nil {
			fmt.Fprintf(&create, "create refs/heads/%s %s\n", name, commit)
		}
	}
	mustGit(t, repository, create.String(), "update-ref", "--stdin")
	mustGit(t, t.TempDir(), "", "clone", "-q", repository, ".")
}

func TestBranchesThatGitRefusesOrMisreadsAreRefused(t *testing.T) {
	for _, name := range []string{
		"refs/heads/x", "refs", "heads/x", "heads", "tags/v1", "remotes/origin/x", "HEAD", "FETCH_HEAD", "head", "-x", "a/.b", ".b", "a.lock/b", "a.lock", "@",
		"a..b", "a@{b", "a b", "a~1", "a^", "a:b", "a?b", "a*b", "a[b", "a\\b", "a/", "/a", "a//b", "a.", "a\x01b", "a\u202eb", "a\u200bb", "a\u0308", "a./b", "aux",
		"x/con", strings.Repeat("0", 40), strings.Repeat("a", 251), "a|b", "a<b", "a\"b", "x/.git", "x/GIT~1", "",
	} {
		if gitname.CheckBranch(name) == nil {
			t.Errorf("%q is accepted", name)
		}
	}
	for _, name := range []string{"main", "rendered", "env/prod", "Rendered", "release-1.2", "headless", "tagsfoo/x", "über", "feature/a_b", "ahead", "refsx"} {
		if err := gitname.CheckBranch(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
