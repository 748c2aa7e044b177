// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
)

// hostileText is what authors of commits, messages and hosts may send.
const hostileText = hostile + `"'><img src=x onerror=alert(1)><a href="javascript:alert(1)">x</a></details></form></main>`

// busyServer has something of everything that pages show, hostile wherever somebody else writes it.
func busyServer(t *testing.T) *Server {
	t.Helper()
	files := map[string]string{"broken.yaml": "a: ["}
	for _, name := range []string{"open", "closed", "edited", "merged", "fresh", "bad1", "bad2", "bad3"} {
		publish := "  publish: [{git: {branch: rendered, path: " + name + ", pullRequest: {provider: Gitea, groupBy: All, secretRef: {name: bot}}}}]\n"
		text := fmt.Sprintf(object, name, "config", publish)
		files[name+".yaml"] = strings.Replace(text, "namespace: team}", "namespace: team, labels: {cluster: eu-1}}", 1)
	}
	s := with(t, files)
	now := time.Now()
	for name, pull := range map[string]string{"open": v1alpha1.PullRequestOpen, "closed": v1alpha1.PullRequestClosed, "edited": v1alpha1.PullRequestEdited, "merged": "", "bad1": "", "bad2": "", "bad3": ""} {
		e, _ := s.Catalog.Get("team/" + name)
		if e.Err != nil {
			t.Fatal(e.Err)
		}
		bad := strings.HasPrefix(name, "bad")
		state, message := &status.State{}, "3 objects"
		if bad {
			message = "team/" + name + " is broken: " + hostileText
		}
		state.Ready(now, !bad, "Reason", message, bad)
		outcome := map[bool]string{true: status.Failed, false: status.Published}[bad]
		state.Add(status.Run{Run: v1alpha1.Run{
			ID: "run1", Revision: "main@sha1:" + strings.Repeat("ab", 20), Author: "Ada " + hostileText, Subject: "Raise " + hostileText, Outcome: outcome, Message: message,
			Started: metav1.NewTime(now), Finished: metav1.NewTime(now),
		}, Reason: "event", Findings: []string{hostileText}}, 5)
		state.Mesh = &status.Mesh{
			Decided: []status.Decided{
				{Action: "injected", Reason: hostileText, Version: "1.32.0" + hostileText, Workloads: []string{"Deployment shop/" + name + hostileText}},
				{Action: "skipped", Code: "host-network", Reason: hostileText, Workloads: []string{"DaemonSet shop/" + name}},
			},
			Findings: []status.WorkloadFinding{{Workload: "DaemonSet shop/" + name, Codes: []string{"PR201", hostileText}, Rejected: bad}},
		}
		one := v1alpha1.Published{Target: e.Pipeline.Spec.Publish[0].Target(), Revision: strings.Repeat("cd", 20)}
		if pull != "" {
			one.PullRequest = &v1alpha1.PullRequestStatus{Number: 7, URL: "https://git.example.com/config/pulls/7", State: pull, Head: "prerig/" + name, Since: metav1.NewTime(now.Add(-50 * time.Hour)), Message: hostileText}
		}
		state.Status.Published = []v1alpha1.Published{one}
		if _, err := s.Store.Save(t.Context(), "team/"+name, state, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, one := range []status.Preview{
		{Namespace: "team", Repository: "https://git.example.com/config.git", Base: "main", Number: 7, URL: "https://git.example.com/config/pulls/7", Since: now, Wanted: now},
		{Namespace: "team", Repository: "https://git.example.com/config.git", Number: 9, Since: now, Ended: now, Fork: true, Failed: true, Head: strings.Repeat("ab", 20), Message: hostileText},
	} {
		if err := s.Store.ChangePreview(t.Context(), one.Key(), func(*status.Preview) *status.Preview { return &one }); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"team/gone1", "team/gone2", "team/gone" + hostileText} {
		save(t, s.Store, name, status.Published, "done", false)
	}
	s.Keeper = &prune.Keeper{Catalog: s.Catalog, Store: s.Store, Queue: s.Queue, MaxShare: 50, Log: s.Log}
	for range 2 {
		if err := s.Store.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Keeper.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// allPages are the addresses of one page of each kind.
var allPages = []string{
	"/", "/?group=namespace", "/?group=repository", "/?group=source", "/?group=cluster", "/?group=cluster&in=eu-1", "/?group=cluster&in=", "/?find=" + url.QueryEscape(hostileText),
	"/?group=namespace&in=" + url.QueryEscape(hostileText), "/?says=" + url.QueryEscape(hostileText), "/?done=suspend&n=3", "/pull-requests", "/pull-requests#previews", "/pipeline?name=team/open", "/pipeline?name=team/bad1",
	"/pipeline?name=team/fresh", "/mesh", "/workloads", "/workloads?show=rejected", "/workloads?version=" + url.QueryEscape(hostileText), "/drift?name=team/bad1",
	"/workload?pipeline=team/bad1&workload=DaemonSet+shop/bad1", "/workload?pipeline=team/open&workload=" + url.QueryEscape("Deployment shop/open"+hostileText),
	"/file?name=team/open&target=x&path=" + url.QueryEscape(hostileText), "/?policy=" + url.QueryEscape(hostileText), "/runs?pipeline=team/bad1&run=run1", "/sign-in?to=" + url.QueryEscape(hostileText), "/none", "/?done=" + url.QueryEscape(hostileText) + "&n=1",
}

// TestPagesForEverybody reads each page as a person with a screen reader or a keyboard meets it, with and without a role.
func TestPagesForEverybody(t *testing.T) {
	s := busyServer(t)
	base := serveAdmin(t, s, Access{Insecure: true})
	nobody, admin := newVisitor(t, base), newVisitor(t, base)
	admin.signIn(token)
	for who, v := range map[string]*visitor{"anybody": nobody, "the administrator": admin} {
		for _, path := range allPages {
			checkPage(t, who+" at "+path, v.visit(path))
		}
	}
	checkPage(t, "a question", admin.visit("/").press("suspend", "team/open", "team/bad1"))
	checkPage(t, "a removal", admin.visit("/").press("remove", "team/gone"+hostileText))
	checkPage(t, "a refusal", admin.visit("/").press("remove", "team/gone3"+hostileText))
	checkPage(t, "a wrong token", admin.signIn("wrong"))
	// The page of everybody has no button, and says where to sign in.
	if got := nobody.visit("/"); got.buttons() != nil || len(got.all(func(n *html.Node) bool { return strings.HasPrefix(valueOf(n, "href"), "/sign-in") })) != 1 {
		t.Errorf("anybody sees:\n%s", got.text)
	}
}

// checkPage reports what is wrong with a page.
func checkPage(t *testing.T, name string, p *page) {
	t.Helper()
	checkSafe(t, name, p)
	if lang := valueOf(p.all(named("html"))[0], "lang"); lang != "en" {
		t.Errorf("%s: the language is %q", name, lang)
	}
	last, first := 0, 0
	ids := map[string]bool{}
	for _, n := range p.all(func(*html.Node) bool { return true }) {
		if id, ok := attribute(n, "id"); ok {
			if ids[id] || id == "" {
				t.Errorf("%s: the id %q is there twice", name, id)
			}
			ids[id] = true
		}
		if len(n.Data) == 2 && n.Data[0] == 'h' && n.Data[1] >= '1' && n.Data[1] <= '6' {
			level := int(n.Data[1] - '0')
			if level == 1 {
				first++
			}
			if level > last+1 || textOf(n) == "" {
				t.Errorf("%s: the heading %q is an h%d after an h%d", name, textOf(n), level, last)
			}
			last = level
		}
	}
	if first != 1 {
		t.Errorf("%s has %d headings of the first level", name, first)
	}
	for _, n := range p.all(func(n *html.Node) bool {
		return slices.Contains([]string{"input", "button", "a", "summary", "select", "textarea"}, n.Data)
	}) {
		if valueOf(n, "type") != "hidden" && nameOf(p, n) == "" {
			t.Errorf("%s: a %s has no name: %v", name, n.Data, n.Attr)
		}
		if _, ok := attribute(n, "tabindex"); ok {
			t.Errorf("%s: a %s is out of the order of the page", name, n.Data)
		}
	}
	for _, n := range p.all(func(n *html.Node) bool { return valueOf(n, "aria-labelledby") != "" || valueOf(n, "form") != "" }) {
		for _, id := range []string{valueOf(n, "aria-labelledby"), valueOf(n, "form")} {
			if id != "" && !ids[id] {
				t.Errorf("%s: a %s is about %q, which is not there", name, n.Data, id)
			}
		}
	}
	for _, n := range p.all(named("th")) {
		if valueOf(n, "scope") == "" || textOf(n) == "" {
			t.Errorf("%s: a head of a table says nothing of what it is of", name)
		}
	}
}

// nameOf returns what a control is called.
func nameOf(p *page, n *html.Node) string {
	if label := valueOf(n, "aria-label"); label != "" {
		return label
	}
	if n.Data != "input" {
		return textOf(n)
	}
	for _, l := range p.all(named("label")) {
		if valueOf(l, "for") == valueOf(n, "id") {
			return textOf(l)
		}
	}
	return ""
}

// checkSafe reports markup that is not ours, and scripts and handlers.
func checkSafe(t *testing.T, name string, p *page) {
	t.Helper()
	policy := p.header.Get("Content-Security-Policy")
	scripts := p.all(named("script"))
	nonce := ""
	if len(scripts) == 1 {
		nonce = valueOf(scripts[0], "nonce")
	}
	switch {
	case !strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(policy, "unsafe"):
		t.Errorf("%s: the policy is %q", name, policy)
	case len(scripts) > 1, len(scripts) == 1 && (valueOf(scripts[0], "src") != "/page.js" || len(nonce) < 22 || !strings.Contains(policy, "script-src 'nonce-"+nonce+"';")):
		t.Errorf("%s: scripts with %q", name, policy)
	case len(scripts) == 0 && strings.Contains(policy, "script-src"):
		t.Errorf("%s: scripts are allowed: %q", name, policy)
	}
	for _, n := range p.all(func(*html.Node) bool { return true }) {
		if slices.Contains([]string{"img", "iframe", "object", "style", "base", "embed", "foreignObject", "use", "image"}, n.Data) {
			t.Errorf("%s: there is a %s", name, n.Data)
		}
		if n.Data == "svg" && valueOf(n, "aria-hidden") != "true" && (valueOf(n, "role") != "img" || valueOf(n, "aria-label") == "") {
			t.Errorf("%s: a drawing is not described", name)
		}
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "style" || strings.HasPrefix(strings.ToLower(strings.TrimSpace(a.Val)), "javascript:") && (a.Key == "href" || a.Key == "action" || a.Key == "src") {
				t.Errorf("%s: a %s has %s=%q", name, n.Data, a.Key, a.Val)
			}
		}
	}
	if mains := p.all(named("main")); len(mains) != 1 {
		t.Errorf("%s has %d parts main", name, len(mains))
	}
	if p.header.Get("X-Content-Type-Options") != "nosniff" || p.header.Get("X-Frame-Options") != "DENY" || p.header.Get("Cache-Control") != "no-store" {
		t.Errorf("%s: %v", name, p.header)
	}
}

// TestAMessageIsSaidOnce: of pipelines that say the same but for their names, it stands above once; and on the page of one, once.
func TestAMessageIsSaidOnce(t *testing.T) {
	v := newVisitor(t, serveAdmin(t, busyServer(t), Access{Insecure: true}))
	list := v.visit("/")
	if n := strings.Count(list.text, "is broken"); n != 1 || !strings.Contains(list.text, ">3 pipelines</a>") || strings.Count(list.text, "same error (3 pipelines)") != 3 {
		t.Errorf("it stands there %d times:\n%s", n, list.text)
	}
	links := list.all(func(n *html.Node) bool { return n.Data == "a" && strings.HasPrefix(valueOf(n, "href"), "/?says=") })
	if got := shown(v.visit(valueOf(links[0], "href")).text); !slices.Equal(got, []string{"team/bad1", "team/bad2", "team/bad3"}) {
		t.Errorf("who say it: %q", got)
	}
	if got := v.visit("/pipeline?name=team/bad1"); strings.Count(got.text, "is broken") != 1 || !strings.Contains(got.text, "as above") {
		t.Errorf("the page of one:\n%s", got.text)
	}
}

// TestGroups groups pipelines in every way.
func TestGroups(t *testing.T) {
	v := newVisitor(t, serveAdmin(t, busyServer(t), Access{Insecure: true}))
	for by, want := range map[string]string{
		"namespace": "no namespace 1 Invalid 1|team 8 Stalled 3 New 1 Ready 4", "cluster": "no cluster 1 Invalid 1|eu-1 8 Stalled 3 New 1 Ready 4",
		"source": "no source 1 Invalid 1|https://git.example.com/config.git 8 Stalled 3 New 1 Ready 4", "repository": "no repository 1 Invalid 1|https://git.example.com/config.git 8 Stalled 3 New 1 Ready 4",
	} {
		p := v.visit("/?group=" + by)
		var got []string
		for _, n := range p.all(named("summary")) {
			if strings.HasPrefix(valueOf(n.Parent, "id"), "group-") {
				got = append(got, textOf(n))
			}
		}
		if strings.Join(got, "|") != want {
			t.Errorf("by %s: %q", by, got)
		}
	}
	if got := shown(v.visit("/?group=cluster&in=eu-1&state=Ready").text); !slices.Equal(got, []string{"team/closed", "team/edited", "team/merged", "team/open"}) {
		t.Errorf("inside of one: %q", got)
	}
	if got := shown(v.visit("/?group=cluster&in=").text); !slices.Equal(got, []string{"broken.yaml"}) {
		t.Errorf("in none: %q", got)
	}
}

// TestPullRequestsAsStages has pull requests in every state.
func TestPullRequestsAsStages(t *testing.T) {
	p := newVisitor(t, serveAdmin(t, busyServer(t), Access{Insecure: true})).visit("/pull-requests")
	var got []string
	for _, n := range p.all(func(n *html.Node) bool { return strings.HasPrefix(valueOf(n, "class"), "stage") && n.Data == "li" }) {
		var names []string
		for d := range n.Descendants() {
			if d.Data == "a" && strings.HasPrefix(valueOf(d, "href"), "/pipeline") {
				names = append(names, strings.TrimPrefix(textOf(d), "team/"))
			}
			if d.Data == "h3" {
				names = append(names, textOf(d)+":")
			}
		}
		got = append(got, strings.Join(names, " "))
	}
	want := "To be rendered 4: bad1 bad2 bad3 fresh|Waits for its turn 0:|In review 1: open|Stopped by a person 2: closed edited|Merged 4: bad1 bad2 bad3 merged"
	if strings.Join(got, "|") != want || !strings.Contains(p.text, "opened 2 days ago") || !strings.Contains(p.text, "from commits of <bdi>Ada ") {
		t.Errorf("the stages are %q\n%s", got, p.text)
	}
}

// TestWavesAsStages shows waves and rollbacks.
func TestWavesAsStages(t *testing.T) {
	s := busyServer(t)
	given := Promotions{
		Promotions: []promotion.Promotion{{URL: "https://git.example.com/config.git", Branch: "prod", Waves: true, Label: "cluster", Stopped: hostileText, Stages: []promotion.StageStatus{
			{Name: "canary", State: "Done", Number: 7, URL: "https://git.example.com/pulls/7", Pipelines: 3, Since: time.Now().Add(-time.Hour)},
			{Name: "eu" + hostileText, State: "Stopped", Message: hostileText, Number: 8, URL: "javascript:alert(1)", Pipelines: 4, Waits: 4},
			{Head: "prerig/us", State: "Waiting", Pipelines: 5, OnHold: 1},
		}}, {Branch: "not in waves"}},
		Rollbacks: []status.Rollback{{Pipeline: "team/open", Pipelines: []string{"team/open", "team/bad1"}, Commit: strings.Repeat("ab", 20), By: hostileText, State: "Done", Message: hostileText}},
	}
	at := Access{Insecure: true}
	mux := http.NewServeMux()
	mux.Handle("/", s.Admin(at))
	mux.Handle("/pull-requests", s.newGuard().identifyPrincipal(at, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.pages.writePage(w, r, "pulls", "Pull requests", pullsData{Promotions: given.limitedForPage(), Rails: railsOf(given.Promotions, time.Now())})
	})))
	ts := httptest.NewServer(mux)
	t.Cleanup(ts.Close)
	p := newVisitor(t, ts.URL).visit("/pull-requests")
	checkPage(t, "waves", p)
	for _, want := range []string{"Waves to prod by cluster", "canary", "Pull request 7", "1 h ago", "1 on hold", "and 2 pipelines that were published together"} {
		if !strings.Contains(p.text, want) {
			t.Errorf("the page lacks %q:\n%s", want, p.text)
		}
	}
	if strings.Contains(p.text, "not in waves") || strings.Index(p.text, "canary") > strings.Index(p.text, "prerig/us") {
		t.Errorf("the waves are wrong:\n%s", p.text)
	}
}

// TestContrast computes from the style how well texts can be read, by the formula of WCAG 2.2: 4.5 for text, 3 for edges of controls.
func TestContrast(t *testing.T) {
	style, err := files.ReadFile("pages/style.css")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile(`:root \{([^}]*)\}`).FindAllStringSubmatch(string(style), -1)
	if len(blocks) != 2 {
		t.Fatalf("there are %d palettes", len(blocks))
	}
	for i, scheme := range []string{"light", "dark"} {
		colours := map[string]string{}
		for _, c := range regexp.MustCompile(`--([a-z0-9-]+): (#[0-9a-f]{6})`).FindAllStringSubmatch(blocks[i][1], -1) {
			colours[c[1]] = c[2]
		}
		check := func(of, on string, want float64) {
			t.Helper()
			if colours[of] == "" || colours[on] == "" {
				t.Errorf("%s: %s or %s is no colour", scheme, of, on)
			} else if got := contrast(t, colours[of], colours[on]); got < want {
				t.Errorf("%s: %s on %s has a contrast of %.2f, less than %.1f", scheme, of, on, got, want)
			}
		}
		for _, back := range []string{"back", "soft"} {
			for _, text := range []string{"text", "minor", "link", "good", "bad", "warn", "idle"} {
				check(text, back, 4.5)
			}
			for _, drawn := range []string{"edge", "v0", "v1", "v2", "v3", "v4", "v5", "half"} {
				check(drawn, back, 3)
			}
		}
		for _, back := range []string{"add", "del", "inject", "inject-del"} {
			check("text", back, 4.5)
		}
	}
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	light := func(colour string) (sum float64) {
		for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
			n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			c := float64(n) / 255
			if c <= 0.04045 {
				sum += weight * c / 12.92
			} else {
				sum += weight * math.Pow((c+0.055)/1.055, 2.4)
			}
		}
		return sum
	}
	x, y := light(a), light(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}
