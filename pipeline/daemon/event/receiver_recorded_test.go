// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // senders still send it beside the other
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bufio"
	"bytes"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/internal/statetest"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

const (
	secret = "the secret of the hook"
	before = "9f1c2d3e4b5a69788796a5b4c3d2e1f001122334"
	after  = "1a2b3c4d5e6f708192a3b4c5d6e7f80912233445"
	digest = "sha256:4f5e6d7c8b9a0f1e2d3c4b5a69788796a5b4c3d2e1f00112233445566778899a"
)

var clock = time.Unix(1_772_597_170, 0)

// recorded is a request as it is on the wire, in testdata, without what signs it.
type recorded struct {
	name   string
	header http.Header
	body   string
}

// provider is the longest name of a provider that the file's name begins with.
func (r recorded) provider() event.Provider {
	found := ""
	for _, p := range event.Providers() {
		if strings.HasPrefix(r.name, p+"-") && len(p) > len(found) {
			found = p
		}
	}
	return event.Provider(found)
}

func recordings(t *testing.T) (out []recorded) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.http")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		head, body, ok := bytes.Cut(text, []byte("\n\n"))
		if !ok {
			t.Fatalf("%s has no body", file)
		}
		header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(head, "\n\n"...)))).ReadMIMEHeader()
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, recorded{strings.TrimSuffix(filepath.Base(file), ".http"), http.Header(header), string(body)})
	}
	return out
}

func code(sum func() hash.Hash, key, text string) string {
	m := hmac.New(sum, []byte(key))
	m.Write([]byte(text))
	return hex.EncodeToString(m.Sum(nil))
}

// sign adds what the sender adds for a secret, and gives the query of the URL.
func (r recorded) sign(h http.Header, key, body string) (query string) {
	sha2 := code(sha256.New, key, body)
	switch {
	case r.name == "gitlab-signed":
		stamp := strconv.FormatInt(clock.Unix(), 10)
		m := hmac.New(sha256.New, []byte(key))
		m.Write([]byte("msg_1." + stamp + "." + body))
		h.Set("webhook-id", "msg_1")
		h.Set("webhook-timestamp", stamp)
		h.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)))
	case r.provider() == event.ArtifactRegistry:
		changed := map[string]any{}
		if key != secret {
			changed["aud"] = "https://elsewhere.example"
		}
		h.Set("Authorization", "Bearer "+googleKeys.Token(clock, changed))
	case r.provider() == event.AzureDevOps || r.provider() == event.ACR:
		(&http.Request{Header: h}).SetBasicAuth("prerig", key)
	case r.provider() == event.ECR:
		h.Set("X-Api-Key", key)
	case r.provider() == event.Artifactory:
		h.Set("X-Jfrog-Event-Auth", key)
		if r.name == "artifactory-signed" {
			h.Set("X-Jfrog-Event-Auth", sha2)
		}
	case r.provider() == event.Nexus:
		h.Set("X-Nexus-Webhook-Signature", code(sha1.New, key, body))
	case r.provider() == event.Gogs:
		h.Set("X-Gogs-Signature", sha2)
	case r.provider() == event.GitLab:
		h.Set("X-Gitlab-Token", key)
	case r.provider() == event.GitHub:
		h.Set("X-Hub-Signature", "sha1="+code(sha1.New, key, body))
		h.Set("X-Hub-Signature-256", "sha256="+sha2)
	case r.provider() == event.Gitea || r.provider() == event.Forgejo:
		if r.provider() == event.Forgejo {
			h.Set("X-Forgejo-Signature", sha2)
		}
		h.Set("X-Gitea-Signature", sha2)
		h.Set("X-Gogs-Signature", sha2)
		h.Set("X-Hub-Signature", "sha1="+code(sha1.New, key, body))
		h.Set("X-Hub-Signature-256", "sha256="+sha2)
	case strings.HasPrefix(r.name, "bitbucket-"):
		h.Set("X-Hub-Signature", "sha256="+sha2)
	case r.provider() == event.Quay || r.provider() == event.DockerHub:
		return "?token=" + strings.ReplaceAll(key, " ", "%20")
	case r.provider() == event.Harbor:
		h.Set("Authorization", key)
	case r.provider() == event.Distribution || r.name == "flux-generic" || r.name == "cloudevents-binary":
		h.Set("Authorization", "Bearer "+key)
	default:
		h.Set("X-Signature", "sha256="+sha2)
	}
	return ""
}

// covers reports whether what is signed depends on the body.
func (r recorded) covers() bool {
	h := http.Header{}
	return r.sign(h, secret, "") == "" && h.Get("Authorization") == "" && h.Get("X-Gitlab-Token") == "" && h.Get("X-Api-Key") == "" && h.Get("X-Jfrog-Event-Auth") != secret
}

