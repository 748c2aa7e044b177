// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // to show that it is refused
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const key = "the receiver's secret"

var (
	a40 = strings.Repeat("a", 40)
	b40 = strings.Repeat("b", 40)
	z40 = strings.Repeat("0", 40)
	now = time.Unix(1_790_000_000, 0)
)

func mac(sum func() hash.Hash, secret, body string) string {
	m := hmac.New(sum, []byte(secret))
	m.Write([]byte(body))
	return hex.EncodeToString(m.Sum(nil))
}

// signer sets what a provider's sender sets for a body.
type signer func(h http.Header, secret, body string)

func hmacIn(header, prefix string) signer {
	return func(h http.Header, secret, body string) { h.Set(header, prefix+mac(sha256.New, secret, body)) }
}

func tokenIn(header, prefix string) signer {
	return func(h http.Header, secret, _ string) { h.Set(header, prefix+secret) }
}

func basicAuth(h http.Header, secret, _ string) {
	r := http.Request{Header: h}
	r.SetBasicAuth("anybody", secret)
}

func sha1In(h http.Header, secret, body string) {
	h.Set("X-Nexus-Webhook-Signature", mac(sha1.New, secret, body))
}

var testKeys = NewTestKeys()

// googleToken signs for the right service account where the secret is right, and for another one otherwise.
func googleToken(h http.Header, secret, _ string) {
	claims := map[string]any{}
	if secret != key {
		claims["email"] = "somebody@else.iam.gserviceaccount.com"
	}
	h.Set("Authorization", "Bearer "+testKeys.Token(now, claims))
}

// receiver returns one with the secret, or what stands for it.
func receiver(name string, p Provider) Receiver {
	if p == ArtifactRegistry {
		return Receiver{Name: name, Provider: p, Token: testKeys.Verifier()}
	}
	return Receiver{Name: name, Provider: p, Secret: []byte(key)}
}

func standardWebhooks(h http.Header, secret, body string) {
	stamp := strconv.FormatInt(now.Unix(), 10)
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte("id-1." + stamp + "." + body))
	h.Set("webhook-id", "id-1")
	h.Set("webhook-timestamp", stamp)
	h.Set("webhook-signature", "v1,bm90IHRoaXMgb25l v1,"+base64.StdEncoding.EncodeToString(m.Sum(nil)))
}

func gitChanges(ref, before, after string, urls ...string) []Change {
	return []Change{{Git: &GitChange{URLs: urls, Ref: ref, Before: before, After: after}}}
}

