// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package demo_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prerig/prerig/internal/testprograms"
)

// shown is a demo that runs as a person starts it.
type shown struct {
	t       *testing.T
	command *exec.Cmd
	temp    string // what it makes directories in
	prerig  string
	text    string // all that it has printed
	page    string // of the daemon
	host    string
	rest    chan string
}

func startDemo(t *testing.T, args ...string) *shown {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("the git command is not installed")
	}
	dir, err := testprograms.Build(testprograms.Prerig)
	if err != nil {
		t.Fatal(err)
	}
	s := &shown{t: t, temp: t.TempDir(), prerig: filepath.Join(dir, testprograms.Prerig.Name), rest: make(chan string, 1)}
	s.command = exec.Command(s.prerig, append([]string{"demo"}, args...)...)
	s.command.Env = append(os.Environ(), "TMPDIR="+s.temp)
	return s
}

// start reads until the demo waits.
func (s *shown) start() {
	s.t.Helper()
	out, err := s.command.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	var problems bytes.Buffer
	s.command.Stderr = &problems
	if err := s.command.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = s.command.Process.Kill() })
	lines := bufio.NewReader(out)
	for !strings.Contains(s.text, "Press Ctrl-C") {
		line, err := lines.ReadString('\n')
		s.text += line
		if err != nil {
			s.t.Fatalf("the demo ended: %v\n%s\n%s", err, s.text, problems.String())
		}
	}
	go func() {
		text, _ := io.ReadAll(lines)
		s.rest <- string(text)
	}()
	s.page = s.find(`open (http://\S+)   Prerig's page`)
	s.host = s.find(`open (http://\S+)   the Git host`)
}

// find returns what the first group of a pattern matches in the output.
func (s *shown) find(pattern string) string {
	s.t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(s.text)
	if found == nil {
		s.t.Fatalf("the demo does not print %q:\n%s", pattern, s.text)
	}
	return found[1]
}

// run runs a printed command in a shell.
func (s *shown) run(n string) string {
	s.t.Helper()
	line := s.find(`(?m)^` + n + `\. .*\n   \$ (.*)$`)
	command := exec.Command("sh", "-c", line)
	// A person without settings of git, whose editor would wait.
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=false")
	out, err := command.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

func (s *shown) get(at string) string {
	s.t.Helper()
	response, err := http.Get(at)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		s.t.Fatalf("%s: %s, %v\n%s", at, response.Status, err, text)
	}
	return string(text)
}

func (s *shown) eventually(what string, is func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); !is(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("never: %s\n%s", what, s.get(s.page+"/api/v1/pipelines"))
		}
	}
}

func (s *shown) state(pipeline string) string {
	s.t.Helper()
	var all []struct{ Name, State string }
	if err := json.Unmarshal([]byte(s.get(s.page+"/api/v1/pipelines")), &all); err != nil {
		s.t.Fatal(err)
	}
	for _, one := range all {
		if one.Name == pipeline {
			return one.State
		}
	}
	return ""
}

// merge clicks Merge on a page: it sends the form that the page has.
func (s *shown) merge(at string) {
	s.t.Helper()
	text := s.get(at)
	head := regexp.MustCompile(`name="head" value="([0-9a-f]{40})"`).FindStringSubmatch(text)
	if head == nil || !strings.Contains(text, `value="merge">Merge</button>`) || !strings.Contains(text, "proxyv2:1.31.1") {
		s.t.Fatalf("%s is not the page of an upgrade:\n%s", at, text)
	}
	response, err := http.PostForm(at, url.Values{"do": {"merge"}, "head": {head[1]}})
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	after, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK || !strings.Contains(string(after), "Merged as") {
		s.t.Fatalf("merging %s: %s\n%s", at, response.Status, after)
	}
}

