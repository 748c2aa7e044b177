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

// programs is the directory of what is built here, which TestMain makes.
var programs string

// build builds our commands and the kustomize that go.mod pins, once.
var build = sync.OnceValue(func() error {
	cmd := exec.Command("go", "build", "-trimpath", "-o", programs+string(filepath.Separator),
		"github.com/prerig/prerig/fn/cmd/prerig-fn", "github.com/prerig/prerig/pipeline/cmd/prerig")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building our commands: %w\n%s", err, out)
	}
	// As go tool kustomize would; the name of the package's last element is a version.
	cmd = exec.Command("go", "build", "-o", filepath.Join(programs, "kustomize"), "sigs.k8s.io/kustomize/kustomize/v5")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building kustomize: %w\n%s", err, out)
	}
	return nil
})

// buildPromtool builds Prometheus' own tool, once. It has a module file of its own, so that what it links is not among our dependencies;
// without the ways to discover targets, which rules do not need, that takes about two minutes the first time.
var buildPromtool = sync.OnceValue(func() error {
	cmd := exec.Command("go", "build", "-modfile=.ci/promtool.mod", "-tags=remove_all_sd", "-o", filepath.Join(programs, "promtool"), "github.com/prometheus/prometheus/cmd/promtool")
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building promtool: %w\n%s", err, out)
	}
	return nil
})

// buildHelm builds the program of the Helm that go.mod has, once, with the modules that Helm pins: that takes minutes the first time.
var buildHelm = sync.OnceValue(func() error {
	version, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "helm.sh/helm/v4").Output()
	if err != nil {
		return fmt.Errorf("asking for the version of Helm: %w", err)
	}
	cmd := exec.Command("go", "install", "-trimpath", "helm.sh/helm/v4/cmd/helm@"+strings.TrimSpace(string(version)))
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOBIN="+programs)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building helm: %w\n%s", err, out)
	}
	return nil
})

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

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "prerig-examples-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// environment is that of a user who has the tools on the path. It skips the test where one of those is missing that a
// machine need not have.
func environment(t *testing.T, requires []string) []string {
	t.Helper()
	for _, name := range requires {
		if err := tools[name](); err != nil && inCI {
			t.Fatalf("%s: %v", name, err)
		} else if err != nil {
			t.Skipf("needs %s: %v", name, err)
		}
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + programs + string(filepath.ListSeparator) + os.Getenv("PATH")}
	for _, v := range os.Environ() {
		switch name, _, _ := strings.Cut(v, "="); name {
		case "HOME", "CONTAINERS_CONF", "KPT_FN_RUNTIME", "KRM_FN_RUNTIME", "DOCKER_HOST", "XDG_RUNTIME_DIR", "TMPDIR":
			env = append(env, v)
		}
	}
	return env
}
