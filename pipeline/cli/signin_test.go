// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cli

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/internal/freeport"
)

// startProvider builds and starts a certified OpenID Connect provider, which is a module of its own, and returns its issuer.
func startProvider(t *testing.T, redirect string) (issuer string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command, which builds the OpenID Connect provider to sign in at, is not there")
	}
	program := filepath.Join(t.TempDir(), "provider")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "./provider")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Dir = filepath.Join("..", "..", "fn", "internal", "upstream", "oidc")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the provider: %v\n%s", err, out)
	}
	provider := exec.Command(program, redirect)
	provider.Stderr = io.Discard
	stdin, err := provider.StdinPipe()
	must(t, err)
	stdout, err := provider.StdoutPipe()
	must(t, err)
	must(t, provider.Start())
	t.Cleanup(func() {
		_ = stdin.Close() // which ends it
		_ = provider.Wait()
	})
	issuer, err = bufio.NewReader(stdout).ReadString('\n')
	must(t, err)
	return strings.TrimSpace(issuer)
}

// signInBed is a daemon with TLS at whose page people sign in, who are alice of the group platform, bob of shop-devs, and mallory of
// no group that has a role.
type signInBed struct {
	t    *testing.T
	url  string
	dir  string
	pool *x509.CertPool
	log  *lockedBuffer
}

func newSignInBed(t *testing.T) *signInBed {
	t.Helper()
	address, err := freeport.Address()
	must(t, err)
	b := &signInBed{t: t, url: "https://" + address, pool: x509.NewCertPool()}
	b.dir = twoTeams(t, fmt.Sprintf(`external_url: %s
admin:
  listen: %s
  tls: {certificate: tls.crt, key: tls.key}
  audit: audit.log
  oidc:
    issuer: %s
    client_id: prerig
    client_secret: client.secret
    grants:
    - {group: platform, role: administer}
    - {group: shop-devs, role: operate, namespaces: [shop]}
    - {group: others, role: read}
`, b.url, address, startProvider(t, b.url+"/auth/callback")))
	must(t, os.WriteFile(filepath.Join(b.dir, "client.secret"), []byte("client secret\n"), 0o600))
	a := newAuthority(t, b.dir)
	a.issue(b.dir, 7)
	b.pool.AddCert(a.certificate)
	_, b.log = runServe(t, filepath.Join(b.dir, "prerig.yaml"))
	return b
}

// browser is a client with cookies. It stops at the way back from the provider, so that a test can go it, or another one.
type browser struct {
	*http.Client
	b *signInBed
}

func (b *signInBed) browser() *browser {
	b.t.Helper()
	jar, err := cookiejar.New(nil)
	must(b.t, err)
	return &browser{&http.Client{
		Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: b.pool}},
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			if strings.HasPrefix(r.URL.String(), b.url+"/auth/callback") {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}, b}
}