// TestTheFiveThings does what the demo suggests, as printed, and interrupts it.
func TestTheFiveThings(t *testing.T) {
	s := startDemo(t)
	s.start()
	// The runs of the cluster whose turn comes later may still be under way.
	const open = "waits for people to merge it"
	text := s.run("1")
	for end := time.Now().Add(time.Minute); !strings.Contains(text, open) && time.Now().Before(end); text = s.run("1") {
		time.Sleep(200 * time.Millisecond)
	}
	if !strings.Contains(text, "20 pipelines: 1 Stalled, 1 Drifted, 18 Ready") || !strings.Contains(text, open) {
		t.Errorf("prerig daemon status prints:\n%s", text)
	}
	if text := s.get(s.page); !strings.Contains(text, "search-staging") {
		t.Errorf("the page of the daemon is:\n%s", text)
	}
	first := s.find(`(?m)^2\. .*\n   open (\S+) and click Merge$`)
	s.merge(first)
	next := regexp.MustCompile(`href="(http://[^"]+/shop/rendered/pulls/[0-9]+)"`)
	var second string
	s.eventually("the second wave", func() bool {
		found := next.FindStringSubmatch(s.get(s.host))
		if found != nil {
			second = found[1]
		}
		return second != ""
	})
	if second == first {
		t.Fatalf("the pull request %s is still open", first)
	}
	s.merge(second)
	s.eventually("6 proxies on each cluster of production", func() bool {
		return strings.Count(s.get(s.host), "6 × <b>1.31.1</b>") == 2
	})
	s.run("3")
	s.eventually("the broken pipeline is ready", func() bool { return s.state("shop/search-staging") == "Ready" })
	if text := s.run("4"); !strings.Contains(text, "-  replicas: 30\n+  replicas: 1\n") {
		t.Errorf("undoing the change by hand prints:\n%s", text)
	}
	s.eventually("the changed pipeline is ready", func() bool { return s.state("shop/checkout-staging") == "Ready" })
	s.run("5")
	s.eventually("the release is a commit", func() bool {
		return strings.Contains(s.get(s.host+"/shop/rendered"), "Render catalog-staging: Release catalog 1.1")
	})
	s.stop()
}

// stop interrupts the demo, and checks that nothing of it stays.
func (s *shown) stop() {
	s.t.Helper()
	dir := s.find(`remove (\S+)\.\n`)
	if filepath.Dir(dir) != s.temp {
		s.t.Errorf("the demo is in %s, and temporary files in %s", dir, s.temp)
	}
	if err := s.command.Process.Signal(syscall.SIGINT); err != nil {
		s.t.Fatal(err)
	}
	rest := <-s.rest
	if err := s.command.Wait(); err != nil {
		s.t.Errorf("the demo ended with %v:\n%s", err, rest)
	}
	s.isEmpty()
	for _, at := range []string{s.page, s.host} {
		if response, err := http.Get(at); err == nil {
			response.Body.Close()
			s.t.Errorf("%s still answers", at)
		}
	}
}

func (s *shown) isEmpty() {
	s.t.Helper()
	left, err := os.ReadDir(s.temp)
	if err != nil || len(left) > 0 {
		s.t.Errorf("there remain %v (%v)", left, err)
	}
}

// TestAnEarlyInterruption interrupts the demo while it is made.
func TestAnEarlyInterruption(t *testing.T) {
	s := startDemo(t)
	out, err := s.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.command.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	for line := ""; !strings.HasPrefix(line, "Rendering"); {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines)
	if err := s.command.Wait(); err != nil {
		t.Errorf("the demo ended with %v:\n%s", err, rest)
	}
	s.isEmpty()
}

// TestExit does everything by itself.
func TestExit(t *testing.T) {
	if testing.Short() {
		t.Skip("TestTheFiveThings does the same as a person")
	}
	s := startDemo(t, "--exit")
	text, err := s.command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, want := range []string{
		"Render 6 pipelines: Upgrade Istio to 1.31.1", "us       6 proxies of 1.31.1", "shop/search-staging is Ready",
		`undo`, "Render catalog-staging: Release catalog 1.1", "+        image: registry.example.com/shop/catalog:1.1",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the demo does not print %q:\n%s", want, text)
		}
	}
	s.isEmpty()
}
