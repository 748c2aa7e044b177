// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/internal/chromium"
)

var (
	browser = flag.String("browser", "", "the program that drives Chromium (make e2e-site)")
	made    = flag.String("site", "", "the site that make site has made")
)

// window is a window in front of the site.
type window struct {
	*chromium.Window
	t *testing.T
}

func openWindow(t *testing.T) *window {
	t.Helper()
	if *browser == "" {
		t.Skip("needs -browser: make e2e-site")
	}
	return &window{chromium.Open(t, *browser), t}
}

func (c *window) open(page string) {
	c.t.Helper()
	c.Visit("file://" + filepath.ToSlash(*made) + "/" + page)
}

// until waits until an expression is true.
func (c *window) until(expression string) {
	c.t.Helper()
	if !c.Wait(expression) {
		c.t.Fatalf("%s did not become true", expression)
	}
}

// TestSiteInEveryWindow looks at pages wide and narrow, light and dark, with and without scripts: nothing is wider than the window, but
// for what can be scrolled by itself, the menu and the colours are as they should be, and nothing goes wrong.
func TestSiteInEveryWindow(t *testing.T) {
	c := openWindow(t)
	for _, width := range []int{390, 900, 1400} {
		for _, dark := range []bool{false, true} {
			for _, script := range []bool{true, false} {
				c.Look(width, 900, dark, script)
				for _, page := range []string{"index.html", "quick-start.html", "reference/commands.html", "reference/fields.html", "reference/lint-rules.html", "compatibility.html", "examples/flux.html"} {
					c.open(page)
					name := fmt.Sprintf("%s at %d (dark %v, scripts %v)", page, width, dark, script)
					if wider := c.Eval("document.documentElement.scrollWidth - innerWidth"); wider != 0.0 {
						t.Errorf("%s is wider than the window by %v", name, wider)
					}
					if shown := c.Eval("getComputedStyle(document.getElementById('nav')).display !== 'none'"); shown != (width > 800 || !script) {
						t.Errorf("%s: the menu is shown: %v", name, shown)
					}
					if behind := fmt.Sprint(c.Eval("getComputedStyle(document.body).backgroundColor")); (behind == "rgb(255, 255, 255)") == dark {
						t.Errorf("%s has the background %s", name, behind)
					}
					c.keep(fmt.Sprintf("%s-%d-%v-%v.png", strings.ReplaceAll(page, "/", "-"), width, dark, script))
				}
			}
		}
	}
	if problems := c.Problems(); len(problems) > 0 {
		t.Errorf("the browser tells of problems: %v", problems)
	}
}

// keep takes a picture where somebody wants to look at them.
func (c *window) keep(name string) {
	c.t.Helper()
	if dir := os.Getenv("PRERIG_SCREENSHOTS"); dir != "" {
		c.Shot(filepath.Join(dir, name))
	}
}

// searchFor goes to the search by its key and types. The driver sends the sign of a key apart from the key, which a page can keep from
// coming only at a keyboard: what came of it is taken out.
func (c *window) searchFor(text string) {
	c.t.Helper()
	c.Type("/")
	c.until("document.activeElement === document.getElementById('search')")
	c.Eval("document.activeElement.value = ''")
	c.Type(text)
}

// TestSiteIsSearchedByKeyboard finds a rule from a page in a folder, from files, and goes to it.
func TestSiteIsSearchedByKeyboard(t *testing.T) {
	c := openWindow(t)
	c.Look(1400, 900, false, true)
	c.open("tutorials/flux.html")
	c.searchFor("PR201 proxy")
	c.until("document.querySelectorAll('#found a').length > 0")
	c.keep("search.png")
	first := fmt.Sprint(c.Eval("document.querySelector('#found a').textContent"))
	if !strings.Contains(first, "PR201") {
		t.Errorf("the first that is found is %q", first)
	}
	c.Press("Enter")
	c.until("location.hash === '#pr201' && document.readyState === 'complete'")
	if at := fmt.Sprint(c.Eval("location.pathname")); !strings.HasSuffix(at, "/reference/lint-rules.html") {
		t.Errorf("the search leads to %s", at)
	}
	c.searchFor("zzzqqq")
	c.until("document.getElementById('found').textContent === 'Nothing has all of these words.'")
	c.Press("Escape")
	c.until("document.getElementById('found').hidden && document.activeElement === document.body")
}

// TestSiteMenuOfNarrowWindows opens the menu by keyboard and goes on from there.
func TestSiteMenuOfNarrowWindows(t *testing.T) {
	c := openWindow(t)
	c.Look(390, 844, false, true)
	c.open("cli.html")
	c.Eval("document.querySelector('.menu').focus()")
	c.Press("Enter")
	c.until("document.querySelector('.menu').getAttribute('aria-expanded') === 'true' && document.getElementById('nav').offsetHeight > 0")
	c.keep("menu.png")
	c.Eval("document.querySelector('#nav [aria-current]').focus()")
	c.Press("Tab")
	c.Press("Enter")
	c.until("location.pathname.endsWith('/function.html')")
}
