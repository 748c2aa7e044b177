// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package chromium is a window of Chromium for tests, driven by the program in fn/internal/upstream/chromium.
package chromium

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// Patience is how long a page may take to become what a test waits for.
const Patience = 3 * time.Minute

// Window is a browser window as a user operates it. Any failure in it ends the test.
type Window struct {
	t       testing.TB
	in      *json.Encoder
	answers *json.Decoder
}

// Open starts the driver, which the end of the test ends.
func Open(t testing.TB, driver string) *Window {
	t.Helper()
	cmd := exec.Command(driver)
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
		if err := in.Close(); err != nil { // which ends it
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &Window{t, json.NewEncoder(in), json.NewDecoder(out)}
}

// do does one thing and returns what it answers. Each has its own time limit in the driver.
func (w *Window) do(command map[string]any) any {
	w.t.Helper()
	var answer struct {
		Result any    `json:"result"`
		Error  string `json:"error"`
	}
	if err := w.in.Encode(command); err != nil {
		w.t.Fatal(err)
	}
	if err := w.answers.Decode(&answer); err == io.EOF {
		w.t.Fatal("the browser has exited")
	} else if err != nil {
		w.t.Fatal(err)
	}
	if answer.Error != "" {
		w.t.Fatalf("%v: %s", command, answer.Error)
	}
	return answer.Result
}

// Look sets the size of the window in pixels, whether it is dark, and whether scripts run.
func (w *Window) Look(width, height int, dark, script bool) {
	w.t.Helper()
	w.do(map[string]any{"do": "look", "width": width, "height": height, "dark": dark, "script": script})
}

// Visit navigates to a URL.
func (w *Window) Visit(url string) {
	w.t.Helper()
	w.do(map[string]any{"do": "goto", "text": url})
}

// Press presses a key by its name.
func (w *Window) Press(key string) {
	w.t.Helper()
	w.do(map[string]any{"do": "press", "text": key})
}

// Type types a text.
func (w *Window) Type(text string) {
	w.t.Helper()
	w.do(map[string]any{"do": "type", "text": text})
}

// Eval returns the value of an expression in the page.
func (w *Window) Eval(expression string) any {
	w.t.Helper()
	return w.do(map[string]any{"do": "eval", "text": expression})
}

// Wait waits until an expression is true, and reports whether it came to be.
func (w *Window) Wait(expression string) bool {
	w.t.Helper()
	for end := time.Now().Add(Patience); w.Eval("Boolean("+expression+")") != true; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// Shot writes a picture of the page to a file.
func (w *Window) Shot(file string) {
	w.t.Helper()
	w.do(map[string]any{"do": "shot", "text": file})
}

// Problems returns errors of scripts, and what the policy of a page kept from happening, since it was asked last.
func (w *Window) Problems() []any {
	w.t.Helper()
	found, _ := w.do(map[string]any{"do": "problems"}).([]any)
	return found
}