// send asks the page as a browser does, and returns the answer with its body read.
func (c *browser) send(method, address string, form url.Values, headers ...string) (*http.Response, string) {
	c.b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(c.b.t.Context(), method, address, body)
	must(c.b.t, err)
	r.Header.Set("Accept", "text/html")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	response, err := c.Do(r)
	must(c.b.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(c.b.t, err)
	return response, string(text)
}

func (c *browser) get(path string) (*http.Response, string) {
	c.b.t.Helper()
	return c.send(http.MethodGet, c.b.url+path, nil)
}

// toCallback begins to sign in and gives the provider name and password. It returns where the provider sends the browser to.
func (c *browser) toCallback(name, to string) (callback string) {
	c.b.t.Helper()
	response, login := c.get("/auth/sign-in?to=" + url.QueryEscape(to))
	id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(login)
	if id == nil {
		c.b.t.Fatalf("the provider shows no form: %s\n%s\n%s", response.Status, login, c.b.log)
	}
	response, text := c.send(http.MethodPost, response.Request.URL.ResolveReference(&url.URL{Path: "/login/username"}).String(),
		url.Values{"id": {id[1]}, "username": {name}, "password": {name}})
	callback = response.Header.Get("Location")
	if !strings.HasPrefix(callback, c.b.url+"/auth/callback?") {
		c.b.t.Fatalf("the provider sends to %q: %s\n%s", callback, response.Status, text)
	}
	return callback
}

// signIn signs in and returns the page that this leads to.
func (c *browser) signIn(name, to string) (*http.Response, string) {
	c.b.t.Helper()
	return c.send(http.MethodGet, c.toCallback(name, to), nil)
}

func (c *browser) cookies() []*http.Cookie {
	c.b.t.Helper()
	page, err := url.Parse(c.b.url)
	must(c.b.t, err)
	return c.Jar.Cookies(page)
}

func (c *browser) isSignedIn() bool {
	c.b.t.Helper()
	response, _ := c.get("/")
	return response.StatusCode == http.StatusOK
}

const fromThePage = "Sec-Fetch-Site: same-origin"

// form is what a button of the page sends about a pipeline, with the token that the page has for it.
func (c *browser) form(pipeline, action string) url.Values {
	c.b.t.Helper()
	_, body := c.get("/")
	found := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(body)
	if found == nil {
		c.b.t.Fatalf("the page has no form:\n%s", body)
	}
	return url.Values{"name": {pipeline}, "action": {action}, "csrf": {found[1]}}
}

// TestSigningIn has people of three groups sign in at a real provider, see what is theirs, change something, and sign out.
func TestSigningIn(t *testing.T) {
	b := newSignInBed(t)
	alice, bob, mallory := b.browser(), b.browser(), b.browser()
	if response, body := alice.get("/pipeline?name=vault/coin"); response.StatusCode != http.StatusUnauthorized || response.Header.Get("WWW-Authenticate") != `Bearer realm="prerig"` ||
		!strings.Contains(body, `href="/auth/sign-in?to=%2fpipeline%3fname%3dvault%2fcoin"`) || strings.Contains(body, "There is no pipeline") {
		t.Errorf("before: %s\n%s", response.Status, body)
	}
	if response, body := alice.signIn("alice", "/pipeline?name=vault/coin"); response.StatusCode != http.StatusOK || response.Request.URL.String() != b.url+"/pipeline?name=vault/coin" ||
		!strings.Contains(body, "<bdi>id-of-alice</bdi> <button>Sign out</button>") {
		t.Errorf("alice: %s at %s\n%s", response.Status, response.Request.URL, body)
	}
	// bob's groups are in the user info only.
	if response, body := bob.signIn("bob", "/"); response.StatusCode != http.StatusOK || !strings.Contains(body, "shop/web") || strings.Contains(body, "vault") ||
		!strings.Contains(body, `<span class="count">1</span>`) {
		t.Errorf("bob: %s\n%s", response.Status, body)
	}
	foreign, foreignBody := bob.get("/pipeline?name=vault/coin")
	if absent, absentBody := bob.get("/pipeline?name=vault/none"); foreign.StatusCode != http.StatusNotFound || absent.StatusCode != http.StatusNotFound ||
		strings.ReplaceAll(absentBody, "none", "coin") != foreignBody {
		t.Errorf("a pipeline of others: %s\n%s\none that is not there: %s\n%s", foreign.Status, foreignBody, absent.Status, absentBody)
	}
	if response, _ := bob.get("/metrics"); response.StatusCode != http.StatusForbidden {
		t.Errorf("bob reads metrics: %s", response.Status)
	}
	if response, _ := bob.send(http.MethodPost, b.url+"/actions", bob.form("shop/web", "reconcile"), fromThePage); response.StatusCode != http.StatusOK {
		t.Errorf("bob reconciles: %s", response.Status)
	}
	if response, body := bob.send(http.MethodPost, b.url+"/actions", bob.form("vault/coin", "reconcile"), fromThePage); response.StatusCode != http.StatusNotFound {
		t.Errorf("bob reconciles what is of others: %s\n%s", response.Status, body)
	}
	if response, body := mallory.signIn("mallory", "/"); response.StatusCode != http.StatusForbidden || !strings.Contains(body, "You are of no group that may look at this page") || mallory.isSignedIn() {
		t.Errorf("mallory: %s\n%s", response.Status, body)
	}
	stolen := alice.cookies()
	if response, _ := alice.send(http.MethodPost, b.url+"/auth/sign-out", url.Values{}, fromThePage); response.StatusCode != http.StatusUnauthorized || len(alice.cookies()) != 0 {
		t.Errorf("after signing out: %s, %v", response.Status, alice.cookies())
	}
	page, err := url.Parse(b.url)
	must(t, err)
	alice.Jar.SetCookies(page, stolen)
	if alice.isSignedIn() {
		t.Error("the cookie of a session works after its end")
	}
	b.checkAudit([]string{
		"oidc:id-of-alice sign-in [] done", "oidc:id-of-bob (bob@example.com) sign-in [] done",
		"oidc:id-of-bob (bob@example.com) GET /metrics [] refused", "oidc:id-of-bob (bob@example.com) reconcile [shop/web] done",
		"oidc:id-of-bob (bob@example.com) reconcile [vault/coin] refused", "oidc:id-of-mallory (mallory@example.com) sign-in [] refused",
		"oidc:id-of-alice sign-out [] done",
	})
}

// checkAudit compares the file of who did what.
func (b *signInBed) checkAudit(want []string) {
	b.t.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "audit.log"))
	must(b.t, err)
	var got []string
	for line := range strings.Lines(string(text)) {
		var l struct {
			Who, Action, Outcome string
			Pipelines            []string
		}
		must(b.t, json.Unmarshal([]byte(line), &l))
		got = append(got, fmt.Sprint(l.Who, " ", l.Action, " ", l.Pipelines, " ", l.Outcome))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		b.t.Errorf("the record says\n%s", text)
	}
}

