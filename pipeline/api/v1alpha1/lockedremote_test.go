// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// Remote bases and files are read as they are written, and a base is found by every way to write its repository.
func TestLockOfRemotesRoundTrip(t *testing.T) {
	commit, digest := strings.Repeat("a", 40), "sha256:"+strings.Repeat("b", 64)
	lock := v1alpha1.NewChartLock(v1alpha1.ChartLockSpec{
		Bases: []v1alpha1.LockedBase{{Repository: "https://git.example.com/a/b", Ref: "v1", Commit: commit}, {Repository: "https://git.example.com/a/b", Commit: commit}},
		Files: []v1alpha1.LockedFile{{URL: "https://files.example.com/x.yaml", Digest: digest}},
	})
	data, err := v1alpha1.MarshalChartLock(lock)
	if err != nil {
		t.Fatal(err)
	}
	back, err := v1alpha1.ParseChartLock(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lock, back); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	for _, url := range []string{"https://git.example.com/a/b.git", "git@git.example.com:a/b", "ssh://git@GIT.example.com/a/b/"} {
		address, err := giturl.ParseAddress(url)
		if err != nil {
			t.Fatal(err)
		}
		if found := back.FindBase(address, "v1"); found == nil || found.Commit != commit {
			t.Errorf("%s: found %v", url, found)
		}
		if found := back.FindBase(address, "v2"); found != nil {
			t.Errorf("%s: found %v", url, found)
		}
	}
	if back.FindFile("https://files.example.com/x.yaml") == nil || back.FindFile("https://files.example.com/y.yaml") != nil {
		t.Error("the file is not found, or another one is")
	}
}

func TestLockOfRemotesProblems(t *testing.T) {
	commit, digest := strings.Repeat("a", 40), "sha256:"+strings.Repeat("b", 64)
	lock := func(list, fields string) string {
		return "apiVersion: prerig.dev/v1alpha1\nkind: ChartLock\nmetadata: {name: charts}\nspec:\n  " + list + ":\n  - {" + fields + "}\n"
	}
	base, file := "repository: \"https://git.example.com/a/b\", ref: v1, commit: "+commit, "url: \"https://files.example.com/x.yaml\", digest: \""+digest+"\""
	for text, want := range map[string]string{
		lock("bases", strings.Replace(base, "/b\"", "/b.git\"", 1)):       "must be a repository such as",
		lock("bases", strings.Replace(base, "//git", "//user:pw@git", 1)): "must be a repository such as",
		lock("bases", strings.Replace(base, commit, "main", 1)):           `"main" is not a commit`,
		lock("bases", base) + "  - {" + base + "}\n":                      "spec.bases[0] locks the same ref",
		lock("files", strings.Replace(file, "https", "ftp", 1)):           "must be a URL with https://",
		lock("files", strings.Replace(file, "sha256", "md5", 1)):          "is not a digest",
		lock("files", file) + "  - {" + file + "}\n":                      "spec.files[0] locks the same file",
	} {
		if _, err := v1alpha1.ParseChartLock([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
