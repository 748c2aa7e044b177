// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"encoding/json"
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
)

// own writes a file into the record of a pipeline, as adopting once did although another pipeline owned it.
func own(t *testing.T, repository *gittest.Repository, pipeline, file string) {
	t.Helper()
	name := ".prerig/pipelines/" + pipeline + ".record"
	record := map[string]any{}
	if err := json.Unmarshal([]byte(repository.Git("show", "rendered:"+name)), &record); err != nil {
		t.Fatal(err)
	}
	files, _ := record["files"].([]any)
	record["files"] = append([]any{file}, files...)
	text, err := json.MarshalIndent(record, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	repository.InWork("fetch", "-q", "origin", "rendered")
	repository.InWork("checkout", "-q", "-B", "rendered", "FETCH_HEAD")
	repository.Commit("by hand", map[string]string{name: string(text) + "\n"})
}

// A file that two pipelines own since one adopted it from the other stays when the first one does not want it any more.
func TestAnAdoptedFileIsNotDeletedByWhoOwnedItBefore(t *testing.T) {
	const file = "shop/shop/configmap-a.yaml"
	for name, steps := range map[string]func(t *testing.T, b *publish.Branch, heir, without publish.Change){
		"one after the other": func(t *testing.T, b *publish.Branch, heir, without publish.Change) {
			run(t, b, heir)
			run(t, b, without)
		},
		"in one commit, the heir first": func(t *testing.T, b *publish.Branch, heir, without publish.Change) {
			run(t, b, heir, without)
		},
		"in one commit, the heir last": func(t *testing.T, b *publish.Branch, heir, without publish.Change) {
			run(t, b, without, heir)
		},
		"removed in the same commit as the heir": func(t *testing.T, b *publish.Branch, heir, _ publish.Change) {
			run(t, b, removal(t, "first", "shop"), heir)
		},
	} {
		t.Run(name, func(t *testing.T) {
			repository := gittest.New(t).Repository(t, "config")
			b := branch(t, repository, "rendered")
			run(t, b, change(t, "first", "shop", configMap("a", "1"), configMap("b", "1")), change(t, "heir", "shop", configMap("c", "1")))
			own(t, repository, "heir", file)
			heir := change(t, "heir", "shop", configMap("a", "1"), configMap("c", "1"))
			steps(t, b, heir, change(t, "first", "shop", configMap("b", "1")))
			if got := repository.Git("ls-tree", "-r", "--name-only", "rendered", file); got != file {
				t.Error("the file is gone")
			}
			run(t, b, heir)
			run(t, b, removal(t, "heir", "shop"))
			if got := repository.Git("ls-tree", "-r", "--name-only", "rendered", file); got != "" {
				t.Error("the file is left behind when its last owner is removed")
			}
		})
	}
}

// adopt takes nothing from another pipeline, whether or not its file would stay as it is.
func TestAdoptTakesNothingFromAnotherPipeline(t *testing.T) {
	for name, content := range map[string]string{"the same content": "1", "another content": "666"} {
		t.Run(name, func(t *testing.T) {
			repository := gittest.New(t).Repository(t, "config")
			b := branch(t, repository, "rendered")
			run(t, b, change(t, "team/a", "shop", configMap("a", "1")))
			thief := change(t, "other/b", "shop", configMap("a", content))
			thief.Adopt = true
			result, err := b.Publish(ctx, []publish.Change{thief})
			if err != nil || !errors.Is(result.Outcomes[0].Err, publish.ErrOfAnother) || result.Changed || strings.Contains(result.Outcomes[0].Err.Error(), "allow it with adopt") {
				t.Errorf("got %+v, %v", result, err)
			}
		})
	}
}

// What two pipelines own goes when neither wants it any more, also in one commit.
func TestAFileOfTwoGoesWithBoth(t *testing.T) {
	for name, last := range map[string]func(t *testing.T) []publish.Change{
		"both are removed": func(t *testing.T) []publish.Change {
			return []publish.Change{removal(t, "one", "shop"), removal(t, "two", "shop")}
		},
		"both go on without it": func(t *testing.T) []publish.Change {
			return []publish.Change{change(t, "one", "shop", configMap("x", "1")), change(t, "two", "shop", configMap("y", "1"))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			repository := gittest.New(t).Repository(t, "config")
			b := branch(t, repository, "rendered")
			run(t, b, change(t, "one", "shop", configMap("a", "1")), change(t, "two", "shop", configMap("b", "1")))
			own(t, repository, "two", "shop/shop/configmap-a.yaml")
			run(t, b, last(t)...)
			if got := repository.Git("ls-tree", "-r", "--name-only", "rendered", "shop/shop/configmap-a.yaml"); got != "" {
				t.Errorf("nobody owns %s", got)
			}
		})
	}
}

// A path inside of .git cannot be checked out, and nobody reads a branch with one.
func TestAPathInsideOfGitIsRefused(t *testing.T) {
	for _, at := range []string{".git", "a/.git", "a/.GIT/b", "a/.Git"} {
		repository := gittest.New(t).Repository(t, "config")
		b := branch(t, repository, "rendered")
		if result := run(t, b, change(t, "bad", at, configMap("a", "1")), change(t, "good", "good", configMap("a", "1"))); result.Outcomes[0].Err == nil || result.Outcomes[1].Err != nil {
			t.Errorf("%s: %+v", at, result)
		}
		run(t, b, change(t, "good", "good", configMap("a", "2")))
	}
}

// One pipeline's file where another one wants a directory is the error of one of them, not of all that are published with
// them.
func TestAFileAndADirectoryOfTheSameName(t *testing.T) {
	for _, turned := range []bool{false, true} {
		repository := gittest.New(t).Repository(t, "config")
		b := branch(t, repository, "rendered")
		file, dir := change(t, "file", "apps", configMap("a", "1")), change(t, "dir", "apps/shop/configmap-a.yaml", configMap("b", "1"))
		changes := []publish.Change{file, dir, change(t, "good", "good", configMap("a", "1"))}
		if turned {
			changes[0], changes[1] = dir, file
		}
		result := run(t, b, changes...)
		if result.Outcomes[0].Err != nil || result.Outcomes[1].Err == nil || result.Outcomes[2].Err != nil {
			t.Errorf("turned %v: %+v", turned, result)
		}
	}
}

// The namespace of an object is whatever a source says, also the name of another object's file.
func TestANamespaceLikeAFile(t *testing.T) {
	cluster := configMap("a", "1")
	cluster.Namespace = ""
	inside := configMap("b", "1")
	inside.Namespace = "configmap-a.yaml"
	if _, err := publish.Files([]render.Object{cluster, inside}, v1alpha1.LayoutObjects, v1alpha1.StyleCanonical); err == nil || !strings.Contains(err.Error(), "configmap-a.yaml") {
		t.Errorf("got %v", err)
	}
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "env")
	b.Propose = true
	inside.Namespace = "hydrator.metadata"
	if result := run(t, b, change(t, "bad", "bad", inside), change(t, "good", "good", configMap("a", "1"))); result.Outcomes[0].Err == nil || result.Outcomes[1].Err != nil {
		t.Errorf("got %+v", result)
	}
}