// kept is a store of the real queue that everything matters to.
type kept struct{ q *queue.Queue }

func (kept) Watches([]event.Change) bool { return true }

func (k kept) Put(ctx context.Context, e event.Event) (bool, error) { return k.q.Put(ctx, e) }

var googleKeys = event.NewTestKeys()

// receiverOf returns a receiver of the provider's name with the secret, or what stands for it.
func receiverOf(p event.Provider) event.Receiver {
	r := event.Receiver{Name: string(p), Provider: p, Secret: []byte(secret)}
	if p == event.ArtifactRegistry {
		r.Secret, r.Token = nil, googleKeys.Verifier()
	}
	return r
}

// serving has one receiver for each provider, on the queue of a directory.
func serving(t *testing.T, dir string, now *time.Time) (url string, q *queue.Queue, stop func()) {
	t.Helper()
	q, err := queue.Open(t.Context(), queue.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var receivers []event.Receiver
	for _, p := range event.Providers() {
		receivers = append(receivers, receiverOf(event.Provider(p)))
	}
	h, err := event.NewHandler(receivers, kept{q}, event.WithClock(func() time.Time { return *now }))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	return server.URL, q, func() { server.Close(); q.Close() }
}

func (r recorded) send(t *testing.T, url string, body string, sign func(h http.Header) (query string)) (status int, outcome string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, "", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = r.header.Clone()
	query := sign(request.Header)
	if request.URL, err = request.URL.Parse(url + "/hook/" + string(r.provider()) + query); err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var reply struct{ Outcome string }
	if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, reply.Outcome
}

// tellings is what each recording tells of, without the URLs of repositories.
var tellings = map[string][]string{
	"github-push": {"moved refs/heads/main"}, "github-push-form": {"moved refs/heads/main"}, "github-tag": {"made refs/tags/v1.2.0"},
	"github-deleted": {"deleted refs/heads/old"}, "github-ping": nil,
	"github-package": {"ghcr.io/shop/web:v3"}, "github-registry-package": {"ghcr.io/shop/web:v3"},
	"gitlab-push": {"moved refs/heads/main"}, "gitlab-signed": {"moved refs/heads/main"}, "gitlab-tag": {"made refs/tags/v1.2.0"},
	"gitlab-deleted": {"deleted refs/heads/old"}, "gitlab-system-hook": {"moved refs/heads/main"},
	"gitea-push": {"moved refs/heads/main"}, "gitea-push-form": {"moved refs/heads/main"}, "gitea-tag": {"made refs/tags/v1.2.0"},
	"gitea-deleted": {"deleted refs/heads/old"}, "forgejo-push": {"moved refs/heads/main"}, "forgejo-deleted": {"deleted refs/heads/old"},
	"bitbucket-cloud-push": {"moved refs/heads/main", "made refs/tags/v1.2.0"}, "bitbucket-cloud-deleted": {"deleted refs/heads/old"},
	"bitbucket-server-push": {"moved refs/heads/main", "made refs/tags/v1.2.0"}, "bitbucket-server-deleted": {"deleted refs/heads/old"},
	"bitbucket-server-ping": nil,
	"gogs-push":             {"moved refs/heads/main"}, "gogs-create": nil,
	"azure-devops-push": {"moved refs/heads/main", "made refs/tags/v1.2.0"}, "azure-devops-deleted": {"deleted refs/heads/old"},
	"acr-push": {"shop.azurecr.io/shop/web:v3"}, "acr-ping": nil, "acr-delete": nil,
	"ecr-push": {"123456789012.dkr.ecr.eu-central-1.amazonaws.com/shop/web:v3"}, "ecr-failed": nil, "ecr-scan": nil,
	"ecr-replication":          {"123456789012.dkr.ecr.eu-central-1.amazonaws.com/shop/web:v3"},
	"artifact-registry-insert": {"europe-docker.pkg.dev/shop/images/web:v3"}, "artifact-registry-untagged": nil, "artifact-registry-delete": nil,
	"artifactory-pushed": {"*/docker-local/shop/web:v3", "*/shop/web:v3"}, "artifactory-signed": {"*/docker-local/shop/web:v3", "*/shop/web:v3"}, "artifactory-deleted": nil,
	"nexus-component": {"*/images/shop/web:v3", "*/shop/web:v3"}, "nexus-asset": {"*/images/shop/web:v3", "*/shop/web:v3"}, "nexus-layer": nil, "nexus-maven": nil,
	"flux-generic": {"GitRepository flux-system/shop main@sha1:" + after}, "flux-hmac": {"GitRepository flux-system/shop main@sha1:" + after},
	"flux-oci":        {"OCIRepository flux-system/shop latest@" + digest},
	"distribution-v1": {"*/shop/web:v3"}, "distribution-v2": {"*/shop/web:v3"},
	"harbor-default": {"harbor.example/shop/web:v3"}, "harbor-cloudevents": {"harbor.example/shop/web:v3"},
	"quay-push": {"quay.io/shop/web:v3"}, "dockerhub-push": {"docker.io/shop/web:v3"},
	"cloudevents-binary": {"registry.example/shop/web:v3"}, "cloudevents-structured": {"registry.example/shop/web:v3"},
	"cloudevents-batch": {"registry.example/shop/web:v3"},
}

// ignoredPulls are events of pull requests that change nothing of what is proposed.
var ignoredPulls = []string{
	"github-pull-labeled", "gitea-pull-label-updated", "forgejo-pull-label-updated", "gitlab-pull-labelled", "gitlab-pull-approved",
	"bitbucket-cloud-pull-approved", "bitbucket-server-pull-approved", "azure-devops-pull-commented",
}

// All other recordings of pull requests tell of one.
func init() {
	files, _ := filepath.Glob("testdata/*-pull-*.http")
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".http")
		text, ending := "pull request 7 from limit to main", name[strings.LastIndexByte(name, '-')+1:]
		if slices.Contains([]string{"closed", "merged", "declined", "deleted", "reopened"}, ending) {
			text += ", decided"
		}
		tellings[name] = []string{text}
		if slices.Contains(ignoredPulls, name) {
			tellings[name] = nil
		}
	}
}

