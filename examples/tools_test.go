// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/prerig/prerig/internal/testprograms"
)

// What `make image` and `make image-pipeline` build, the first of which the examples name.
const (
	image         = "localhost/prerig-fn:dev"
	pipelineImage = "localhost/prerig:dev"
)

// inCI says that what the machine lacks fails a test instead of skipping it.
var inCI = os.Getenv("CI") != ""

// tools are what an example can require: each says what is missing.
var tools = map[string]func() error{
	"kpt": func() error {
		_, err := exec.LookPath("kpt")
		return err
	},
	"promtool":           buildPromtool,
	"helm":               buildHelm,
	"container":          buildImage,
	"pipeline container": buildPipelineImage,
}

// built is the directory of the programs.
var built string

// build builds our commands and the kustomize that go.mod pins, once.
var build = sync.OnceValue(func() (err error) {
	built, err = testprograms.Build(testprograms.Prerig, testprograms.PrerigFn, testprograms.Kustomize)
	return err
})

// Further programs, where an example needs them.
var (
	buildPromtool = sync.OnceValue(func() error { _, err := testprograms.Build(testprograms.Promtool); return err })
	buildHelm     = sync.OnceValue(func() error { _, err := testprograms.Build(testprograms.Helm); return err })
)

// Each image is built once, from the sources as they are.
var (
	buildImage         = sync.OnceValue(func() error { return makeImage("image", "IMAGE="+image) })
	buildPipelineImage = sync.OnceValue(func() error { return makeImage("image-pipeline", "IMAGE_PIPELINE="+pipelineImage) })
)

func makeImage(arguments ...string) error {
	var stderr bytes.Buffer
	info := exec.Command("docker", "info")
	info.Stderr = &stderr
	if err := info.Run(); err != nil {
		return fmt.Errorf("no container runtime answers to docker: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	cmd := exec.Command("make", append([]string{"-C", ".."}, arguments...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the image: %w\n%s", err, out)
	}
	return nil
}

// environment is that of a user who has the tools on the path. It skips the test where one of those is missing that a
// machine need not have, and where a short run would have to build an image.
func environment(t *testing.T, requires []string) []string {
	t.Helper()
	for _, name := range requires {
		if testing.Short() && strings.HasSuffix(name, "container") {
			t.Skip("make e2e runs what needs an image")
		}
		if err := tools[name](); err != nil && inCI {
			t.Fatalf("%s: %v", name, err)
		} else if err != nil {
			t.Skipf("needs %s: %v", name, err)
		}
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + built + string(filepath.ListSeparator) + os.Getenv("PATH")}
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "HOME", "CONTAINERS_CONF", "KPT_FN_RUNTIME", "KRM_FN_RUNTIME", "DOCKER_HOST", "XDG_RUNTIME_DIR", "TMPDIR":
			env = append(env, v)
		}
	}
	return env
}
