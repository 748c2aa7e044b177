// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import "testing"

// TestNetworkOfTheLabel checks which network a proxy is told: an empty label takes the values' network away, and leaves that of the
// injection URL.
func TestNetworkOfTheLabel(t *testing.T) {
	labelled := func(network string) map[string]string { return map[string]string{networkLabel: network} }
	for name, tc := range map[string]struct {
		values, url string
		labels      map[string]string
		want        string
		there       bool
	}{
		"no label":                     {"global: {network: values}", "", nil, "values", true},
		"no label, URL":                {"global: {network: values}", "url", nil, "url", true},
		"label":                        {"global: {network: values}", "url", labelled("own"), "own", true},
		"empty label":                  {"global: {network: values}", "", labelled(""), "", false},
		"empty label, URL":             {"global: {network: values}", "url", labelled(""), "url", true},
		"empty label and nothing else": {"{}", "", labelled(""), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := New(Options{Version: "1.31", Config: config("a: b"), Values: tc.values, Network: tc.url})
			if err != nil {
				t.Fatal(err)
			}
			got, there := in.ClusterVariables(tc.labels)[NetworkVariable]
			if got != tc.want || there != tc.there {
				t.Errorf("the network is %q, %t, want %q, %t", got, there, tc.want, tc.there)
			}
		})
	}
}