// deliveries are payloads of the shape that each provider sends, cut to what matters and a little around it.
var deliveries = map[string]struct {
	provider Provider
	headers  map[string]string
	body     string
	sign     signer
	want     []Change
}{
	"github push": {GitHub, map[string]string{"X-GitHub-Event": "push", "X-GitHub-Delivery": "d1"},
		`{"ref":"refs/heads/main","before":"` + a40 + `","after":"` + b40 + `","repository":{"id":1,"full_name":"org/app","html_url":"https://github.com/org/app","clone_url":"https://github.com/org/app.git","ssh_url":"git@github.com:org/app.git"},"commits":[{"modified":["x"]}]}`,
		hmacIn("X-Hub-Signature-256", "sha256="), gitChanges("refs/heads/main", a40, b40, "https://github.com/org/app.git", "git@github.com:org/app.git", "https://github.com/org/app")},
	"github ping": {GitHub, map[string]string{"X-GitHub-Event": "ping", "X-GitHub-Delivery": "d1"}, `{"zen":"x"}`, hmacIn("X-Hub-Signature-256", "sha256="), nil},
	"github package": {GitHub, map[string]string{"X-GitHub-Event": "package", "X-GitHub-Delivery": "d1"},
		`{"action":"published","package":{"name":"app","namespace":"org","package_type":"CONTAINER","package_version":{"version":"sha256:` + strings.Repeat("a", 64) + `","package_url":"ghcr.io/org/app:v1","container_metadata":{"tag":{"name":"v1","digest":"sha256:` + strings.Repeat("a", 64) + `"}}}}}`,
		hmacIn("X-Hub-Signature-256", "sha256="), []Change{{OCI: &OCIChange{Repository: "ghcr.io/org/app", Host: true, Tag: "v1", Digest: "sha256:" + strings.Repeat("a", 64)}}}},
	"gitlab token": {GitLab, map[string]string{"X-Gitlab-Event": "Push Hook", "Idempotency-Key": "d1"},
		`{"object_kind":"push","ref":"refs/heads/main","before":"` + a40 + `","after":"` + b40 + `","project":{"git_http_url":"https://gitlab.com/g/s/app.git","git_ssh_url":"git@gitlab.com:g/s/app.git","web_url":"https://gitlab.com/g/s/app"},"repository":{"git_http_url":"https://gitlab.com/g/s/app.git"}}`,
		tokenIn("X-Gitlab-Token", ""), gitChanges("refs/heads/main", a40, b40, "https://gitlab.com/g/s/app.git", "git@gitlab.com:g/s/app.git", "https://gitlab.com/g/s/app")},
	"gitlab signed": {GitLab, map[string]string{"X-Gitlab-Event": "Tag Push Hook"},
		`{"object_kind":"tag_push","ref":"refs/tags/v1","before":"` + z40 + `","after":"` + b40 + `","project":{"git_http_url":"https://gitlab.com/g/app.git"}}`,
		standardWebhooks, gitChanges("refs/tags/v1", "", b40, "https://gitlab.com/g/app.git")},
	"gitea": {Gitea, map[string]string{"X-Gitea-Event": "push", "X-GitHub-Event": "push", "X-Gitea-Delivery": "d1", "X-GitHub-Delivery": "d1"},
		`{"ref":"refs/heads/main","before":"` + a40 + `","after":"` + b40 + `","repository":{"clone_url":"https://gitea.example/o/a.git","ssh_url":"ssh://git@gitea.example/o/a.git"}}`,
		hmacIn("X-Gitea-Signature", ""), gitChanges("refs/heads/main", a40, b40, "https://gitea.example/o/a.git", "ssh://git@gitea.example/o/a.git")},
	"forgejo": {Forgejo, map[string]string{"X-Forgejo-Event": "push", "X-Gitea-Event": "push", "X-Forgejo-Delivery": "d1"},
		`{"ref":"refs/heads/main","before":"` + a40 + `","after":"` + b40 + `","repository":{"clone_url":"https://codeberg.org/o/a.git"}}`,
		hmacIn("X-Forgejo-Signature", ""), gitChanges("refs/heads/main", a40, b40, "https://codeberg.org/o/a.git")},
	"bitbucket cloud": {BitbucketCloud, map[string]string{"X-Event-Key": "repo:push", "X-Request-UUID": "d1", "X-Hook-UUID": "h"},
		`{"push":{"changes":[{"old":{"type":"branch","name":"main","target":{"hash":"` + a40 + `"}},"new":{"type":"branch","name":"main","target":{"hash":"` + b40 + `"}}},{"old":null,"new":{"type":"tag","name":"v1","target":{"hash":"` + b40 + `"}}}]},"repository":{"full_name":"ws/app","links":{"html":{"href":"https://bitbucket.org/ws/app"}}}}`,
		hmacIn("X-Hub-Signature", "sha256="), []Change{
			{Git: &GitChange{URLs: []string{"https://bitbucket.org/ws/app"}, Ref: "refs/heads/main", Before: a40, After: b40}},
			{Git: &GitChange{URLs: []string{"https://bitbucket.org/ws/app"}, Ref: "refs/tags/v1", After: b40}}}},
	"bitbucket data center": {BitbucketServer, map[string]string{"X-Event-Key": "repo:refs_changed", "X-Request-Id": "d1"},
		`{"changes":[{"ref":{"id":"refs/heads/main","displayId":"main","type":"BRANCH"},"fromHash":"` + a40 + `","toHash":"` + b40 + `","type":"UPDATE"}],"repository":{"slug":"app","project":{"key":"PRJ"},"links":{"self":[{"href":"https://bb.example/projects/PRJ/repos/app/browse"}]}}}`,
		hmacIn("X-Hub-Signature", "sha256="), gitChanges("refs/heads/main", a40, b40, "https://bb.example/scm/PRJ/app.git", "ssh://git@bb.example:7999/PRJ/app.git")},
	"gogs": {Gogs, map[string]string{"X-Gogs-Event": "push", "X-Gogs-Delivery": "d1"},
		`{"ref":"refs/heads/main","before":"` + a40 + `","after":"` + b40 + `","repository":{"clone_url":"https://gogs.example/o/a.git","ssh_url":"git@gogs.example:o/a.git"}}`,
		hmacIn("X-Gogs-Signature", ""), gitChanges("refs/heads/main", a40, b40, "https://gogs.example/o/a.git", "git@gogs.example:o/a.git")},
	"azure devops": {AzureDevOps, nil,
		`{"id":"1","eventType":"git.push","publisherId":"tfs","resource":{"refUpdates":[{"name":"refs/heads/main","oldObjectId":"` + a40 + `","newObjectId":"` + b40 + `"}],"repository":{"remoteUrl":"https://tfs.example/c/p/_git/r","sshUrl":"ssh://tfs.example:22/c/p/_git/r"}}}`,
		basicAuth, gitChanges("refs/heads/main", a40, b40, "https://tfs.example/c/p/_git/r", "ssh://tfs.example:22/c/p/_git/r")},
	"acr": {ACR, nil, `{"id":"1","timestamp":"2026-01-01T00:00:00Z","action":"push","target":{"mediaType":"application/vnd.docker.distribution.manifest.v2+json","digest":"sha256:c","repository":"team/app","tag":"v1"},"request":{"id":"2","host":"Shop.azurecr.io","method":"PUT"}}`,
		basicAuth, []Change{{OCI: &OCIChange{Repository: "shop.azurecr.io/team/app", Host: true, Tag: "v1", Digest: "sha256:c"}}}},
	"acr, by a name of one's own": {ACR, nil, `{"id":"1","timestamp":"2026-01-01T00:00:00Z","action":"chart_push","target":{"repository":"team/app","tag":"v1"},"request":{"host":"registry.example"}}`,
		tokenIn("Authorization", "Bearer "), []Change{{OCI: &OCIChange{Repository: "team/app", Tag: "v1"}}}},
	"acr ping": {ACR, nil, `{"id":"1","timestamp":"2026-01-01T00:00:00Z","action":"ping"}`, basicAuth, nil},
	"ecr": {ECR, nil, `{"version":"0","id":"1","detail-type":"ECR Image Action","source":"aws.ecr","account":"123456789012","time":"2026-01-01T00:00:00Z","region":"cn-north-1","resources":[],"detail":{"result":"SUCCESS","repository-name":"team/app","image-digest":"sha256:c","action-type":"PUSH","image-tag":"v1"}}`,
		tokenIn("X-Api-Key", ""), []Change{{OCI: &OCIChange{Repository: "123456789012.dkr.ecr.cn-north-1.amazonaws.com.cn/team/app", Host: true, Tag: "v1", Digest: "sha256:c"}}}},
	"ecr scan": {ECR, nil, `{"detail-type":"ECR Image Scan","source":"aws.ecr","detail":{"scan-status":"COMPLETE"}}`, basicAuth, nil},
	"artifact registry": {ArtifactRegistry, nil, `{"message":{"data":"` + base64.StdEncoding.EncodeToString([]byte(`{"action":"INSERT","digest":"europe-docker.pkg.dev/p/r/app@sha256:c","tag":"europe-docker.pkg.dev/p/r/app:v1"}`)) + `","messageId":"1","publishTime":"2026-01-01T00:00:00Z"},"subscription":"projects/p/subscriptions/s"}`,
		googleToken, []Change{{OCI: &OCIChange{Repository: "europe-docker.pkg.dev/p/r/app", Host: true, Tag: "v1", Digest: "sha256:c"}}}},
	"artifactory": {Artifactory, nil, `{"domain":"docker","event_type":"pushed","data":{"repo_key":"docker-local","path":"team/app/v1/manifest.json","name":"manifest.json","sha256":"cc","size":1,"image_name":"app","tag":"v1"},"subscription_key":"k","jpd_origin":"https://shop.jfrog.io/","source":"ci"}`,
		tokenIn("X-Jfrog-Event-Auth", ""), []Change{{OCI: &OCIChange{Repository: "docker-local/team/app", Tag: "v1", Digest: "sha256:cc"}}, {OCI: &OCIChange{Repository: "team/app", Tag: "v1", Digest: "sha256:cc"}}}},
	"artifactory, signed": {Artifactory, nil, `{"domain":"docker","event_type":"deleted","data":{"repo_key":"docker-local","tag":"v1"}}`, hmacIn("X-Jfrog-Event-Auth", ""), nil},
	"nexus": {Nexus, map[string]string{"X-Nexus-Webhook-Id": "rm:repository:component", "X-Nexus-Webhook-Delivery": "d1"},
		`{"timestamp":"2026-01-01T00:00:00.000+00:00","nodeId":"n","initiator":"ci","repositoryName":"images","action":"CREATED","component":{"id":"1","componentId":"2","format":"docker","name":"team/app","group":null,"version":"v1"}}`,
		sha1In, []Change{{OCI: &OCIChange{Repository: "images/team/app", Tag: "v1"}}, {OCI: &OCIChange{Repository: "team/app", Tag: "v1"}}}},
	"nexus asset": {Nexus, map[string]string{"X-Nexus-Webhook-Id": "rm:repository:asset"},
		`{"repositoryName":"images","action":"UPDATED","asset":{"id":"1","format":"docker","name":"v2/team/app/manifests/v1"}}`,
		sha1In, []Change{{OCI: &OCIChange{Repository: "images/team/app", Tag: "v1"}}, {OCI: &OCIChange{Repository: "team/app", Tag: "v1"}}}},
	"flux": {Flux, map[string]string{"Gotk-Component": "source-controller"},
		`{"involvedObject":{"apiVersion":"source.toolkit.fluxcd.io/v1","kind":"GitRepository","name":"app","namespace":"flux-system"},"severity":"info","timestamp":"2026-01-01T00:00:00Z","message":"stored artifact","reason":"NewArtifact","metadata":{"revision":"main@sha1:` + a40 + `"},"reportingController":"source-controller"}`,
		hmacIn("X-Signature", "sha256="), []Change{{Flux: &FluxChange{Kind: "GitRepository", Namespace: "flux-system", Name: "app", Revision: "main@sha1:" + a40}}}},
	"flux as documented": {Flux, nil,
		`{"involvedObject":{"kind":"OCIRepository","name":"app","namespace":"n"},"severity":"info","reason":"NewArtifact","metadata":{"source.toolkit.fluxcd.io/revision":"latest@sha256:ab"}}`,
		hmacIn("X-Signature", "sha256="), []Change{{Flux: &FluxChange{Kind: "OCIRepository", Namespace: "n", Name: "app", Revision: "latest@sha256:ab"}}}},
	"flux about something else": {Flux, nil, `{"involvedObject":{"kind":"Kustomization","name":"app"},"severity":"info"}`, hmacIn("X-Signature", "sha256="), nil},
	"distribution": {Distribution, map[string]string{"Content-Type": "application/vnd.docker.distribution.events.v2+json"},
		`{"events":[{"id":"1","action":"push","target":{"mediaType":"application/octet-stream","digest":"sha256:b","repository":"team/app"}},{"id":"2","action":"push","target":{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:c","repository":"team/app","tag":"v1"},"request":{"host":"registry:5000"}},{"id":"3","action":"pull","target":{"repository":"team/app","tag":"v1"}}]}`,
		tokenIn("Authorization", "Bearer "), []Change{{OCI: &OCIChange{Repository: "team/app", Tag: "v1", Digest: "sha256:c"}}}},
	"harbor": {Harbor, nil,
		`{"type":"PUSH_ARTIFACT","occur_at":1,"operator":"admin","event_data":{"resources":[{"digest":"sha256:a","tag":"v1","resource_url":"harbor.example/lib/app:v1"}],"repository":{"name":"app","namespace":"lib","repo_full_name":"lib/app","repo_type":"private"}}}`,
		tokenIn("Authorization", ""), []Change{{OCI: &OCIChange{Repository: "harbor.example/lib/app", Host: true, Tag: "v1", Digest: "sha256:a"}}}},
	"quay": {Quay, nil, `{"name":"app","repository":"org/app","namespace":"org","docker_url":"quay.io/org/app","updated_tags":["v1","latest"]}`,
		tokenIn("Authorization", "Bearer "), []Change{{OCI: &OCIChange{Repository: "quay.io/org/app", Host: true, Tag: "v1"}}, {OCI: &OCIChange{Repository: "quay.io/org/app", Host: true, Tag: "latest"}}}},
	"docker hub": {DockerHub, nil, `{"push_data":{"tag":"v1","pushed_at":1},"repository":{"repo_name":"org/app","repo_url":"https://hub.docker.com/r/org/app"}}`,
		tokenIn("Authorization", "Bearer "), []Change{{OCI: &OCIChange{Repository: "docker.io/org/app", Host: true, Tag: "v1"}}}},
	"cloudevent, binary": {CloudEvents, map[string]string{"Ce-Specversion": "1.0", "Ce-Id": "1", "Ce-Source": "/ci", "Ce-Type": "com.example.pushed", "Content-Type": "application/json"},
		`{"git":{"urls":["https://h/a"],"ref":"refs/heads/main"}}`, hmacIn("X-Signature", "sha256="), gitChanges("refs/heads/main", "", "", "https://h/a")},
	"cloudevent, structured": {CloudEvents, map[string]string{"Content-Type": "application/cloudevents+json"},
		`{"specversion":"1.0","id":"1","source":"/ci","type":"harbor.artifact.pushed","data":{"resources":[{"tag":"v1","resource_url":"h/a:v1"}],"repository":{"repo_full_name":"a"}}}`,
		tokenIn("Authorization", "Bearer "), []Change{{OCI: &OCIChange{Repository: "h/a", Host: true, Tag: "v1"}}}},
	"cloudevents, batch": {CloudEvents, map[string]string{"Content-Type": "application/cloudevents-batch+json"},
		`[{"specversion":"1.0","id":"1","source":"/ci","type":"x","data":{"oci":{"repository":"h/a","host":true,"tag":"v1"}}},{"specversion":"1.0","id":"2","source":"/ci","type":"dev.cdevents.artifact.published.0.2.0","data":{"context":{},"subject":{"id":"pkg:oci/b@sha256%3Aab?repository_url=h%2Fb&tag=v2"}}}]`,
		tokenIn("Authorization", "Bearer "), []Change{{OCI: &OCIChange{Repository: "h/a", Host: true, Tag: "v1"}}, {OCI: &OCIChange{Repository: "h/b", Host: true, Tag: "v2", Digest: "sha256:ab"}}}},
	"generic": {Generic, map[string]string{"X-Request-Id": "d1"}, `{"oci":{"repository":"h/a","host":true}}`, hmacIn("X-Signature", "sha256="), []Change{{OCI: &OCIChange{Repository: "h/a", Host: true}}}},
}

