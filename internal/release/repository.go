// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// revision is what is released.
type revision struct {
	commit string
	time   time.Time // of the commit
	goes   string    // the version of Go that builds it
	// previous is the tag of the previous release, or "" if none exists, and subjects are those of the commits
	// since, newest first.
	previous string
	subjects []string
}

// date returns the time of the commit, as written to the artifacts.
func (r *revision) date() string { return r.time.Format(time.RFC3339) }

// readRevision rejects a work tree that differs from its commit.
func readRevision(ctx context.Context, root, version string) (*revision, error) {
	changed, err := runGitCommand(ctx, root, "status", "--porcelain", "--untracked-files=normal")
	if err != nil {
		return nil, err
	}
	if changed != "" {
		lines := strings.Split(changed, "\n")
		return nil, fmt.Errorf("the tree has changes that are not committed, and the release could not be reproduced: commit or remove them: %s",
			strings.Join(lines[:min(5, len(lines))], ", "))
	}
	commit, err := runGitCommand(ctx, root, "rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	tagged, err := runGitCommand(ctx, root, "rev-parse", "--verify", "--quiet", "refs/tags/"+version+"^{commit}")
	if err == nil && tagged != commit {
		return nil, fmt.Errorf("the tag %s is of commit %s, and HEAD is %s: check out the tag, or choose another version", version, tagged, commit)
	}
	seconds, err := runGitCommand(ctx, root, "log", "-1", "--format=%ct")
	if err != nil {
		return nil, err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("reading the commit's time: %w", err)
	}
	r := &revision{commit: commit, time: time.Unix(unix, 0).UTC()}
	// The tag itself may exist already; the previous release is another one.
	if r.previous, err = runGitCommand(ctx, root, "describe", "--tags", "--abbrev=0", "--match=v*", "--exclude="+version); err != nil {
		r.previous = ""
	}
	between := "HEAD"
	if r.previous != "" {
		between = r.previous + "..HEAD"
	}
	subjects, err := runGitCommand(ctx, root, "log", "--no-merges", "--format=%s", between)
	if err != nil {
		return nil, err
	}
	if subjects != "" {
		r.subjects = strings.Split(subjects, "\n")
	}
	r.goes, err = commandOutput(ctx, root, goEnvironment(Platform{}), "go", "env", "GOVERSION")
	return r, err
}

func runGitCommand(ctx context.Context, dir string, args ...string) (string, error) {
	return commandOutput(ctx, dir, append(os.Environ(), "LC_ALL=C", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"), "git", args...)
}

// commandOutput runs a program and returns what it prints.
func commandOutput(ctx context.Context, dir string, env []string, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	var stdout, stderr bytes.Buffer
	command.Dir, command.Env, command.Stdout, command.Stderr = dir, env, &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("running %s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimRight(stdout.String(), "\n"), nil
}
