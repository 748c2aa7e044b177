// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/statetest"
	"github.com/prerig/prerig/pipeline/internal/testbed"
	"github.com/prerig/prerig/pipeline/server"
)

var (
	recordProgram = flag.String("record-program", "", "an older prerig, whose state is recorded")
	recordAs      = flag.String("record-as", "", "the name of what is recorded")
)

// TestRecordState has an older version work, and keeps what it leaves in testdata/states for TestTakesOverOlderState.
func TestRecordState(t *testing.T) {
	if *recordProgram == "" || *recordAs == "" {
		t.Skip("-record-program and -record-as are not set; testdata/states/README.md says how states are recorded")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	dir := statetest.Dir(t)
	git := gittest.NewAt(t, takeoverAddress)
	repository := git.Repository(t, "config")
	pipelines, first := map[string]string{}, map[string]string{}
	for _, name := range takeoverNames {
		pipelines[name+".yaml"] = takeoverPipeline(name, repository.URL)
		first["apps/"+name+"/web.yaml"] = deployment(name, name+":1")
	}
	repository.Commit("first", first)
	if err := testbed.Write(dir, map[string]string{"policies/mesh.yaml": takeoverPolicy}); err != nil {
		t.Fatal(err)
	}
	d, err := testbed.Serve(ctx, *recordProgram, dir, pipelines)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{t: t, dir: dir}
	r.await("all published", func(all map[string]server.Pipeline) bool {
		for _, name := range takeoverNames {
			if len(all["team/"+name].Status.Published) == 0 {
				return false
			}
		}
		return true
	})
	r.prerig("suspend", "team/paused")
	if out, err := r.try("hold", "team/held", "--reason", "the new cache leaks"); err != nil && !strings.Contains(out, "no command hold") {
		t.Fatal(out)
	}
	second := repository.Commit("second", map[string]string{
		"apps/web/web.yaml": deployment("web", "web:2"), "apps/paused/web.yaml": deployment("paused", "paused:2"),
		"apps/held/web.yaml": deployment("held", "held:2"), "apps/broken/web.yaml": "kind: [\n",
	})
	if code, err := d.Push(ctx, repository.URL, second); err != nil || code/100 != 2 {
		t.Fatalf("the webhook was answered with %d, %v", code, err)
	}
	told := r.await("the second commit", func(all map[string]server.Pipeline) bool {
		web := all["team/web"]
		return all["team/broken"].State != server.StateReady && len(web.Runs) > 1 && web.Runs[0].Outcome == "Published" &&
			strings.HasSuffix(web.Runs[0].Revision, second)
	})
	if err := d.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, takeoverPipelines), told, 0o600); err != nil {
		t.Fatal(err)
	}
	repository.Git("repack", "-q", "-a", "-d")
	if err := os.CopyFS(filepath.Join(dir, takeoverRepositories, "config.git"), os.DirFS(repository.Bare)); err != nil {
		t.Fatal(err)
	}
	if err := packTarGz(dir, filepath.Join("testdata", "states", *recordAs+".tar.gz")); err != nil {
		t.Fatal(err)
	}
}

// recorder talks to the older daemon.
type recorder struct {
	t   *testing.T
	dir string
}

func (r *recorder) try(args ...string) (string, error) {
	out, err := exec.CommandContext(r.t.Context(), *recordProgram, append(args, "--state", filepath.Join(r.dir, "state"))...).CombinedOutput()
	return string(out), err
}

func (r *recorder) prerig(args ...string) {
	r.t.Helper()
	if out, err := r.try(args...); err != nil {
		r.t.Fatalf("prerig %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// await waits until pipelines are as wanted, and returns what was told of them.
func (r *recorder) await(what string, wanted func(map[string]server.Pipeline) bool) []byte {
	r.t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		var told json.RawMessage
		overSocket(r.t, filepath.Join(r.dir, "state", "prerig.sock"), http.MethodGet, "/api/v1/pipelines?pipeline="+strings.Join(takeoverKeys(), "&pipeline="), nil, &told)
		var list []server.Pipeline
		if err := json.Unmarshal(told, &list); err != nil {
			r.t.Fatal(err)
		}
		all := map[string]server.Pipeline{}
		for _, p := range list {
			all[p.Name] = p
		}
		if wanted(all) {
			var out bytes.Buffer
			if err := json.Indent(&out, told, "", " "); err != nil {
				r.t.Fatal(err)
			}
			return out.Bytes()
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("waiting for %s: %s", what, told)
		}
	}
}

// packTarGz packs the files of a directory, but for keys and sockets, which the next start makes anew.
func packTarGz(dir, archive string) (err error) {
	if err := os.MkdirAll(filepath.Dir(archive), 0o755); err != nil {
		return err
	}
	file, err := os.Create(archive)
	if err != nil {
		return err
	}
	compressed, _ := gzip.NewWriterLevel(file, gzip.BestCompression)
	to := tar.NewWriter(compressed)
	defer func() { err = errors.Join(err, to.Close(), compressed.Close(), file.Close()) }()
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil || path == dir || !info.IsDir() && !info.Mode().IsRegular() {
			return err
		}
		name := d.Name()
		switch {
		case name == "hook.key", name == "admin.token", name == "prerig.yaml" && filepath.Dir(path) == dir, strings.HasSuffix(name, ".sample"):
			return nil
		}
		header, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		header.Name, header.Uid, header.Gid, header.Uname, header.Gname = filepath.ToSlash(relative), 0, 0, "", ""
		if err := to.WriteHeader(header); err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = to.Write(text)
		return err
	})
}

func unpackTarGz(t *testing.T, archive, dir string) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	compressed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	unpackFrom(t, compressed, dir)
}

// unpackFrom unpacks a tar with the modes that its files had.
func unpackFrom(t *testing.T, from io.Reader, dir string) {
	t.Helper()
	reader := tar.NewReader(from)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if !filepath.IsLocal(header.Name) {
			t.Fatalf("%s leads out of the archive", header.Name)
		}
		path := filepath.Join(dir, header.Name)
		if header.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, header.FileInfo().Mode().Perm()|0o700)
		} else if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
			err = writeFrom(path, reader, header.FileInfo().Mode().Perm())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func writeFrom(path string, from io.Reader, mode os.FileMode) error {
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
