// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command driver executes commands in Chromium that it reads as lines of JSON from its standard input, and answers
// each with a line. It ends with its input.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// command is one thing to do.
type command struct {
	// Do is goto, press, type, eval, shot, look or problems.
	Do string `json:"do"`
	// Text is the address, the key, the text, the expression or the file.
	Text string `json:"text"`
	// Width and Height are the size of the window; Dark and Script set how to render the page. They apply to look.
	Width  int64 `json:"width"`
	Height int64 `json:"height"`
	Dark   bool  `json:"dark"`
	Script bool  `json:"script"`
}

type answer struct {
	Result any    `json:"result,omitempty"`
	Error  string `json:"error,omitempty"`
}

func main() {
	if err := drive(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}

// drive does all commands in one window.
func drive(in io.Reader, out io.Writer) error {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.WSURLReadTimeout(3*time.Minute))
	allocated, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	ctx, end := chromedp.NewContext(allocated)
	defer end()
	w := &window{ctx: ctx}
	chromedp.ListenTarget(ctx, w.hear)
	if err := chromedp.Run(ctx, log.Enable(), runtime.Enable()); err != nil {
		return fmt.Errorf("starting Chromium: %w", err)
	}
	encoder := json.NewEncoder(out)
	for decoder := json.NewDecoder(in); ; {
		var c command
		if err := decoder.Decode(&c); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a command: %w", err)
		}
		var a answer
		result, err := w.do(c)
		a.Result = result
		if err != nil {
			a.Error = err.Error()
		}
		if err := encoder.Encode(a); err != nil {
			return fmt.Errorf("answering: %w", err)
		}
	}
}

// window is a window of the browser, and what went wrong in it.
type window struct {
	ctx context.Context

	mu       sync.Mutex
	problems []string
}

// hear notes errors of scripts, and what policies of pages have kept from happening.
func (w *window) hear(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			w.problems = append(w.problems, string(e.Entry.Source)+": "+e.Entry.Text)
		}
	case *runtime.EventExceptionThrown:
		w.problems = append(w.problems, e.ExceptionDetails.Error())
	}
}

// keys are those that are no letters.
var keys = map[string]string{"Tab": kb.Tab, "Enter": kb.Enter, "Space": " ", "Escape": kb.Escape}

func (w *window) do(c command) (result any, err error) {
	ctx, end := context.WithTimeout(w.ctx, 3*time.Minute)
	defer end()
	switch c.Do {
	case "goto":
		return nil, chromedp.Run(ctx, chromedp.Navigate(c.Text))
	case "press":
		key, ok := keys[c.Text]
		if !ok {
			return nil, fmt.Errorf("there is no key %q", c.Text)
		}
		return nil, chromedp.Run(ctx, chromedp.KeyEvent(key))
	case "type":
		return nil, chromedp.Run(ctx, chromedp.KeyEvent(c.Text))
	case "eval":
		err = chromedp.Run(ctx, chromedp.Evaluate(c.Text, &result))
		for err != nil && ctx.Err() == nil && isLeaving(err) { // one page is being replaced by another
			time.Sleep(20 * time.Millisecond)
			err = chromedp.Run(ctx, chromedp.Evaluate(c.Text, &result))
		}
		return result, err
	case "shot":
		var picture []byte
		if err := chromedp.Run(ctx, chromedp.CaptureScreenshot(&picture)); err != nil {
			return nil, err
		}
		return len(picture), os.WriteFile(c.Text, picture, 0o600)
	case "look":
		scheme := "light"
		if c.Dark {
			scheme = "dark"
		}
		return nil, chromedp.Run(ctx, emulation.SetDeviceMetricsOverride(c.Width, c.Height, 1, c.Width < 600), emulation.SetScriptExecutionDisabled(!c.Script),
			emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}))
	case "problems":
		w.mu.Lock()
		defer w.mu.Unlock()
		found := w.problems
		w.problems = nil
		return found, nil
	}
	return nil, fmt.Errorf("there is nothing to do that is called %q", c.Do)
}

// isLeaving reports whether an expression had no page to be evaluated in.
func isLeaving(err error) bool {
	return strings.Contains(err.Error(), "navigated or closed") || strings.Contains(err.Error(), "Cannot find context")
}
