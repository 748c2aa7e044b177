// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// TestWhatIsWrongWithTheFileHasALine has each mistake told with its line, its key and what was expected.
func TestWhatIsWrongWithTheFileHasALine(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"unknown keys":         {"state: s\nwokers: 2\nnats:\n  uri: x\n", []string{"prerig.yaml: line 2: wokers: unknown field, did you mean workers?", "line 4: nats.uri: unknown field, did you mean url?"}},
		"key of a receiver":    {"receivers:\n- name: a\n  secrett: b\n", []string{"line 3: receivers[0].secrett: unknown field, did you mean secret?"}},
		"no number":            {"workers: many\n", []string{`line 1: workers: must be a whole number, is the text "many"`}},
		"a fraction":           {"\nworkers: 1.7\n", []string{`line 2: workers: must be a whole number, is 1.7`}},
		"true for a number":    {"workers: true\n", []string{`line 1: workers: must be a whole number, is true`}},
		"a list for a number":  {"workers: [1]\n", []string{"line 1: workers: must be a whole number, is a list"}},
		"keys for a text":      {"listen: {a: b}\n", []string{"line 1: listen: must be a string, is a map"}},
		"no time":              {"limits: {timeout: soon}\n", []string{`line 1: limits.timeout: must be a time with its unit, such as 5m, is the text "soon"`}},
		"neither true nor not": {"admin: {insecure: maybe}\n", []string{`line 1: admin.insecure: must be true or false, is the text "maybe"`}},
		"a number for keys":    {"nats: 3\n", []string{`line 1: nats: must be a map, is 3`}},
		"one receiver":         {"receivers: {name: a}\n", []string{"line 1: receivers: must be a list, is a map"}},
		"a text for receivers": {"receivers: [a]\n", []string{`line 1: receivers[0]: must be a map, is the text "a"`}},
		"keys in remote bases": {"remote_bases: {a: b}\n", []string{"line 1: remote_bases: must be a list, is a map"}},
		"a list as the file":   {"- a\n", []string{"prerig.yaml: must be a map, is a list"}},
		"twice":                {"workers: 1\nWorkers: 2\n", []string{"line 2: Workers: is given twice, first in line 1"}},
		"manifests":            {"apiVersion: apps/v1\nkind: Deployment\n---\napiVersion: v1\nkind: Service\n", []string{"it is a Deployment and not a configuration of prerig serve; examples/daemon/prerig.yaml shows the keys"}},
		"a pipeline":           {"apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\n", []string{"it is a RenderPipeline and not a configuration of prerig serve; specify its directory with --pipelines"}},
		"two documents":        {"workers: 1\n---\nworkers: zz\n", []string{"expected one document"}},
		"no YAML":              {"a: b\n c: d\n", []string{"prerig.yaml: line 2: mapping values are not allowed here"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(t, tc.text)
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}

// TestFormsThatAreFine has what templates and people write that mean it.
func TestFormsThatAreFine(t *testing.T) {
	c, _, err := load(t, "workers: \"3\"\nAdmin:\nlimits: &l {timeout: 5s}\nnats:\n  ack_wait: 20s\ntracing: {ratio: 1}\nallow_local: \"true\"\n"+
		"remote_bases: https://a.example/x,https://b.example/y\nhistory: 0x10\n")
	if err != nil {
		t.Fatal(err)
	}
	if c.Workers != 3 || c.Limits.Timeout != 5*time.Second || c.NATS.AckWait != 20*time.Second || !c.AllowLocal || len(c.RemoteBases) != 2 || c.History != 16 ||
		c.Admin.Listen != Default().Admin.Listen {
		t.Errorf("%+v", c)
	}
}

// TestVariablesThatCannotBeRead are named, as nobody knows the key that they are for.
func TestVariablesThatCannotBeRead(t *testing.T) {
	for name, value := range map[string]string{
		"PRERIG_WORKERS": "x", "PRERIG_REMOVALS_DELAY": "soon", "PRERIG_ALLOW_LOCAL": "perhaps", "PRERIG_TRACING_RATIO": "half",
		"PRERIG_RECEIVERS": "a",
	} {
		t.Run(name, func(t *testing.T) {
			clean(t)
			t.Setenv(name, value)
			if _, _, err := loadHere(t, ""); err == nil || !strings.Contains(err.Error(), "reading the variable "+name+": ") {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("a flag wins", func(t *testing.T) {
		clean(t)
		t.Setenv("PRERIG_WORKERS", "x")
		if c, _, err := loadHere(t, "", "--workers", "4"); err != nil || c.Workers != 4 {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

// TestAnEmptyVariableLeavesAPathToTheFile: compose files set variables to nothing, and the file's value then counts.
func TestAnEmptyVariableLeavesAPathToTheFile(t *testing.T) {
	clean(t)
	t.Setenv("PRERIG_STATE", "")
	t.Setenv("PRERIG_ADMIN_TOKEN", "")
	c, _, err := loadHere(t, "state: s\nadmin: {token: t}\n")
	if err != nil || !filepath.IsAbs(c.State) || !filepath.IsAbs(c.Admin.Token) {
		t.Errorf("state %q, token %q, error %v", c.State, c.Admin.Token, err)
	}
}

// TestErrorsNameWhatSetsTheKey: an error about a key names the line of the file, the variable or the flag that sets it.
func TestErrorsNameWhatSetsTheKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(file, []byte("state: s\nlimits:\n  memory: 1GB\nlisten: 8080\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PRERIG_LOG_FORMAT", "xml")
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	Flags(flags)
	if err := flags.Parse([]string{"--config", file, "--log-level", "trace"}); err != nil {
		t.Fatal(err)
	}
	_, _, err := Load(flags)
	for _, want := range []string{
		file + ":3: configuration limits.memory: must be a quantity", file + `:4: configuration listen: must be HOST:PORT, found "8080", did you mean 127.0.0.1:8080 or :8080?`,
		"--log-level: configuration log.level: must be", "the variable PRERIG_LOG_FORMAT: configuration log.format: must be",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in\n%v", want, err)
		}
	}
}
