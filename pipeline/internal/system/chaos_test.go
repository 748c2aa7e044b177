// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/config"
)

// size of a test in which things go wrong. PRERIG_E2E=full gives the one that releases are tested with, or fewer kills and pushes with
// PRERIG_E2E_KILLS, which is 30 otherwise.
type size struct{ pushes, pipelines, kills int }

func full() bool { return os.Getenv("PRERIG_E2E") == "full" }

func sized(small size) size {
	if full() {
		kills := fullKills()
		return size{10 * kills, 20, kills}
	}
	return small
}

func fullKills() int {
	if n, err := strconv.Atoi(os.Getenv("PRERIG_E2E_KILLS")); err == nil && n > 0 {
		return n
	}
	return 30
}

// chaos is a daemon in processes of its own that are killed, and a repository with an application for each pipeline, or for
// every two where one renders what the other has published.
type chaos struct {
	*fixture
	size    size
	address string
	logs    string             // what all processes have logged
	branch  func(i int) string // of an application's result, where it is not usual

	processes []*process    // that are killed
	patience  time.Duration // how long a process may take to come up before it may be killed again
	quiet     func()        // ends what else goes wrong; nil where it goes on until the test ends
	pace      time.Duration // the longest time between two pushes
	sending   func(commit string)

	mu       sync.Mutex
	newest   []int    // per application, what was pushed last
	accepted []string // ids of the events that were answered with 202
	answers  map[int]int
}

// of returns the branch of an application's result.
func (c *chaos) of(i int) string {
	if c.branch != nil {
		return c.branch(i)
	}
	return branchOf(i)
}

// branchOf is where an application's result is.
func branchOf(i int) string { return fmt.Sprintf("rendered-%d", i%2) }

// newChaos prepares a repository with an application for each pipeline. The text is added to all of them.
func newChaos(t *testing.T, n size, more ...string) *chaos {
	t.Helper()
	c := emptyChaos(t, n, n.pipelines)
	for i := range n.pipelines {
		name := fmt.Sprintf("app%d", i)
		text := strings.Replace(pipelineYAML(name, c.repository.URL, more...), "branch: rendered", "branch: "+branchOf(i), 1)
		c.write(filepath.Join(c.c.Pipelines, name+".yaml"), text)
	}
	return c
}

// emptyChaos prepares everything but the pipelines.
func emptyChaos(t *testing.T, n size, applications int) *chaos {
	t.Helper()
	return chaosOn(prepare(t, nil), n, applications)
}

func chaosOn(f *fixture, n size, applications int) *chaos {
	t := f.t
	t.Helper()
	c := &chaos{fixture: f, size: n, newest: make([]int, applications), answers: map[int]int{}, logs: filepath.Join(t.TempDir(), "log"),
		patience: 30 * time.Second, pace: 60 * time.Millisecond}
	c.sending = func(commit string) { c.tell(commit) }
	files := map[string]string{}
	for i := range applications {
		name := fmt.Sprintf("app%d", i)
		files["apps/"+name+"/app.yaml"] = deployment(name, "image:0")
	}
	f.repository.Commit("first", files)
	c.address = free(t)
	f.c.Listen, f.c.Admin.Listen = c.address, ""
	f.c.NATS.AckWait = 2 * time.Second
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last of what the processes logged:\n%s\nand what they were doing:\n%s", c.lastLogged(40), c.stacks())
		}
	})
	return c
}

// serve adds a process to those that are killed, a daemon or a worker.
func (c *chaos) serve(configuration *config.Config, worker bool, env ...string) *process {
	c.t.Helper()
	text, err := json.Marshal(configuration)
	if err != nil {
		c.t.Fatal(err)
	}
	env = append(env, "PRERIG_TEST_DAEMON="+string(text), "PRERIG_TEST_RENDERER="+renderer(c.t)[0])
	if worker {
		env = append(env, "PRERIG_TEST_WORKER=1")
	}
	p := supervise(c.t, c.logs, env)
	c.processes = append(c.processes, p)
	return p
}

// killing kills processes at random moments until done is closed, at least the wanted number of times.
func (c *chaos) killing(done <-chan struct{}) int {
	kills := 0
	for {
		select {
		case <-done:
			if kills >= c.size.kills {
				return kills
			}
		case <-time.After(time.Duration(100+rand.IntN(1200)) * time.Millisecond):
		}
		if kills >= c.size.kills {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		p := c.processes[rand.IntN(len(c.processes))]
		if p.kill() {
			kills++
		}
		p.awaitUp(c.patience)
	}
}

// pushing pushes commits, each of which changes one or two applications, and tells the daemon once, as Git hosts do.
func (c *chaos) pushing() {
	for n := 1; n <= c.size.pushes; n++ {
		files := map[string]string{}
		for range 1 + rand.IntN(2) {
			i := rand.IntN(len(c.newest))
			c.newest[i] = n
			name := fmt.Sprintf("app%d", i)
			files["apps/"+name+"/app.yaml"] = deployment(name, fmt.Sprintf("image:%d", n))
		}
		c.sending(c.repository.Commit(fmt.Sprintf("change %d", n), files))
		time.Sleep(rand.N(c.pace))
	}
}

// tell sends an event about a commit once, and remembers its id where it was stored. It gives the status of the answer, 0
// where there was none.
func (c *chaos) tell(commit string) (status int) {
	body, err := json.Marshal(map[string]any{"git": map[string]any{"urls": []string{c.repository.URL}, "ref": "refs/heads/main", "after": commit}})
	if err != nil {
		c.t.Error(err)
		return 0
	}
	resp, err := send(c.address, body, commit)
	if err == nil {
		defer resp.Body.Close()
		status = resp.StatusCode
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[status]++
	if status != http.StatusAccepted {
		return status
	}
	// The status is the promise; an answer that was cut off after it has no id that could be looked for.
	var reply struct{ ID string }
	if json.NewDecoder(resp.Body).Decode(&reply) == nil && reply.ID != "" {
		c.accepted = append(c.accepted, reply.ID)
	}
	return status
}

// run pushes and kills, and then checks that every branch holds the newest state and that no state came twice.
func (c *chaos) run() {
	c.t.Helper()
	begin := time.Now()
	done := make(chan struct{})
	var kills int
	var group sync.WaitGroup
	group.Go(func() { kills = c.killing(done) })
	c.pushing()
	last := time.Since(begin)
	close(done)
	group.Wait()
	if c.quiet != nil {
		c.quiet()
	}
	quiet := time.Now()
	c.settle()
	caught := time.Since(quiet)
	commits, states := c.verify()
	c.t.Logf("%d pushes to %d pipelines in %s, answered with %s; %d kills, the last one %s after the last push; caught up %s later; "+
		"%d commits with %d states of applications, none twice; all of %d events that were stored are planned",
		c.size.pushes, c.size.pipelines, last.Round(time.Millisecond), c.counted(), kills,
		(quiet.Sub(begin) - last).Round(time.Millisecond), caught.Round(time.Millisecond), commits, states, len(c.accepted))
}

// counted is how often each status was the answer; 0 is for none.
func (c *chaos) counted() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.answers)
}
