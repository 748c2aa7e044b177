// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/daemon/event"
)

// payload is what a host has sent to somebody else.
type payload struct {
	name     string
	provider event.Provider
	// kind is the value of the header that names the event, where the provider has one.
	kind string
	body []byte
}

// kindHeaders name events.
var kindHeaders = map[event.Provider]string{
	event.GitHub: "X-GitHub-Event", event.GitLab: "X-Gitlab-Event", event.Gitea: "X-Gitea-Event", event.Gogs: "X-Gogs-Event", event.Forgejo: "X-Forgejo-Event",
	event.BitbucketCloud: "X-Event-Key", event.BitbucketServer: "X-Event-Key", event.Nexus: "X-Nexus-Webhook-Id",
}

// outcomes answers for a payload: without a signature, with that of another secret, with the right one, and again.
func (p payload) outcomes(t *testing.T, h http.Handler) (answers [4]string) {
	t.Helper()
	r := recorded{name: string(p.provider) + "-payload", body: string(p.body)}
	for i, sign := range []func(http.Header) string{
		func(http.Header) string { return "" },
		func(h http.Header) string { return r.sign(h, "another secret", r.body) },
		func(h http.Header) string { return r.sign(h, secret, r.body) },
		func(h http.Header) string { return r.sign(h, secret, r.body) },
	} {
		header := http.Header{"Content-Type": {"application/json"}}
		if name := kindHeaders[p.provider]; name != "" {
			header.Set(name, p.kind)
		}
		query := sign(header)
		request := httptest.NewRequest(http.MethodPost, "/hook/"+string(p.provider)+query, bytes.NewReader(p.body))
		request.Header = header
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, request)
		var reply struct{ Outcome, Error string }
		if err := json.Unmarshal(answer.Body.Bytes(), &reply); err != nil {
			t.Fatal(err)
		}
		answers[i] = fmt.Sprintf("%d %s", answer.Code, reply.Outcome)
		if reply.Outcome == "malformed" {
			t.Logf("%s: %s", p.name, reply.Error)
		}
	}
	return answers
}

// playgroundModule is a library of others with payloads of many hosts, which comes by the proxy of Go modules.
const (
	playgroundModule = "github.com/go-playground/webhooks/v6@v6.4.0"
	playgroundSum    = "h1:KLa6y7bD19N48rxJDHM0DpE3T4grV7GxMy1b/aHMWPY="
)

// playgroundKinds are the values of headers where these are not what a file is called.
var playgroundKinds = map[string]string{
	"gitlab/merge-request-event": "Merge Request Hook", "bitbucket/pull-request-declined": "pullrequest:rejected", "bitbucket/pull-request-merged": "pullrequest:fulfilled",
	"gitlab/push-event": "Push Hook", "gitlab/tag-event": "Tag Push Hook", "bitbucket/repo-push": "repo:push", "bitbucket-server/repo-refs-changed": "repo:refs_changed",
}

var playgroundProviders = map[string]event.Provider{
	"azuredevops": event.AzureDevOps, "bitbucket": event.BitbucketCloud, "bitbucket-server": event.BitbucketServer, "docker": event.DockerHub,
	"gitea": event.Gitea, "github": event.GitHub, "gitlab": event.GitLab, "gogs": event.Gogs,
}

func playgroundPayloads(t *testing.T) (out []payload) {
	t.Helper()
	command := exec.Command("go", "mod", "download", "-json", playgroundModule)
	command.Dir = t.TempDir()
	text, err := command.Output()
	var module struct{ Dir, Sum string }
	if err == nil {
		err = json.Unmarshal(text, &module)
	}
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("the module of payloads cannot be had here: %v", err)
	}
	if err != nil || module.Sum != playgroundSum {
		t.Fatalf("%v\n%s", err, text)
	}
	files, err := filepath.Glob(filepath.Join(module.Dir, "testdata", "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		dir := filepath.Base(filepath.Dir(file))
		base := strings.TrimSuffix(filepath.Base(file), ".json")
		kind, ok := playgroundKinds[dir+"/"+base]
		switch {
		case ok:
		case dir == "gitlab" && strings.HasPrefix(base, "system-"):
			kind = "System Hook"
		case dir == "bitbucket":
			kind = strings.Replace(strings.Replace(base, "pull-request", "pullrequest", 1), "-", ":", 1)
		case dir == "bitbucket-server":
			kind = strings.ReplaceAll(base, "-", ":")
		default:
			kind = strings.ReplaceAll(strings.TrimSuffix(base, "-event"), "-", "_")
		}
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, payload{dir + "/" + base, playgroundProviders[dir], kind, body})
	}
	return out
}

