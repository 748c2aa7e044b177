// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/internal/chromium"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

var browserDriver = flag.String("browser", "", "the driver of a browser, as make e2e-page builds it")

// browser is Chromium with somebody in front of the page.
type browser struct {
	*chromium.Window
	t        *testing.T
	base     string
	pictures string
}

// openBrowser starts a browser. PRERIG_SCREENSHOTS names a directory for what it shows.
func openBrowser(t *testing.T, base string) *browser {
	t.Helper()
	if *browserDriver == "" {
		t.Skip("no browser is driven: make e2e-page builds a driver and gives it with -browser")
	}
	b := &browser{chromium.Open(t, *browserDriver), t, base, os.Getenv("PRERIG_SCREENSHOTS")}
	if b.pictures == "" {
		b.pictures = t.TempDir()
	}
	b.Look(1280, 900, false, true)
	return b
}

func (b *browser) visit(path string) {
	b.t.Helper()
	b.Visit(b.base + path)
}

// wait waits until an expression is true.
func (b *browser) wait(expression string) {
	b.t.Helper()
	if !b.Wait(expression) {
		b.shot("failed")
		b.t.Fatalf("it never came that %s; the page is\n%v", expression, b.Eval("document.documentElement.outerHTML"))
	}
}

// tabTo presses Tab until what has the focus matches a selector, and has a frame that shows it.
func (b *browser) tabTo(selector string) {
	b.t.Helper()
	for range 200 {
		b.Press("Tab")
		if b.Eval(fmt.Sprintf("document.activeElement.matches(%q)", selector)) == true {
			if got := b.Eval("getComputedStyle(document.activeElement).outlineStyle"); got == "none" {
				b.t.Errorf("%s does not show that it has the focus", selector)
			}
			return
		}
	}
	b.t.Fatalf("Tab never comes to %s", selector)
}

func (b *browser) shot(name string) {
	b.t.Helper()
	b.Shot(filepath.Join(b.pictures, name+".png"))
}

// signIn signs in with the keyboard alone.
func (b *browser) signIn() {
	b.t.Helper()
	b.visit("/")
	b.wait("document.activeElement.id === 'token'")
	b.Type(token)
	b.Press("Enter")
	b.wait("document.querySelector('.user button')")
}

// expectNoProblems reports errors of scripts, and what the policy of a page kept from happening. Answers that are no 200 are none.
func (b *browser) expectNoProblems() {
	b.t.Helper()
	for _, problem := range b.Problems() {
		if text := fmt.Sprint(problem); !strings.Contains(text, "Failed to load resource") {
			b.t.Errorf("the browser says: %s", text)
		}
	}
	if title := b.Eval("document.title"); !strings.HasSuffix(fmt.Sprint(title), "· Prerig") {
		b.t.Errorf("the title is %v", title)
	}
}

// windows are the windows that pages are opened in.
var windows = []struct {
	name          string
	width, height int
	dark          bool
}{{"wide", 1280, 900, false}, {"narrow", 390, 844, false}, {"narrow-dark", 390, 844, true}, {"wide-dark", 1280, 900, true}}

// expectInWindow reports what is wider than the window, and controls that are too small.
func (b *browser) expectInWindow(what string) {
	b.t.Helper()
	if got := b.Eval("document.documentElement.scrollWidth - innerWidth"); got != 0.0 && got != nil {
		b.t.Errorf("%s: %v pixels stand out of the window", what, got)
	}
	if small := b.Eval(`[...document.querySelectorAll("button, input:not([type=hidden]), summary")].filter((e) => { const r = e.getBoundingClientRect(); return r.width && (r.width < 16 || r.height < 16) }).length`); small != 0.0 {
		b.t.Errorf("%s: %v controls are too small", what, small)
	}
	b.expectNoProblems()
}

// TestPageByKeyboard signs in, suspends a pipeline, approves a removal and signs out without a mouse.
func TestPageByKeyboard(t *testing.T) {
	s := busyServer(t)
	b := openBrowser(t, serveAdmin(t, s, Access{}))
	b.visit("/pipeline?name=team/open")
	b.wait("document.activeElement.id === 'token'")
	b.shot("sign-in")
	b.Type("wrong")
	b.Press("Enter")
	b.wait("document.querySelector('[role=alert]') && document.activeElement.id === 'token'")
	b.Type(token)
	b.Press("Enter")
	b.wait("document.querySelector('#act')")
	b.shot("pipeline")
	b.tabTo("a.skip")
	b.shot("skip")
	b.Press("Enter")
	b.tabTo("button[value=suspend]")
	b.shot("focus")
	b.Press("Enter")
	b.wait("document.querySelector('.notice')?.textContent === '1 pipeline suspended.'")
	if !s.Store.Control("team/open").Suspended {
		t.Error("it is not suspended")
	}
	b.shot("pipeline-suspended")
	b.visit("/")
	b.tabTo("#removals summary")
	b.Press("Enter")
	b.tabTo("input[value='team/gone1']")
	b.Press("Space")
	b.tabTo("button[value=remove]")
	b.shot("removal-chosen")
	b.Press("Enter")
	b.wait("document.querySelector('.names')")
	b.shot("removal-asked")
	b.tabTo("button.danger")
	b.Press("Enter")
	b.wait("document.querySelector('.notice')?.textContent === '1 pipeline approved for removal.'")
	if r, _ := s.Store.Registration("team/gone1"); r.Removal == nil || !r.Removal.Approved {
		t.Errorf("the removal is %+v", r.Removal)
	}
	b.tabTo(".user button")
	b.Press("Enter")
	b.wait("document.querySelector('#token')")
	b.expectNoProblems()
}

