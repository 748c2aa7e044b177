// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

type fixture struct {
	*Repository
	t      *testing.T
	client pullrequest.Host
}

// newFixture starts a host with a repository, whose branches main and change differ by one file.
func newFixture(t *testing.T) *fixture {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("the git command is not installed")
	}
	dir := t.TempDir()
	h, err := Start(t.Context(), filepath.Join(dir, "git"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	r, err := h.Repository(t.Context(), filepath.Join(dir, "git"), "shop/app", filepath.Join(dir, "work"))
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Repository: r, t: t}
	f.commit("First", "a.yaml", "a: 1\n")
	f.inWork("checkout", "-q", "-b", "team/change")
	f.commit("Second", "a.yaml", "a: <script>\n")
	f.inWork("checkout", "-q", "main")
	f.client, err = pullrequest.Open(pullrequest.Options{Provider: giturl.Gitea, Repository: r.URL, Credentials: pullrequest.Credentials{Token: h.Token}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) inWork(args ...string) string {
	f.t.Helper()
	out, err := f.InWork(context.Background(), args...)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

func (f *fixture) commit(subject, name, text string) {
	f.t.Helper()
	if _, err := f.Commit(context.Background(), subject, map[string]string{name: text}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) get(path string) string {
	f.t.Helper()
	response, err := http.Get(f.host.URL + path)
	if err != nil {
		f.t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return string(text)
}

// TestPrerigsClientAtTheHost opens, changes, closes and merges by the client that Prerig has for Gitea.
func TestPrerigsClientAtTheHost(t *testing.T) {
	f, ctx := newFixture(t), t.Context()
	if found, err := f.client.Find(ctx, "team/change", "main"); found != nil || err != nil {
		t.Fatalf("before there is one: %+v, %v", found, err)
	}
	made, err := f.client.Create(ctx, "team/change", "main", pullrequest.Content{Title: "One", Body: "text", Labels: []string{"rendered"}})
	if err != nil || made.State != pullrequest.StateOpen || made.Number != 1 || made.Author != author || len(made.Labels) != 1 {
		t.Fatalf("opened %+v, %v", made, err)
	}
	if again, err := f.client.Create(ctx, "team/change", "main", pullrequest.Content{Title: "Two"}); err != nil || again.Number != 1 {
		t.Errorf("opened twice: %+v, %v", again, err)
	}
	if _, err := f.client.Create(ctx, "none", "main", pullrequest.Content{Title: "Two"}); err == nil {
		t.Error("one of a missing branch is opened")
	}
	if after, err := f.client.Update(ctx, 1, pullrequest.Content{Title: "One", Body: "other"}); err != nil || after.Body != "other" {
		t.Errorf("updated %+v, %v", after, err)
	}
	if err := f.client.Close(ctx, 1, "no more"); err != nil {
		t.Fatal(err)
	}
	if found, err := f.client.Find(ctx, "team/change", "main"); err != nil || found.State != pullrequest.StateClosed {
		t.Errorf("closed %+v, %v", found, err)
	}
	merger, ok := f.client.(pullrequest.Merger)
	if !ok {
		t.Fatal("the client does not merge")
	}
	second, err := f.client.Create(ctx, "team/change", "main", pullrequest.Content{Title: "Again"})
	if err != nil || second.Number != 2 {
		t.Fatalf("opened %+v, %v", second, err)
	}
	f.SetStatus(second.HeadCommit, "ci/test", "success", "")
	if checks, err := merger.Checks(ctx, second.HeadCommit); err != nil || len(checks) != 1 || checks[0].State != pullrequest.CheckGreen {
		t.Errorf("checks %+v, %v", checks, err)
	}
	if _, err := merger.Merge(ctx, 2, strings.Repeat("0", 40), pullrequest.MergeCommit); err == nil {
		t.Error("another commit than the newest is merged")
	}
	merged, err := merger.Merge(ctx, 2, second.HeadCommit, pullrequest.MergeCommit)
	if err != nil || merged.State != pullrequest.StateMerged || merged.MergeCommit != f.head("main") {
		t.Errorf("merged %+v, %v; main is at %s", merged, err, f.head("main"))
	}
}

// TestAPersonAtThePages reads and merges a pull request, after one that has changed meanwhile.
func TestAPersonAtThePages(t *testing.T) {
	f := newFixture(t)
	if _, err := f.client.Create(t.Context(), "team/change", "main", pullrequest.Content{Title: "<b>One</b>", Body: "**6** <script>alert(1)</script>"}); err != nil {
		t.Fatal(err)
	}
	text := f.get("/shop/app/pulls/1")
	for _, want := range []string{"&lt;b&gt;One&lt;/b&gt;", "<b>6</b> &lt;script&gt;", `<span class="add">&#43;a: &lt;script&gt;`, f.head("team/change")} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	merge := func(head, site string) int {
		request, err := http.NewRequest(http.MethodPost, f.PullURL(1), strings.NewReader(url.Values{"do": {"merge"}, "head": {head}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Sec-Fetch-Site", site)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	if code := merge(f.head("team/change"), "cross-site"); code != http.StatusForbidden {
		t.Errorf("a page of another site merges: %d", code)
	}
	if code := merge(f.head("main"), "same-origin"); code != http.StatusConflict {
		t.Errorf("a commit that the page has not shown is merged: %d", code)
	}
	if code := merge(f.head("team/change"), "same-origin"); code != http.StatusOK {
		t.Errorf("the merge is answered with %d", code)
	}
	if text := f.get("/shop/app"); !strings.Contains(text, "Merge pull request #1") {
		t.Errorf("the history lacks the merge:\n%s", text)
	}
	if text := f.get("/shop/app/commit/" + f.head("main")); !strings.Contains(text, `<span class="add">`) {
		t.Errorf("the page of the merge has no difference:\n%s", text)
	}
	if text := f.get("/shop/app/commit/--output=x"); !strings.Contains(text, "404") {
		t.Errorf("an option is taken for a commit:\n%s", text)
	}
}

// TestABranchThatIsBehind is not merged, as that would undo what its base has got.
func TestABranchThatIsBehind(t *testing.T) {
	f := newFixture(t)
	if _, err := f.client.Create(t.Context(), "team/change", "main", pullrequest.Content{Title: "One"}); err != nil {
		t.Fatal(err)
	}
	f.commit("Third", "b.yaml", "b: 1\n")
	if err := f.Merge(1, "", "Ann"); !errors.Is(err, errBehind) {
		t.Errorf("merging: %v", err)
	}
}

// TestOtherNames: a page of another site cannot read the host by a name that it has made to point here.
func TestOtherNames(t *testing.T) {
	f := newFixture(t)
	request, err := http.NewRequest(http.MethodGet, f.host.URL+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = "demo.example.com"
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("answered with %s", response.Status)
	}
}