// playgroundChanges are the payloads of the module that tell of a change; all others are of events that pipelines do not follow.
var playgroundChanges = []string{
	"azuredevops/git.pullrequest.created", "azuredevops/git.pullrequest.merged", "azuredevops/git.pullrequest.updated", "azuredevops/git.push",
	"bitbucket-server/pr-declined", "bitbucket-server/pr-deleted", "bitbucket-server/pr-merged", "bitbucket-server/pr-modified", "bitbucket-server/pr-opened",
	"bitbucket-server/repo-refs-changed", "bitbucket/pull-request-created", "bitbucket/pull-request-declined", "bitbucket/pull-request-merged",
	"bitbucket/pull-request-updated", "bitbucket/repo-push", "docker/docker_hub_build_notice",
	"gitea/pull-request-event", "gitea/push-event", "github/pull-request", "github/push",
	"gitlab/merge-request-event", "gitlab/push-event", "gitlab/system-push-event", "gitlab/system-tag-event", "gitlab/tag-event", "gogs/push-event",
}

// Payloads that nobody here has written are refused without the secret, taken with it, and without effect when they come again.
func TestPayloadsOfOthers(t *testing.T) {
	all := playgroundPayloads(t)
	var told []string
	for name, answers := range outcomesOf(t, all) {
		// Some have the body of another, and no header that tells them apart.
		if (answers[2] == "202 stored" || answers[2] == "200 duplicate") && answers[3] == "200 duplicate" {
			told = append(told, name)
		} else if answers[2] != "200 ignored" || answers[3] != "200 ignored" {
			t.Errorf("%s: %v", name, answers)
		}
	}
	slices.Sort(told)
	if !slices.Equal(told, playgroundChanges) {
		t.Errorf("told of a change:\n%s", strings.Join(told, "\n"))
	}
	if len(all) < 150 {
		t.Errorf("there are only %d payloads", len(all))
	}
}

// PRERIG_PAYLOADS is a directory with other payloads, as PROVIDER/KIND/NAME.json, where KIND is what the header says (with _ for :).
func TestPayloadsOfADirectory(t *testing.T) {
	dir := os.Getenv("PRERIG_PAYLOADS")
	if dir == "" {
		t.Skip("PRERIG_PAYLOADS names no directory of payloads")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d payloads in %s: %v", len(files), dir, err)
	}
	var all []payload
	for _, file := range files {
		name, _ := filepath.Rel(dir, file)
		parts := strings.Split(filepath.ToSlash(name), "/")
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kind := parts[1]
		if strings.HasPrefix(parts[0], "bitbucket") {
			kind = strings.Replace(kind, "_", ":", 1)
		}
		all = append(all, payload{name, event.Provider(parts[0]), kind, body})
	}
	for name, answers := range outcomesOf(t, all) {
		if answers[2] == "202 stored" {
			t.Logf("%s tells of a change", name)
		}
	}
}

// outcomesOf sends payloads, checks that none passes without the right secret, and logs how many of each provider had which outcome.
func outcomesOf(t *testing.T, all []payload) map[string][4]string {
	t.Helper()
	var receivers []event.Receiver
	for _, p := range event.Providers() {
		receivers = append(receivers, receiverOf(event.Provider(p)))
	}
	h, err := event.NewHandler(receivers, memory{})
	if err != nil {
		t.Fatal(err)
	}
	out, counts := map[string][4]string{}, map[string]int{}
	for _, p := range all {
		answers := p.outcomes(t, h)
		out[p.name] = answers
		for _, answer := range answers[:2] {
			if answer != "401 refused" {
				t.Errorf("%s without the secret: %s", p.name, answer)
			}
		}
		counts[fmt.Sprintf("%s: missing %s, wrong %s, right %s, again %s", p.provider, answers[0], answers[1], answers[2], answers[3])]++
	}
	for _, line := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%4d %s", counts[line], line)
	}
	return out
}
