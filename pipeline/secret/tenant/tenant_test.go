// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tenant_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/secret/tenant"
)

func shop(t *testing.T) tenant.Tenant {
	t.Helper()
	got, err := tenant.New("teams/shop", []string{"shop"}, []string{"https://git.example.com/shop/*", "oci://registry.example.com/shop/*"},
		[]string{"https://git.example.com/rendered/shop", "oci://registry.example.com/out/*"}, []string{"https://flux.example.com/hook/*"})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A pipeline says nothing that its directory does not allow, in whatever way it is written.
func TestTenantsStayWhereTheyAre(t *testing.T) {
	const good = "https://git.example.com/shop/web.git"
	for name, tc := range map[string]struct{ namespace, source, publish, more, want string }{
		"all is well":                {"shop", "git: {url: '" + good + "'}", "git: {url: 'https://git.example.com/rendered/shop.git', branch: r}", "", ""},
		"no namespace":               {"", "git: {url: '" + good + "'}", "git: {url: 'https://git.example.com/rendered/shop.git', branch: r}", "", ""},
		"by ssh":                     {"shop", "git: {url: 'git@git.example.com:shop/web.git'}", "oci: {url: 'oci://registry.example.com/out/web'}", "", ""},
		"artifacts":                  {"shop", "oci: {url: 'oci://registry.example.com/shop/web'}", "oci: {url: 'oci://registry.example.com/out/web'}", "", ""},
		"another's namespace":        {"platform", "git: {url: '" + good + "'}", "oci: {url: 'oci://registry.example.com/out/web'}", "", "metadata.namespace"},
		"another's source":           {"shop", "git: {url: 'https://git.example.com/platform/apps'}", "oci: {url: 'oci://registry.example.com/out/web'}", "", "spec.source.git.url"},
		"a source over plain http":   {"shop", "git: {url: 'http://git.example.com/shop/web'}", "oci: {url: 'oci://registry.example.com/out/web'}", "", "spec.source.git.url"},
		"a roundabout way":           {"shop", "git: {url: 'https://git.example.com/shop/../platform/apps'}", "oci: {url: 'oci://registry.example.com/out/web'}", "", "spec.source.git.url"},
		"an encoded way":             {"shop", "git: {url: 'https://git.example.com/shop/%2e%2e/platform/apps'}", "oci: {url: 'oci://registry.example.com/out/web'}", "", "spec.source.git.url"},
		"the host of a user":         {"shop", "git: {url: 'ssh://git.example.com@evil.org/shop/web'}", "oci: {url: 'oci://registry.example.com/out/web'}", "", "spec.source.git.url"},
		"a directory of the machine": {"shop", "dir: {path: /etc}", "oci: {url: 'oci://registry.example.com/out/web'}", "", "spec.source.dir"},
		"another's target":           {"shop", "git: {url: '" + good + "'}", "git: {url: 'https://git.example.com/rendered/platform', branch: r}", "", "spec.publish[0].git.url"},
		"the source as the target":   {"shop", "git: {url: '" + good + "', ref: {branch: main}}", "git: {branch: r}", "", "spec.publish[0].git.url"},
		"another's artifact":         {"shop", "git: {url: '" + good + "'}", "oci: {url: 'oci://registry.example.com/outside/web'}", "", "spec.publish[0].oci.url"},
		"bases":                      {"shop", "git: {url: '" + good + "'}", "oci: {url: 'oci://registry.example.com/out/web'}", "build: {remoteBases: [{url: 'https://git.example.com/shop/*'}]}", ""},
		"mounted":                    {"shop", "git: {url: '" + good + "'}", "oci: {url: 'oci://registry.example.com/out/web'}", "sources: [{mountPath: x, git: {url: 'https://git.example.com/shop/values'}}]", ""},
		"another's, mounted":         {"shop", "git: {url: '" + good + "'}", "oci: {url: 'oci://registry.example.com/out/web'}", "sources: [{mountPath: x, git: {url: '" + good + "'}}, {mountPath: z, git: {url: 'https://git.example.com/platform/apps'}}]", "spec.sources[1].git.url"},
		"another's artifact mounted": {"shop", "git: {url: '" + good + "'}", "oci: {url: 'oci://registry.example.com/out/web'}", "sources: [{mountPath: x, oci: {url: 'oci://registry.example.com/platform/web'}}]", "spec.sources[0].oci.url"},
		"a directory mounted":        {"shop", "git: {url: '" + good + "'}", "oci: {url: 'oci://registry.example.com/out/web'}", "sources: [{mountPath: x, dir: {path: /etc}}]", "spec.sources[0].dir"},
		"another's bases":            {"shop", "git: {url: '" + good + "'}", "oci: {url: 'oci://registry.example.com/out/web'}", "build: {remoteBases: [{url: 'https://git.example.com/*'}]}", "spec.build.remoteBases[0].url"},
		"a call elsewhere":           {"shop", "git: {url: '" + good + "'}", "oci: {url: 'oci://registry.example.com/out/web'}", "notify: [{cloudEvent: {url: 'http://169.254.169.254/latest'}}]", "spec.notify[0].cloudEvent.url"},
		"a call":                     {"shop", "git: {url: '" + good + "'}", "oci: {url: 'oci://registry.example.com/out/web'}", "notify: [{fluxReceiver: {url: 'https://flux.example.com/hook/abc', secretRef: {name: flux}}}]", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: web, namespace: %q}\nspec:\n  source: {%s}\n  publish: [{%s}]\n  %s\n",
				tc.namespace, tc.source, tc.publish, tc.more)
			all, err := v1alpha1.ParseAll([]byte(text))
			if err != nil || len(all) != 1 {
				t.Fatalf("%v\n%s", err, text)
			}
			err = shop(t).Check(all[0])
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if tc.want == "" && all[0].Metadata.Namespace != "shop" {
				t.Errorf("its namespace is %q", all[0].Metadata.Namespace)
			}
		})
	}
}

func TestTheLongestDirectoryCounts(t *testing.T) {
	all := []tenant.Tenant{{Directory: "teams"}, {Directory: "teams/shop"}, {Directory: "."}}
	for file, want := range map[string]string{
		"teams/shop/a.yaml": "teams/shop", "teams/shop/deep/a.yaml": "teams/shop", "teams/shops/a.yaml": "teams", "a.yaml": ".", "teams/../x/a.yaml": ".",
	} {
		if got, ok := tenant.Of(all, file); !ok || got.Directory != want {
			t.Errorf("%s is of %q", file, got.Directory)
		}
	}
	if _, ok := tenant.Of(all[:2], "other/a.yaml"); ok {
		t.Error("a file outside of all directories has a tenant")
	}
}

func TestTenantsThatAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		directory  string
		namespaces []string
		sources    []string
	}{
		"no directory": {"", []string{"a"}, nil}, "absolute": {"/a", []string{"a"}, nil}, "outside": {"../a", []string{"a"}, nil},
		"no namespace": {"a", nil, nil}, "an odd pattern": {"a", []string{"a"}, []string{"https://*.example.com/x"}},
	} {
		if _, err := tenant.New(tc.directory, tc.namespaces, tc.sources, nil, nil); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