// TestCookiesOfSessions looks at the cookies as the browser gets them.
func TestCookiesOfSessions(t *testing.T) {
	b := newSignInBed(t)
	alice := b.browser()
	callback := alice.toCallback("alice", "/")
	alice.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, _ := alice.send(http.MethodGet, callback, nil)
	kept := 0
	for _, cookie := range response.Cookies() {
		if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" || cookie.Domain != "" || !strings.HasPrefix(cookie.Name, "__Host-") {
			t.Errorf("%+v", cookie)
		}
		if cookie.MaxAge > 0 {
			kept++
			if cookie.MaxAge != 8*60*60 || len(cookie.Value) < 43 {
				t.Errorf("the session's: %+v", cookie)
			}
		}
	}
	if kept != 1 || response.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%v", response.Header)
	}
}

// TestForgedWaysBack goes ways back from the provider that the browser has not begun, or has gone before.
func TestForgedWaysBack(t *testing.T) {
	b := newSignInBed(t)
	refused := func(name string, c *browser, callback string) {
		t.Helper()
		response, body := c.send(http.MethodGet, callback, nil)
		if response.StatusCode != http.StatusBadRequest || !strings.Contains(body, "This sign-in was not begun in this browser") || c.isSignedIn() {
			t.Errorf("%s: %s\n%s", name, response.Status, body)
		}
	}
	mallory := b.browser()
	callback := mallory.toCallback("alice", "/")
	refused("a link that somebody else began", b.browser(), callback)
	begun := b.browser()
	begun.get("/auth/sign-in")
	refused("a link that somebody else began, in a browser that began another", begun, callback)
	state := regexp.MustCompile(`state=[^&]+`)
	refused("another state", mallory, state.ReplaceAllString(callback, "state=FORGED"))
	refused("no state", mallory, state.ReplaceAllString(callback, "x=y"))

	alice := b.browser()
	callback = alice.toCallback("alice", "/")
	kept := alice.cookies()
	if response, _ := alice.send(http.MethodGet, callback, nil); response.StatusCode != http.StatusOK {
		t.Fatalf("the first time: %s", response.Status)
	}
	replaying := b.browser()
	page, err := url.Parse(b.url)
	must(t, err)
	replaying.Jar.SetCookies(page, kept)
	refused("a second time, with the cookie of the first", replaying, callback)

	changed := b.browser()
	callback = changed.toCallback("alice", "/")
	for _, cookie := range changed.cookies() {
		cookie.Value = "A" + cookie.Value
		changed.Jar.SetCookies(page, []*http.Cookie{{Name: cookie.Name, Value: cookie.Value, Path: "/", Secure: true}})
	}
	refused("a cookie that was changed", changed, callback)
}

// TestCodesOfOthersAreRefused gives the code of somebody else's sign-in to one's own: PKCE has the provider refuse it.
func TestCodesOfOthersAreRefused(t *testing.T) {
	b := newSignInBed(t)
	alice, mallory := b.browser(), b.browser()
	code := regexp.MustCompile(`code=[^&]+`)
	stolen := code.FindString(alice.toCallback("alice", "/"))
	own := mallory.toCallback("mallory", "/")
	response, body := mallory.send(http.MethodGet, code.ReplaceAllLiteralString(own, stolen), nil)
	if response.StatusCode != http.StatusBadGateway || mallory.isSignedIn() || !strings.Contains(b.log.String(), "invalid_grant") {
		t.Errorf("%s\n%s\n%s", response.Status, body, b.log)
	}
}

