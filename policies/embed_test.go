// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/policies"
)

func TestNames(t *testing.T) {
	if diff := cmp.Diff([]string{"cloud-sql-operator", "cloud-sql-proxy", "dapr", "fluent-bit", "istio", "linkerd", "opentelemetry-collector", "opentelemetry-instrumentation", "opentelemetry-sidecar", "vault-agent"}, policies.Names()); diff != "" {
		t.Error(diff)
	}
}

func TestGet(t *testing.T) {
	data, ok := policies.Get("istio")
	if !ok || !bytes.Contains(data, []byte("kind: InjectionPolicy")) {
		t.Errorf("got %d bytes and %v for istio", len(data), ok)
	}
	for _, name := range []string{"", "istio.yaml", "../go", "embed.go", "consul"} {
		if data, ok := policies.Get(name); ok || data != nil {
			t.Errorf("got a policy for %q", name)
		}
	}
}
