// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/server/access"
	fetch "github.com/prerig/prerig/pipeline/source"
)

// TestButtonsAreForThoseWhoMay has people of each role look: who may not change anything sees no button, and a form that they make up
// is refused.
func TestButtonsAreForThoseWhoMay(t *testing.T) {
	n := newNeighbours(t)
	for who, want := range map[string]struct{ list, pipeline string }{
		"reader":        {"", ""},
		"auditor":       {"", ""},
		"operator":      {"retry reconcile suspend resume retry reconcile suspend resume", "reconcile suspend"},
		"administrator": {"remove orphan retry reconcile suspend resume retry reconcile suspend resume", "reconcile suspend"},
	} {
		v := n.visitorOf(t, who)
		if got := strings.Join(v.visit("/").own(), " "); got != want.list {
			t.Errorf("%s has on the list the buttons %s", who, got)
		}
		if got := strings.Join(v.visit("/pipeline?name=shop/web").own(), " "); got != want.pipeline {
			t.Errorf("%s has for shop/web the buttons %s", who, got)
		}
		if boxes := v.visit("/").all(func(e *html.Node) bool { return valueOf(e, "type") == "checkbox" }); (len(boxes) > 0) != (want.list != "") {
			t.Errorf("%s can choose %d pipelines", who, len(boxes))
		}
	}
	reader := n.visitorOf(t, "reader")
	form := url.Values{"csrf": {n.visitorOf(t, "operator").visit("/").form("/actions").Get("csrf")}, "action": {"suspend"}, "name": {"shop/web"}}
	if got := reader.send("/actions", form); got.code != http.StatusForbidden || !strings.Contains(got.text, "needs the role operate") {
		t.Errorf("a reader suspends: %d\n%s", got.code, got.text)
	}
	operator := n.visitorOf(t, "operator")
	for name, want := range map[string]int{"shop/gone": http.StatusForbidden, "vault/gone": http.StatusNotFound, "shop/absent": http.StatusForbidden} {
		if got := operator.visit("/").press("remove", name); got.code != want {
			t.Errorf("an operator approves the removal of %s: %d\n%s", name, got.code, got.text)
		}
	}
	if got := operator.visit("/").press("suspend", "vault/coin"); got.code != http.StatusNotFound || !strings.Contains(got.text, "There is no pipeline vault/coin") {
		t.Errorf("a pipeline of others: %d\n%s", got.code, got.text)
	}
}

// TestNothingChangesWithoutItsOwnForm sends forms as other pages, other sessions and other sites could.
func TestNothingChangesWithoutItsOwnForm(t *testing.T) {
	n := newNeighbours(t)
	operator, other := n.visitorOf(t, "operator"), n.visitorOf(t, "operator")
	good := operator.visit("/").form("/actions")
	form := func(token string) url.Values {
		return url.Values{"csrf": {token}, "action": {"suspend"}, "name": {"shop/web"}, "to": {"/"}}
	}
	theirs := other.visit("/").form("/actions").Get("csrf")
	if theirs == good.Get("csrf") || theirs == "" {
		t.Fatalf("two sessions have the token %q", theirs)
	}
	for name, try := range map[string]func() *page{
		"without a token":          func() *page { return operator.send("/actions", form("")) },
		"another one's token":      func() *page { return operator.send("/actions", form(theirs)) },
		"from another site":        func() *page { return operator.send("/actions", form(good.Get("csrf")), "Sec-Fetch-Site", "cross-site") },
		"from a neighbouring site": func() *page { return operator.send("/actions", form(good.Get("csrf")), "Sec-Fetch-Site", "same-site") },
		"from another origin": func() *page {
			return operator.send("/actions", form(good.Get("csrf")), "Origin", "https://evil.example.com")
		},
		"from nowhere":              func() *page { return operator.send("/actions", form(good.Get("csrf")), "Origin", "null") },
		"without saying from where": func() *page { return operator.send("/actions", form(good.Get("csrf")), "Origin", "") },
		"without a session":         func() *page { return newVisitor(t, n.server.URL).send("/actions", form(good.Get("csrf"))) },
		"with a token for programs": func() *page {
			return newVisitor(t, n.server.URL).send("/actions", form(good.Get("csrf")), "Authorization", "Bearer "+n.secrets["operator"])
		},
		"by looking": func() *page { return operator.visit("/actions?" + form(good.Get("csrf")).Encode()) },
	} {
		if got := try(); got.code < 400 {
			t.Errorf("%s: %d at %s\n%s", name, got.code, got.at, got.text)
		}
	}
	if strings.Contains(n.audit.String(), `"action":"suspend","outcome":"done"`) || operator.visit("/?state=Suspended").all(named("table")) != nil {
		t.Errorf("something was suspended:\n%s", n.audit)
	}
	if got := operator.send("/actions", form(good.Get("csrf"))); got.code != http.StatusOK || !strings.Contains(got.text, "1 pipeline suspended.") {
		t.Errorf("the form itself: %d\n%s", got.code, got.text)
	}
	if !strings.Contains(n.audit.String(), `"who":"token:operator","action":"suspend","outcome":"done"`) {
		t.Errorf("the record is\n%s", n.audit)
	}
}

