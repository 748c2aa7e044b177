// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// withOverrides makes an injector of a small configuration with overrides.
func withOverrides(t *testing.T, overrides string) (*Injector, error) {
	t.Helper()
	over, err := ParseValues(overrides, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := config("spec: {}") + `neverInjectSelector: [{matchLabels: {app: old}, matchExpressions: [{key: x, operator: Exists}]}]
injectedAnnotations: {kept: "1", changed: "1"}
`
	return New(Options{Version: "1.31", Config: text, Values: `{"global": {"proxy": {"autoInject": "enabled"}}}`, Overrides: over})
}

// TestOverridesOfTheConfiguration: what Istio's chart writes into data.config, and not only into data.values, must get there too.
func TestOverridesOfTheConfiguration(t *testing.T) {
	in, err := withOverrides(t, `
sidecarInjectorWebhook:
  templates: {custom: "metadata: {}"}
  defaultTemplates: [sidecar, custom]
  neverInjectSelector: [{matchLabels: {app: new}}]
  alwaysInjectSelector: [{matchLabels: {app: always}}]
  injectedAnnotations: {changed: "2", added: "2"}
global: {proxy: {autoInject: disabled}}
`)
	if err != nil {
		t.Fatal(err)
	}
	c := in.Config()
	if diff := cmp.Diff(map[string]string{"kept": "1", "changed": "2", "added": "2"}, c.InjectedAnnotations); diff != "" {
		t.Errorf("annotations: -want +got:\n%s", diff)
	}
	if c.Templates["custom"] != "metadata: {}" || c.Templates["sidecar"] == "" || strings.Join(c.DefaultTemplates, " ") != "sidecar custom" || c.Policy != PolicyDisabled {
		t.Errorf("%+v", c)
	}
	for app, want := range map[string]bool{"old": false, "new": true} {
		if at := in.NeverMatches(map[string]string{"app": app, "x": "y"}); (at >= 0) != want {
			t.Errorf("never injects %s: selector %d", app, at)
		}
	}
	if in.AlwaysMatches(map[string]string{"app": "always"}) < 0 {
		t.Error("it does not always inject what it is to")
	}
}

func TestOverridesThatTheConfigurationCannotHave(t *testing.T) {
	for overrides, want := range map[string]string{
		`{sidecarInjectorWebhook: {templates: text}}`:                                                                     "injector.overrides.sidecarInjectorWebhook.templates: must be a map",
		`{sidecarInjectorWebhook: {templates: {custom: {spec: {}}}}}`:                                                     "injector.overrides.sidecarInjectorWebhook.templates.custom: must be a string",
		`{sidecarInjectorWebhook: {templates: {custom: "{{ broken"}}}`:                                                    "custom",
		`{sidecarInjectorWebhook: {neverInjectSelector: [{matchLabel: {app: a}}]}}`:                                       `neverInjectSelector.0.matchLabel: unknown field, did you mean matchLabels?`,
		`{sidecarInjectorWebhook: {defaultTemplates: {sidecar: true}}}`:                                                   "injector.overrides.sidecarInjectorWebhook.defaultTemplates: ",
		`{global: {proxy: {autoInject: maybe}}}`:                                                                          "injector.overrides.global.proxy.autoInject: it is maybe; it must be enabled or disabled",
		`{sidecarInjectorWebhook: {template: {custom: "spec: {}"}}}`:                                                      "injector.overrides.sidecarInjectorWebhook.template: the values do not have it",
		`{global: {proxy: {logLevel: verbose}}}`:                                                                          "injector.overrides.global.proxy.logLevel: must be one of trace, debug, ",
		`{global: {proxy: {logLevel: debgu}}}`:                                                                            `is "debgu", did you mean debug?`,
		`{global: {proxy: {componentLogLevel: "misc:loud"}}}`:                                                             "injector.overrides.global.proxy.componentLogLevel: must be COMPONENT:LEVEL",
		`{global: {logging: {level: "default:trace"}}}`:                                                                   "injector.overrides.global.logging.level: must be SCOPE:LEVEL",
		`{global: {imagePullPolicy: always}}`:                                                                             `is "always", did you mean Always?`,
		`{global: {proxy: {resources: {requests: {cpu: 100 m}}}}}`:                                                        `injector.overrides.global.proxy.resources.requests.cpu: must be a quantity such as 100m or 128Mi, is "100 m"`,
		`{global: {proxy: {resources: {limits: {cpus: 100m}}}}}`:                                                          "injector.overrides.global.proxy.resources.limits.cpus: is not a resource of a container, did you mean cpu?",
		`{global.proxy.logLevel: debug}`:                                                                                  "a key with dots is one name, and the values do not have it; write {global: {proxy: {logLevel: …}}}",
		`{global: {proxy: {resources: {limits: {cpu: 1, hugepages-2Mi: 4Mi, example.com/a: 1}}}}}`:                        "",
		`{sidecarInjectorWebhook: {templates: null, injectedAnnotations: null}}`:                                          "",
		`{sidecarInjectorWebhook: {enableNamespacesByDefault: true, objectSelector: {enabled: true, autoInject: false}}}`: "",
	} {
		_, err := withOverrides(t, overrides)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: have the error %v, want %q", overrides, err, want)
		}
	}
}