func headers(of map[string]string) http.Header {
	h := http.Header{}
	for name, value := range of {
		h.Set(name, value)
	}
	return h
}

func TestDeliveries(t *testing.T) {
	seen := map[Provider]bool{}
	for name, d := range deliveries {
		seen[d.provider] = true
		t.Run(name, func(t *testing.T) {
			r := receiver("r", d.provider)
			h := headers(d.headers)
			d.sign(h, key, d.body)
			e, err := r.Read(h, "", []byte(d.body), now)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(d.want, e.Changes); diff != "" {
				t.Error(diff)
			}
			again, err := r.Read(h, "", []byte(d.body), now)
			if err != nil || again.ID != e.ID || e.ID == "" {
				t.Errorf("a repeated delivery has the id %q, the first one %q (%v)", again.ID, e.ID, err)
			}
			refused := func(what string, h http.Header, body string) {
				t.Helper()
				if _, err := r.Read(h, "", []byte(body), now); !errors.Is(err, ErrSignature) {
					t.Errorf("%s: got %v", what, err)
				}
			}
			refused("no signature", headers(d.headers), d.body)
			wrong := headers(d.headers)
			d.sign(wrong, "another secret", d.body)
			refused("signed with another secret", wrong, d.body)
			if !tokens(h) {
				refused("another body", h, d.body+" ")
			}
			other := receiver("other", d.provider)
			if e2, err := other.Read(h, "", []byte(d.body), now); err != nil || e2.ID == e.ID {
				t.Errorf("the same delivery to another receiver has the same id (%v)", err)
			}
			insecure := Receiver{Name: "r", Provider: d.provider, Insecure: true}
			if _, err := insecure.Read(headers(d.headers), "", []byte(d.body), now); err != nil {
				t.Errorf("declared insecure: %v", err)
			}
			if _, err := r.Read(h, "", []byte("{"), now); err == nil && !tokens(h) {
				t.Error("half a body was read")
			}
		})
	}
	for p := range senders {
		if !seen[p] {
			t.Errorf("there is no delivery of %s", p)
		}
	}
}

