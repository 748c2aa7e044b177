// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package site

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	browser = flag.String("browser", "", "the program that drives Chromium (make e2e-site)")
	made    = flag.String("site", "", "the site that make site has made")
)

// chromium is a window.
type chromium struct {
	t       *testing.T
	in      *json.Encoder
	answers *json.Decoder
}

func startChromium(t *testing.T) *chromium {
	t.Helper()
	if *browser == "" {
		t.Skip("needs -browser: make e2e-site")
	}
	cmd := exec.Command(*browser)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &chromium{t, json.NewEncoder(in), json.NewDecoder(out)}
}

// do does one thing and returns what it answers. Each has its own time limit in the program.
func (c *chromium) do(command map[string]any) any {
	c.t.Helper()
	var answer struct {
		Result any    `json:"result"`
		Error  string `json:"error"`
	}
	if err := c.in.Encode(command); err != nil {
		c.t.Fatal(err)
	}
	if err := c.answers.Decode(&answer); err == io.EOF {
		c.t.Fatal("the browser is gone")
	} else if err != nil {
		c.t.Fatal(err)
	}
	if answer.Error != "" {
		c.t.Fatalf("%v: %s", command, answer.Error)
	}
	return answer.Result
}

func (c *chromium) eval(expression string) any {
	c.t.Helper()
	return c.do(map[string]any{"do": "eval", "text": expression})
}

func (c *chromium) open(page string) {
	c.t.Helper()
	c.do(map[string]any{"do": "goto", "text": "file://" + filepath.ToSlash(*made) + "/" + page})
}

// until asks until an expression is true, for at most 3 minutes.
func (c *chromium) until(expression string) {
	c.t.Helper()
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if c.eval(expression) == true {
			return
		}
	}
	c.t.Fatalf("%s did not become true", expression)
}

// TestSiteInEveryWindow looks at pages wide and narrow, light and dark, with and without scripts: nothing is wider than the window, but
// for what can be scrolled by itself, the menu and the colours are as they should be, and nothing goes wrong.
func TestSiteInEveryWindow(t *testing.T) {
	c := startChromium(t)
	for _, width := range []int{390, 900, 1400} {
		for _, dark := range []bool{false, true} {
			for _, script := range []bool{true, false} {
				c.do(map[string]any{"do": "look", "width": width, "height": 900, "dark": dark, "script": script})
				for _, page := range []string{"index.html", "quick-start.html", "reference/commands.html", "reference/fields.html", "reference/lint-rules.html", "compatibility.html", "examples/flux.html"} {
					c.open(page)
					name := fmt.Sprintf("%s at %d (dark %v, scripts %v)", page, width, dark, script)
					if wider := c.eval("document.documentElement.scrollWidth - innerWidth"); wider != 0.0 {
						t.Errorf("%s is wider than the window by %v", name, wider)
					}
					if shown := c.eval("getComputedStyle(document.getElementById('nav')).display !== 'none'"); shown != (width > 800 || !script) {
						t.Errorf("%s: the menu is shown: %v", name, shown)
					}
					if behind := fmt.Sprint(c.eval("getComputedStyle(document.body).backgroundColor")); (behind == "rgb(255, 255, 255)") == dark {
						t.Errorf("%s has the background %s", name, behind)
					}
					c.keep(fmt.Sprintf("%s-%d-%v-%v.png", strings.ReplaceAll(page, "/", "-"), width, dark, script))
				}
			}
		}
	}
	if problems := c.do(map[string]any{"do": "problems"}); problems != nil {
		t.Errorf("the browser tells of problems: %v", problems)
	}
}

// keep takes a picture where somebody wants to look at them.
func (c *chromium) keep(name string) {
	c.t.Helper()
	if dir := os.Getenv("PRERIG_SCREENSHOTS"); dir != "" {
		c.do(map[string]any{"do": "shot", "text": filepath.Join(dir, name)})
	}
}

// searchFor goes to the search by its key and types. The driver sends the sign of a key apart from the key, which a page can keep from
// coming only at a keyboard: what came of it is taken out.
func (c *chromium) searchFor(text string) {
	c.t.Helper()
	c.do(map[string]any{"do": "type", "text": "/"})
	c.until("document.activeElement === document.getElementById('search')")
	c.eval("document.activeElement.value = ''")
	c.do(map[string]any{"do": "type", "text": text})
}

// TestSiteIsSearchedByKeyboard finds a rule from a page in a folder, from files, and goes to it.
func TestSiteIsSearchedByKeyboard(t *testing.T) {
	c := startChromium(t)
	c.do(map[string]any{"do": "look", "width": 1400, "height": 900, "script": true})
	c.open("tutorials/flux.html")
	c.searchFor("PR201 proxy")
	c.until("document.querySelectorAll('#found a').length > 0")
	c.keep("search.png")
	first := fmt.Sprint(c.eval("document.querySelector('#found a').textContent"))
	if !strings.Contains(first, "PR201") {
		t.Errorf("the first that is found is %q", first)
	}
	c.do(map[string]any{"do": "press", "text": "Enter"})
	c.until("location.hash === '#pr201' && document.readyState === 'complete'")
	if at := fmt.Sprint(c.eval("location.pathname")); !strings.HasSuffix(at, "/reference/lint-rules.html") {
		t.Errorf("the search leads to %s", at)
	}
	c.searchFor("zzzqqq")
	c.until("document.getElementById('found').textContent === 'Nothing has all of these words.'")
	c.do(map[string]any{"do": "press", "text": "Escape"})
	c.until("document.getElementById('found').hidden && document.activeElement === document.body")
}

// TestSiteMenuOfNarrowWindows opens the menu by keyboard and goes on from there.
func TestSiteMenuOfNarrowWindows(t *testing.T) {
	c := startChromium(t)
	c.do(map[string]any{"do": "look", "width": 390, "height": 844, "script": true})
	c.open("cli.html")
	c.eval("document.querySelector('.menu').focus()")
	c.do(map[string]any{"do": "press", "text": "Enter"})
	c.until("document.querySelector('.menu').getAttribute('aria-expanded') === 'true' && document.getElementById('nav').offsetHeight > 0")
	c.keep("menu.png")
	c.eval("document.querySelector('#nav [aria-current]').focus()")
	c.do(map[string]any{"do": "press", "text": "Tab"})
	c.do(map[string]any{"do": "press", "text": "Enter"})
	c.until("location.pathname.endsWith('/function.html')")
}
