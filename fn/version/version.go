// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package version identifies the build of Prerig that a program is from.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prerig/prerig/fn/istio/release"
)

// What `make release` has the linker set. Other builds know the commit from what Go notes of the repository.
var linkedCommit, linkedDate string

// Info is what a program knows of itself.
type Info struct {
	Version string `json:"version"`
	// Commit is a Git commit in full, with -dirty after it where the tree had changes; "" where the build does not know it.
	Commit string `json:"commit,omitempty"`
	// Date is that of the commit, not of the build, so that a build can be repeated.
	Date     string `json:"date,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// Istio is the newest minor whose injection is known, such as 1.31.
	Istio string `json:"istio"`
}

// Of returns what is known about this program: its version is the one set by the linker, or otherwise that of the
// module.
func Of(linked string) Info {
	info := Info{
		Version: linked, Commit: linkedCommit, Date: linkedDate, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Istio: fmt.Sprintf("1.%d", release.NewestMinor),
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		info.fillFromBuildInfo(build)
	}
	if info.Version == "" {
		info.Version = "dev"
	}
	return info
}

// fillFromBuildInfo fills in what the linker did not set from Go's build info.
func (i *Info) fillFromBuildInfo(build *debug.BuildInfo) {
	if i.Version == "" && build.Main.Version != "(devel)" {
		i.Version = build.Main.Version
	}
	if i.Commit != "" {
		return
	}
	commit, date, dirty := "", "", ""
	for _, s := range build.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.time":
			date = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if commit != "" {
		i.Commit, i.Date = commit+dirty, date
	}
}

// ShortCommit is the commit's short id, with a mark where the tree had changes.
func (i Info) ShortCommit() string {
	id, dirty := strings.CutSuffix(i.Commit, "-dirty")
	id = id[:min(12, len(id))]
	if dirty {
		return id + "-dirty"
	}
	return id
}

// Line describes a program in one line.
func (i Info) Line(program string) string {
	commit := ""
	if i.Commit != "" {
		day, _, _ := strings.Cut(i.Date, "T")
		commit = strings.TrimSuffix(fmt.Sprintf("commit %s of %s", i.ShortCommit(), day), " of ") + ", "
	}
	return fmt.Sprintf("%s %s (%s%s %s, Istio up to %s)", program, i.Version, commit, i.Go, i.Platform, i.Istio)
}
