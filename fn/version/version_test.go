// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestComplete(t *testing.T) {
	settings := []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}, {Key: "vcs.time", Value: "2026-11-23T20:29:00Z"}, {Key: "vcs.modified", Value: "true"},
	}
	for name, tc := range map[string]struct {
		info  Info
		build debug.BuildInfo
		want  string
	}{
		"from the repository": {Info{Version: "v1.2.3"}, debug.BuildInfo{Settings: settings},
			"prerig v1.2.3 (commit 0123456789ab-dirty of 2026-11-23, go1 linux/amd64, Istio up to 1.32)"},
		"clean": {Info{Version: "v1.2.3"}, debug.BuildInfo{Settings: settings[:2]},
			"prerig v1.2.3 (commit 0123456789ab of 2026-11-23, go1 linux/amd64, Istio up to 1.32)"},
		"without a date": {Info{Version: "v1.2.3"}, debug.BuildInfo{Settings: settings[:1]},
			"prerig v1.2.3 (commit 0123456789ab, go1 linux/amd64, Istio up to 1.32)"},
		"from the linker": {Info{Version: "v1.2.3", Commit: "fedcba9876543210", Date: "2026-01-02T03:04:05Z"}, debug.BuildInfo{Settings: settings},
			"prerig v1.2.3 (commit fedcba987654 of 2026-01-02, go1 linux/amd64, Istio up to 1.32)"},
		"from the module": {Info{}, debug.BuildInfo{Main: debug.Module{Version: "v1.2.4"}}, "prerig v1.2.4 (go1 linux/amd64, Istio up to 1.32)"},
		"of no module":    {Info{}, debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "prerig  (go1 linux/amd64, Istio up to 1.32)"},
	} {
		info := tc.info
		info.Go, info.Platform, info.Istio = "go1", "linux/amd64", "1.32"
		info.fillFromBuildInfo(&tc.build)
		if got := info.Line("prerig"); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tc.want)
		}
	}
}

func TestOf(t *testing.T) {
	info := Of("")
	if info.Version == "" || !strings.HasPrefix(info.Go, "go1.") || !strings.HasPrefix(info.Istio, "1.") || !strings.Contains(info.Platform, "/") {
		t.Errorf("%+v", info)
	}
	if Of("v1.2.3").Version != "v1.2.3" {
		t.Error("the linker's version is not the version")
	}
}
