// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/internal/testprograms"
)

// installed is a directory with prerig, prerig-render and prerig-validate, as they are released.
func installed(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("building Kubernetes' validation takes minutes")
	}
	dir := t.TempDir()
	must(t, testprograms.Install(dir))
	return dir
}

// runInstalled runs prerig, and returns its exit code and output.
func runInstalled(t *testing.T, dir string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(dir, "prerig"), args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

const pod = "{metadata: {labels: {app: a}}, spec: {restartPolicy: Always, containers: [{name: a, image: \"nginx:1\"}]}}"

// changes are objects with a change of each, and what the API server rejects of it. An empty rejection is one that is accepted.
var changes = []struct{ name, object, from, to, want string }{
	{"Job", "apiVersion: batch/v1\nkind: Job\nspec: {template: " + strings.Replace(pod, "Always", "Never", 1) + "}\n", "nginx:1", "nginx:2", "spec.template"},
	{"Pod", "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a, image: \"nginx:1\", args: [a]}]}\n", "args: [a]", "args: [b]", "spec.containers"},
	{"Pod's image", "apiVersion: v1\nkind: Pod\nspec: {containers: [{name: a, image: \"nginx:1\"}]}\n", "nginx:1", "nginx", ""},
	{"claim templates", "apiVersion: apps/v1\nkind: StatefulSet\nspec: {serviceName: a, selector: {matchLabels: {app: a}}, template: " + pod +
		", volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}\n", "1Gi", "2Gi", "spec.volumeClaimTemplates"},
	{"serviceName", "apiVersion: apps/v1\nkind: StatefulSet\nspec: {serviceName: a, selector: {matchLabels: {app: a}}, template: " + pod + "}\n", "serviceName: a", "serviceName: b", "spec.serviceName"},
	{"StatefulSet's image", "apiVersion: apps/v1\nkind: StatefulSet\nspec: {serviceName: a, selector: {matchLabels: {app: a}}, template: " + pod + "}\n", "nginx:1", "nginx:2", ""},
	{"Deployment", "apiVersion: apps/v1\nkind: Deployment\nspec: {selector: {matchLabels: {app: a}}, template: " + pod + "}\n", "app: a", "app: b", "spec.selector"},
	{"ReplicaSet", "apiVersion: apps/v1\nkind: ReplicaSet\nspec: {selector: {matchLabels: {app: a}}, template: " + pod + "}\n", "app: a", "app: b", "spec.selector"},
	{"Service", "apiVersion: v1\nkind: Service\nspec: {clusterIP: 10.0.0.5, selector: {app: a}, ports: [{port: 80}]}\n", "10.0.0.5", "10.0.0.6", "spec.clusterIP"},
	{"headless Service", "apiVersion: v1\nkind: Service\nspec: {type: ClusterIP, selector: {app: a}, ports: [{port: 80}]}\n", "type: ClusterIP", "clusterIP: None", "spec.clusterIP"},
	{"ConfigMap", "apiVersion: v1\nkind: ConfigMap\nimmutable: true\ndata: {a: b}\n", "a: b", "a: c", "data"},
	{"Secret", "apiVersion: v1\nkind: Secret\nimmutable: true\nstringData: {a: b}\n", "a: b", "a: c", "data"},
	{"Secret's type", "apiVersion: v1\nkind: Secret\ntype: example.org/a\n", "org/a", "org/b", "type"},
	{"claim", "apiVersion: v1\nkind: PersistentVolumeClaim\nspec: {accessModes: [ReadWriteOnce], storageClassName: fast, resources: {requests: {storage: 1Gi}}}\n", "fast", "slow", "spec.storageClassName"},
	{"larger claim", "apiVersion: v1\nkind: PersistentVolumeClaim\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n", "1Gi", "2Gi", ""},
	{"StorageClass", "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nprovisioner: example.org/a\nparameters: {a: b}\n", "a: b", "a: c", "parameters"},
	{"RoleBinding", "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: a}\n", "name: a}", "name: b}", "roleRef"},
	{"PersistentVolume", "apiVersion: v1\nkind: PersistentVolume\nspec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], nfs: {server: one, path: /}}\n", "one", "two", "spec.nfs"},
	{"IngressClass", "apiVersion: networking.k8s.io/v1\nkind: IngressClass\nspec: {controller: example.org/a}\n", "org/a", "org/b", "spec.controller"},
	{"PriorityClass", "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nvalue: 1\n", "value: 1", "value: 2", "value"},
	{"invalid change", "apiVersion: apps/v1\nkind: Deployment\nspec: {selector: {matchLabels: {app: a}}, template: " + pod + "}\n", "name: a, image", "name: A, image", "spec.template.spec.containers[0].name"},
}

// withName returns an object of changes with the name.
func withName(object, name, annotations string) string {
	head, rest, _ := strings.Cut(object, "\nkind: ")
	kind, rest, _ := strings.Cut(rest, "\n")
	return head + "\nkind: " + kind + "\nmetadata: {name: " + strings.ToLower(strings.NewReplacer(" ", "-", "'", "").Replace(name)) + annotations + "}\n" + rest
}

// writeChanges writes the objects of changes into old and new, and a CustomResourceDefinition and a Namespace that go.
func writeChanges(t *testing.T, annotations string) {
	t.Helper()
	for _, dir := range []string{"old", "new"} {
		must(t, os.Mkdir(dir, 0o755))
	}
	for _, c := range changes {
		file := strings.ReplaceAll(c.name, " ", "-") + ".yaml"
		must(t, os.WriteFile("old/"+file, []byte(withName(c.object, c.name, annotations)), 0o644))
		must(t, os.WriteFile("new/"+file, []byte(withName(strings.ReplaceAll(c.object, c.from, c.to), c.name, annotations)), 0o644))
	}
	must(t, os.WriteFile("old/gone.yaml", []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: gone}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: gone}\n"), 0o644))
}

// TestGateAgainstFindsWhatCannotChange checks one change of each kind, by the API server's own code.
func TestGateAgainstFindsWhatCannotChange(t *testing.T) {
	dir := installed(t)
	t.Chdir(t.TempDir())
	writeChanges(t, "")
	code, stdout, stderr := runInstalled(t, dir, "gate", "--as-is", "--against", "old", "new")
	if code != ExitFindings {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if first, _, _ := strings.Cut(stdout, "\n"); !strings.Contains(first, "Namespace gone: the object is deleted, with everything that is in it [update-deletes]") {
		t.Errorf("the first line is %q", first)
	}
	for _, c := range changes {
		file := "new/" + strings.ReplaceAll(c.name, " ", "-") + ".yaml:"
		var found []string
		for line := range strings.Lines(stdout) {
			if strings.Contains(line, file) {
				found = append(found, line)
			}
		}
		if c.want == "" {
			if len(found) > 0 {
				t.Errorf("%s: the API server accepts it, found %q", c.name, found)
			}
			continue
		}
		if len(found) == 0 || !strings.HasPrefix(found[0], "error: ") || !strings.Contains(found[0], " "+c.want+": ") {
			t.Errorf("%s: want an error about %s, found %q", c.name, c.want, found)
		}
	}
}

// TestGateAgainstAcceptsWhatIsReplaced annotates each object so that Flux replaces it.
func TestGateAgainstAcceptsWhatIsReplaced(t *testing.T) {
	dir := installed(t)
	for _, annotation := range []string{"kustomize.toolkit.fluxcd.io/force: enabled", "argocd.argoproj.io/sync-options: \"Replace=true,Force=true\""} {
		t.Chdir(t.TempDir())
		writeChanges(t, ", annotations: {"+annotation+"}")
		must(t, os.Remove("new/invalid-change.yaml"))
		code, stdout, _ := runInstalled(t, dir, "gate", "--as-is", "--against", "old", "new")
		if code != ExitOK || strings.Contains(stdout, "update-rejected") || !strings.Contains(stdout, "update-replaced") {
			t.Errorf("exit code %d\n%s", code, stdout)
		}
	}
}

// TestGateAgainstARevision reads the old state from Git, and keeps the Jobs that are there.
func TestGateAgainstARevision(t *testing.T) {
	dir := installed(t)
	t.Chdir(t.TempDir())
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	job := withName(changes[0].object, "migrate", "")
	must(t, os.MkdirAll("k8s/sub", 0o755))
	must(t, os.WriteFile("k8s/sub/job.yaml", []byte(job), 0o644))
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "one")
	code, stdout, stderr := runInstalled(t, dir, "gate", "-p", "istio", "--against", "HEAD", "k8s")
	if code != ExitOK {
		t.Errorf("a Job that does not change: exit code %d\n%s%s", code, stdout, stderr)
	}
	must(t, os.WriteFile("k8s/sub/job.yaml", []byte(strings.Replace(job, "nginx:1", "nginx:2", 1)), 0o644))
	must(t, os.WriteFile("k8s/new.yaml", []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: new}\n"), 0o644))
	code, stdout, _ = runInstalled(t, dir, "gate", "--as-is", "--against", "HEAD", "k8s")
	if code != ExitFindings || !strings.Contains(stdout, "k8s/sub/job.yaml:4: Job migrate spec.template: the API server rejects the change") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	code, _, stderr = runInstalled(t, dir, "gate", "--as-is", "--against", "nowhere", "k8s")
	if code != ExitError || !strings.Contains(stderr, "nowhere is neither a file or directory nor a revision") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

// TestDiffPredictsRejections renders, changes the source, and compares with what was rendered.
func TestDiffPredictsRejections(t *testing.T) {
	dir := installed(t)
	t.Chdir(t.TempDir())
	writeChanges(t, ", namespace: shop")
	must(t, os.Mkdir("pipelines", 0o755))
	must(t, os.WriteFile("pipelines/shop.yaml", []byte(`apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: shop}
spec:
  source: {git: {url: https://git.example.org/config.git}}
  build: {path: app}
  publish: [{git: {branch: rendered}, secrets: Allow}]
`), 0o644))
	must(t, os.Rename("old", "app"))
	if code, _, stderr := runInstalled(t, dir, "render", "--source", ".", "-o", "pub"); code != ExitOK {
		t.Fatal(stderr)
	}
	must(t, os.RemoveAll("app"))
	must(t, os.Rename("new", "app"))
	code, stdout, _ := runInstalled(t, dir, "diff", "--source", ".", "--against", "pub")
	if code != ExitError {
		t.Errorf("exit code %d", code)
	}
	if !strings.HasPrefix(stdout, "== deleted: Namespace gone (shop)\n   deleted with everything that is in it\n") {
		t.Errorf("the deletion of the Namespace does not come first:\n%.300s", stdout)
	}
	for _, c := range changes {
		name := strings.ToLower(strings.NewReplacer(" ", "-", "'", "").Replace(c.name))
		rejected := false
		for line := range strings.Lines(stdout) {
			if strings.HasPrefix(line, "error: ") && (strings.Contains(line, "/"+name+" ") || strings.Contains(line, " "+name+" ")) {
				rejected = rejected || strings.Contains(line, " "+c.want+": ")
			}
		}
		if rejected != (c.want != "") {
			t.Errorf("%s: predicted a rejection: %v", c.name, rejected)
		}
	}
	_, review, _ := runInstalled(t, dir, "diff", "--source", ".", "--against", "pub", "-o", "review", "--limit", "0")
	wants(t, review, "1 Namespace would be deleted, with everything that is in it", "update-rejected", "Job shop/job")
}