// tokens reports whether the signature does not depend on the body.
func tokens(h http.Header) bool {
	return h.Get("Authorization") != "" || h.Get("X-Gitlab-Token") != "" || h.Get("X-Api-Key") != "" || h.Get("X-Jfrog-Event-Auth") == key
}

func TestSignaturesThatAreRefused(t *testing.T) {
	push := deliveries["github push"]
	flux := deliveries["flux"]
	signed := deliveries["gitlab signed"]
	for name, tc := range map[string]struct {
		provider Provider
		headers  map[string]string
		body     string
		set      func(h http.Header)
		at       time.Time
	}{
		"SHA-1 of GitHub":                {GitHub, push.headers, push.body, func(h http.Header) { h.Set("X-Hub-Signature", "sha1="+mac(sha1.New, key, push.body)) }, now},
		"SHA-1 of Flux":                  {Flux, flux.headers, flux.body, func(h http.Header) { h.Set("X-Signature", "sha1="+mac(sha1.New, key, flux.body)) }, now},
		"no algorithm":                   {Flux, flux.headers, flux.body, func(h http.Header) { h.Set("X-Signature", mac(sha256.New, key, flux.body)) }, now},
		"half of the digits":             {GitHub, push.headers, push.body, func(h http.Header) { h.Set("X-Hub-Signature-256", "sha256="+mac(sha256.New, key, push.body)[:32]) }, now},
		"no digits":                      {GitHub, push.headers, push.body, func(h http.Header) { h.Set("X-Hub-Signature-256", "sha256=") }, now},
		"not hexadecimal":                {GitHub, push.headers, push.body, func(h http.Header) { h.Set("X-Hub-Signature-256", "sha256=zz") }, now},
		"empty token":                    {GitLab, nil, signed.body, func(h http.Header) { h.Set("X-Gitlab-Token", "") }, now},
		"old timestamp":                  {GitLab, signed.headers, signed.body, func(h http.Header) { standardWebhooks(h, key, signed.body) }, now.Add(6 * time.Minute)},
		"timestamp to come":              {GitLab, signed.headers, signed.body, func(h http.Header) { standardWebhooks(h, key, signed.body) }, now.Add(-6 * time.Minute)},
		"another id":                     {GitLab, signed.headers, signed.body, func(h http.Header) { standardWebhooks(h, key, signed.body); h.Set("Webhook-Id", "id-2") }, now},
		"no timestamp":                   {GitLab, signed.headers, signed.body, func(h http.Header) { standardWebhooks(h, key, signed.body); h.Del("Webhook-Timestamp") }, now},
		"token beside a wrong signature": {GitLab, signed.headers, signed.body, func(h http.Header) { standardWebhooks(h, "x", signed.body); h.Set("X-Gitlab-Token", key) }, now},
		"good second header of Forgejo": {Forgejo, nil, push.body, func(h http.Header) {
			h.Set("X-Forgejo-Signature", "00")
			h.Set("X-Gitea-Signature", mac(sha256.New, key, push.body))
		}, now},
	} {
		t.Run(name, func(t *testing.T) {
			h := headers(tc.headers)
			tc.set(h)
			r := Receiver{Name: "r", Provider: tc.provider, Secret: []byte(key)}
			_, err := r.Read(h, "", []byte(tc.body), tc.at)
			if !errors.Is(err, ErrSignature) {
				t.Errorf("got %v", err)
			}
			if err != nil && strings.Contains(err.Error(), key) {
				t.Errorf("the error tells the secret: %v", err)
			}
		})
	}
}

