// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/internal/gittest"
)

// size of a test in which things go wrong. PRERIG_E2E=full gives the one that releases are tested with.
type size struct{ pushes, pipelines, kills int }

func sized(small, full size) size {
	if os.Getenv("PRERIG_E2E") == "full" {
		return full
	}
	return small
}

// chaos is a daemon in processes of its own that are killed.
type chaos struct {
	*fixture
	size    size
	address string

	mu        sync.Mutex
	processes []*process
	newest    []int // per pipeline, what was pushed last
}

type process struct {
	worker  bool
	config  *config.Config
	command *exec.Cmd
}

func newChaos(t *testing.T, n size) *chaos {
	t.Helper()
	f := prepare(t, nil)
	c := &chaos{fixture: f, size: n, newest: make([]int, n.pipelines)}
	files := map[string]string{}
	for i := range n.pipelines {
		name := fmt.Sprintf("app%d", i)
		text := pipelineYAML(name, f.repository.URL)
		text = strings.Replace(text, "branch: rendered", fmt.Sprintf("branch: rendered-%d", i%2), 1)
		f.write(filepath.Join(f.c.Pipelines, name+".yaml"), text)
		files["apps/"+name+"/app.yaml"] = deployment(name, "image:0")
	}
	f.repository.Commit("first", files)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.address = l.Addr().String()
	l.Close()
	f.c.Listen, f.c.Admin.Listen = c.address, ""
	f.c.NATS.AckWait = 2 * time.Second
	t.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, p := range c.processes {
			p.kill()
		}
	})
	return c
}

func (p *process) kill() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// launch starts a process and waits until it listens.
func (c *chaos) launch(p *process) {
	text, err := json.Marshal(p.config)
	if err != nil {
		c.t.Error(err)
		return
	}
	p.command = exec.Command(os.Args[0], "-test.run=^$")
	p.command.Env = append(os.Environ(), "PRERIG_TEST_DAEMON="+string(text))
	if p.worker {
		p.command.Env = append(p.command.Env, "PRERIG_TEST_WORKER=1")
	}
	if os.Getenv("PRERIG_TEST_LOGS") != "" {
		p.command.Stderr = os.Stderr
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		c.t.Error(err)
		return
	}
	if err := p.command.Start(); err != nil {
		c.t.Error(err)
		return
	}
	if !p.worker {
		_, _ = bufio.NewReader(out).ReadString('\n')
	}
}

func (c *chaos) add(p *process) {
	c.launch(p)
	c.mu.Lock()
	c.processes = append(c.processes, p)
	c.mu.Unlock()
}

// killing kills and restarts processes at random moments until done is closed, at least the wanted number of times.
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
			continue
		}
		c.mu.Lock()
		p := c.processes[rand.IntN(len(c.processes))]
		p.kill()
		c.launch(p)
		kills++
		c.mu.Unlock()
	}
}

// pushing pushes commits, each of which changes one or two applications, and tells the daemon once, as Git hosts do.
func (c *chaos) pushing() (told int) {
	for n := 1; n <= c.size.pushes; n++ {
		files := map[string]string{}
		for range 1 + rand.IntN(2) {
			i := rand.IntN(c.size.pipelines)
			c.newest[i] = n
			name := fmt.Sprintf("app%d", i)
			files["apps/"+name+"/app.yaml"] = deployment(name, fmt.Sprintf("image:%d", n))
		}
		commit := c.repository.Commit(fmt.Sprintf("change %d", n), files)
		body, _ := json.Marshal(map[string]any{"git": map[string]any{"urls": []string{c.repository.URL}, "ref": "refs/heads/main", "after": commit}})
		if status, err := post(c.address, body, commit); err == nil && status == http.StatusAccepted {
			told++
		}
		time.Sleep(time.Duration(rand.IntN(60)) * time.Millisecond)
	}
	return told
}

// run pushes and kills, and then checks that every branch holds the newest state and that no state came twice.
func (c *chaos) run() {
	c.t.Helper()
	begin := time.Now()
	done := make(chan struct{})
	var kills int
	var group sync.WaitGroup
	group.Go(func() { kills = c.killing(done) })
	told := c.pushing()
	close(done)
	group.Wait()
	pushed := time.Now()
	for i, n := range c.newest {
		c.eventually(fmt.Sprintf("waiting for app%d to show %d", i, n), func() string {
			if got := c.shown(i); got != n {
				return fmt.Sprintf("it shows %d", got)
			}
			return ""
		})
	}
	caught := time.Since(pushed)
	commits := 0
	for i := range c.newest {
		history := c.history(i)
		commits += len(history)
		for j := 1; j < len(history); j++ {
			if history[j] <= history[j-1] {
				c.t.Errorf("app%d shows %d after %d: %v", i, history[j], history[j-1], history)
			}
		}
	}
	for branch := range 2 {
		name := fmt.Sprintf("rendered-%d", branch)
		if trees := strings.Fields(c.repository.Git("log", "--format=%T", name)); true {
			for j := 1; j < len(trees); j++ {
				if trees[j] == trees[j-1] {
					c.t.Errorf("%s has a commit that changes nothing", name)
				}
			}
		}
	}
	c.t.Logf("%d pushes (%d answered with 202) to %d pipelines, %d kills: %s of pushing, caught up %s later, %d changes of applications committed",
		c.size.pushes, told, c.size.pipelines, kills, pushed.Sub(begin).Round(time.Millisecond), caught.Round(time.Millisecond), commits)
}

