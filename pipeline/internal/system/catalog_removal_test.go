// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/server"
)

const deletes = "  deletionPolicy: Delete\n"

// removable has pipelines in a directory, each of which renders an application of its own name.
func removable(t *testing.T, policy string, names ...string) *fixture {
	t.Helper()
	f := prepare(t, nil)
	f.c.Removals.Delay = 300 * time.Millisecond
	files := map[string]string{}
	for _, name := range names {
		f.write(filepath.Join(f.c.Pipelines, name+".yaml"), pipelineYAML(name, f.repository.URL, policy))
		files["apps/"+name+"/app.yaml"] = deployment(name, name+":1")
	}
	f.repository.Commit("first", files)
	return f
}

func (f *fixture) drop(name string) {
	f.t.Helper()
	if err := os.Remove(filepath.Join(f.c.Pipelines, name+".yaml")); err != nil {
		f.t.Fatal(err)
	}
}

// removed waits until a pipeline was removed and gives what became of it.
func (f *fixture) removed(name string) string {
	f.t.Helper()
	message := ""
	f.eventually("waiting for "+name+" to be removed", func() string {
		c := f.catalog()
		for _, r := range c.Removed {
			if r.Pipeline == "team/"+name {
				message = r.Message
				return ""
			}
		}
		return fmt.Sprintf("%+v", c.Removals)
	})
	return message
}

// removal waits until a pipeline that is gone is in a state.
func (f *fixture) removal(name, state string) prune.Removal {
	f.t.Helper()
	var found prune.Removal
	f.eventually("waiting for the removal of "+name+" to be "+state, func() string {
		c := f.catalog()
		for _, found = range c.Removals {
			if found.Pipeline == "team/"+name && found.State == state {
				return ""
			}
		}
		return fmt.Sprintf("%+v", c)
	})
	return found
}

// confirm does what prerig daemon remove does.
func (f *fixture) confirm(request server.RemoveRequest) {
	f.t.Helper()
	token, err := os.ReadFile(f.c.TokenFile())
	if err != nil {
		f.t.Fatal(err)
	}
	body, err := json.Marshal(request)
	if err != nil {
		f.t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodPost, "http://"+f.page+"/api/v1/remove", bytes.NewReader(body))
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		f.t.Fatalf("%s: %s", resp.Status, text)
	}
}

func (f *fixture) allShow(names ...string) {
	f.t.Helper()
	for _, name := range names {
		f.shows(name+"/shop/deployment-"+name+".yaml", "image: "+name+":1")
	}
	f.allReady(len(names))
}

func (f *fixture) files() string {
	f.t.Helper()
	return f.repository.Git("ls-tree", "-r", "--name-only", "rendered")
}

func TestARemovedPipelineTakesItsFilesAlong(t *testing.T) {
	f := removable(t, deletes, "web", "api", "jobs")
	f.start()
	f.allShow("web", "api", "jobs")
	before := f.commits()
	f.drop("api")
	if got := f.removed("api"); !strings.Contains(got, "deleted 1 file from") {
		t.Errorf("it says %q", got)
	}
	want := ".prerig/README.md\n.prerig/pipelines/team__jobs.record\n.prerig/pipelines/team__web.record\n" +
		"jobs/shop/deployment-jobs.yaml\nweb/shop/deployment-web.yaml"
	if got := f.files(); got != want {
		t.Errorf("the branch holds\n%s", got)
	}
	message := f.repository.Git("log", "-1", "--format=%B", "rendered")
	for _, text := range []string{"Remove api: its pipeline was deleted\n", "Prerig-Removed: team/api\n", "Prerig-Version: test"} {
		if !strings.Contains(message, text) {
			t.Errorf("the message lacks %q:\n%s", text, message)
		}
	}
	// Nothing is left of it anywhere.
	if got := f.states(); len(got) != 2 {
		t.Errorf("pipelines: %v", got)
	}
	f.metricsShow("prerig_removed_pipelines_total 1", `prerig_pipelines{state="Ready"} 2`, `prerig_removals{state="Held"} 0`, "prerig_catalog_readable 1")
	if got := f.commits(); got != before+1 {
		t.Errorf("%d commits, then %d", before, got)
	}
	// It comes back as if it had never been there.
	f.write(filepath.Join(f.c.Pipelines, "api.yaml"), pipelineYAML("api", f.repository.URL, deletes))
	f.allShow("web", "api", "jobs")
	if runs := f.pipelines("team/api")[0].Runs; len(runs) != 1 {
		t.Errorf("it has %d runs", len(runs))
	}
}

