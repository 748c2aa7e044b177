// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// visitor is a person with a browser that runs no scripts.
type visitor struct {
	t      *testing.T
	base   string
	client *http.Client
}

func newVisitor(t *testing.T, base string) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &visitor{t, base, &http.Client{Jar: jar}}
}

// visit returns a page as it is parsed.
func (v *visitor) visit(path string) *page {
	v.t.Helper()
	return v.do(http.MethodGet, path, nil)
}

// send sends a form from a page of ours.
func (v *visitor) send(path string, form url.Values, header ...string) *page {
	v.t.Helper()
	return v.do(http.MethodPost, path, form, header...)
}

func (v *visitor) do(method, path string, form url.Values, header ...string) *page {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", v.base)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] == "" {
			r.Header.Del(header[i])
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	response, err := v.client.Do(r)
	if err != nil {
		v.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	root, err := html.Parse(strings.NewReader(string(text)))
	if err != nil {
		v.t.Fatal(err)
	}
	return &page{v: v, code: response.StatusCode, header: response.Header, at: response.Request.URL, text: string(text), root: root}
}

// signIn signs in with a token by the form.
func (v *visitor) signIn(secret string) *page {
	v.t.Helper()
	form := v.visit("/sign-in").form("/auth/token")
	if form == nil {
		v.t.Fatal("there is no form to sign in with a token")
	}
	form.Set("token", secret)
	return v.send("/auth/token", form)
}

// page is a page that somebody got.
type page struct {
	v      *visitor
	code   int
	header http.Header
	at     *url.URL
	text   string
	root   *html.Node
}

// all returns the elements that match, in their order.
func (p *page) all(matches func(*html.Node) bool) (out []*html.Node) {
	for n := range p.root.Descendants() {
		if n.Type == html.ElementNode && matches(n) {
			out = append(out, n)
		}
	}
	return out
}

func named(name string) func(*html.Node) bool {
	return func(n *html.Node) bool { return n.Data == name }
}

func attribute(n *html.Node, key string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val, true
		}
	}
	return "", false
}

func valueOf(n *html.Node, key string) string {
	value, _ := attribute(n, key)
	return value
}

// textOf returns the text of an element, with single spaces.
func textOf(n *html.Node) string {
	var out strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			out.WriteString(d.Data + " ")
		}
	}
	return strings.Join(strings.Fields(out.String()), " ")
}

// form returns the hidden fields of the first form that is sent to a path, nil where there is none.
func (p *page) form(action string) url.Values {
	for _, f := range p.all(named("form")) {
		if valueOf(f, "action") != action || valueOf(f, "method") != "post" {
			continue
		}
		out := url.Values{}
		for n := range f.Descendants() {
			if n.Data == "input" && valueOf(n, "type") == "hidden" {
				out.Add(valueOf(n, "name"), valueOf(n, "value"))
			}
		}
		return out
	}
	return nil
}

// buttons returns the values of the buttons of actions.
func (p *page) buttons() (out []string) {
	for _, b := range p.all(named("button")) {
		if valueOf(b, "name") == "action" {
			out = append(out, valueOf(b, "value"))
		}
	}
	return out
}

// press sends the form of an action with a button, about pipelines unless the form has them, and answers the question if one is asked.
func (p *page) press(action string, names ...string) *page {
	p.v.t.Helper()
	form := p.form("/actions")
	if form == nil {
		p.v.t.Fatalf("the page has no buttons:\n%s", p.text)
	}
	form.Set("action", action)
	if len(names) > 0 {
		form["name"] = names
	}
	return p.v.send("/actions", form)
}

// confirm answers the question of a page.
func (p *page) confirm() *page {
	p.v.t.Helper()
	form := p.form("/actions")
	if form == nil || form.Get("confirmed") == "" {
		p.v.t.Fatalf("the page asks nothing: %d\n%s", p.code, p.text)
	}
	form.Set("action", p.buttons()[0])
	return p.v.send("/actions", form)
}

// visitorOf returns somebody with a browser who has signed in with a token of the neighbours.
func (n *neighbours) visitorOf(t *testing.T, who string) *visitor {
	t.Helper()
	v := newVisitor(t, n.server.URL)
	if got := v.signIn(n.secrets[who]); got.code != http.StatusOK || got.at.Path != "/" {
		t.Fatalf("%s cannot sign in: %d\n%s", who, got.code, got.text)
	}
	return v
}

// serveAdmin serves the page of a server.
func serveAdmin(t *testing.T, s *Server, at Access) string {
	t.Helper()
	ts := httptest.NewServer(s.Admin(at))
	t.Cleanup(ts.Close)
	return ts.URL
}
