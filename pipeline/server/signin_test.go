// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/server/access"
)

// TestSigningInWithAToken has people sign in with tokens, wrong ones and ones that end.
func TestSigningInWithAToken(t *testing.T) {
	n := newNeighbours(t)
	v := newVisitor(t, n.server.URL)
	if got := v.visit("/pipeline?name=shop/web"); got.code != http.StatusUnauthorized || got.form("/auth/token").Get("to") != "/pipeline?name=shop/web" ||
		strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Basic") {
		t.Fatalf("before: %d %q\n%s", got.code, got.header, got.text)
	}
	if got := v.signIn("wrong"); got.code != http.StatusUnauthorized || !strings.Contains(got.text, "not known here") {
		t.Errorf("a wrong token: %d\n%s", got.code, got.text)
	}
	if got := v.signIn(n.secrets["prometheus"]); got.code != http.StatusForbidden || !strings.Contains(got.text, "reading metrics only") {
		t.Errorf("a token for metrics: %d\n%s", got.code, got.text)
	}
	if got := v.send("/auth/token", url.Values{"token": {n.secrets["operator"]}}, "Origin", "https://evil.example.com"); got.code != http.StatusForbidden {
		t.Errorf("from another site: %d", got.code)
	}
	if got := v.visit("/"); got.code != http.StatusUnauthorized {
		t.Fatalf("nobody has signed in, and the page answers %d", got.code)
	}
	form := v.visit("/pipeline?name=shop/web").form("/auth/token")
	form.Set("token", " "+n.secrets["operator"]+"\n")
	got := v.send("/auth/token", form)
	if got.code != http.StatusOK || got.at.RequestURI() != "/pipeline?name=shop/web" || !strings.Contains(got.text, "<bdi>operator</bdi>") {
		t.Errorf("the operator: %d at %s\n%s", got.code, got.at, got.text)
	}
	if got := v.visit("/pipeline?name=vault/coin"); got.code != http.StatusNotFound {
		t.Errorf("a pipeline of others: %d", got.code)
	}
	if code, _ := n.ask(t, "nobody", "/", ""); code != http.StatusUnauthorized {
		t.Errorf("a wrong token for programs: %d", code)
	}
	// A bearer token that is wrong is not made good by a session.
	if got := v.do(http.MethodGet, "/", nil, "Authorization", "Bearer wrong"); got.code != http.StatusUnauthorized {
		t.Errorf("a wrong token beside a session: %d", got.code)
	}
	page, _ := url.Parse(n.server.URL)
	stolen := v.client.Jar.Cookies(page)
	if got := v.send("/auth/sign-out", url.Values{}, "Origin", "https://evil.example.com"); got.code != http.StatusForbidden {
		t.Errorf("another site signs out: %d", got.code)
	}
	if got := v.send("/auth/sign-out", url.Values{}); got.code != http.StatusUnauthorized || len(v.client.Jar.Cookies(page)) != 0 {
		t.Errorf("after signing out: %d", got.code)
	}
	v.client.Jar.SetCookies(page, stolen)
	if got := v.visit("/"); got.code != http.StatusUnauthorized {
		t.Errorf("the cookie of a session works after its end: %d", got.code)
	}
	for _, want := range []string{`"who":"nobody","action":"sign-in","outcome":"refused"`, `"who":"token:operator","action":"sign-in","outcome":"done"`, `"who":"token:prometheus","action":"sign-in","outcome":"refused"`,
		`"who":"token:operator","action":"sign-out","outcome":"done"`} {
		if !strings.Contains(n.audit.String(), want) {
			t.Errorf("the record lacks %s:\n%s", want, n.audit)
		}
	}
}

// TestSessionEndsWithItsToken takes a token away from somebody who has signed in with it.
func TestSessionEndsWithItsToken(t *testing.T) {
	s := fixture(t)
	h := s.Admin(Access{})
	w := postToken(h, "http://prerig.example.com")
	look := func() int {
		response, _ := get(t, h, "/", func(r *http.Request) { r.AddCookie(w.Result().Cookies()[0]) })
		return response.StatusCode
	}
	if got := look(); got != http.StatusOK {
		t.Errorf("with the token: %d", got)
	}
	file := filepath.Join(t.TempDir(), "admin.token")
	if err := os.WriteFile(file, []byte("another token of some length"), 0o600); err != nil {
		t.Fatal(err)
	}
	others, err := access.OpenTokens(file, "", s.Log)
	if err != nil {
		t.Fatal(err)
	}
	*s.Tokens = *others
	if got := look(); got != http.StatusUnauthorized {
		t.Errorf("without the token: %d", got)
	}
}

// postToken signs in with the administrator's token.
func postToken(h http.Handler, origin string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/auth/token", strings.NewReader(url.Values{"token": {token}}.Encode()))
	r.Host = "prerig.example.com"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", origin)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestCookiesOfSessions looks at what a browser is given.
func TestCookiesOfSessions(t *testing.T) {
	h := fixture(t).Admin(Access{})
	for origin, want := range map[string]string{
		"http://prerig.example.com":  "prerig-token-session=; Path=/; Max-Age=28800; HttpOnly; SameSite=Strict",
		"https://prerig.example.com": "__Host-prerig-token-session=; Path=/; Max-Age=28800; HttpOnly; Secure; SameSite=Strict",
	} {
		w := postToken(h, origin)
		if w.Code != http.StatusSeeOther || len(w.Result().Cookies()) != 1 {
			t.Fatalf("%s: %d %v", origin, w.Code, w.Result().Cookies())
		}
		cookie := w.Result().Cookies()[0]
		id := cookie.Value
		if got := strings.Replace(w.Header().Get("Set-Cookie"), id, "", 1); got != want || len(id) < 40 {
			t.Errorf("%s: %s", origin, got)
		}
	}
}

// TestTheWayFromAnotherSite: a browser leaves the cookie out where a link of another site leads here, and the page has it ask again.
func TestTheWayFromAnotherSite(t *testing.T) {
	v := newVisitor(t, serveAdmin(t, fixture(t), Access{}))
	for site, want := range map[string]bool{"cross-site": true, "same-origin": false, "none": false} {
		if got := v.do(http.MethodGet, "/", nil, "Sec-Fetch-Site", site); strings.Contains(got.text, `http-equiv="refresh"`) != want {
			t.Errorf("%s:\n%s", site, got.text)
		}
	}
}