func TestFilesOfARemovedPipelineStayByDefault(t *testing.T) {
	f := removable(t, "", "web", "api")
	f.start()
	f.allShow("web", "api")
	before := f.commits()
	f.drop("api")
	if got := f.removed("api"); !strings.Contains(got, "left as it is: "+f.repository.URL+" rendered api") {
		t.Errorf("it says %q", got)
	}
	if got := f.rendered("api/shop/deployment-api.yaml"); !strings.Contains(got, "image: api:1") || f.commits() != before {
		t.Errorf("%d commits, the file:\n%s", f.commits()-before, got)
	}
	f.eventually("waiting for the removal to be forgotten, which comes after it is told of", func() string {
		if got := f.catalog().Removals; len(got) != 0 {
			return fmt.Sprintf("left: %+v", got)
		}
		return ""
	})
}

// TestManyAtOnceWaitForAWord empties the directory, as a mount that failed does, and then leaves one in.
func TestManyAtOnceWaitForAWord(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	f := removable(t, deletes, names...)
	f.start()
	f.allShow(names...)
	before := f.commits()
	for _, name := range names {
		f.drop(name)
	}
	if r := f.removal("f", prune.Held); !strings.Contains(r.Message, "no pipeline is left at all") {
		t.Errorf("it says %q", r.Message)
	}
	f.write(filepath.Join(f.c.Pipelines, "f.yaml"), pipelineYAML("f", f.repository.URL, deletes))
	// A restart is no word.
	f.stop()
	f.start()
	f.removal("a", prune.Held)
	if f.commits() != before {
		t.Fatal("something was removed")
	}
	f.confirm(server.RemoveRequest{Pipelines: []string{"team/a", "team/b"}})
	f.confirm(server.RemoveRequest{Pipelines: []string{"team/c"}, Orphan: true})
	f.removed("a")
	f.removed("b")
	f.removed("c")
	// Those that went with them are not let go by the others' being dealt with.
	time.Sleep(2 * time.Second)
	f.removal("d", prune.Held)
	f.write(filepath.Join(f.c.Pipelines, "d.yaml"), pipelineYAML("d", f.repository.URL, deletes))
	f.becomes("team/d", server.StateReady)
	if r := f.catalog().Removals; len(r) != 1 || r[0].Pipeline != "team/e" {
		t.Errorf("waiting: %+v", r)
	}
	want := ".prerig/README.md\n.prerig/pipelines/team__c.record\n.prerig/pipelines/team__d.record\n.prerig/pipelines/team__e.record\n" +
		".prerig/pipelines/team__f.record\nc/shop/deployment-c.yaml\nd/shop/deployment-d.yaml\ne/shop/deployment-e.yaml\nf/shop/deployment-f.yaml"
	if got := f.files(); got != want {
		t.Errorf("the branch holds\n%s", got)
	}
}

// TestTooManyAtOnce leaves some of them in, as somebody does who moves a directory away.
func TestTooManyAtOnce(t *testing.T) {
	f := removable(t, deletes, "a", "b", "c", "d", "e", "f")
	f.start()
	f.allShow("a", "b", "c", "d", "e", "f")
	for _, name := range []string{"a", "b", "c", "d"} {
		f.drop(name)
	}
	if r := f.removal("d", prune.Held); !strings.Contains(r.Message, "4 of 6 pipelines were deleted at once, more than removals.max_share (50 %)") {
		t.Errorf("it says %q", r.Message)
	}
	f.confirm(server.RemoveRequest{All: true})
	for _, name := range []string{"a", "b", "c", "d"} {
		f.removed(name)
	}
	// Those that are removed at the same time go with one commit; how many that are depends on how busy the machine is.
	gone := f.repository.Git("log", "--format=%s%n%b", "--grep=^Remove ", "rendered")
	for _, name := range []string{"a", "b", "c", "d"} {
		if strings.Count(gone, publish.TrailerRemoved+": team/"+name+"\n") != 1 {
			t.Errorf("team/%s is not removed by one commit:\n%s", name, gone)
		}
	}
}

