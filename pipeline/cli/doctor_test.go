// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/internal/freeport"
	"github.com/prerig/prerig/pipeline/cli/doctor"
	"github.com/prerig/prerig/pipeline/internal/gittest"
)

const doctorPassword = "correct-horse-battery"

// daemonProject writes a configuration whose servers are real, and changes into its directory.
func daemonProject(t *testing.T) *gittest.Server {
	t.Helper()
	t.Chdir(t.TempDir())
	git := gittest.New(t)
	repository := git.Repository(t, "shop")
	repository.Commit("web", map[string]string{"k8s/web.yaml": initWeb})
	git.Username, git.Password = "bot", doctorPassword
	artifacts := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(func() { artifacts.CloseClientConnections(); _ = artifacts.Config.Close() })
	oci := strings.TrimPrefix(artifacts.URL, "http://")
	free, err := freeport.Address()
	must(t, err)
	for name, text := range map[string]string{
		"prerig.yaml": "pipelines: pipelines\npolicies: policies\nsecrets: secrets\nstate: state\nlisten: " + free + "\nadmin: {listen: \"\"}\n" +
			"nats: {max_store: 16Mi}\npreviews: {size: 16Mi}\nbuild_cache: {size: 16Mi}\n" + // whatever is free here, it is enough
			"receivers:\n- {name: git, provider: github, secret: hook.key}\n",
		"hook.key":             strings.Repeat("k3y", 12) + "\n",
		"secrets/git/username": "bot",
		"secrets/git/password": doctorPassword,
		"secrets/git/.hosts":   git.URL,
		"policies/mesh.yaml":   "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec: {istio: {kubernetesVersion: \"1.34\", injector: {builtIn: istio}}}\n",
		"pipelines/shop.yaml": fmt.Sprintf(`apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: shop}
spec:
  source: {git: {url: %s, ref: {branch: main}, secretRef: {name: git}}}
  build: {path: k8s}
  policies: [{file: mesh.yaml}]
  publish:
  - git: {branch: rendered}
  - oci: {url: "oci://%s/out/shop", insecure: true}
`, repository.URL, oci),
	} {
		writeFile(t, name, text)
	}
	must(t, os.Chmod("secrets", 0o700))
	must(t, os.Chmod("hook.key", 0o600))
	return git
}

// examine runs prerig doctor, and checks that no secret is told in any form.
func examine(t *testing.T, want int, args ...string) []doctor.Finding {
	t.Helper()
	args = append([]string{"doctor"}, args...)
	text, said := runCode(t, want, args...)
	out, saidToo := runCode(t, want, append(args, "-o", "json")...)
	if told := text + said + out + saidToo; strings.Contains(told, doctorPassword) || strings.Contains(told, "k3yk3y") {
		t.Errorf("a secret is told:\n%s", told)
	}
	var found []doctor.Finding
	must(t, json.Unmarshal([]byte(out), &found))
	for _, f := range found {
		if f.Area != doctor.State && !strings.Contains(text, f.Message) { // what is free changes
			t.Errorf("the text leaves out %q:\n%s", f.Message, text)
		}
	}
	return found
}

// wrong are the findings that are not good, in one line each.
func wrong(found []doctor.Finding) (out []string) {
	for _, f := range found {
		if f.Severity != result.Info {
			out = append(out, fmt.Sprintf("%s %s: %s: %s", f.Severity, f.Area, f.Where, f.Message))
		}
	}
	return out
}

func TestDoctorIsContent(t *testing.T) {
	git := daemonProject(t)
	before := tree(t, ".")
	found := examine(t, 0, "--config", "prerig.yaml", "--fail-on", "warning")
	for _, area := range []doctor.Area{doctor.Versions, doctor.Policies, doctor.Pipelines, doctor.Secrets, doctor.Sources, doctor.Targets, doctor.Webhooks, doctor.Addresses, doctor.Isolation, doctor.State} {
		if !slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Area == area }) {
			t.Errorf("nothing is said of %s", area)
		}
	}
	if n := len(found); slices.IndexFunc(found, func(f doctor.Finding) bool { return f.Area == doctor.Targets }) < 0 || n < 10 {
		t.Errorf("%d findings", n)
	}
	if after := tree(t, "."); len(after) != len(before) {
		t.Errorf("the doctor has left something: %d files, and there were %d", len(after), len(before))
	}
	refs, err := filepath.Glob(filepath.Join(git.Root, "shop.git", "refs/heads/*"))
	if err != nil || len(refs) != 1 {
		t.Errorf("branches after a look: %q, %v", refs, err)
	}
}

