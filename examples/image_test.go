// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// emptyList is the least that a function is called with.
const emptyList = `apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: prerig.dev/v1alpha1
  kind: InjectionPolicy
  metadata: {name: mesh}
  spec: {istio: {injector: {builtIn: istio}}}
items: []
`

// docker runs the container runtime and gives standard output.
func docker(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.Command("docker", args...)
	cmd.Stdin = strings.NewReader(stdin)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// TestImage runs the image as kustomize and kpt do, and more strictly than they do.
func TestImage(t *testing.T) {
	environment(t, []string{"container"})
	strict := []string{"run", "--rm", "-i", "--network", "none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"}
	list := string(resourceList(t, read(t, "testdata/doors/objects.yaml"), read(t, "testdata/doors/policy.yaml")))
	var first string
	for _, user := range []string{"nobody", "65534:65534", "12345:54321", "0:0"} {
		got := docker(t, list, append(strict, "--user", user, image)...)
		if !strings.Contains(got, "name: istio-proxy") {
			t.Errorf("as %s it injects nothing:\n%s", user, got)
		}
		if first == "" {
			first = got
		}
		if diff := cmp.Diff(first, got); diff != "" {
			t.Errorf("as %s it writes something else:\n%s", user, diff)
		}
	}
	if got := docker(t, emptyList, append(strict, image)...); !strings.Contains(got, "kind: ResourceList") {
		t.Errorf("an empty list gives %q", got)
	}
	if got := docker(t, "", append(strict, image, "--version")...); !strings.HasPrefix(got, "prerig-fn ") {
		t.Errorf("--version prints %q", got)
	}
	if got := docker(t, "", append(strict, image, "--help")...); !strings.Contains(got, "InjectionPolicy") {
		t.Errorf("--help prints %q", got)
	}
}

// images are what we build, with what is in them and how they start.
var images = map[string]struct {
	name, requires, user string
	entrypoint, command  []string
	files                []string
}{
	"fn": {
		image, "container", "nobody", []string{"/usr/local/bin/prerig-fn"}, nil,
		[]string{"/etc/group", "/etc/passwd", "/usr/local/bin/prerig-fn", "/usr/share/licenses/prerig/LICENSE", "/usr/share/licenses/prerig/THIRD-PARTY"},
	},
	"pipeline": {
		pipelineImage, "pipeline container", "65534:65534", []string{"/usr/local/bin/prerig"},
		[]string{"serve", "--state", "/var/lib/prerig", "--listen", ":8080"},
		[]string{
			"/etc/group", "/etc/passwd", "/etc/ssl/certs/ca-certificates.crt", "/usr/local/bin/prerig",
			"/usr/local/bin/prerig-render", "/usr/local/bin/prerig-validate",
			"/usr/share/licenses/prerig/LICENSE", "/usr/share/licenses/prerig/THIRD-PARTY",
		},
	},
}

// TestImageConfiguration looks at what the images say about themselves.
func TestImageConfiguration(t *testing.T) {
	for name, want := range images {
		t.Run(name, func(t *testing.T) {
			environment(t, []string{want.requires})
			var inspected []struct {
				Config struct {
					User            string
					Entrypoint, Cmd []string
					Labels          map[string]string
				}
			}
			if err := json.Unmarshal([]byte(docker(t, "", "image", "inspect", want.name)), &inspected); err != nil {
				t.Fatal(err)
			}
			c := inspected[0].Config
			if c.User != want.user || !slices.Equal(c.Entrypoint, want.entrypoint) || !slices.Equal(c.Cmd, want.command) {
				t.Errorf("it runs %v %v as %q", c.Entrypoint, c.Cmd, c.User)
			}
			for _, name := range []string{"title", "description", "url", "source", "documentation", "vendor", "licenses", "version"} {
				if c.Labels["org.opencontainers.image."+name] == "" {
					t.Errorf("the label %s is missing", name)
				}
			}
		})
	}
}

// TestImageContents makes sure that nothing but what is needed is in the images.
func TestImageContents(t *testing.T) {
	for name, want := range images {
		t.Run(name, func(t *testing.T) {
			environment(t, []string{want.requires})
			id := strings.TrimSpace(docker(t, "", "create", want.name))
			defer docker(t, "", "rm", id)
			archive := docker(t, "", "export", id)
			var files []string
			for r := tar.NewReader(strings.NewReader(archive)); ; {
				h, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				// The runtime puts empty mount points of its own into a container.
				if h.Typeflag == tar.TypeReg && h.Size > 0 {
					files = append(files, path.Join("/", h.Name))
				}
			}
			slices.Sort(files)
			if diff := cmp.Diff(want.files, files); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestStart measures what a user waits for at least, in time of the processor, which a busy machine makes no longer. The limit is
// far above what it takes.
func TestStart(t *testing.T) {
	env := environment(t, nil)
	best := time.Hour
	for range 5 {
		cmd := exec.Command("sh", "-c", "exec prerig-fn")
		cmd.Env, cmd.Stdin = env, strings.NewReader(emptyList)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		best = min(best, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	if best > 100*time.Millisecond {
		t.Errorf("an empty list takes %v", best)
	}
}
