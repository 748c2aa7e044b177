// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// line is what is read of a line of the log.
type line struct {
	Level, Msg, ID, Outcome, Event string
}

func (c *chaos) logged(each func(l line, text string)) {
	file, err := os.Open(c.logs)
	if err != nil {
		c.t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l line
		if json.Unmarshal(lines.Bytes(), &l) == nil {
			each(l, lines.Text())
		}
	}
}

// lastLogged are the last warnings and errors.
func (c *chaos) lastLogged(n int) string {
	var found []string
	c.logged(func(l line, text string) {
		if l.Level != "INFO" && l.Level != "DEBUG" {
			found = append(found, text)
		}
	})
	return strings.Join(found[max(0, len(found)-n):], "\n")
}

// stacks returns where those goroutines of a process were that ended with a test that failed which were in Prerig's own code.
func (c *chaos) stacks() string {
	text, err := os.ReadFile(c.logs)
	if err != nil {
		return err.Error()
	}
	_, dump, _ := strings.Cut(string(text), "SIGQUIT: quit")
	var own []string
	for _, goroutine := range strings.Split(dump, "\n\n") {
		if strings.Contains(goroutine, "github.com/prerig/prerig/") {
			own = append(own, stackOperands.ReplaceAllString(goroutine, ""))
		}
	}
	return strings.Join(own, "\n\n")
}

// stackOperands are what a dump of goroutines has in a line besides the function and its place.
var stackOperands = regexp.MustCompile(`\(0x[^\n]*\)|\({0x[^\n]*\)| fp=0x.*| \+0x.*`)

// settle waits until every branch holds the newest state of every application, and all events are planned.
func (c *chaos) settle() {
	c.t.Helper()
	for i, n := range c.newest {
		c.eventually(fmt.Sprintf("waiting for app%d to show %d", i, n), func() string {
			if got := c.shown(i); got != n {
				return fmt.Sprintf("it shows %d", got)
			}
			return ""
		})
	}
	c.eventually("waiting for the events to be planned", func() string {
		if left := c.unplanned(); len(left) > 0 {
			return fmt.Sprintf("%d were stored and not planned: %v", len(left), left)
		}
		return ""
	})
}

// unplanned are the events that were stored, by what senders were told and by what the processes logged, and that no
// process has planned. A process that plans logs it before it lets the event go.
func (c *chaos) unplanned() (left []string) {
	planned, stored := map[string]bool{}, map[string]bool{}
	c.logged(func(l line, _ string) {
		switch {
		case l.Msg == "planned":
			planned[l.ID] = true
		case l.Msg == "delivery" && l.Outcome == "stored":
			stored[l.Event] = true
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.accepted {
		stored[id] = true
	}
	for id := range stored {
		if !planned[id] {
			left = append(left, id)
		}
	}
	return left
}

// verify looks at the histories of the branches: no state of an application comes twice or after a later one, no commit
// changes nothing, and none is about a run of a pipeline that another one is about.
func (c *chaos) verify() (commits, states int) {
	c.t.Helper()
	for i := range c.newest {
		history := c.history(i)
		states += len(history)
		for j := 1; j < len(history); j++ {
			if history[j] <= history[j-1] {
				c.t.Errorf("app%d shows %d after %d: %v", i, history[j], history[j-1], history)
			}
		}
	}
	seen := map[string]string{}
	var branches []string
	for i := range c.newest {
		if !slices.Contains(branches, c.of(i)) {
			branches = append(branches, c.of(i))
		}
	}
	for _, name := range branches {
		trees := strings.Fields(c.repository.Git("log", "--format=%T", name))
		for j := 1; j < len(trees); j++ {
			if trees[j] == trees[j-1] {
				c.t.Errorf("%s has a commit that changes nothing", name)
			}
		}
		for _, one := range strings.Split(c.repository.Git("log", "--author=Prerig", "--format=%H%n%(trailers:key=Prerig-Command,valueonly)%x00", name), "\x00") {
			words := strings.Split(strings.TrimSpace(one), "\n")
			if words[0] == "" {
				continue
			}
			commits++
			if len(words) < 2 {
				c.t.Errorf("%s has the commit %s without a trailer", name, words[0])
			}
			for _, command := range words[1:] {
				if first := seen[name+" "+command]; first != "" {
					c.t.Errorf("%s has two commits of %q: %s and %s", name, command, first, words[0])
				}
				seen[name+" "+command] = words[0]
			}
		}
	}
	if commits == 0 || states < len(c.newest) {
		c.t.Errorf("%d commits with %d states of applications are too few for a test", commits, states)
	}
	return commits, states
}

var imageLine = regexp.MustCompile(`(?m)^\+.* image: image:(\d+)$`)

// file is where the result of an application is; a pipeline's path is its name.
func (c *chaos) file(i int) string {
	return fmt.Sprintf("app%d/shop/deployment-app%[1]d.yaml", i)
}

// shown is the state of an application on its branch, -1 where there is none.
func (c *chaos) shown(i int) int {
	if c.repository.Git("branch", "--list", c.of(i)) == "" || c.repository.Git("ls-tree", c.of(i), c.file(i)) == "" {
		return -1
	}
	text := c.repository.Git("show", c.of(i)+":"+c.file(i))
	if !strings.Contains(text, "name: istio-proxy") {
		c.t.Errorf("app%d has no proxy:\n%s", i, text)
	}
	_, after, _ := strings.Cut(text, "image: image:")
	n, err := strconv.Atoi(strings.Fields(after + " ?")[0])
	if err != nil {
		c.t.Fatalf("app%d: %v in\n%s", i, err, text)
	}
	return n
}

// history returns what the branch has shown of an application, oldest first.
func (c *chaos) history(i int) []int {
	var out []int
	text := c.repository.Git("log", "--reverse", "--format=", "-p", c.of(i), "--", c.file(i))
	for _, m := range imageLine.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			c.t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}