var imageLine = regexp.MustCompile(`(?m)^\+.* image: image:(\d+)$`)

func (c *chaos) file(i int) string { return fmt.Sprintf("app%d/shop/deployment-app%[1]d.yaml", i) }

func (c *chaos) shown(i int) int {
	branch := fmt.Sprintf("rendered-%d", i%2)
	if c.repository.Git("branch", "--list", branch) == "" || c.repository.Git("ls-tree", branch, c.file(i)) == "" {
		return -1
	}
	text := c.repository.Git("show", branch+":"+c.file(i))
	_, after, _ := strings.Cut(text, "image: image:")
	n, _ := strconv.Atoi(strings.Fields(after)[0])
	return n
}

// history gives what the branch has shown of an application, oldest first.
func (c *chaos) history(i int) []int {
	var out []int
	text := c.repository.Git("log", "--reverse", "--format=", "-p", fmt.Sprintf("rendered-%d", i%2), "--", c.file(i))
	for _, m := range imageLine.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		out = append(out, n)
	}
	return out
}

func TestKilledDaemonLosesNothing(t *testing.T) {
	c := newChaos(t, sized(size{15, 4, 3}, size{300, 20, 30}))
	c.add(&process{config: c.c})
	c.run()
}

// refuse answers a share of the requests with an error of the server.
func refuse(git *gittest.Server, share float64) {
	git.Intercept = func(w http.ResponseWriter, _ *http.Request) bool {
		if rand.Float64() >= share {
			return false
		}
		http.Error(w, "try again later", http.StatusServiceUnavailable)
		return true
	}
}

func TestGitServerThatRefusesHalf(t *testing.T) {
	c := newChaos(t, sized(size{12, 4, 1}, size{300, 20, 30}))
	refuse(c.git, 0.5)
	c.add(&process{config: c.c})
	c.run()
}

func TestAnotherWriterOnTheBranch(t *testing.T) {
	c := newChaos(t, sized(size{12, 4, 1}, size{300, 20, 30}))
	c.add(&process{config: c.c})
	stop := make(chan struct{})
	var group sync.WaitGroup
	writes := 0
	group.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(20+rand.IntN(80)) * time.Millisecond):
			}
			if otherWrites(c, fmt.Sprintf("rendered-%d", rand.IntN(2)), writes) {
				writes++
			}
		}
	})
	c.run()
	close(stop)
	group.Wait()
	// What the other has written is still there.
	found := 0
	for branch := range 2 {
		found += len(strings.Fields(c.repository.Git("ls-tree", "-r", "--name-only", fmt.Sprintf("rendered-%d", branch), "other/")))
	}
	if found != writes || writes == 0 {
		t.Errorf("%d files of the other writer are there, it wrote %d", found, writes)
	}
	t.Logf("the other writer made %d commits", writes)
}

// otherWrites adds a file to a branch as somebody else would, and says whether the branch had not moved meanwhile.
func otherWrites(c *chaos, branch string, n int) bool {
	git := func(stdin string, args ...string) (string, error) {
		command := exec.Command("git", args...)
		command.Dir = c.repository.Bare
		command.Stdin = strings.NewReader(stdin)
		command.Env = append(os.Environ(), "GIT_INDEX_FILE="+filepath.Join(c.t.TempDir(), "index"), "GIT_AUTHOR_NAME=o", "GIT_AUTHOR_EMAIL=o@o",
			"GIT_COMMITTER_NAME=o", "GIT_COMMITTER_EMAIL=o@o")
		out, err := command.Output()
		return strings.TrimSpace(string(out)), err
	}
	head, err := git("", "rev-parse", "--verify", "-q", "refs/heads/"+branch)
	if err != nil {
		return false
	}
	blob, err := git(fmt.Sprint(n), "hash-object", "-w", "--stdin")
	if err != nil {
		return false
	}
	tree, err := git("", "ls-tree", "-r", head)
	if err != nil {
		return false
	}
	// The index is made anew for each commit, from the listing.
	index := filepath.Join(c.t.TempDir(), "index")
	run := func(stdin string, args ...string) (string, error) {
		command := exec.Command("git", args...)
		command.Dir, command.Stdin = c.repository.Bare, strings.NewReader(stdin)
		command.Env = append(os.Environ(), "GIT_INDEX_FILE="+index, "GIT_AUTHOR_NAME=o", "GIT_AUTHOR_EMAIL=o@o", "GIT_COMMITTER_NAME=o", "GIT_COMMITTER_EMAIL=o@o")
		out, err := command.Output()
		return strings.TrimSpace(string(out)), err
	}
	if _, err := run(fmt.Sprintf("%s\n100644 blob %s\tother/%d\n", tree, blob, n), "update-index", "--add", "--index-info"); err != nil {
		return false
	}
	root, err := run("", "write-tree")
	if err != nil {
		return false
	}
	commit, err := run("", "commit-tree", root, "-p", head, "-m", "other")
	if err != nil {
		return false
	}
	_, err = run("", "update-ref", "refs/heads/"+branch, commit, head)
	return err == nil
}