// TestSecretOfTheClientIsFollowed gives the daemon a wrong secret, which the provider refuses, and then the right one.
func TestSecretOfTheClientIsFollowed(t *testing.T) {
	b := newSignInBed(t)
	file := filepath.Join(b.dir, "client.secret")
	must(t, os.WriteFile(file, []byte("wrong"), 0o600))
	wait := func(what string, status int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			response, _ := b.browser().signIn("alice", "/")
			if response.StatusCode == status {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %s\n%s", what, response.Status, b.log)
			}
		}
	}
	wait("a wrong secret", http.StatusBadGateway)
	must(t, os.WriteFile(file, []byte("client secret\n"), 0o600))
	wait("the right secret", http.StatusOK)
	if strings.Contains(b.log.String(), "client secret\n") {
		t.Error("the secret is in the log")
	}
}

// TestSignInsLeadNowhereElse begins sign-ins that are to end at another site.
func TestSignInsLeadNowhereElse(t *testing.T) {
	b := newSignInBed(t)
	for _, to := range []string{"https://evil.example.com/", "//evil.example.com/", `/\evil.example.com/`, "/\t/evil.example.com", "evil.example.com", "/auth/sign-in"} {
		if response, _ := b.browser().signIn("alice", to); response.Request.URL.String() != b.url+"/" || response.StatusCode != http.StatusOK {
			t.Errorf("%q leads to %s: %s", to, response.Request.URL, response.Status)
		}
	}
}

// TestOtherSitesChangeNothing sends what another site's page would have a browser send whose user has signed in here.
func TestOtherSitesChangeNothing(t *testing.T) {
	b := newSignInBed(t)
	alice := b.browser()
	alice.signIn("alice", "/")
	change := alice.form("shop/web", "reconcile")
	for _, header := range []string{
		"Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site", "Origin: https://evil.example.com", "Origin: null",
		"Origin: http" + strings.TrimPrefix(b.url, "https") + ".evil.example.com", "X-Nothing: is said",
	} {
		for _, path := range []string{"/actions", "/api/v1/suspend", "/api/v1/remove", "/auth/sign-out"} {
			if response, body := alice.send(http.MethodPost, b.url+path, change, header); response.StatusCode != http.StatusForbidden || !strings.Contains(body, "another site") {
				t.Errorf("%s, %s: %s\n%s", path, header, response.Status, body)
			}
		}
	}
	if !alice.isSignedIn() {
		t.Error("another site signed alice out")
	}
	for _, header := range []string{fromThePage, "Origin: " + b.url} {
		if response, body := alice.send(http.MethodPost, b.url+"/actions", change, header); response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s\n%s", header, response.Status, body)
		}
	}
}

// TestPageWithoutItsProvider has a provider that does not answer: tokens work on, and people are told.
func TestPageWithoutItsProvider(t *testing.T) {
	dir := twoTeams(t, "external_url: http://127.0.0.1:1\nadmin:\n  listen: 127.0.0.1:0\n  oidc:\n    issuer: http://127.0.0.1:1/\n    client_id: prerig\n"+
		"    grants: [{group: platform, role: read}]\n")
	page, log := runServe(t, filepath.Join(dir, "prerig.yaml"))
	response, err := http.Get("http://" + page + "/auth/sign-in")
	must(t, err)
	text, err := io.ReadAll(response.Body)
	must(t, err)
	must(t, response.Body.Close())
	if response.StatusCode != http.StatusBadGateway || !strings.Contains(string(text), "the reason is in the daemon&#39;s log") || !strings.Contains(log.String(), "asking the OpenID Connect provider about itself") {
		t.Errorf("%s\n%s\n%s", response.Status, text, log)
	}
	if code, stdout, stderr := command(t, "", "status", "--server", "http://"+page, "--token-file", filepath.Join(dir, "state", "admin.token")); code != 0 || !strings.Contains(stdout, "vault/coin") {
		t.Errorf("code %d\n%s%s", code, stdout, stderr)
	}
}
