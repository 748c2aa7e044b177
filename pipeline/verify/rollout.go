// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"path"
	"strings"
	"time"

	"github.com/prerig/prerig/fn/podmap"
)

// Rollout is how far the pods of some directories are on their way to the newest commit.
type Rollout struct {
	// Pods is how many pods the directories have, without foreign ones.
	Pods int
	// Behind is how many of them are not of the newest commit yet, NotReady how many of the others are not ready.
	Behind, NotReady int
	// Wrong is how many were created since the commit and are still not as committed.
	Wrong int
}

// RolloutOf returns the rollout of the workloads in directories of what was committed; "" is all of it. A pod that differs from its
// commit is wrong if it was created after since, and behind otherwise, as it has yet to be replaced.
func (r *Report) RolloutOf(dirs []string, since time.Time) (out Rollout) {
	for i := range r.Pods {
		pod := &r.Pods[i]
		if pod.File == "" || !isInDirs(pod.File, dirs) {
			continue
		}
		out.Pods++
		switch {
		case pod.State == Current || pod.State == Resized:
			if !pod.ready {
				out.NotReady++
			}
		case pod.State != Older && pod.State != Removed && pod.created.After(since):
			out.Wrong++
		default:
			out.Behind++
		}
	}
	return out
}

func isInDirs(file string, dirs []string) bool {
	for _, dir := range dirs {
		if dir = path.Clean("/" + dir); dir == "/" || strings.HasPrefix(path.Clean("/"+file), dir+"/") {
			return true
		}
	}
	return false
}

// isPodReady reports whether a pod has the condition Ready.
func isPodReady(pod map[string]any) bool {
	for _, condition := range mapsAtPath(pod, "status", "conditions") {
		if podmap.TextAt(condition, "type") == "Ready" {
			return podmap.TextAt(condition, "status") == "True"
		}
	}
	return false
}