// Pipelines that share a path, or are one inside of the other, keep what they have when one of them goes.
func TestNestedPipelinesKeepTheirMetadata(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "env")
	b.Propose = true
	run(t, b, change(t, "one", "apps", configMap("a", "1")), change(t, "two", "apps", configMap("b", "1")), change(t, "in", "apps/shop", configMap("c", "1")))
	run(t, b, removal(t, "one", "apps"))
	for _, name := range []string{"apps/shop/configmap-b.yaml", "apps/hydrator.metadata", "apps/shop/hydrator.metadata", "hydrator.metadata", "apps/shop/shop/configmap-c.yaml"} {
		if got := repository.Git("ls-tree", "-r", "--name-only", "env-next", name); got != name {
			t.Errorf("%s is gone", name)
		}
	}
}

// The names of all files fit into a file system, whatever the pipeline is called.
func TestALongNameOfAPipeline(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	long := strings.Repeat("n", 250)
	one, two := change(t, "ns/"+long+"a", "a", configMap("a", "1")), change(t, "ns/"+long+"b", "b", configMap("a", "1"))
	run(t, b, one, two)
	for name := range strings.Lines(repository.Git("ls-tree", "-r", "--name-only", "rendered")) {
		if base := path.Base(strings.TrimSpace(name)); len(base) > 255 {
			t.Errorf("the file name has %d bytes: %s", len(base), base)
		}
	}
	if again := run(t, b, one, two); again.Changed {
		t.Errorf("got %+v", again)
	}
	run(t, b, removal(t, one.Pipeline, "a"))
	if got := repository.Git("ls-tree", "-d", "--name-only", "rendered", "a", "b"); got != "b" {
		t.Errorf("left are %s", got)
	}
}

// A record that still claims a file which somebody else took away must not keep it when its new owner goes.
func TestAFileTakenAwayByHandIsOwnedNoMore(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	run(t, b, change(t, "one", "shop", configMap("a", "1"), configMap("b", "1")))
	repository.InWork("fetch", "-q", "origin", "rendered")
	repository.InWork("checkout", "-q", "rendered")
	repository.Commit("by hand", map[string]string{"shop/shop/configmap-a.yaml": ""})
	run(t, b, change(t, "one", "shop", configMap("b", "1")))
	run(t, b, change(t, "two", "shop", configMap("a", "1"), configMap("c", "1")))
	run(t, b, change(t, "two", "shop", configMap("c", "1")))
	want := "shop/shop/configmap-b.yaml\nshop/shop/configmap-c.yaml"
	if got := repository.Git("ls-tree", "-r", "--name-only", "rendered", "shop"); got != want {
		t.Errorf("got %s", got)
	}
}
