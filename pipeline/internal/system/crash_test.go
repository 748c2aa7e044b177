// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
)

func TestKilledDaemonLosesNothing(t *testing.T) {
	c := newChaos(t, sized(size{15, 4, 3}))
	c.serve(c.c, false)
	c.run()
}

// refuse answers a share of the requests with an error of the server.
func refuse(git *gittest.Server, share float64) {
	git.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if rand.Float64() >= share {
			return false
		}
		http.Error(w, "try again later", http.StatusServiceUnavailable)
		return true
	})
}

func TestGitServerThatRefusesHalf(t *testing.T) {
	c := newChaos(t, sized(size{12, 4, 1}))
	refuse(c.git, 0.5)
	c.serve(c.c, false)
	c.run()
}

func TestAnotherWriterOnTheBranch(t *testing.T) {
	c := newChaos(t, sized(size{12, 4, 1}))
	c.serve(c.c, false)
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