// TestDoctorFinds breaks one thing after the other.
func TestDoctorFinds(t *testing.T) {
	for name, tc := range map[string]struct {
		code    int
		spoil   func(t *testing.T, git *gittest.Server)
		area    doctor.Area
		want    string
		also    doctor.Area // of which more may be wrong
		advised bool
	}{
		"wrong password":           {1, func(t *testing.T, _ *gittest.Server) { writeFile(t, "secrets/git/password", "no-such-password") }, doctor.Sources, "refuses the credentials", doctor.Targets, false},
		"may only read":            {1, func(_ *testing.T, git *gittest.Server) { git.Intercept(refusePushes) }, doctor.Targets, "does not allow it with the credentials", "", true},
		"no secret":                {1, func(t *testing.T, _ *gittest.Server) { must(t, os.RemoveAll("secrets/git")) }, doctor.Sources, "there is no secret git", doctor.Targets, false},
		"secret of another server": {1, func(t *testing.T, _ *gittest.Server) { writeFile(t, "secrets/git/.hosts", "git.example.com") }, doctor.Sources, "may not be used", doctor.Targets, false},
		"open secrets":             {0, func(t *testing.T, _ *gittest.Server) { must(t, os.Chmod("secrets", 0o755)) }, doctor.Secrets, "every user of this machine can read 1 of its 1 files", "", true},
		"no branch": {1, func(t *testing.T, _ *gittest.Server) {
			replaceIn(t, "pipelines/shop.yaml", "branch: main", "branch: production")
		}, doctor.Sources, "has no refs/heads/production", "", true},
		"invalid":   {1, func(t *testing.T, _ *gittest.Server) { replaceIn(t, "pipelines/shop.yaml", "policies:", "polices:") }, doctor.Pipelines, "polices", "", false},
		"no policy": {1, func(t *testing.T, _ *gittest.Server) { must(t, os.Remove("policies/mesh.yaml")) }, doctor.Policies, "mesh.yaml is not a readable file", "", false},
		"broken policy": {1, func(t *testing.T, _ *gittest.Server) {
			replaceIn(t, "policies/mesh.yaml", "builtIn: istio", "builtIn: ostio")
		}, doctor.Policies, "ostio", "", false},
		"broken template": {1, func(t *testing.T, _ *gittest.Server) {
			replaceIn(t, "policies/mesh.yaml", "builtIn: istio", "config: \"policy: enabled\\ndefaultTemplates: [sidecar]\\ntemplates: {sidecar: '{{ .NoSuch.Field }}'}\", values: \"{}\"")
		}, doctor.Policies, "NoSuch", doctor.Policies, false},
		"guessable webhook": {0, func(t *testing.T, _ *gittest.Server) { writeFile(t, "hook.key", "hunter2\n") }, doctor.Webhooks, "can be guessed", "", true},
		"no webhook secret": {1, func(t *testing.T, _ *gittest.Server) { must(t, os.Remove("hook.key")) }, doctor.Webhooks, "hook.key", "", true},
		"bad key":           {1, func(t *testing.T, _ *gittest.Server) { replaceIn(t, "prerig.yaml", "policies:", "polices:") }, doctor.Configuration, "polices", "", true},
		"registry is gone": {1, func(t *testing.T, _ *gittest.Server) {
			replaceIn(t, "pipelines/shop.yaml", "oci://127.0.0.1:", "oci://127.0.0.1:1/x")
		}, doctor.Targets, "", "", false},
		"small disk": {0, func(t *testing.T, _ *gittest.Server) {
			replaceIn(t, "prerig.yaml", "max_store: 16Mi", "max_store: 1000000Gi")
		}, doctor.State, "may use up to 1024000032 MiB", "", true},
		"state is a file": {1, func(t *testing.T, _ *gittest.Server) { writeFile(t, "state", "") }, doctor.State, "not a directory", "", true},
		"address is taken": {1, func(t *testing.T, _ *gittest.Server) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			must(t, err)
			t.Cleanup(func() { listener.Close() })
			replaceIn(t, "prerig.yaml", "admin: {listen: \"\"}", "admin: {listen: \""+listener.Addr().String()+"\"}")
		}, doctor.Addresses, "address already in use", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			git := daemonProject(t)
			tc.spoil(t, git)
			found := examine(t, tc.code, "--config", "prerig.yaml")
			bad := slices.DeleteFunc(slices.Clone(found), func(f doctor.Finding) bool { return f.Severity == result.Info })
			at := slices.IndexFunc(bad, func(f doctor.Finding) bool { return f.Area == tc.area && strings.Contains(f.Message, tc.want) })
			if at < 0 {
				t.Fatalf("%q is not found:\n%s", tc.want, strings.Join(wrong(found), "\n"))
			}
			if tc.advised && bad[at].Advice == "" {
				t.Errorf("there is no advice for %+v", bad[at])
			}
			for _, f := range bad {
				if f.Area != tc.area && f.Area != tc.also {
					t.Errorf("something else is wrong, too: %+v", f)
				}
			}
		})
	}
}

