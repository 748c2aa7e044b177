// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// pushOf is a push in the form that GitHub, Gitea and Forgejo share.
func pushOf(ref, before, after string) string {
	return `{"ref":"` + ref + `","before":"` + before + `","after":"` + after + `","repository":{"clone_url":"https://h/o/a.git"}}`
}

const harborPush = `{"resources":[{"digest":"sha256:a","tag":"v1","resource_url":"harbor.example:8443/lib/app:v1"},` +
	`{"digest":"sha256:b","tag":"sha256:b","resource_url":"harbor.example:8443/lib/app@sha256:b"}],"repository":{"repo_full_name":"lib/app"}}`

// TestWhatSendersDoToo holds what senders do beside the plain case.
func TestWhatSendersDoToo(t *testing.T) {
	harbor := []Change{{OCI: &OCIChange{Repository: "harbor.example:8443/lib/app", Host: true, Tag: "v1", Digest: "sha256:a"}}}
	gone := []Change{{Git: &GitChange{URLs: []string{"https://h/o/a.git"}, Ref: "refs/heads/x", Before: a40, Deleted: true}}}
	form := url.Values{"payload": {pushOf("refs/heads/main", a40, b40)}}.Encode()
	pushed := gitChanges("refs/heads/main", a40, b40, "https://h/o/a.git")
	for name, tc := range map[string]struct {
		provider Provider
		headers  map[string]string
		body     string
		want     []Change
	}{
		"GitHub sends a form":                           {GitHub, map[string]string{"X-GitHub-Event": "push", "Content-Type": "application/x-www-form-urlencoded"}, form, pushed},
		"Gitea sends a form":                            {Gitea, map[string]string{"X-Gitea-Event": "push", "Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}, form, pushed},
		"Gitea as a GitHub":                             {GitHub, map[string]string{"X-Gitea-Event": "push", "X-GitHub-Event": "push"}, pushOf("refs/heads/main", a40, b40), pushed},
		"Gitea, another event named like GitHub's push": {Gitea, map[string]string{"X-Gitea-Event": "issues", "X-GitHub-Event": "push"}, pushOf("refs/heads/main", a40, b40), nil},
		"Gogs":             {Gitea, map[string]string{"X-Gogs-Event": "push"}, pushOf("refs/heads/main", a40, b40), pushed},
		"Forgejo as Gitea": {Forgejo, map[string]string{"X-Gitea-Event": "push"}, pushOf("refs/heads/main", a40, b40), pushed},
		"a tag":            {GitHub, map[string]string{"X-GitHub-Event": "push"}, pushOf("refs/tags/v1", z40, b40), gitChanges("refs/tags/v1", "", b40, "https://h/o/a.git")},
		"a deleted branch": {Gitea, map[string]string{"X-Gitea-Event": "push"}, pushOf("refs/heads/x", a40, z40), gone},
		"SHA-256 names":    {GitHub, map[string]string{"X-GitHub-Event": "push"}, pushOf("refs/heads/x", a40, strings.Repeat("0", 64)), gone},
		"a push that does not say to what": {GitHub, map[string]string{"X-GitHub-Event": "push"}, `{"ref":"refs/heads/x","repository":{"clone_url":"https://h/o/a.git"}}`,
			gitChanges("refs/heads/x", "", "", "https://h/o/a.git")},
		"GitLab's system hook": {GitLab, map[string]string{"X-Gitlab-Event": "System Hook"},
			`{"event_name":"push","ref":"refs/heads/main","before":"` + a40 + `","after":"` + b40 + `","project":{"git_http_url":"https://h/o/a.git"}}`, pushed},
		"GitLab's system hook about a user": {GitLab, map[string]string{"X-Gitlab-Event": "System Hook"}, `{"event_name":"user_create"}`, nil},
		"GitLab's merge request":            {GitLab, map[string]string{"X-Gitlab-Event": "Merge Request Hook"}, `{"object_kind":"merge_request"}`, nil},
		"Bitbucket Cloud, a deleted branch": {BitbucketCloud, map[string]string{"X-Event-Key": "repo:push"},
			`{"push":{"changes":[{"old":{"type":"branch","name":"x","target":{"hash":"` + a40 + `"}},"new":null}]},"repository":{"links":{"html":{"href":"https://h/o/a.git"}}}}`, gone},
		"Bitbucket Data Center, a deleted branch": {BitbucketServer, map[string]string{"X-Event-Key": "repo:refs_changed"},
			`{"changes":[{"ref":{"id":"refs/heads/x"},"fromHash":"` + a40 + `","toHash":"` + z40 + `","type":"DELETE"}],"repository":{"links":{"clone":[{"href":"https://h/o/a.git"}]}}}`, gone},
		"Bitbucket Data Center, a personal repository": {BitbucketServer, map[string]string{"X-Event-Key": "repo:refs_changed"},
			`{"changes":[{"ref":{"id":"refs/heads/main"},"fromHash":"` + a40 + `","toHash":"` + b40 + `","type":"UPDATE"}],"repository":{"slug":"app","project":{"key":"~JDOE","type":"PERSONAL"},"links":{"self":[{"href":"https://h/git/users/jdoe/repos/app/browse"}]}}}`,
			gitChanges("refs/heads/main", a40, b40, "https://h/git/scm/~jdoe/app.git", "ssh://git@h:7999/~jdoe/app.git")},
		"Bitbucket Data Center's test": {BitbucketServer, map[string]string{"X-Event-Key": "diagnostics:ping"}, `{"test":true}`, nil},
		"Flux, a failed source":        {Flux, nil, `{"involvedObject":{"kind":"GitRepository","name":"a"},"severity":"error","reason":"GitOperationFailed"}`, nil},
		"Harbor, CloudEvents, structured": {Harbor, map[string]string{"Content-Type": "application/cloudevents+json"},
			`{"specversion":"1.0","id":"1","source":"/projects/1/webhook/policies/1","type":"harbor.artifact.pushed","data":` + harborPush + `}`, harbor},
		"Harbor, CloudEvents, binary": {Harbor, map[string]string{"Ce-Type": "harbor.artifact.pushed"}, harborPush, harbor},
		"Harbor, a pull":              {Harbor, nil, `{"type":"PULL_ARTIFACT","event_data":` + harborPush + `}`, nil},
		"a package without a tag": {GitHub, map[string]string{"X-GitHub-Event": "registry_package"},
			`{"action":"published","registry_package":{"name":"app","namespace":"org","package_type":"CONTAINER","package_version":{"version":"sha256:a","package_url":"ghcr.io/org/app:"}}}`, nil},
		"a package of npm": {GitHub, map[string]string{"X-GitHub-Event": "package"}, `{"action":"published","package":{"name":"app","namespace":"org","package_type":"npm"}}`, nil},
		"Quay of old":      {Quay, nil, `{"docker_url":"quay.io/org/app","updated_tags":{"v1":"sha256:a"}}`, []Change{{OCI: &OCIChange{Repository: "quay.io/org/app", Host: true, Tag: "v1", Digest: "sha256:a"}}}},
		"CloudEvent, structured, 0.3": {CloudEvents, map[string]string{"Content-Type": "application/cloudevents+json; charset=utf-8"},
			`{"data":"eyJvY2kiOnsicmVwb3NpdG9yeSI6ImgvYSJ9fQ==","specversion":"0.3","id":"1","source":"/x","type":"x","datacontentencoding":"base64"}`,
			[]Change{{OCI: &OCIChange{Repository: "h/a"}}}},
		"CloudEvent, structured, in base64": {CloudEvents, map[string]string{"Content-Type": "application/cloudevents+json"},
			`{"specversion":"1.0","id":"1","source":"/x","type":"x","datacontenttype":"image/png","data_base64":"eyJvY2kiOnsicmVwb3NpdG9yeSI6ImgvYSJ9fQ=="}`,
			[]Change{{OCI: &OCIChange{Repository: "h/a"}}}},
		"CloudEvent, structured, as text": {CloudEvents, map[string]string{"Content-Type": "application/cloudevents+json"},
			`{"specversion":"1.0","id":"1","source":"/x","type":"x","datacontenttype":"text/plain","data":"{\"oci\":{\"repository\":\"h/a\"}}"}`,
			[]Change{{OCI: &OCIChange{Repository: "h/a"}}}},
		"CloudEvent of another kind": {CloudEvents, map[string]string{"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "/x", "Ce-Type": "com.example.photo", "Content-Type": "image/png"}, "\x89PNG", nil},
		"CloudEvent without data":    {CloudEvents, map[string]string{"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "/x", "Ce-Type": "x"}, "", nil},
		"CDEvent of a merged change": {CloudEvents, map[string]string{"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "/x", "Ce-Type": "dev.cdevents.change.merged.0.2.0", "Content-Type": "application/json"},
			`{"context":{"version":"0.4.1"},"subject":{"id":"7","content":{"repository":{"id":"o/a","source":"https://h"}}}}`, gitChanges("", "", "", "https://h", "o/a", "https://h/o/a")},
		"generic, more than once": {CloudEvents, map[string]string{"Content-Type": "application/cloudevents-batch+json"},
			"[" + strings.TrimSuffix(strings.Repeat(`{"specversion":"1.0","id":"1","source":"/x","type":"x","data":{"oci":{"repository":"h/a"}}},`, 50), ",") + "]", []Change{{OCI: &OCIChange{Repository: "h/a"}}}},
		"generic, two things": {Generic, nil, `{"git":{"urls":["https://h/a"],"ref":"main"},"oci":{"repository":"h/a"}}`,
			[]Change{{Git: &GitChange{URLs: []string{"https://h/a"}, Ref: "main"}}, {OCI: &OCIChange{Repository: "h/a"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Receiver{Name: "r", Provider: tc.provider, Insecure: true}.Read(headers(tc.headers), "", []byte(tc.body), now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, e.Changes); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func thousandURLs() string {
	var out []string
	for i := range 1000 {
		out = append(out, fmt.Sprintf(`"https://h/%d"`, i))
	}
	return strings.Join(out, ",")
}

func TestMalformedDeliveries(t *testing.T) {
	push := map[string]string{"X-GitHub-Event": "push"}
	for name, tc := range map[string]struct {
		provider Provider
		headers  map[string]string
		body     string
	}{
		"a push without a repository": {GitHub, push, `{"ref":"refs/heads/main"}`},
		"a push without a ref":        {GitHub, push, `{"repository":{"clone_url":"https://h/a"}}`},
		"a form without a payload":    {GitHub, map[string]string{"X-GitHub-Event": "push", "Content-Type": "application/x-www-form-urlencoded"}, "x=y"},
		"a package without a name":    {GitHub, map[string]string{"X-GitHub-Event": "package"}, `{"action":"published","package":{"package_type":"CONTAINER","package_version":{"container_metadata":{"tag":{"name":"v1"}}}}}`},
		"Harbor without a repository": {Harbor, nil, `{"type":"PUSH_ARTIFACT","event_data":{"resources":[{"tag":"v1"}]}}`},
		"Quay's tags are a number":    {Quay, nil, `{"docker_url":"quay.io/a","updated_tags":7}`},
		"Docker Hub, nothing":         {DockerHub, nil, `{}`},
		"Flux without an object":      {Flux, nil, `{}`},
		"generic, nothing":            {Generic, nil, `{"git":{"urls":[""]}}`},
		"generic, a thousand URLs":    {Generic, nil, `{"git":{"urls":[` + thousandURLs() + `]}}`},
		"generic, Flux without name":  {Generic, nil, `{"flux":{"kind":"GitRepository"}}`},
		"CloudEvent without an id":    {CloudEvents, map[string]string{"Content-Type": "application/cloudevents+json"}, `{"specversion":"1.0","source":"/x","type":"x"}`},
		"CloudEvent in Avro":          {CloudEvents, map[string]string{"Content-Type": "application/cloudevents+avro"}, `{"specversion":"1.0","id":"1","source":"/x","type":"x"}`},
		"CloudEvent of version 2":     {CloudEvents, map[string]string{"Content-Type": "application/cloudevents+json"}, `{"specversion":"2.0","id":"1","source":"/x","type":"x"}`},
		"CloudEvent with wrong data":  {CloudEvents, map[string]string{"Content-Type": "application/cloudevents+json"}, `{"specversion":"1.0","id":"1","source":"/x","type":"x","data_base64":"?"}`},
		"CloudEvent without a source": {CloudEvents, map[string]string{"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Type": "x"}, `{}`},
		"no CloudEvent":               {CloudEvents, map[string]string{"Content-Type": "application/json"}, `{}`},
		"an empty body":               {Distribution, nil, ``},
	} {
		t.Run(name, func(t *testing.T) {
			if e, err := (Receiver{Name: "r", Provider: tc.provider, Insecure: true}).Read(headers(tc.headers), "", []byte(tc.body), now); err == nil {
				t.Errorf("was read as %+v", e)
			} else if errors.Is(err, ErrSignature) {
				t.Errorf("is told to be a matter of the signature: %v", err)
			}
		})
	}
}

// TestFormsOfSignatures holds forms that differ in letters only, or that a sender has as an alternative.
func TestFormsOfSignatures(t *testing.T) {
	body := pushOf("refs/heads/main", a40, b40)
	generic := `{"oci":{"repository":"h/a"}}`
	flux := deliveries["flux"].body
	for name, tc := range map[string]struct {
		provider Provider
		body     string
		headers  map[string]string
		secret   string
		ok       bool
	}{
		"upper-case digits":                      {GitHub, body, map[string]string{"X-Hub-Signature-256": "sha256=" + strings.ToUpper(mac(sha256.New, key, body))}, key, true},
		"header in lower case":                   {GitHub, body, map[string]string{"x-hub-signature-256": "sha256=" + mac(sha256.New, key, body)}, key, true},
		"Gitea with GitHub's header":             {Gitea, body, map[string]string{"X-Hub-Signature-256": "sha256=" + mac(sha256.New, key, body)}, key, true},
		"Forgejo with Gitea's header":            {Forgejo, body, map[string]string{"X-Gitea-Signature": mac(sha256.New, key, body)}, key, true},
		"GitHub with Bitbucket's":                {GitHub, body, map[string]string{"X-Hub-Signature": "sha256=" + mac(sha256.New, key, body)}, key, false},
		"Bitbucket with SHA-1's form":            {BitbucketCloud, `{}`, map[string]string{"X-Hub-Signature": "sha1=" + mac(sha256.New, key, `{}`)}, key, false},
		"Flux generic, bearer token":             {Flux, flux, map[string]string{"Authorization": "Bearer " + key}, key, true},
		"Flux generic, wrong token":              {Flux, flux, map[string]string{"Authorization": "Bearer x"}, key, false},
		"Flux, wrong signature beside the token": {Flux, flux, map[string]string{"X-Signature": "sha256=00", "Authorization": "Bearer " + key}, key, false},
		"bearer in lower case":                   {Generic, generic, map[string]string{"Authorization": "bearer " + key}, key, true},
		"scheme without a token":                 {Generic, generic, map[string]string{"Authorization": "Bearer "}, key, false},
		"the secret has the scheme":              {Distribution, `{}`, map[string]string{"Authorization": "Bearer abc"}, "Bearer abc", true},
		"a token and something after":            {Harbor, `{}`, map[string]string{"Authorization": key + " "}, key, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Receiver{Name: "r", Provider: tc.provider, Secret: []byte(tc.secret)}.Read(headers(tc.headers), "", []byte(tc.body), now)
			// Bodies here are not all of the provider's kind, which is found after the signature.
			if tc.ok && err != nil && !errors.Is(err, errWrongKind) || !tc.ok && !errors.Is(err, ErrSignature) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDeliveryIDs(t *testing.T) {
	id := func(provider Provider, body string, set map[string]string) string {
		t.Helper()
		h := headers(set)
		h.Set("X-GitHub-Event", "ping")
		h.Set("X-Gitlab-Event", "Note Hook")
		e, err := Receiver{Name: "r", Provider: provider, Insecure: true}.Read(h, "", []byte(body), now)
		if err != nil {
			t.Fatal(err)
		}
		return e.ID
	}
	one, two := pushOf("refs/heads/main", a40, b40), pushOf("refs/heads/main", b40, a40)
	if id(GitHub, one, map[string]string{"X-GitHub-Delivery": "1"}) == id(GitHub, one, map[string]string{"X-GitHub-Delivery": "2"}) {
		t.Error("two deliveries with equal bodies have one id: a branch that was moved back and forth would be missed")
	}
	// GitLab gives one event id to all that a hook sets off in turn.
	if id(GitLab, one, map[string]string{"X-Gitlab-Event-UUID": "1"}) == id(GitLab, two, map[string]string{"X-Gitlab-Event-UUID": "1"}) {
		t.Error("two pushes of one GitLab event have one id")
	}
	signed := map[string]string{"Webhook-Signature": "v1,x", "Webhook-Id": "1", "Idempotency-Key": "a"}
	other := map[string]string{"Webhook-Signature": "v1,x", "Webhook-Id": "1", "Idempotency-Key": "b"}
	if id(GitLab, one, signed) != id(GitLab, one, other) {
		t.Error("a signed delivery gets another id from a header that is not signed")
	}
	event := func(source, id string) string {
		return `{"specversion":"1.0","id":"` + id + `","source":"` + source + `","type":"x","data":{}}`
	}
	structured := map[string]string{"Content-Type": "application/cloudevents+json"}
	if id(CloudEvents, event("/a", "1"), structured) == id(CloudEvents, event("/b", "1"), structured) {
		t.Error("CloudEvents of two sources have one id")
	}
	if id(CloudEvents, event("/a", "1"), structured) != id(CloudEvents, event("/a", "1")+" ", structured) {
		t.Error("a CloudEvent that was written anew has another id")
	}
}

// TestAnswerWaitsForTheStore expects no answer before the event is stored.
func TestAnswerWaitsForTheStore(t *testing.T) {
	release, entered := make(chan struct{}), make(chan struct{})
	h, err := NewHandler([]Receiver{{Name: "hub", Provider: Generic, Insecure: true}}, slow{entered, release})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	defer server.Close()
	answered := make(chan int, 1)
	go func() {
		resp, err := http.Post(server.URL+"/hook/hub", "application/json", strings.NewReader(`{"oci":{"repository":"h/a"}}`))
		if err != nil {
			answered <- 0
			return
		}
		resp.Body.Close()
		answered <- resp.StatusCode
	}()
	<-entered
	select {
	case status := <-answered:
		t.Fatalf("answered with %d before the event was stored", status)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if status := <-answered; status != http.StatusAccepted {
		t.Errorf("answered with %d", status)
	}
}

type slow struct{ entered, release chan struct{} }

func (slow) Watches([]Change) bool { return true }

func (s slow) Put(context.Context, Event) (bool, error) {
	close(s.entered)
	<-s.release
	return false, nil
}

func TestPathIsTheReceivers(t *testing.T) {
	h, err := NewHandler([]Receiver{{Name: "hub", Provider: Generic, Insecure: true}}, &shelf{})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/hook/", "/hook/a/hub", "/hook/hub/", "/hub/hook/x", "/hook/HUB"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{}`)))
		if w.Code != http.StatusNotFound {
			t.Errorf("%s was answered with %d", path, w.Code)
		}
	}
}

// TestSecretsAreComparedInConstantTime looks at the source: what is compared with == or by bytes.Equal is never a secret
// or a code made with one.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	file, err := goparser.ParseFile(token.NewFileSet(), "signature.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	secret := map[string]bool{"secret": true, "got": true, "want": true, "mac": true}
	names := func(e ast.Expr) (found bool) {
		ast.Inspect(e, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			found = found || ok && secret[id.Name]
			return true
		})
		return found
	}
	safe := 0
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if (n.Op == token.EQL || n.Op == token.NEQ) && (names(n.X) || names(n.Y)) {
				t.Errorf("a secret is compared with %s", n.Op)
			}
		case *ast.SelectorExpr:
			pkg, _ := n.X.(*ast.Ident)
			switch {
			case pkg == nil:
			case pkg.Name == "bytes":
				t.Errorf("bytes.%s is used beside secrets", n.Sel.Name)
			case pkg.Name == "hmac" && n.Sel.Name == "Equal", pkg.Name == "subtle" && n.Sel.Name == "ConstantTimeCompare":
				safe++
			}
		}
		return true
	})
	if safe < 3 {
		t.Errorf("%d comparisons in constant time were found, want those of a code, of a Standard Webhook and of a token", safe)
	}
}

// fuzzParser gives any body to one parser with headers under which it reads: it must not panic, and what it gives names
// what changed.
func fuzzParser(f *testing.F, p Provider, set ...map[string]string) {
	for _, d := range deliveries {
		if d.provider == p {
			f.Add([]byte(d.body))
		}
	}
	f.Add([]byte(pushOf("refs/heads/main", a40, z40)))
	f.Add([]byte(`{"type":"PUSH_ARTIFACT","event_data":` + harborPush + `}`))
	if len(set) == 0 {
		set = []map[string]string{nil}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, h := range set {
			e, err := Receiver{Name: "r", Provider: p, Insecure: true}.Read(headers(h), "", body, now)
			if err != nil && len(e.Changes) > 0 {
				t.Errorf("changes and an error: %v", err)
			}
			for _, c := range e.Changes {
				switch {
				case c.Git != nil && len(c.Git.URLs) > 0 && c.OCI == nil && c.Flux == nil:
				case c.OCI != nil && c.OCI.Repository != "" && c.Git == nil && c.Flux == nil:
				case c.Flux != nil && c.Flux.Kind != "" && c.Flux.Name != "" && c.Git == nil && c.OCI == nil:
				default:
					t.Errorf("a change that names nothing, or two things: %+v", c)
				}
			}
		}
	})
}

func FuzzGitHub(f *testing.F) {
	fuzzParser(f, GitHub, map[string]string{"X-GitHub-Event": "push"}, map[string]string{"X-GitHub-Event": "package"},
		map[string]string{"X-GitHub-Event": "push", "Content-Type": "application/x-www-form-urlencoded"})
}

func FuzzGitLab(f *testing.F) {
	fuzzParser(f, GitLab, map[string]string{"X-Gitlab-Event": "Push Hook"}, map[string]string{"X-Gitlab-Event": "System Hook"})
}

func FuzzGitea(f *testing.F) { fuzzParser(f, Gitea, map[string]string{"X-Gitea-Event": "push"}) }

func FuzzForgejo(f *testing.F) { fuzzParser(f, Forgejo, map[string]string{"X-Forgejo-Event": "push"}) }

func FuzzBitbucketCloud(f *testing.F) {
	fuzzParser(f, BitbucketCloud, map[string]string{"X-Event-Key": "repo:push"})
}

func FuzzBitbucketServer(f *testing.F) {
	fuzzParser(f, BitbucketServer, map[string]string{"X-Event-Key": "repo:refs_changed"})
}

func FuzzFlux(f *testing.F)         { fuzzParser(f, Flux) }
func FuzzDistribution(f *testing.F) { fuzzParser(f, Distribution) }
func FuzzQuay(f *testing.F)         { fuzzParser(f, Quay) }
func FuzzDockerHub(f *testing.F)    { fuzzParser(f, DockerHub) }
func FuzzGeneric(f *testing.F)      { fuzzParser(f, Generic) }

func FuzzHarbor(f *testing.F) {
	fuzzParser(f, Harbor, nil, map[string]string{"Ce-Type": "harbor.artifact.pushed"})
}

func FuzzCloudEvents(f *testing.F) {
	cd := map[string]string{"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "/x", "Content-Type": "application/json"}
	merged, published := map[string]string{"Ce-Type": "dev.cdevents.change.merged.0.2.0"}, map[string]string{"Ce-Type": "dev.cdevents.artifact.published.0.2.0"}
	for name, value := range cd {
		merged[name], published[name] = value, value
	}
	fuzzParser(f, CloudEvents, merged, published, map[string]string{"Content-Type": "application/cloudevents+json"}, map[string]string{"Content-Type": batchType})
}
