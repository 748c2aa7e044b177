// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package opentelemetry_test

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/sidecar/opentelemetry"
)

// TestInstrumentErrors: what is refused says its annotation, container or field. What is changed is compared with the operator in the
// tests of the policy opentelemetry-instrumentation.
func TestInstrumentErrors(t *testing.T) {
	t.Parallel()
	const object = "{apiVersion: opentelemetry.io/v1alpha1, kind: Instrumentation, metadata: {name: a, namespace: shop}, spec: {SPEC}}"
	for name, tc := range map[string]struct{ annotations, spec, object, want string }{
		"not supported":    {"inject-nginx: 'true'", "{containers: [{name: web}]}", "", "instrumentation.opentelemetry.io/inject-nginx: instrumentation of this kind is not supported"},
		"not there":        {"inject-java: b", "{containers: [{name: web}]}", "", `b is not among values.instrumentations in the namespace "shop"`},
		"other version":    {"inject-java: 'true'", "{containers: [{name: web}]}", strings.Replace(object, "v1alpha1", "v1beta1", 1), "has to be opentelemetry.io/v1alpha1"},
		"unknown field":    {"inject-java: 'true'", "{containers: [{name: web}]}", strings.Replace(object, "SPEC", "ruby: {}", 1), "spec.ruby is not a field"},
		"no containers":    {"inject-java: 'true'", "{}", "", "the pod has no containers"},
		"pod name":         {"inject-sdk: 'true'", "{containers: [{name: web, env: [{name: OTEL_RESOURCE_ATTRIBUTES_POD_NAME, value: a}]}]}", "", "has the variable OTEL_RESOURCE_ATTRIBUTES_POD_NAME"},
		"attributes":       {"inject-sdk: 'true'", "{containers: [{name: web, env: [{name: OTEL_RESOURCE_ATTRIBUTES, valueFrom: {}}]}]}", "", "container web: the variable OTEL_RESOURCE_ATTRIBUTES is a reference"},
		"variable no name": {"inject-sdk: 'true'", "{containers: [{name: web}]}", strings.Replace(object, "SPEC", "env: [{value: a}]", 1), "a variable without a name"},
		"init and regular": {"inject-java: 'true', instrumentation.opentelemetry.io/java-container-names: migrate, instrumentation.opentelemetry.io/inject-nodejs: 'true', instrumentation.opentelemetry.io/nodejs-container-names: web",
			"{initContainers: [{name: migrate}], containers: [{name: web}]}", "", "one of them is for an init container"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.object == "" {
				tc.object = object
			}
			text := "{namespace: shop, kind: Deployment, name: orders, annotations: {instrumentation.opentelemetry.io/" + tc.annotations + "}, spec: " + tc.spec +
				", instrumentations: [" + strings.Replace(tc.object, "SPEC", "", 1) + "]}"
			request, err := manifest.Decode([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if _, err = opentelemetry.Instrument(request.(map[string]any)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, without %q", err, tc.want)
			}
		})
	}
}
