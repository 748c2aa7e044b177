// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "testing"

func TestTarget(t *testing.T) {
	for want, to := range map[string]Publish{
		"https://h/r.git rendered shop":   {Git: &GitPublish{URL: "https://h/r.git", Branch: "rendered", Path: "shop"}},
		"https://h/r.git env-next ":       {Git: &GitPublish{URL: "https://h/r.git", Branch: "env", Propose: &Propose{}}},
		"https://h/r.git env-next/east .": {Git: &GitPublish{URL: "https://h/r.git", Branch: "env", Path: ".", Propose: &Propose{ActivePath: "east"}}},
		"oci://h/r:latest":                {OCI: &OCIPublish{URL: "oci://h/r"}},
		"oci://h/r:v1":                    {OCI: &OCIPublish{URL: "oci://h/r", Tags: []string{"v1", "latest"}}},
	} {
		if got := to.Target(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
