// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/publish"
)

// promoterMetadata is what GitOps Promoter reads of hydrator.metadata and of notes, with the types and patterns of its
// API (api/v1alpha1, HydratorMetadata). Its module is not on the Go module proxy, so it is written out here.
type promoterMetadata struct {
	RepoURL    string              `json:"repoURL,omitempty"`
	DrySha     string              `json:"drySha,omitempty"`
	Author     string              `json:"author,omitempty"`
	Date       metav1.Time         `json:"date,omitempty"`
	Subject    string              `json:"subject,omitempty"`
	Body       string              `json:"body,omitempty"`
	References []promoterReference `json:"references,omitempty"`
}

type promoterReference struct {
	Commit *struct {
		Author  string       `json:"author,omitempty"`
		Date    *metav1.Time `json:"date,omitempty"`
		Subject string       `json:"subject,omitempty"`
		Body    string       `json:"body,omitempty"`
		Sha     string       `json:"sha,omitempty"`
		RepoURL string       `json:"repoURL,omitempty"`
	} `json:"commit,omitempty"`
}

var (
	shaPattern = regexp.MustCompile(`^([a-f0-9]{40}|[a-f0-9]{64})$`)
	urlPattern = regexp.MustCompile(`^(https?://.*)?$`)
)

// promoter plays GitOps Promoter: it has a clone of its own, fetches the notes over HTTP, and takes the source commit of an
// environment from the note on the proposed commit, else from the file.
type promoter struct {
	t   *testing.T
	dir string
}

func newPromoter(t *testing.T, r *gittest.Repository) *promoter {
	p := &promoter{t, t.TempDir()}
	p.git("clone", "-q", r.URL, ".")
	return p
}

func (p *promoter) git(args ...string) string {
	p.t.Helper()
	command := exec.Command("git", args...)
	command.Dir = p.dir
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		p.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

func (p *promoter) parse(text string) promoterMetadata {
	p.t.Helper()
	var m promoterMetadata
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		p.t.Fatalf("%v in %s", err, text)
	}
	if !shaPattern.MatchString(m.DrySha) || !urlPattern.MatchString(m.RepoURL) {
		p.t.Errorf("the API server would refuse %+v", m)
	}
	for _, r := range m.References {
		if r.Commit.Sha != "" && !shaPattern.MatchString(r.Commit.Sha) || !urlPattern.MatchString(r.Commit.RepoURL) {
			p.t.Errorf("the API server would refuse the reference %+v", r.Commit)
		}
	}
	return m
}

// proposed returns the hydrated commit of an environment, its metadata, and the source commit that it counts as.
func (p *promoter) proposed(active, activePath string) (hydrated string, file promoterMetadata, effective string) {
	p.t.Helper()
	branch := active + "-next"
	if activePath != "" {
		branch += "/" + activePath
	}
	p.git("fetch", "-q", "origin", "+refs/heads/*:refs/remotes/origin/*", "+refs/notes/hydrator.metadata:refs/notes/hydrator.metadata")
	hydrated = p.git("rev-parse", "origin/"+branch)
	file = p.parse(p.git("show", hydrated+":"+path.Join(activePath, "hydrator.metadata")))
	return hydrated, file, p.parse(p.git("notes", "--ref=refs/notes/hydrator.metadata", "show", hydrated)).DrySha
}

func sha(n int) string { return fmt.Sprintf("%040x", n) }

func TestPromoterReadsAProposal(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	repository.Commit("active", map[string]string{"README": "hello"})
	repository.InWork("push", "-q", "origin", "HEAD:environment/prod")
	b := branch(t, repository, "environment/prod")
	b.Propose = true
	c := change(t, "shop", ".", configMap("a", "1"))
	c.Origin.Digest = sha(1)
	c.Origin.Body = "Because.\n\nArgocd-reference-commit-author: Bob Builder <bob@example.com>\nArgocd-reference-commit-sha: " + sha(7) +
		"\nArgocd-reference-commit-subject: Fix the till\nArgocd-reference-commit-body: \"It rang twice.\\n\\nSigned-off-by: Bob <bob@example.com>\"\n" +
		"Argocd-reference-commit-repourl: https://user:secret@git.example.com/till.git\nArgocd-reference-commit-date: 2026-01-01T08:23:45-04:00\nSigned-off-by: Ann <ann@example.com>"
	first := run(t, b, c)
	p := newPromoter(t, repository)
	hydrated, file, effective := p.proposed("environment/prod", "")
	if hydrated != first.Commit.String() || effective != sha(1) {
		t.Errorf("it sees %s of %s", hydrated, effective)
	}
	want := promoterMetadata{
		RepoURL: "https://git.example.com/config.git", DrySha: sha(1), Author: "Ann <ann@example.com>", Date: metav1.NewTime(c.Origin.Date),
		Subject: "Change the shop", Body: c.Origin.Body, References: file.References,
	}
	if diff := cmp.Diff(want, file); diff != "" {
		t.Error(diff)
	}
	if len(file.References) != 1 {
		t.Fatalf("%d references", len(file.References))
	}
	r := file.References[0].Commit
	if r.Author != "Bob Builder <bob@example.com>" || r.Sha != sha(7) || r.Subject != "Fix the till" || r.RepoURL != "https://git.example.com/till.git" ||
		r.Body != "It rang twice.\n\nSigned-off-by: Bob <bob@example.com>" || r.Date.UTC().Format(time.RFC3339) != "2026-01-01T12:23:45Z" {
		t.Errorf("the reference is %+v", r)
	}
	// A source commit without an effect: the note alone moves, and the environment counts as that of the new commit.
	c.Origin.Digest, c.Origin.Body = sha(2), ""
	run(t, b, c)
	if again, file, effective := p.proposed("environment/prod", ""); again != hydrated || file.DrySha != sha(1) || effective != sha(2) {
		t.Errorf("it sees %s of %s, in the file %s", again, effective, file.DrySha)
	}
	// A source that is an artifact has a digest with its algorithm in front.
	c.Origin.Digest = "sha256:" + strings.Repeat("ab", 32)
	run(t, b, c)
	if _, _, effective := p.proposed("environment/prod", ""); effective != strings.Repeat("ab", 32) {
		t.Errorf("it sees %s", effective)
	}
}

