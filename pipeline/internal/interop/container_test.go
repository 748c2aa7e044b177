// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package interop

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/testbed"
)

const containerPipeline = `apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: shop}
spec:
  source:
    git: {url: %s, ref: {branch: main}}
  build: {path: apps/shop}
  policies:
  - path: policy/mesh.yaml
  publish:
  - git: {branch: rendered, path: shop}
`

// pipelineImage builds the image from the sources as they are, and gives its name.
func pipelineImage(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("make e2e runs what needs an image")
	}
	if out, err := exec.Command("docker", "info").CombinedOutput(); err != nil && os.Getenv("CI") != "" {
		t.Fatalf("no container runtime answers to docker: %v\n%s", err, out)
	} else if err != nil {
		t.Skip("no container runtime answers to docker")
	}
	if err := makeImage(); err != nil {
		t.Fatal(err)
	}
	return imageName
}

const imageName = "localhost/prerig:dev"

var makeImage = sync.OnceValue(func() error {
	out, err := exec.Command("make", "-C", filepath.Join("..", "..", ".."), "image-pipeline", "IMAGE_PIPELINE="+imageName).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building the image: %w\n%s", err, out)
	}
	return nil
})

// container is the pipeline's image as the daemon: a read-only root, no capabilities, an ordinary user, and one volume for
// the state. It shares the network with this machine, where the Git server is.
func container(t *testing.T, dir string) (program string) {
	t.Helper()
	image := pipelineImage(t)
	name := fmt.Sprintf("prerig-test-%d", time.Now().UnixNano())
	flags := "--read-only"
	if out, _ := exec.Command("docker", "--version").Output(); strings.Contains(string(out), "podman") {
		flags += " --read-only-tmpfs=false" // else it makes /tmp, /run and more writable
	}
	program = filepath.Join(t.TempDir(), "prerig")
	script := fmt.Sprintf("#!/bin/sh\nset -eu\nchmod -R a+rX '%[1]s'\n"+
		"exec docker run --rm --name %[2]s --network host %[3]s --cap-drop=ALL --security-opt=no-new-privileges "+
		"-v '%[1]s:%[1]s:ro' -v %[2]s:/var/lib/prerig %[4]s \"$@\" --state /var/lib/prerig\n", dir, name, flags, image)
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("docker", "rm", "-f", name).Run()
		if out, err := exec.Command("docker", "volume", "rm", name).CombinedOutput(); err != nil {
			t.Errorf("removing the volume: %v\n%s", err, out)
		}
	})
	return program
}

// TestPipelineImage runs the daemon in a container, from an event to a commit, and again with the state that it left.
func TestPipelineImage(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	git, err := testbed.ServeGit(filepath.Join(dir, "git"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { git.Close() })
	repository, err := git.Repository(ctx, "config")
	if err != nil {
		t.Fatal(err)
	}
	files := example(t, "flux")
	web := files["apps/shop/web.yaml"]
	if _, err := repository.Commit(ctx, "first", files); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "daemon")
	program, pipelines := container(t, at), map[string]string{"shop.yaml": fmt.Sprintf(containerPipeline, repository.URL)}
	start := func() *testbed.Daemon {
		t.Helper()
		daemon, err := testbed.Serve(ctx, program, at, pipelines)
		if err != nil {
			t.Fatal(err)
		}
		return daemon
	}
	daemon := start()
	published := func(after, want string) string {
		t.Helper()
		for {
			if head := repository.Head("rendered"); head != after && head != "" {
				text, err := repository.Git(ctx, "show", head+":shop/shop/deployment-web.yaml")
				if err != nil || !strings.Contains(text, want) || !strings.Contains(text, "name: istio-proxy\n") {
					t.Fatalf("%v: the rendered branch holds\n%s", err, text)
				}
				return head
			}
			select {
			case <-ctx.Done():
				t.Fatalf("nothing was published\n%s", daemon.Problems())
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	// What the kernel gives in a container without privileges is said in the log.
	isolation, err := daemon.Entry(ctx, 0, func(e testbed.Entry) bool { return e.Fields["by"] != nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %v", isolation.Message, isolation.Fields["by"])
	first := published("", "web:2.14")
	files["apps/shop/web.yaml"] = strings.Replace(web, "web:2.14", "web:2.15", 1)
	commit, err := repository.Commit(ctx, "second", files)
	if err != nil {
		t.Fatal(err)
	}
	if status, err := daemon.Push(ctx, repository.URL, commit); err != nil || status != http.StatusAccepted {
		t.Fatalf("the event: status %d, %v", status, err)
	}
	second := published(first, "web:2.15")
	if err := daemon.Stop(); err != nil {
		t.Fatal(err)
	}
	daemon = start()
	if status, err := daemon.Push(ctx, repository.URL, commit); err != nil || status/100 != 2 {
		t.Errorf("the same event again: status %d, %v", status, err)
	}
	if err := daemon.Stop(); err != nil {
		t.Fatal(err)
	}
	if repository.Head("rendered") != second {
		t.Error("starting again with the same state has published something")
	}
}

// TestArgoCDPluginInTheImage runs the plugin's command as Argo CD's server in the sidecar does: in the image, without a
// shell, as Argo CD's user, with a writable /tmp and nothing else.
func TestArgoCDPluginInTheImage(t *testing.T) {
	image := pipelineImage(t)
	files := example(t, "argo-cd")
	p, app := decode[plugin](t, files["plugin.yaml"])[0], decode[application](t, files["application-plugin.yaml"])[0]
	root := filepath.Join(t.TempDir(), "checkout")
	if err := testbed.Write(root, files); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("chmod", "-R", "a+rX", root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	args := []string{
		"run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp", "--user", "999", "--cap-drop=ALL", "--security-opt=no-new-privileges",
		"-v", root + ":/tmp/_cmp_server/1:ro", "-w", "/tmp/_cmp_server/1/" + app.Spec.Source.Path,
	}
	for _, e := range environment(t, app, "x") {
		args = append(args, "-e", e)
	}
	args = append(append(args, "--entrypoint", p.Spec.Generate.Command[0], image), append(p.Spec.Generate.Command[1:], p.Spec.Generate.Args...)...)
	command := exec.Command("docker", args...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	checkInjected(t, string(out))
}
