// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"
)

// TestTheExampleHasEveryKeyWithItsDefault reads the file that documents the configuration.
func TestTheExampleHasEveryKeyWithItsDefault(t *testing.T) {
	const dir = "../../examples/daemon"
	text, err := os.ReadFile(dir + "/prerig.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, warnings, err := load(t, "", "--config", dir+"/prerig.yaml")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	want := Default()
	for _, path := range []*string{&want.Pipelines, &want.Policies, &want.Secrets, &want.State} {
		*path = filepath.Join(dir, *path)
	}
	want.Workers = 2
	if runtime.NumCPU() == 1 {
		want.Workers = c.Workers
	}
	want.Receivers = []Receiver{{Name: "github", Provider: "github", Secret: filepath.Join(dir, "secrets/hooks/github")}}
	want.Egress = Egress{Sources: []string{}, Targets: []string{}, Notifications: []string{}, Deny: []string{}, Allow: []string{}}
	want.RemoteBases, want.Tenants, want.Verify, want.Admin.OIDC.Grants = []string{}, []Tenant{}, []Verify{}, []GroupGrant{}
	want.Kubernetes.Namespaces = []string{}
	if diff := cmp.Diff(&want, c, cmpopts.IgnoreUnexported(Config{})); diff != "" {
		t.Error(diff)
	}
	// pipelines_git excludes pipelines, so that it stands there as a comment.
	shown := map[string]any{}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(strings.ReplaceAll(string(text), "\n# pipelines_git", "\npipelines_git"), "\n#   ", "\n  ")), &shown); err != nil {
		t.Fatal(err)
	}
	for _, key := range listKeys(reflect.TypeFor[Config](), "") {
		if !has(shown, key) {
			t.Errorf("the example lacks %s", key)
		}
	}
	receiver, _ := shown["receivers"].([]any)[0].(map[string]any)
	for _, key := range listKeys(reflect.TypeFor[Receiver](), "") {
		if !has(receiver, key) {
			t.Errorf("the example's receiver lacks %s", key)
		}
	}
}

func has(m map[string]any, key string) bool {
	first, rest, nested := strings.Cut(key, ".")
	value, ok := m[first]
	if !nested || !ok {
		return ok
	}
	inner, _ := value.(map[string]any)
	return has(inner, rest)
}