func replaceIn(t *testing.T, name, old, replacement string) {
	t.Helper()
	text := readFile(t, name)
	if !strings.Contains(text, old) {
		t.Fatalf("%s has no %q", name, old)
	}
	must(t, os.WriteFile(name, []byte(strings.Replace(text, old, replacement, 1)), 0o644))
}

// TestDoctorOfPolicies looks at policies alone, and at nothing where there is nothing.
func TestDoctorOfPolicies(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.Mkdir(".git", 0o755)) // the search for a policy ends here
	runCode(t, 2, "doctor")
	writeFile(t, "mesh.yaml", "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec: {istio: {version: \"1.33\", kubernetesVersion: \"1.12\", injector: {builtIn: istio}}, images: {lock: none}}\n")
	found := examine(t, 1, "mesh.yaml", "istio")
	for _, want := range []string{"Istio 1.33 is newer", "1.12", "the ImageLock none is not next to it"} {
		if !slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Severity == result.Warning && strings.Contains(f.Message, want) }) {
			t.Errorf("%q is not found:\n%s", want, strings.Join(wrong(found), "\n"))
		}
	}
	runCode(t, 1, "doctor", "--fail-on", "warning", "mesh.yaml")
	runCode(t, 1, "doctor", "no-such-policy")
	runCode(t, 0, "doctor", "--fail-on", "never", "no-such-policy")
	runCode(t, 2, "doctor", "mesh.yaml", "--state", "state")
	if out, _ := runCode(t, 0, "doctor", "-q", "istio"); out != "" {
		t.Errorf("quiet, it says %q", out)
	}
}

// A daemon's own state directory is only looked at, and a socket without a daemon is no daemon.
func TestDoctorOffline(t *testing.T) {
	git := daemonProject(t)
	asked := git.Requests.Load()
	found := examine(t, 0, "--config", "prerig.yaml", "--offline")
	if now := git.Requests.Load(); now != asked {
		t.Errorf("the server was asked %d times", now-asked)
	}
	if !slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return f.Area == doctor.Sources && strings.Contains(f.Message, "--offline")
	}) {
		t.Error("nothing says that sources were not asked")
	}
}

// TestDoctorOfflineReadsNoPipelinesOfServers, and says so.
func TestDoctorOfflineReadsNoPipelinesOfServers(t *testing.T) {
	git := daemonProject(t)
	asked := git.Requests.Load()
	replaceIn(t, "prerig.yaml", "pipelines: pipelines\n", "pipelines_git: {url: "+git.URL+"/shop.git}\n")
	found := examine(t, 0, "--config", "prerig.yaml", "--offline")
	if now := git.Requests.Load(); now != asked {
		t.Errorf("the server was asked %d times", now-asked)
	}
	if !slices.ContainsFunc(found, func(f doctor.Finding) bool {
		return f.Where == "pipelines_git" && strings.Contains(f.Message, "--offline")
	}) {
		t.Errorf("nothing says that pipelines were not read: %v", found)
	}
}

// refusePushes answers as a host does to a user who may only read.
func refusePushes(w http.ResponseWriter, r *http.Request) bool {
	if !strings.Contains(r.URL.RawQuery+r.URL.Path, "git-receive-pack") {
		return false
	}
	http.Error(w, "you may only read", http.StatusForbidden)
	return true
}