// urls are how users may write the repository of the recordings of a provider.
var urls = map[event.Provider][]string{
	event.GitHub: {"https://github.com/shop/config", "https://github.com/shop/config.git", "https://GitHub.com/Shop/Config/", "git@github.com:shop/config.git",
		"ssh://git@github.com/shop/config", "ssh://git@ssh.github.com:443/shop/config.git", "https://token@github.com/shop/config.git"},
	event.GitLab:  {"https://gitlab.example/platform/shop/config.git", "ssh://git@gitlab.example:2222/platform/shop/config.git", "https://gitlab.example/Platform/shop/config"},
	event.Gitea:   {"https://gitea.example/shop/config", "git@gitea.example:shop/config.git", "ssh://git@gitea.example:22/shop/config.git"},
	event.Forgejo: {"https://codeberg.example/shop/config", "ssh://git@codeberg.example/shop/config.git"},
	event.Gogs:    {"https://gogs.example/shop/config", "git@gogs.example:shop/config.git"},
	event.AzureDevOps: {"https://dev.azure.com/shop/platform/_git/config", "https://shop@dev.azure.com/shop/platform/_git/config", "git@ssh.dev.azure.com:v3/shop/platform/config",
		"https://shop.visualstudio.com/platform/_git/config", "https://shop.visualstudio.com/DefaultCollection/platform/_git/config", "shop@vs-ssh.visualstudio.com:v3/shop/platform/config"},
	event.BitbucketCloud:  {"https://bitbucket.org/shop/config.git", "git@bitbucket.org:shop/config.git", "ssh://git@altssh.bitbucket.org:443/shop/config.git", "https://ann@bitbucket.org/shop/config.git"},
	event.BitbucketServer: {"https://bitbucket.example/git/scm/SHOP/config.git", "https://bitbucket.example/git/scm/shop/config.git", "ssh://git@bitbucket.example:7999/shop/config.git"},
}

// checkURLs finds a pipeline by the URLs that a sender gives of a repository, however its source is written.
func checkURLs(t *testing.T, r recorded, given []string) {
	t.Helper()
	known := map[string]bool{}
	for _, u := range given {
		known[giturl.Normal(u)] = true
	}
	for _, u := range urls[r.provider()] {
		if !known[giturl.Normal(u)] {
			t.Errorf("a pipeline of %s would not be found by %v", u, given)
		}
	}
	if known[giturl.Normal("https://github.com/shop/other")] || known[giturl.Normal("https://github.com/bob/config")] || len(urls[r.provider()]) == 0 {
		t.Errorf("the URLs %v are wrong, or there is nothing to compare them with", given)
	}
}

func telling(t *testing.T, r recorded, c event.Change) string {
	t.Helper()
	switch {
	case c.Pull != nil:
		checkURLs(t, r, c.Pull.URLs)
		text := fmt.Sprintf("pull request %d from %s to %s", c.Pull.Number, c.Pull.Head, c.Pull.Base)
		if c.Pull.Decided {
			text += ", decided"
		}
		return text
	case c.Git != nil:
		checkURLs(t, r, c.Git.URLs)
		switch {
		case c.Git.Deleted && c.Git.Before == before && c.Git.After == "":
			return "deleted " + c.Git.Ref
		case c.Git.Before == "" && c.Git.After == after:
			return "made " + c.Git.Ref
		case c.Git.Before == before && c.Git.After == after:
			return "moved " + c.Git.Ref
		}
		t.Errorf("%+v is none of them", *c.Git)
	case c.OCI != nil:
		name := c.OCI.Repository + ":" + c.OCI.Tag
		if !c.OCI.Host {
			name = "*/" + name
		}
		if c.OCI.Digest != digest && r.provider() != event.Quay && r.provider() != event.DockerHub && r.provider() != event.Nexus {
			t.Errorf("the digest is %s", c.OCI.Digest)
		}
		return name
	case c.Flux != nil:
		return c.Flux.Kind + " " + c.Flux.Namespace + "/" + c.Flux.Name + " " + c.Flux.Revision
	}
	return ""
}

