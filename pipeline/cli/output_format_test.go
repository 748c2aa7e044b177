// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestOutputSelectsAFormat: -o is a format in every command that has it, and JSON and YAML are among them.
func TestOutputSelectsAFormat(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
		flag := cmd.Flags().Lookup("output")
		if flag == nil || flag.Hidden {
			return
		}
		for _, want := range []string{"output format", "json", "yaml"} {
			if !strings.Contains(flag.Usage, want) {
				t.Errorf("%s -o: %q lacks %s", cmd.CommandPath(), flag.Usage, want)
			}
		}
		if complete, ok := cmd.GetFlagCompletionFunc("output"); !ok {
			t.Errorf("%s -o completes nothing", cmd.CommandPath())
		} else if values, _ := complete(cmd, nil, ""); len(values) < 2 {
			t.Errorf("%s -o completes %q", cmd.CommandPath(), values)
		}
	}
	visit(NewRoot(Streams{}, "test"))
}

func TestOutputOfEarlierVersions(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "web.yaml", initWeb)
	_, stderr := ok(t, "", "inject", "-q", "-o", "out.yaml", "web.yaml")
	if !strings.Contains(stderr, "warning: -o is for formats; use --to out.yaml\n") {
		t.Error(stderr)
	}
	_, stderr = ok(t, "", "inject", "-q", "--to", "to.yaml", "web.yaml")
	if strings.Contains(stderr, "--to") || readFile(t, "to.yaml") != readFile(t, "out.yaml") {
		t.Error(stderr)
	}
	for args, want := range map[string]string{
		"inject -o jsn web.yaml":                `--output is "jsn"; it can be yaml or json; use --to for a file`,
		"inject -o sarif web.yaml":              `--output is "sarif"; it can be yaml or json; use --to for a file`,
		"inject -o a.yaml --to b.yaml web.yaml": `--output is "a.yaml"; it can be yaml or json; use --to for a file`,
		"inject -o json -i web.yaml":            "--output and --in-place cannot be used together",
		"inject -o a.yaml -i web.yaml":          "--in-place and --to cannot be used together",
		"inject -o json --to out/ web.yaml":     "-o json is for standard output or a file; the files in the directory out/ keep their format",
		"init --yes -o json":                    `--output is "json", and this command has one format; use --to for a file`,
		"explain -o sarif web.yaml":             `--output is "sarif"; it can be text, json or yaml`,
	} {
		code, _, stderr := command(t, "", strings.Fields(args)...)
		if code != ExitError || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d: %s", args, code, stderr)
		}
	}
	if _, err := os.Stat("jsn"); err == nil {
		t.Error("a slip in a format has become a file")
	}
	if _, stderr := ok(t, "", "explain", "-o", "table", "web.yaml"); !strings.Contains(stderr, "warning: -o table is now -o text\n") {
		t.Error(stderr)
	}
}

// TestInjectJSON: the objects in JSON are those in YAML, and Kubernetes' own decoder reads them.
func TestInjectJSON(t *testing.T) {
	t.Chdir(t.TempDir())
	list := "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {number: \"1e3\"}}\n"
	writeFile(t, "all.yaml", initWeb+"---\n# nothing\n---\n"+list)
	out, _ := ok(t, "", "inject", "-q", "-o", "json", "all.yaml")
	object, _, err := unstructured.UnstructuredJSONScheme.Decode([]byte(out), nil, nil)
	must(t, err)
	decoded, isList := object.(*unstructured.UnstructuredList)
	if !isList || len(decoded.Items) != 2 {
		t.Fatalf("%T: %s", object, out)
	}
	var kinds []string
	for _, item := range decoded.Items {
		kinds = append(kinds, item.GetKind())
	}
	if got := strings.Join(kinds, " "); got != "Deployment ConfigMap" {
		t.Error(got)
	}
	if !strings.Contains(out, `"istio-proxy"`) || !strings.Contains(out, `"number": "1e3"`) {
		t.Error(out)
	}
}

// TestFormerCommands: the commands of a daemon work by their former names, which the help does not list.
func TestFormerCommands(t *testing.T) {
	code, _, stderr := command(t, "", "status", "--state", t.TempDir())
	if code != ExitError || !strings.HasPrefix(stderr, "warning: prerig status is now prerig daemon status\nerror: calling the daemon") {
		t.Errorf("%d %s", code, stderr)
	}
	code, out, stderr := command(t, "", "token", "create", "x", "--role", "read")
	if code != ExitOK || out == "" || !strings.Contains(stderr, "warning: prerig token create is now prerig daemon token create\n") {
		t.Errorf("%d %s", code, stderr)
	}
	if _, out, _ := command(t, "", "--help"); strings.Contains(out, "\n  rollback") || !strings.Contains(out, "\n  daemon") {
		t.Error(out)
	}
	if _, out, _ := command(t, "", "daemon", "--help"); !strings.Contains(out, "\n  rollback") {
		t.Error(out)
	}
	if code, _, stderr := command(t, "", "daemon", "statu"); code != ExitError || !strings.Contains(stderr, "unknown command statu; did you mean status?") {
		t.Errorf("%d %s", code, stderr)
	}
	out, _ = ok(t, "", "version", "-o", "json")
	if !json.Valid([]byte(out)) {
		t.Error(out)
	}
}
