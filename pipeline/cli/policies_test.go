// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheSameFileGetsTheSamePolicy however the command is called: from the repository's root, from beside the file, from
// elsewhere, with the file or with a directory.
func TestTheSameFileGetsTheSamePolicy(t *testing.T) {
	arrange(t)
	must(t, os.MkdirAll("repo/.git", 0o755))
	tiny := readFile(t, "tiny.yaml")
	writeFiles(t, map[string]string{"repo/prerig.yaml": strings.ReplaceAll(tiny, "1.31.0", "1.30.2"), "repo/apps/web/web.yaml": deployment("web", "shop"), "prerig.yaml": tiny})
	root, err := os.Getwd()
	must(t, err)
	for _, call := range []struct{ from, file string }{
		{".", "repo"},
		{".", "repo/apps"},
		{".", "repo/apps/web/web.yaml"},
		{"repo", "apps/web/web.yaml"},
		{"repo", "."},
		{"repo/apps/web", "web.yaml"},
		{"repo/apps/web", "../../apps"},
		{os.TempDir(), filepath.Join(root, "repo/apps/web/web.yaml")},
	} {
		from := call.from
		if !filepath.IsAbs(from) {
			from = filepath.Join(root, from)
		}
		t.Chdir(from)
		out, stderr := ok(t, "", "inject", call.file)
		if !strings.Contains(out, "proxyv2:1.30.2") {
			t.Errorf("%s in %s: another policy:\n%s", call.file, call.from, stderr)
		}
		if strings.Contains(out, "InjectionPolicy") {
			t.Errorf("%s in %s: the policy goes to the cluster:\n%s", call.file, call.from, out)
		}
	}
	// What is piped in comes from where one is.
	t.Chdir(filepath.Join(root, "repo/apps/web"))
	if out, _ := ok(t, deployment("web", "shop"), "inject"); !strings.Contains(out, "proxyv2:1.30.2") {
		t.Errorf("standard input:\n%s", out)
	}
}

// TestEachApplicationWithItsOwnPolicy: a repository of many applications, some with a policy of their own.
func TestEachApplicationWithItsOwnPolicy(t *testing.T) {
	arrange(t)
	tiny := readFile(t, "tiny.yaml")
	must(t, os.MkdirAll("repo/.git", 0o755))
	writeFiles(t, map[string]string{
		"repo/prerig.yaml": tiny, "repo/base/web.yaml": deployment("base", "shop"),
		"repo/apps/cart/prerig.yaml": strings.ReplaceAll(tiny, "1.31.0", "1.30.2"), "repo/apps/cart/web.yaml": deployment("cart", "shop"),
		"repo/apps/mail/web.yaml": deployment("mail", "shop"),
	})
	_, stderr := ok(t, "", "inject", "-i", "repo")
	for file, want := range map[string]string{"repo/base/web.yaml": "1.31.0", "repo/apps/cart/web.yaml": "1.30.2", "repo/apps/mail/web.yaml": "1.31.0"} {
		if got := readFile(t, file); !strings.Contains(got, "proxyv2:"+want) {
			t.Errorf("%s is not injected with %s:\n%s", file, want, got)
		}
	}
	for _, want := range []string{"policy: repo/apps/cart/prerig.yaml, for 2 files such as repo/apps/cart/prerig.yaml\n", "policy: repo/prerig.yaml, for 3 files such as ", "3 injected; 3 of 5 files changed\n"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("it does not say %q:\n%s", want, stderr)
		}
	}
	if strings.Contains(stderr, "is not followed") || readFile(t, "repo/prerig.yaml") != tiny {
		t.Errorf("the policies are not left as they are:\n%s", stderr)
	}
	// Each alone is as all together.
	ok(t, "", "inject", "--check", "repo/apps/cart/web.yaml")
	ok(t, "", "inject", "--check", "repo/base", "repo/apps/mail")
	ok(t, "", "lint", "--fail-on", "never", "repo")
	if out, _ := ok(t, "", "explain", "repo"); strings.Count(out, "\n") != 4 {
		t.Errorf("explain:\n%s", out)
	}
}

