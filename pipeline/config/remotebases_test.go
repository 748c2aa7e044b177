// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/source/giturl"
)

func TestRemoteBases(t *testing.T) {
	c, _, err := load(t, "remote_bases: [\"https://git.example.com/org/*\", \"git@git.example.com:team/library\"]\n")
	if err != nil {
		t.Fatal(err)
	}
	patterns, err := c.RemotePatterns()
	if err != nil || len(patterns) != 2 {
		t.Fatalf("got %v, %v", patterns, err)
	}
	base, err := giturl.ParseAddress("https://git.example.com/team/library")
	if err != nil {
		t.Fatal(err)
	}
	if i, _ := giturl.Best(patterns, &base); i != 1 {
		t.Errorf("got %d", i)
	}
	if _, _, err = load(t, "remote_bases: [\"https://git.example.com/org/*\", \"https://*\"]\n"); err == nil || !strings.Contains(err.Error(), "remote_bases[1]") {
		t.Errorf("got %v", err)
	}
}