// What cannot be a reference does not keep GitOps Promoter from reading the rest.
func TestReferencesThatAreNone(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "prod")
	b.Propose = true
	for i, tc := range []struct{ body, want string }{
		{"Nothing.", "[]"},
		{"Argocd-reference-commit-sha: " + sha(7) + "\n\nNot in the last paragraph.", "[]"},
		{"Argocd-reference-commit-sha: HEAD\nArgocd-reference-commit-date: yesterday\nArgocd-reference-commit-body: not JSON\nArgocd-reference-commit-author: nobody\nArgocd-reference-commit-repourl: javascript:alert(1)", "[]"},
		{"Argocd-reference-commit-sha: " + sha(7) + "\nargocd-reference-commit-SHA: " + sha(8), `[{"commit":{"sha":"` + sha(8) + `"}}]`},
		{"Argocd-reference-commit-author: Bob\nArgocd-reference-commit-author-email: bob@example.com", `[{"commit":{"author":"Bob <bob@example.com>"}}]`},
	} {
		c := change(t, "shop", ".", configMap("a", fmt.Sprint(i)))
		c.Origin.Digest, c.Origin.Body = sha(i+1), tc.body
		run(t, b, c)
		_, _, _ = newPromoter(t, repository).proposed("prod", "")
		var file struct {
			References json.RawMessage `json:"references"`
		}
		if err := json.Unmarshal([]byte(repository.Git("show", "prod-next:hydrator.metadata")), &file); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if file.References == nil {
			file.References = json.RawMessage("[]")
		}
		if err := json.Compact(&got, file.References); err != nil || got.String() != tc.want {
			t.Errorf("%q gives %s, %v, want %s", tc.body, got.String(), err, tc.want)
		}
	}
}

// A server that is writing the notes for somebody else says "cannot lock ref". That is no failure: the push is repeated,
// the branch has one commit, and it has its note.
func TestLockedNotes(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "config")
	b := branch(t, repository, "prod")
	b.Propose = true
	c := change(t, "shop", ".", configMap("a", "1"))
	c.Origin.Digest = sha(1)
	run(t, b, c)
	lock, pushes := filepath.Join(repository.Bare, "refs", "notes", "hydrator.metadata.lock"), 0
	server.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "git-receive-pack") {
			return false
		}
		var err error
		if pushes++; pushes == 1 {
			err = os.WriteFile(lock, nil, 0o600)
		} else if pushes == 2 {
			err = os.Remove(lock)
		}
		if err != nil {
			t.Error(err)
		}
		return false
	})
	for _, digest := range []string{sha(2), sha(3)} { // with a commit, and with a note only
		pushes = 0
		c.Origin.Digest = digest
		if digest == sha(2) {
			c = change(t, "shop", ".", configMap("a", "2"))
			c.Origin.Digest = digest
		}
		result := run(t, b, c)
		if pushes != 2 || result.Changed != (digest == sha(2)) {
			t.Errorf("%d pushes, %+v", pushes, result)
		}
		if hydrated, _, effective := newPromoter(t, repository).proposed("prod", ""); hydrated != result.Commit.String() || effective != digest {
			t.Errorf("it sees %s of %s, want %s of %s", hydrated, effective, result.Commit, digest)
		}
	}
	if got := repository.Git("rev-list", "--count", "prod-next"); got != "2" {
		t.Errorf("%s commits", got)
	}
}

// Many applications propose at once. All of them write the one ref of notes, so most pushes come too late or find it
// locked, and no note may get lost; and nobody's directory but the own is touched.
func TestManyProposals(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	repository.Commit("active", map[string]string{"apps/other/x": "x"})
	const apps, rounds = 5, 3
	var wg sync.WaitGroup
	for i := range apps {
		app := fmt.Sprintf("apps/a%d", i)
		b := branch(t, repository, "main")
		b.Propose, b.ActivePath, b.Attempts = true, app, 60
		wg.Go(func() {
			for round := range rounds {
				// The last round changes nothing but the source's commit.
				c := change(t, strings.ReplaceAll(app, "/", "-"), app, configMap("a", fmt.Sprint(min(round, rounds-2))))
				c.Origin.Digest = sha(round + 1)
				if _, err := b.Publish(ctx, []publish.Change{c}); err != nil {
					t.Errorf("%s, round %d: %v", app, round, err)
				}
			}
		})
	}
	wg.Wait()
	p := newPromoter(t, repository)
	for i := range apps {
		app := fmt.Sprintf("apps/a%d", i)
		hydrated, file, effective := p.proposed("main", app)
		if effective != sha(rounds) || file.DrySha != sha(rounds-1) {
			t.Errorf("%s: the note says %s, the file %s", app, effective, file.DrySha)
		}
		if got := p.git("rev-list", "--count", "origin/main.."+hydrated); got != fmt.Sprint(rounds-1) {
			t.Errorf("%s: %s commits", app, got)
		}
		if got := p.git("diff", "--name-only", "origin/main", hydrated, "--", "apps"); got != app+"/hydrator.metadata\n"+app+"/shop/configmap-a.yaml" {
			t.Errorf("%s: changed are %s", app, got)
		}
	}
	repository.Git("fsck", "--strict")
}