// TestTheDefaultPolicyIsAlwaysSaid, as the same command gives something else where there is a prerig.yaml.
func TestTheDefaultPolicyIsAlwaysSaid(t *testing.T) {
	arrange(t)
	must(t, os.Mkdir(".git", 0o755)) // nothing above is looked at
	for _, args := range [][]string{{"inject", "-q", "web.yaml"}, {"inject", "-q", "--diff", "web.yaml"}, {"lint", "-q", "--fail-on=never", "web.yaml"}, {"explain", "-q", "web.yaml"}} {
		if _, stderr := ok(t, "", args...); strings.Count(stderr, "policy: built-in istio (no prerig.yaml was found") != 1 {
			t.Errorf("%v:\n%s", args, stderr)
		}
	}
	if _, stderr := ok(t, "", "inject", "-q", "-p", "istio", "web.yaml"); strings.Contains(stderr, "policy:") {
		t.Errorf("a policy that was named is said in spite of -q:\n%s", stderr)
	}
}

// TestTheDefaultPolicyReplacesNothing: files that were injected by a policy which is not found now stay as they are.
func TestTheDefaultPolicyReplacesNothing(t *testing.T) {
	arrange(t)
	must(t, os.Mkdir(".git", 0o755))
	ok(t, "", "inject", "-i", "-p", "tiny.yaml", "web.yaml")
	injected := readFile(t, "web.yaml")
	code, _, stderr := command(t, "", "inject", "-q", "-i", "web.yaml")
	if code != ExitError || readFile(t, "web.yaml") != injected {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	for _, want := range []string{"error: web.yaml:2: Deployment shop/web: it has the proxy example.com/istio/proxyv2:1.31.0", "has docker.io/istio/proxyv2:1.", "nothing was written", "-p istio"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("it does not say %q:\n%s", want, stderr)
		}
	}
	ok(t, "", "inject", "-i", "-p", "istio", "web.yaml") // chosen
	if got := readFile(t, "web.yaml"); !strings.Contains(got, "docker.io/istio/proxyv2:1.") {
		t.Errorf("got\n%s", got)
	}
	ok(t, "", "inject", "-i", "web.yaml")             // nothing changes
	ok(t, "", "inject", "-i", "--remove", "web.yaml") // nothing is replaced
}

// TestAPolicyAmongTheFilesDoesNotGoToTheCluster, whichever is followed. In place it stays.
func TestAPolicyAmongTheFilesDoesNotGoToTheCluster(t *testing.T) {
	arrange(t)
	tiny := readFile(t, "tiny.yaml")
	other := strings.Replace(tiny, "name: tiny", "name: other", 1)
	writeFiles(t, map[string]string{
		"k8s/prerig.yaml": tiny, "k8s/a.yaml": deployment("a", "shop"),
		"k8s/mixed.yaml": deployment("b", "shop") + "---\n" + other + "---\n" + deployment("c", "shop"),
	})
	out, stderr := ok(t, "", "inject", "k8s")
	if strings.Contains(out, "prerig.dev") || strings.Count(out, "kind: Deployment") != 3 || !strings.Contains(stderr, "InjectionPolicy other is not applied") {
		t.Errorf("the stream:\n%s\n%s", out, stderr)
	}
	ok(t, "", "inject", "--to", "out/", "k8s")
	files := tree(t, "out")
	if len(files) != 2 || strings.Contains(files["mixed.yaml"], "InjectionPolicy") || strings.Count(files["mixed.yaml"], "kind: Deployment") != 2 {
		t.Errorf("the directory: %v", files)
	}
	ok(t, "", "inject", "--to", "all.yaml", "k8s")
	if got := readFile(t, "all.yaml"); got != out {
		t.Errorf("the file:\n%s", got)
	}
	ok(t, "", "inject", "-i", "k8s")
	if got := readFile(t, "k8s/mixed.yaml"); !strings.Contains(got, other) || readFile(t, "k8s/prerig.yaml") != tiny {
		t.Errorf("in place:\n%s", got)
	}
	if out, _ := ok(t, tiny, "inject", "-p", "tiny.yaml"); out != "" {
		t.Errorf("of a policy alone:\n%s", out)
	}
	// A kustomization that names the policy is copied with it.
	writeFiles(t, map[string]string{"kustomize/kustomization.yaml": "resources: [a.yaml]\ntransformers: [mesh.yaml]\n", "kustomize/mesh.yaml": tiny, "kustomize/a.yaml": deployment("a", "shop")})
	ok(t, "", "inject", "-q", "-p", "tiny.yaml", "--to", "copy/", "kustomize")
	if files := tree(t, "copy"); len(files) != 3 {
		t.Errorf("the copy of a kustomization: %v", files)
	}
}