// TestPageUpdatesItself has things change while a page is open: it shows them, and keeps what somebody has opened, chosen and typed.
func TestPageUpdatesItself(t *testing.T) {
	s := busyServer(t)
	b := openBrowser(t, serveAdmin(t, s, Access{}))
	b.signIn()
	b.wait("document.getElementById('live').textContent === 'up to date'")
	b.tabTo("#removals summary")
	b.Press("Enter")
	b.tabTo("input[value='team/open']")
	b.Press("Space")
	b.Eval("window.before = document.querySelector('#list')")
	if err := s.Store.SetControl(t.Context(), "team/merged", func(c *status.Control) { c.Suspended = true }); err != nil {
		t.Fatal(err)
	}
	b.wait("[...document.querySelectorAll('tr')].some((r) => r.textContent.includes('team/merged') && r.textContent.includes('Suspended'))")
	for _, want := range []string{
		"window.before !== document.querySelector('#list')", "document.activeElement.value === 'team/open'", "document.activeElement.checked",
		"document.querySelector('#removals details').open", "new Set([...document.querySelectorAll('[id]')].map((e) => e.id)).size === document.querySelectorAll('[id]').length", "document.querySelectorAll('h1').length === 1",
	} {
		if b.Eval(want) != true {
			t.Errorf("after the update it is not so that %s", want)
		}
	}
	b.shot("updated")
	b.tabTo("button[value=suspend][form], #act button[value=suspend]")
	b.Press("Enter")
	b.wait("document.querySelector('.notice')?.textContent === '1 pipeline suspended.'")
	// What somebody types stays.
	b.Eval("document.querySelector('input[type=search]').focus()")
	b.Type("half a wo")
	if got := b.Eval("document.querySelector('input[type=search]').value"); got != "half a wo" {
		t.Fatalf("what is typed is %q", got)
	}
	if err := s.Store.SetControl(t.Context(), "team/fresh", func(c *status.Control) { c.Suspended = true }); err != nil {
		t.Fatal(err)
	}
	b.wait("[...document.querySelectorAll('tr')].some((r) => r.textContent.includes('team/fresh') && r.textContent.includes('Suspended'))")
	if got := b.Eval("document.querySelector('input[type=search]').value"); got != "half a wo" {
		t.Errorf("what was typed is now %q", got)
	}
	if got := b.Eval("document.querySelectorAll('#filters').length"); got != 1.0 {
		t.Errorf("the filters are there %v times", got)
	}
	b.expectNoProblems()
}

// TestPagesInEveryWindow opens each page wide and narrow, light and dark, and without scripts: nothing runs that is not ours, and nothing
// stands out of the window.
func TestPagesInEveryWindow(t *testing.T) {
	s := busyServer(t)
	b := openBrowser(t, serveAdmin(t, s, Access{}))
	b.signIn()
	for i, path := range allPages {
		for _, way := range windows {
			b.Look(way.width, way.height, way.dark, true)
			b.visit(path)
			b.expectInWindow(path + ", " + way.name)
			b.shot(fmt.Sprintf("%02d-%s", i, way.name))
		}
	}
	b.Look(1280, 900, false, false)
	b.visit("/pipeline?name=team/merged")
	b.tabTo("button[value=suspend]")
	b.Press("Enter")
	b.wait("document.querySelector('.notice')?.textContent === '1 pipeline suspended.'")
	if got := b.Eval("document.getElementById('live').textContent"); got != "" && got != nil {
		t.Errorf("without scripts the page says %q", got)
	}
}

// TestLinksOfOtherSitesLeadHere follows a link of another site with a session: the page is there at once.
func TestLinksOfOtherSitesLeadHere(t *testing.T) {
	base := serveAdmin(t, fixture(t), Access{})
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<!doctype html><title>chat</title><a id=link href="%s/pipeline?name=team/web">see</a><form id=form method=post action="%s/actions"><input name=action value=suspend><input name=name value=team/web></form>`, base, base)
	}))
	t.Cleanup(other.Close)
	b := openBrowser(t, base)
	b.signIn()
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	b.Visit(elsewhere)
	b.Eval("document.getElementById('link').click()")
	b.wait("document.querySelector('h1')?.textContent.includes('team/web')")
	b.Visit(elsewhere)
	b.Eval("document.getElementById('form').submit()")
	b.wait("!document.getElementById('form') && document.body?.textContent.length > 0")
	if got := fmt.Sprint(b.Eval("document.body.textContent")); !strings.Contains(got, "Nothing was done") && !strings.Contains(got, "another site") {
		t.Errorf("a form of another site gets %q", got)
	}
}
