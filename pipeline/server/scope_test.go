// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/server/access"
)

// openTokens returns the administrator's token, token, and those of a file of entries.
func openTokens(t testing.TB, entries string) *access.Tokens {
	t.Helper()
	dir, list := t.TempDir(), ""
	if err := os.WriteFile(filepath.Join(dir, "admin.token"), []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	if entries != "" {
		list = filepath.Join(dir, "tokens.yaml")
		if err := os.WriteFile(list, []byte(entries), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tokens, err := access.OpenTokens(filepath.Join(dir, "admin.token"), list, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// neighbours are two teams on one server: of the namespace shop the test has tokens of several roles, of the namespace vault
// nothing may be known with them.
type neighbours struct {
	server  *httptest.Server
	store   *status.Store
	audit   *bytes.Buffer
	secrets map[string]string
}

func newNeighbours(t *testing.T) *neighbours {
	t.Helper()
	inNamespace := func(name, namespace, more string) string {
		return strings.Replace(fmt.Sprintf(object, name, name, more), "namespace: team", "namespace: "+namespace, 1)
	}
	s := with(t, map[string]string{
		"shop.yaml":  inNamespace("web", "shop", "") + inNamespace("cart", "shop", ""),
		"vault.yaml": inNamespace("coin", "vault", "") + inNamespace("safe", "vault", "  suspend: true\n"),
		// What is wrong in files of others, and pipelines without a namespace, are not for shop either.
		"broken.yaml":       "vaulted: [",
		"broken-vault.yaml": inNamespace("badsafe", "vault", "  sauce: vaulted\n"),
		"broken-shop.yaml":  inNamespace("badweb", "shop", "  sauce: {}\n"),
		"free.yaml":         strings.Replace(fmt.Sprintf(object, "vaultless", "vaultless", ""), ", namespace: team", "", 1),
	})
	save(t, s.Store, "vault/coin", status.Failed, "the vault is open", true)
	save(t, s.Store, "shop/web", status.Published, "done", true)
	for _, gone := range []string{"shop/gone", "vault/gone"} {
		save(t, s.Store, gone, status.Published, "done", false)
		if err := s.Store.AddRemoved(t.Context(), status.Removed{Pipeline: gone + "-before", At: time.Now(), Message: "left"}, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	s.Keeper = &prune.Keeper{Catalog: s.Catalog, Store: s.Store, Queue: s.Queue, MaxShare: 50, Log: s.Log}
	s.Promoter = &promotion.Promoter{Catalog: s.Catalog, Store: s.Store, Queue: s.Queue, Log: s.Log}
	for range 2 { // marked, and then due
		if err := s.Store.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Keeper.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return serveNeighbours(t, s)
}

// serveNeighbours serves with the tokens of the test.
func serveNeighbours(t *testing.T, s *Server) *neighbours {
	t.Helper()
	n := &neighbours{store: s.Store, audit: &bytes.Buffer{}, secrets: map[string]string{"admin": token}}
	var entries []access.Token
	for name, grant := range map[string]access.Grant{
		"reader": {Role: access.Read, Namespaces: []string{"shop"}}, "operator": {Role: access.Operate, Namespaces: []string{"shop"}},
		"administrator": {Role: access.Administer, Namespaces: []string{"shop"}}, "auditor": {Role: access.Read}, "prometheus": {Role: access.Metrics},
	} {
		secret, entry, err := access.NewToken(name, grant, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		n.secrets[name], entries = secret, append(entries, entry)
	}
	text, err := yaml.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	*s.Tokens = *openTokens(t, string(text))
	if s.Audit, err = access.OpenAudit("", slog.New(slog.NewJSONHandler(n.audit, nil))); err != nil {
		t.Fatal(err)
	}
	s.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `prerig_pipeline{name="vault/coin"} 1`) })
	n.server = httptest.NewServer(s.Admin(Access{}))
	t.Cleanup(n.server.Close)
	return n
}

// ask sends a request with the token of somebody, a POST where there is a body.
func (n *neighbours) ask(t *testing.T, who, path, body string) (int, string) {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(t.Context(), method, n.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+n.secrets[who])
	response, err := n.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// TestTokensSeeTheirNamespacesOnly asks everything that can be asked with tokens of one namespace: nothing of the other one is in
// an answer, and no number counts it.
func TestTokensSeeTheirNamespacesOnly(t *testing.T) {
	n := newNeighbours(t)
	for _, who := range []string{"reader", "operator", "administrator"} {
		for _, path := range []string{"/", "/?find=coin", "/?sort=time", "/?state=Suspended", "/mesh", "/workloads", "/workloads?show=risky", "/pull-requests", "/api/v1/pipelines", "/api/v1/catalog"} {
			code, body := n.ask(t, who, path, "")
			if code != http.StatusOK || strings.Contains(strings.ReplaceAll(body, "find=coin", ""), "vault") || strings.Contains(body, "safe") {
				t.Errorf("%s gets of %s: %d\n%s", who, path, code, body)
			}
		}
		if _, body := n.ask(t, who, "/", ""); !strings.Contains(body, `Pipelines <span class="count">3</span>`) || !strings.Contains(body, "shop/web") ||
			!strings.Contains(body, "shop/badweb") || strings.Contains(body, "broken.yaml") || strings.Contains(body, "of 8") {
			t.Errorf("the page of %s:\n%s", who, body)
		}
		_, body := n.ask(t, who, "/api/v1/catalog", "")
		var c Catalog
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			t.Fatal(err)
		}
		if c.Pipelines != 2 || c.Invalid != 1 || len(c.Removals) != 1 || c.Removals[0].Pipeline != "shop/gone" || c.Removals[0].Message != heldMessage ||
			len(c.Removed) != 1 || c.Removed[0].Pipeline != "shop/gone-before" || c.Source != "" || c.Revision != "" || !c.Changed.IsZero() {
			t.Errorf("%s: %s", who, body)
		}
	}
	if _, body := n.ask(t, "auditor", "/", ""); !strings.Contains(body, `<span class="count">8</span>`) || !strings.Contains(body, "vault/coin") {
		t.Errorf("who may see all sees:\n%s", body)
	}
}

// TestPipelinesOfOthersAreAsIfTheyWereNot compares the answers about a pipeline of another namespace with those about one that does
// not exist, to the byte.
func TestPipelinesOfOthersAreAsIfTheyWereNot(t *testing.T) {
	n := newNeighbours(t)
	for _, tc := range []struct{ path, body string }{
		{"/api/v1/pipelines?pipeline=NAME", ""}, {"/api/v1/pipelines?pipeline=shop/web&pipeline=NAME", ""}, {"/pipeline?name=NAME", ""},
		{"/workload?pipeline=NAME&workload=Deployment", ""}, {"/file?name=NAME&target=x&path=y", ""}, {"/drift?name=NAME", ""},
		{"/runs?pipeline=NAME&run=run1", ""}, {"/api/v1/diff?pipeline=NAME&run=run1", ""},
		{"/api/v1/reconcile", `{"pipelines": ["NAME"]}`}, {"/api/v1/reconcile", `{"pipelines": ["shop/web", "NAME"]}`},
		{"/api/v1/suspend", `{"pipelines": ["NAME"], "suspended": true}`}, {"/api/v1/suspend", `{"pipelines": ["NAME"]}`},
		{"/api/v1/promote", `{"pipelines": ["NAME"]}`}, {"/api/v1/hold", `{"pipelines": ["shop/web", "NAME"]}`}, {"/api/v1/rollback", `{"pipelines": ["NAME"]}`},
		{"/api/v1/remove", `{"pipelines": ["NAME"]}`}, {"/api/v1/remove", `{"pipelines": ["shop/gone", "NAME"]}`},
	} {
		for _, name := range []string{"vault/coin", "vault/safe", "vault/gone", "vault/badsafe", "vaultless", "broken.yaml"} {
			code, body := n.ask(t, "administrator", withName(tc.path, name), strings.ReplaceAll(tc.body, "NAME", name))
			wantCode, want := n.ask(t, "administrator", withName(tc.path, "absent"), strings.ReplaceAll(tc.body, "NAME", "absent"))
			if want = strings.ReplaceAll(want, "absent", name); code != http.StatusNotFound || code != wantCode || body != want {
				t.Errorf("%s %s with %s:\n%d %s\nof an absent one:\n%d %s", tc.path, tc.body, name, code, body, wantCode, want)
			}
		}
	}
	if code, body := n.ask(t, "reader", "/api/v1/diff?pipeline=shop/web&run=run1", ""); code != http.StatusOK || !strings.Contains(body, "istio-proxy") {
		t.Errorf("the difference of its own pipeline: %d %s", code, body)
	}
}

func withName(path, name string) string {
	return strings.ReplaceAll(path, "NAME", url.QueryEscape(name))
}

// TestAllMeansThoseOfTheToken has a token of one namespace ask for everything.
func TestAllMeansThoseOfTheToken(t *testing.T) {
	n := newNeighbours(t)
	for path, want := range map[string]string{"/api/v1/reconcile": "shop/cart shop/web", "/api/v1/remove": "shop/gone"} {
		code, body := n.ask(t, "administrator", path, `{"all": true}`)
		var answer Answer
		if err := json.Unmarshal([]byte(body), &answer); err != nil || code != http.StatusOK || strings.Join(answer.Pipelines, " ") != want {
			t.Errorf("%s: %d %s, %v", path, code, body, err)
		}
	}
}

// TestRolesAreKept has each role try what needs the next one.
func TestRolesAreKept(t *testing.T) {
	n := newNeighbours(t)
	const web = `{"pipelines": ["shop/web"], "suspended": true}`
	for _, tc := range []struct {
		who, path, body string
		want            int
	}{
		{"reader", "/api/v1/reconcile", `{"pipelines": ["shop/web"]}`, 403}, {"reader", "/api/v1/suspend", web, 403},
		{"auditor", "/api/v1/suspend", web, 403}, {"auditor", "/api/v1/remove", `{"all": true}`, 403},
		{"reader", "/api/v1/promote", web, 403}, {"reader", "/api/v1/hold", web, 403}, {"reader", "/api/v1/rollback", web, 403}, {"auditor", "/api/v1/hold", web, 403},
		{"reader", "/api/v1/promotions", "", 200}, {"prometheus", "/api/v1/promotions", "", 403}, {"operator", "/api/v1/hold", web, 200},
		{"operator", "/api/v1/promote", web, 200}, {"operator", "/api/v1/rollback", web, 409}, {"nobody", "/api/v1/promotions", "", 401},
		{"reader", "/api/v1/previews", "", 200}, {"prometheus", "/api/v1/previews", "", 403}, {"nobody", "/api/v1/previews", "", 401},
		{"operator", "/api/v1/suspend", web, 200}, {"operator", "/api/v1/remove", `{"pipelines": ["shop/gone"]}`, 403},
		{"prometheus", "/", "", 403}, {"prometheus", "/api/v1/pipelines", "", 403}, {"prometheus", "/api/v1/suspend", web, 403},
		{"prometheus", "/metrics", "", 200}, {"auditor", "/metrics", "", 200}, {"admin", "/metrics", "", 200},
		// They have the names of all pipelines.
		{"reader", "/metrics", "", 403}, {"administrator", "/metrics", "", 403},
		{"nobody", "/metrics", "", 401}, {"nobody", "/", "", 401}, {"nobody", "/api/v1/suspend", web, 401},
		{"admin", "/api/v1/suspend", web, 200},
	} {
		code, body := n.ask(t, tc.who, tc.path, tc.body)
		if code != tc.want || code != http.StatusOK && strings.Contains(body, "vault") {
			t.Errorf("%s %s: got %d, want %d: %s", tc.who, tc.path, code, tc.want, body)
		}
	}
}

// TestRecordOfWhoDidWhat reads the record after changes and attempts.
func TestRecordOfWhoDidWhat(t *testing.T) {
	n := newNeighbours(t)
	n.ask(t, "operator", "/api/v1/suspend", `{"pipelines": ["shop/web"], "suspended": true}`)
	n.ask(t, "operator", "/api/v1/suspend", `{"pipelines": ["vault/coin"], "suspended": true}`)
	n.ask(t, "operator", "/api/v1/suspend", `{"pipelines": ["vault/coin"]}`)
	n.ask(t, "reader", "/api/v1/reconcile", `{"all": true}`)
	n.ask(t, "nobody", "/api/v1/remove", `{"all": true}`)
	n.ask(t, "administrator", "/api/v1/remove", `{"all": true}`)
	n.ask(t, "reader", "/", "") // looking is not recorded
	type line struct {
		Time                                       time.Time
		Msg, Who, Action, Outcome, Address, Reason string
		Pipelines                                  []string
	}
	var got []string
	for text := range strings.Lines(n.audit.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		if l.Msg != "audit" || l.Time.IsZero() || !strings.HasPrefix(l.Address, "127.0.0.1:") || (l.Reason == "") != (l.Outcome == access.Done) {
			t.Errorf("%s", text)
		}
		got = append(got, fmt.Sprint(l.Who, " ", l.Action, " ", l.Pipelines, " ", l.Outcome))
	}
	want := []string{
		"token:operator suspend [shop/web] done", "token:operator suspend [vault/coin] refused",
		"token:operator resume [vault/coin] refused",
		"token:reader POST /api/v1/reconcile [] refused", "nobody POST /api/v1/remove [] refused", "token:administrator remove [shop/gone] done",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the record is\n%s", strings.Join(got, "\n"))
	}
	for who, secret := range n.secrets {
		if strings.Contains(n.audit.String(), secret) {
			t.Errorf("the token of %s is in the record", who)
		}
	}
}