// TestNothingGoesWhileAFileCannotBeRead: the pipeline may be in that file.
func TestNothingGoesWhileAFileCannotBeRead(t *testing.T) {
	f := removable(t, deletes, "web", "api")
	f.start()
	f.allShow("web", "api")
	f.write(filepath.Join(f.c.Pipelines, "new.yaml"), "apiVersion: prerig.dev/v1alpha1\nkind: [RenderPipeline\n")
	f.drop("api")
	if r := f.removal("api", prune.Held); !strings.Contains(r.Message, "new.yaml is not valid") {
		t.Errorf("it says %q", r.Message)
	}
	f.write(filepath.Join(f.c.Pipelines, "new.yaml"), pipelineYAML("api", f.repository.URL, deletes))
	f.becomes("team/api", server.StateReady)
	if got := f.catalog(); len(got.Removals)+len(got.Removed) > 0 {
		t.Errorf("a pipeline that only moved: %+v", got)
	}
}

// TestOneTenantHoldsNoOthersRemovals neither by a file that cannot be read, nor by taking away many pipelines at once, also after a
// restart; its own are held.
func TestOneTenantHoldsNoOthersRemovals(t *testing.T) {
	f := prepare(t, nil)
	f.c.Removals.Delay = 300 * time.Millisecond
	f.c.Tenants = []config.Tenant{{Directory: "evil", Namespaces: []string{"evil"}}, {Directory: "team", Namespaces: []string{"team"}}}
	applications := map[string]string{}
	add := func(namespace, name string) {
		text := strings.Replace(pipelineYAML(name, f.repository.URL, deletes), "namespace: team", "namespace: "+namespace, 1)
		f.write(filepath.Join(f.c.Pipelines, namespace, name+".yaml"), text)
		applications["apps/"+name+"/app.yaml"] = deployment(name, name+":1")
	}
	for _, name := range []string{"web", "api", "jobs"} {
		add("team", name)
	}
	evil := []string{"e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8"}
	for _, name := range evil {
		add("evil", name)
	}
	f.repository.Commit("first", applications)
	f.start()
	f.allReady(11)
	f.write(filepath.Join(f.c.Pipelines, "evil", "broken.yaml"), "apiVersion: prerig.dev/v1alpha1\nkind: [RenderPipeline\n")
	for _, name := range evil[:7] {
		f.drop(filepath.Join("evil", name))
	}
	f.drop("team/web")
	f.removed("web")
	f.drop("team/api")
	f.stop()
	f.start()
	f.removed("api")
	held := func(because string) {
		t.Helper()
		f.eventually("waiting for the others to be held", func() string {
			c := f.catalog()
			for _, r := range c.Removals {
				if r.State != prune.Held || !strings.Contains(r.Message, because) {
					return fmt.Sprintf("%+v", r)
				}
			}
			if len(c.Removals) != 7 {
				return fmt.Sprintf("%+v", c)
			}
			return ""
		})
	}
	held("evil/broken.yaml is not valid")
	f.drop("evil/broken")
	held("7 of 8 pipelines were deleted at once")
	if got := f.files(); !strings.Contains(got, "e1/") || strings.Contains(got, "web/") || strings.Contains(got, "api/") || !strings.Contains(got, "jobs/") {
		t.Errorf("there are:\n%s", got)
	}
}