func TestSignaturesThatAreAccepted(t *testing.T) {
	flux := deliveries["flux"]
	for name, value := range map[string]string{"sha384": mac(sha512.New384, key, flux.body), "sha512": mac(sha512.New, key, flux.body)} {
		r := Receiver{Name: "r", Provider: Flux, Secret: []byte(key)}
		h := http.Header{"X-Signature": {name + "=" + value}}
		if _, err := r.Read(h, "", []byte(flux.body), now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	secret := "whsec_" + base64.StdEncoding.EncodeToString([]byte("raw key"))
	signed := deliveries["gitlab signed"]
	h := headers(signed.headers)
	standardWebhooks(h, "raw key", signed.body)
	if _, err := (Receiver{Name: "r", Provider: GitLab, Secret: []byte(secret)}).Read(h, "", []byte(signed.body), now); err != nil {
		t.Errorf("a secret in the form of Standard Webhooks: %v", err)
	}
	quay := deliveries["quay"]
	if _, err := (Receiver{Name: "r", Provider: Quay, Secret: []byte(key)}).Read(http.Header{}, key, []byte(quay.body), now); err != nil {
		t.Errorf("a token in the URL for a sender that sets no headers: %v", err)
	}
	push := deliveries["github push"]
	if _, err := (Receiver{Name: "r", Provider: GitHub, Secret: []byte(key)}).Read(headers(push.headers), key, []byte(push.body), now); !errors.Is(err, ErrSignature) {
		t.Errorf("a token in the URL for a sender that signs: %v", err)
	}
}

func TestDeletedReferences(t *testing.T) {
	body := strings.Replace(deliveries["github push"].body, b40, z40, 1)
	e, err := Receiver{Name: "r", Provider: GitHub, Insecure: true}.Read(headers(map[string]string{"X-GitHub-Event": "push"}), "", []byte(body), now)
	if err != nil || !e.Changes[0].Git.Deleted || e.Changes[0].Git.After != "" {
		t.Errorf("%+v, %v", e.Changes, err)
	}
}

func TestReceiversThatAreRefused(t *testing.T) {
	for name, r := range map[string]Receiver{
		"no secret": {Name: "a", Provider: GitHub}, "secret and insecure": {Name: "a", Provider: GitHub, Secret: []byte("x"), Insecure: true},
		"path": {Name: "a/b", Provider: GitHub, Insecure: true}, "no name": {Provider: GitHub, Insecure: true}, "provider": {Name: "a", Provider: "x", Insecure: true},
		"a secret for tokens": {Name: "a", Provider: ArtifactRegistry, Secret: []byte("x")}, "tokens of another sender": {Name: "a", Provider: ECR, Token: testKeys.Verifier()},
		"tokens and a secret": {Name: "a", Provider: ArtifactRegistry, Secret: []byte("x"), Token: testKeys.Verifier()}, "nothing to check by": {Name: "a", Provider: ArtifactRegistry},
	} {
		if r.Validate() == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// A sender that names neither an event nor a time sends the same body for each push of a tag.
func TestEqualBodiesOfDifferentEvents(t *testing.T) {
	for name, same := range map[string]bool{"quay": false, "generic": false, "flux": true, "harbor": true} {
		d := deliveries[name]
		r := Receiver{Name: "r", Provider: d.provider, Insecure: true}
		first, err1 := r.Read(http.Header{}, "", []byte(d.body), now)
		second, err2 := r.Read(http.Header{}, "", []byte(d.body), now.Add(time.Hour))
		if err1 != nil || err2 != nil || (first.ID == second.ID) != same {
			t.Errorf("%s: %v, %v, the same: %v", name, err1, err2, first.ID == second.ID)
		}
	}
}

func TestFluxRef(t *testing.T) {
	for revision, want := range map[string]string{
		"main@sha1:" + a40: "main", "refs/tags/v1@sha1:" + a40: "refs/tags/v1", "sha1:" + a40: "", "main/" + a40: "main",
		"feature/x@sha1:" + a40: "feature/x", "latest@sha256:ab": "latest", "": "",
	} {
		if got := (FluxChange{Revision: revision}).Ref(); got != want {
			t.Errorf("%s: %q, want %q", revision, got, want)
		}
	}
}

// FuzzRead gives any body and a few headers to every provider: nothing may panic, and nothing that is not signed may be
// read.
func FuzzRead(f *testing.F) {
	providers := slices.Sorted(maps.Keys(senders))
	for _, d := range deliveries {
		f.Add(d.body, d.headers["X-Event-Key"]+d.headers["X-GitHub-Event"], d.headers["Content-Type"])
	}
	f.Fuzz(func(t *testing.T, body, kind, contentType string) {
		for _, p := range providers {
			h := http.Header{}
			for _, name := range []string{"X-GitHub-Event", "X-Gitlab-Event", "X-Gitea-Event", "X-Forgejo-Event", "X-Event-Key", "Ce-Type"} {
				h.Set(name, kind)
			}
			h.Set("Content-Type", contentType)
			e, err := Receiver{Name: "r", Provider: p, Insecure: true}.Read(h, "", []byte(body), now)
			if err == nil {
				for _, c := range e.Changes {
					if (c.Git != nil) == (c.OCI != nil || c.Flux != nil) {
						t.Errorf("%s: a change that is none or two: %+v", p, c)
					}
				}
			}
			if _, err := receiver("r", p).Read(h, "", []byte(body), now); err == nil {
				t.Errorf("%s: read without a signature", p)
			}
		}
		_ = fmt.Sprint(FluxChange{Revision: body}.Ref())
	})
}