// TestRecordings sends every recording over the network with a right, a wrong and a missing signature, and again: at once,
// and after the event was planned and the daemon started anew.
func TestRecordings(t *testing.T) {
	all := recordings(t)
	dir, now := statetest.Dir(t), clock
	url, q, stop := serving(t, dir, &now)
	told := map[string][]string{}
	seen := map[event.Provider]bool{}
	for _, r := range all {
		seen[r.provider()] = true
		if _, ok := tellings[r.name]; !ok || r.provider() == "" {
			t.Errorf("it is not known what %s tells", r.name)
		}
		if len(tellings[r.name]) > 0 {
			told[r.name] = nil
		}
		t.Run(r.name, func(t *testing.T) {
			expect := func(what string, wantStatus int, wantOutcome, body string, sign func(h http.Header) string) {
				t.Helper()
				if status, outcome := r.send(t, url, body, sign); status != wantStatus || outcome != wantOutcome {
					t.Errorf("%s: answered with %d %s, want %d %s", what, status, outcome, wantStatus, wantOutcome)
				}
			}
			by := func(key, body string) func(h http.Header) string {
				return func(h http.Header) string { return r.sign(h, key, body) }
			}
			expect("missing signature", http.StatusUnauthorized, "refused", r.body, func(http.Header) string { return "" })
			expect("another secret", http.StatusUnauthorized, "refused", r.body, by("another secret", r.body))
			expect("no secret", http.StatusUnauthorized, "refused", r.body, by("", r.body))
			if r.covers() {
				expect("another body", http.StatusUnauthorized, "refused", r.body+" ", by(secret, r.body))
				expect("half a body", http.StatusUnauthorized, "refused", r.body[:len(r.body)/2], by(secret, r.body))
			}
			if r.name == "gitlab-signed" {
				for _, off := range []time.Duration{-6 * time.Minute, 6 * time.Minute} {
					now = clock.Add(off)
					expect("replayed later or earlier", http.StatusUnauthorized, "refused", r.body, by(secret, r.body))
				}
				now = clock.Add(4 * time.Minute)
			}
			status, outcome, again := http.StatusAccepted, "stored", "duplicate"
			if len(tellings[r.name]) == 0 {
				status, outcome, again = http.StatusOK, "ignored", "ignored"
			}
			expect("right", status, outcome, r.body, by(secret, r.body))
			expect("replayed", http.StatusOK, again, r.body, by(secret, r.body))
			now = clock
		})
	}
	for _, p := range event.Providers() {
		if !seen[event.Provider(p)] && p != string(event.Generic) {
			t.Errorf("there is no recording of %s", p)
		}
	}
	planned(t, q, all, told)
	stop()
	url, _, stop = serving(t, dir, &now)
	defer stop()
	for _, r := range all {
		want := "duplicate"
		if len(tellings[r.name]) == 0 {
			want = "ignored"
		}
		if status, outcome := r.send(t, url, r.body, func(h http.Header) string { return r.sign(h, secret, r.body) }); status != http.StatusOK || outcome != want {
			t.Errorf("%s, replayed after a restart: answered with %d %s", r.name, status, outcome)
		}
	}
}

// planned takes all events out of the queue and compares what they tell. Events are told apart by their receivers and
// what they hold, as an event does not know its recording.
func planned(t *testing.T, q *queue.Queue, all []recorded, told map[string][]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got, want := map[event.Provider]map[string]int{}, map[event.Provider]map[string]int{}
	count := func(in map[event.Provider]map[string]int, p event.Provider, text string) {
		if in[p] == nil {
			in[p] = map[string]int{}
		}
		in[p][text]++
	}
	for _, r := range all {
		if len(tellings[r.name]) > 0 {
			count(want, r.provider(), strings.Join(tellings[r.name], "; "))
		}
	}
	events := 0
	err := q.Events(ctx, 1, func(_ context.Context, e event.Event, _ time.Time) error {
		var texts []string
		for _, c := range e.Changes {
			texts = append(texts, telling(t, recorded{name: string(e.Provider) + "-"}, c))
		}
		count(got, e.Provider, strings.Join(texts, "; "))
		if events++; events == len(told) {
			time.AfterFunc(200*time.Millisecond, cancel)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what was stored (-want +got):\n%s", diff)
	}
}