// TestPagesThroughASocket has a browser come through a forwarded socket, where everybody may do everything.
func TestPagesThroughASocket(t *testing.T) {
	h := fixture(t).Admin(Access{Trusted: true})
	_, body := get(t, h, "/pipeline?name=team/web")
	_, token, _ := strings.Cut(body, `name="csrf" value="`)
	token, _, _ = strings.Cut(token, `"`)
	send := func(host, token string, header ...string) int {
		r := httptest.NewRequest(http.MethodPost, "/actions", strings.NewReader(url.Values{"csrf": {token}, "action": {"suspend"}, "name": {"team/web"}}.Encode()))
		r.Host = host
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	if got := send("localhost:8081", token, "Origin", "http://evil.example.com"); got != http.StatusForbidden {
		t.Errorf("from another site: %d", got)
	}
	if got := send("localhost:8081", "", "Origin", "http://localhost:8081"); got != http.StatusForbidden {
		t.Errorf("without the token: %d", got)
	}
	if got := send("evil.example.com:8081", token, "Origin", "http://evil.example.com:8081"); got != http.StatusMisdirectedRequest {
		t.Errorf("under the name of another site: %d", got)
	}
	if got := send("localhost:8081", token, "Origin", "http://localhost:8081"); got != http.StatusSeeOther {
		t.Errorf("from the page: %d", got)
	}
	if _, body := get(t, h, "/pipeline?name=team/web", func(r *http.Request) { r.Host = "evil.example.com" }); strings.Contains(body, "csrf") {
		t.Error("the page has a form under the name of another site")
	}
}

// TestEachActionDoesWhatItSays presses every button that there is.
func TestEachActionDoesWhatItSays(t *testing.T) {
	source := t.TempDir()
	text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: web, namespace: shop}\nspec: {source: {dir: {path: %q}}}\n", source)
	s := with(t, map[string]string{"web.yaml": text})
	if e, _ := s.Catalog.Get("shop/web"); e.Err != nil {
		t.Fatal(e.Err)
	}
	s.Planner = &plan.Planner{
		Catalog: s.Catalog, PipelinesDir: source, Fetcher: fetch.New(fetch.Options{StateDir: t.TempDir()}), Builder: &build.Builder{Version: "test"}, Store: s.Store, Queue: s.Queue, Log: s.Log,
	}
	var audit bytes.Buffer
	var err error
	if s.Audit, err = access.OpenAudit("", slog.New(slog.NewJSONHandler(&audit, nil))); err != nil {
		t.Fatal(err)
	}
	save(t, s.Store, "shop/gone", status.Published, "done", false)
	save(t, s.Store, "shop/lost", status.Published, "done", false)
	s.Keeper = &prune.Keeper{Catalog: s.Catalog, Store: s.Store, Queue: s.Queue, MaxShare: 50, Log: s.Log, Delay: time.Hour}
	for range 2 { // marked, and then due
		if err := errors.Join(s.Store.Sync(t.Context()), s.Keeper.Check(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	v := newVisitor(t, serveAdmin(t, s, Access{}))
	v.signIn(token)
	at := func() *page { return v.visit("/pipeline?name=shop/web") }
	done := map[string]func() *page{
		"suspend": func() *page { return at().press("suspend") }, "resume": func() *page { return at().press("resume") },
		"reconcile": func() *page { return at().press("reconcile") }, "retry": func() *page { return v.visit("/").press("retry", "shop/web") },
		"remove": func() *page { return v.visit("/").press("remove", "shop/gone").confirm() },
		"orphan": func() *page { return v.visit("/").press("orphan", "shop/lost").confirm() },
	}
	press := func(name string) {
		t.Helper()
		a, _ := findAction(name)
		if got := done[name](); got.code != http.StatusOK || !strings.Contains(got.text, "1 pipeline "+a.Done+".") || !strings.Contains(audit.String(), `"action":"`+name+`","outcome":"done"`) {
			t.Errorf("%s: %d at %s\n%s\n%s", name, got.code, got.at, got.text, audit.String())
		}
	}
	press("suspend")
	if got := at(); !s.Store.Control("shop/web").Suspended || !slices.Equal(got.own(), []string{"resume"}) {
		t.Errorf("one that is suspended has the buttons %q", got.own())
	}
	press("resume")
	if depth, err := s.Queue.Depth(t.Context(), nil); err != nil || s.Store.Control("shop/web").Suspended || depth.Jobs != 1 {
		t.Errorf("one that was resumed: %+v, %v", depth, err)
	}
	press("reconcile")
	if got := s.Store.Control("shop/web"); got.RequestedAt == "" || got.Force {
		t.Errorf("after reconcile: %+v", got)
	}
	press("retry")
	if got := s.Store.Control("shop/web"); !got.Force {
		t.Errorf("after retry: %+v", got)
	}
	press("remove")
	if r, _ := s.Store.Registration("shop/gone"); r.Removal == nil || !r.Removal.Approved {
		t.Errorf("after remove: %+v", r)
	}
	press("orphan")
	if r, _ := s.Store.Registration("shop/lost"); r.Removal == nil || !r.Removal.Approved || r.Policy != v1alpha1.DeletionOrphan {
		t.Errorf("after orphan: %+v", r)
	}
	for _, a := range actions {
		if a.Route == "" && done[a.Name] == nil {
			t.Errorf("nobody presses %s", a.Name)
		}
	}
}

// own are the buttons of what the server does itself, without those of routes of the API.
func (p *page) own() []string {
	return slices.DeleteFunc(p.buttons(), func(name string) bool { a, _ := findAction(name); return a.Route != "" })
}

// TestActionsOfRoutes has buttons for what the API does: its answer is shown.
func TestActionsOfRoutes(t *testing.T) {
	s := fixture(t)
	asked := make(chan string, 10)
	api, guard := http.NewServeMux(), s.newGuard()
	for _, a := range actions {
		if a.Route == "" {
			continue
		}
		api.Handle("POST "+a.Route, guard.requireSomeRole(access.Operate, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked <- fmt.Sprintf("%s %s %s", requestPrincipal(r), r.URL.Path, body)
			if a.Name == "rollback" {
				writeError(w, http.StatusConflict, errors.New("there is nothing to take back"))
				return
			}
			writeJSON(w, Answer{})
		}))
	}
	mux := http.NewServeMux()
	s.routeAdmin(mux, guard, api)
	ts := httptest.NewServer(guard.identifyPrincipal(Access{}, mux))
	t.Cleanup(ts.Close)
	v := newVisitor(t, ts.URL)
	v.signIn(token)
	if got := strings.Join(v.visit("/pipeline?name=team/web").buttons(), " "); got != "reconcile suspend hold rollback" {
		t.Errorf("the buttons are %s", got)
	}
	if got := v.visit("/pipeline?name=team/web").press("hold"); !strings.Contains(got.text, "1 pipeline put on hold.") || <-asked != `token:admin /api/v1/hold {"pipelines":["team/web"]}` {
		t.Errorf("hold: %d\n%s", got.code, got.text)
	}
	if got := v.visit("/pipeline?name=team/web").press("rollback").confirm(); got.code != http.StatusConflict || !strings.Contains(got.text, "There is nothing to take back.") {
		t.Errorf("rollback: %d\n%s", got.code, got.text)
	}
}

// TestManyAtOnce asks before it does something with several, and again when others are meant by then.
func TestManyAtOnce(t *testing.T) {
	var text strings.Builder
	for i := range 250 {
		fmt.Fprintf(&text, object, fmt.Sprintf("app-%03d", i), fmt.Sprintf("repository-%d", i%2), "")
	}
	s := with(t, map[string]string{"all.yaml": text.String()})
	v := newVisitor(t, serveAdmin(t, s, Access{}))
	v.signIn(token)
	asked := v.visit("/").press("suspend", "team/app-001", "team/app-002")
	if asked.code != http.StatusOK || !strings.Contains(asked.text, "Suspend: 2 pipelines") || s.Store.Control("team/app-001").Suspended {
		t.Fatalf("%d\n%s", asked.code, asked.text)
	}
	if got := asked.confirm(); !strings.Contains(got.text, "2 pipelines suspended.") || !s.Store.Control("team/app-002").Suspended || s.Store.Control("team/app-003").Suspended {
		t.Errorf("%d\n%s", got.code, got.text)
	}
	// All that the filters let through: what is suspended already is not among them.
	list := v.visit("/?group=source&in=" + url.QueryEscape("https://git.example.com/repository-1.git"))
	forms := list.all(func(n *html.Node) bool { return n.Data == "input" && valueOf(n, "name") == "scope" })
	form := list.form("/actions")
	form.Set("scope", valueOf(forms[0], "value"))
	form.Set("action", "suspend")
	asked = v.send("/actions", form)
	if !strings.Contains(asked.text, "Suspend: 124 pipelines") || strings.Contains(asked.text, "app-001<") {
		t.Fatalf("%d\n%s", asked.code, asked.text)
	}
	if err := s.Store.SetControl(t.Context(), "team/app-005", func(c *status.Control) { c.Suspended = true }); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := asked.confirm()
	if !strings.Contains(again.text, "Suspend: 123 pipelines") || !strings.Contains(again.text, "The selection has changed") || s.Store.Control("team/app-007").Suspended {
		t.Fatalf("%d\n%s", again.code, again.text)
	}
	if got := again.confirm(); !strings.Contains(got.text, "123 pipelines suspended.") || !s.Store.Control("team/app-007").Suspended || s.Store.Control("team/app-008").Suspended {
		t.Errorf("%d\n%s", got.code, got.text)
	}
	if got := v.visit("/").press("suspend"); got.code != http.StatusBadRequest || !strings.Contains(got.text, "No pipeline is chosen") {
		t.Errorf("none is chosen: %d\n%s", got.code, got.text)
	}
	if got := v.visit("/").press("destroy", "team/app-001"); got.code != http.StatusBadRequest {
		t.Errorf("a button that there is not: %d", got.code)
	}
	if got := v.visit("/?done=suspend&n=<b>"); strings.Contains(got.text, "notice") {
		t.Errorf("an address says that something was done:\n%s", got.text)
	}
	form = v.visit("/").form("/actions")
	form.Set("action", "reconcile")
	form.Set("name", "team/app-001")
	form.Set("to", "//evil.example.com/")
	if got := v.send("/actions", form); got.at.Path != "/" || got.code != http.StatusOK {
		t.Errorf("a form leads to %s", got.at)
	}
}