// TestARenamedPipelineGoesOnWhereTheOldOneWas: at no moment is its file away, as that would delete it from clusters.
func TestARenamedPipelineGoesOnWhereTheOldOneWas(t *testing.T) {
	for _, policy := range []string{"Delete", "Orphan"} {
		t.Run(policy, func(t *testing.T) {
			f := removable(t, "  deletionPolicy: "+policy+"\n", "web", "api")
			f.start()
			f.allShow("web", "api")
			text := pipelineYAML("api", f.repository.URL, "  deletionPolicy: "+policy+"\n")
			text = strings.Replace(text, "name: api", "name: backend", 1)
			text = strings.Replace(text, "branch: rendered", "branch: rendered, path: api", 1)
			f.write(filepath.Join(f.c.Pipelines, "api.yaml"), text) // of two files, one could be gone for longer than removals wait
			f.becomes("team/backend", server.StateReady)
			f.removed("api")
			const file = "api/shop/deployment-api.yaml"
			if got := f.rendered(file); !strings.Contains(got, "image: api:1") {
				t.Errorf("the file: %q", got)
			}
			if got := f.repository.Git("log", "--format=%s", "--diff-filter=D", "rendered", "--", file); got != "" {
				t.Errorf("it was deleted by %s", got)
			}
			f.push(f.repository.Commit("second", map[string]string{"apps/api/app.yaml": deployment("api", "api:2")}))
			f.shows(file, "image: api:2")
		})
	}
}

// TestWhatIsLeftWaitsForARenamedPipeline that cannot be built at first: forgotten too early, the files of the old one would be those
// of a pipeline that nobody knows, which the new one may not write.
func TestWhatIsLeftWaitsForARenamedPipeline(t *testing.T) {
	f := removable(t, "  deletionPolicy: Orphan\n", "web", "api")
	f.start()
	f.allShow("web", "api")
	text := pipelineYAML("backend", f.repository.URL, "  deletionPolicy: Orphan\n")
	text = strings.Replace(text, "branch: rendered", "branch: rendered, path: api", 1)
	f.write(filepath.Join(f.c.Pipelines, "api.yaml"), text)
	f.becomes("team/backend", server.StateStalled)
	f.eventually("waiting for the removal to say what it waits for", func() string {
		if r := f.removal("api", prune.Removing); !strings.Contains(r.Message, "waiting for pipeline team/backend") {
			return r.Message
		}
		return ""
	})
	f.push(f.repository.Commit("second", map[string]string{"apps/backend/app.yaml": deployment("api", "api:2")}))
	f.becomes("team/backend", server.StateReady)
	f.shows("api/shop/deployment-api.yaml", "image: api:2")
	f.removed("api")
}

// TestABranchThatIsNotPublishedToAnyMore gives a pipeline another branch and path, with another pipeline on the old one.
func TestABranchThatIsNotPublishedToAnyMore(t *testing.T) {
	for policy, want := range map[string]string{"Delete": "deleted 1 file from", "Orphan": "left as it is: "} {
		t.Run(policy, func(t *testing.T) {
			more := "  deletionPolicy: " + policy + "\n"
			f := removable(t, more, "web", "api")
			f.start()
			f.allShow("web", "api")
			moved := strings.Replace(pipelineYAML("api", f.repository.URL, more), "branch: rendered", "branch: elsewhere, path: there", 1)
			f.write(filepath.Join(f.c.Pipelines, "api.yaml"), moved)
			f.eventually("waiting for the run", func() string { return missing(f.pipelines("team/api")[0].Runs[0].Message, want) })
			if got := f.repository.Git("show", "elsewhere:there/shop/deployment-api.yaml"); !strings.Contains(got, "image: api:1") {
				t.Errorf("at the new place: %s", got)
			}
			held := ".prerig/README.md\n.prerig/pipelines/team__web.record\nweb/shop/deployment-web.yaml"
			if policy == "Orphan" {
				held = ".prerig/README.md\n.prerig/pipelines/team__api.record\n.prerig/pipelines/team__web.record\n" +
					"api/shop/deployment-api.yaml\nweb/shop/deployment-web.yaml"
			}
			if got := f.files(); got != held {
				t.Errorf("the old branch holds\n%s", got)
			}
			if got := f.pipelines("team/api")[0].Status.Published; len(got) != 1 || !strings.HasSuffix(got[0].Target, " elsewhere there") {
				t.Errorf("published: %+v", got)
			}
			// It is dealt with once.
			f.push(f.repository.Commit("second", map[string]string{"apps/api/app.yaml": deployment("api", "api:2")}))
			f.eventually("waiting for the next run", func() string { return missing(f.pipelines("team/api")[0].Runs[0].Message, "1 changed") })
			if got := f.pipelines("team/api")[0].Runs[0].Message; strings.Contains(got, want) {
				t.Errorf("it says again %q", got)
			}
		})
	}
}