// TestTheDaemonsConfigurationIsNoPolicy: both have the same name by default.
func TestTheDaemonsConfigurationIsNoPolicy(t *testing.T) {
	arrange(t)
	must(t, os.Mkdir(".git", 0o755))
	writeFiles(t, map[string]string{"prerig.yaml": "pipelines: pipelines\nstate: /var/lib/prerig\n"})
	_, stderr := ok(t, "", "inject", "web.yaml")
	if !strings.Contains(stderr, "warning: prerig.yaml: skipped: it is a configuration of prerig serve and not an InjectionPolicy") || !strings.Contains(stderr, "policy: built-in istio (no prerig.yaml was found") {
		t.Errorf("got\n%s", stderr)
	}
	code, _, stderr := command(t, "", "inject", "-p", "prerig.yaml", "web.yaml")
	if code != ExitError || !strings.Contains(stderr, "it is a configuration of prerig serve and not an InjectionPolicy") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// TestNoCommand: the help must not take the place of manifests in a pipe, such as that of helm --post-renderer.
func TestNoCommand(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{{nil, "error: no command specified"}, {[]string{"-p", "mesh.yaml"}, "error: unknown shorthand flag"}, {[]string{"--policy=mesh.yaml"}, "error: unknown flag"}} {
		code, out, stderr := command(t, "kind: Pod\n", test.args...)
		if code != ExitError || out != "" || !strings.HasPrefix(stderr, test.want) || !strings.Contains(stderr, "prerig inject") ||
			!strings.Contains(stderr, "--post-renderer-args inject") {
			t.Errorf("%q: exit code %d\n%s%s", test.args, code, out, stderr)
		}
	}
}

// TestCommandsOfOtherPrograms with their flags.
func TestCommandsOfOtherPrograms(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"istioctl's":         {[]string{"kube-inject", "-f", "x.yaml"}, "unknown command kube-inject; use prerig inject; see"},
		"linkerd's":          {[]string{"uninject", "-f", "x.yaml"}, "unknown command uninject; use prerig inject --remove; see"},
		"a slip":             {[]string{"injct", "-f", "x.yaml"}, "did you mean inject?"},
		"a namespace":        {[]string{"inject", "--istioNamespace", "istio-system", "web.yaml"}, "--istioNamespace is not supported, because this command contacts no cluster"},
		"a cluster":          {[]string{"inject", "--context", "prod", "web.yaml"}, "--context is not supported, because this command contacts no cluster"},
		"a cluster's config": {[]string{"inject", "--kubeconfig", "prod", "web.yaml"}, "--kubeconfig is not supported, because this command contacts no cluster"},
	} {
		if code, out, stderr := command(t, "", tc.args...); code != ExitError || out != "" || !strings.Contains(stderr, tc.want) {
			t.Errorf("%s: exit code %d\n%s", name, code, stderr)
		}
	}
	if out, _ := ok(t, "", "version"); !strings.HasPrefix(out, "prerig v0.0.0-test (") {
		t.Errorf("prerig version: %q", out)
	}
	for _, args := range [][]string{{"help"}, {"help", "inject"}, {"completion", "bash"}, {"--help"}} {
		if out, _ := ok(t, "", args...); out == "" {
			t.Errorf("%v prints nothing", args)
		}
	}
}
