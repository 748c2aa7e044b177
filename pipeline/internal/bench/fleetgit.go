// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// beside is the branch that git itself pushes to.
const beside = "beside"

// gitAlone performs with git itself the operations that the daemon cannot avoid, in a clone of one branch: their
// time is the lower bound for an event.
type gitAlone struct {
	f                *fleet
	branch, dir, tip string // of what is cloned, and the newest commit of the branch beside
}

// cloneSideBranch clones a branch and begins the branch beside with its commit, which both sides have then, whatever
// the daemon publishes.
func (f *fleet) cloneSideBranch(branch string) (*gitAlone, error) {
	g := &gitAlone{f: f, branch: branch, dir: filepath.Join(f.dir, "alone-"+branch), tip: branch}
	if _, err := f.r.InWork(f.ctx, "clone", "-q", "--bare", "--depth", "1", "-b", branch, f.r.URL, g.dir); err != nil {
		return nil, err
	}
	return g, g.pushCommitToHead(g.tip)
}

func (g *gitAlone) git(args ...string) (string, error) {
	return g.f.r.InWork(g.f.ctx, append([]string{"-C", g.dir}, args...)...)
}

// timeFetch fetches the newest commit of the branch.
func (g *gitAlone) timeFetch() (time.Duration, error) {
	begin := time.Now()
	_, err := g.git("fetch", "-q", "--depth", "1", "origin", g.branch)
	return time.Since(begin), err
}

// timePush pushes a commit that adds a file of an application to the branch beside.
func (g *gitAlone) timePush(i int) (took time.Duration, err error) {
	if g.tip, err = g.commitOnParent(g.tip, appName(i)+"/changed.yaml"); err != nil {
		return 0, err
	}
	begin := time.Now()
	err = g.pushCommitToHead(g.tip)
	return time.Since(begin), err
}

func (g *gitAlone) pushCommitToHead(commit string) error {
	_, err := g.git("push", "-q", "--force", "origin", commit+":refs/heads/"+beside)
	return err
}

// commitOnParent makes a commit that adds a file.
func (g *gitAlone) commitOnParent(parent, name string) (string, error) {
	content := filepath.Join(g.dir, "content")
	if err := os.WriteFile(content, []byte(parent), 0o600); err != nil {
		return "", fmt.Errorf("writing what is pushed: %w", err)
	}
	blob, err := g.git("hash-object", "-w", "content")
	if err != nil {
		return "", err
	}
	if _, err := g.git("read-tree", parent); err != nil {
		return "", err
	}
	if _, err := g.git("update-index", "--add", "--cacheinfo", "100644,"+blob+","+name); err != nil {
		return "", err
	}
	tree, err := g.git("write-tree")
	if err != nil {
		return "", err
	}
	return g.git("commit-tree", "-m", "by git itself", "-p", parent, tree)
}
