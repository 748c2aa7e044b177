// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/internal/testprograms"
)

func TestDemo(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("the git command is not installed")
	}
	dir, err := testprograms.Build(testprograms.Prerig)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := runDemo(t.Context(), &out, filepath.Join(dir, testprograms.Prerig.Name), 4); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"Render 4 pipelines: Add the shop",
		"Render catalog: Release 1.1 of catalog",
		"+        image: registry.example.com/shop/catalog:1.1",
		"Prerig-Command: prerig render catalog --revision main@sha1:",
		"the result is the same, and there is no commit",
		"the same in 4 Deployments of 4 pipelines",
		"Render 4 pipelines: Upgrade Istio to 1.29.1",
		"4 files changed",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the demo does not show %q:\n%s", want, out.String())
		}
	}
}
