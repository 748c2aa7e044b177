// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
)

// TestDefinitionsThatOthersRecordedAreQuotedInPart: whoever may write to a registry, or a branch, chooses what is
// recorded there as published.
func TestDefinitionsThatOthersRecordedAreQuotedInPart(t *testing.T) {
	deleted := []string{"apiextensions.k8s.io/v1 CustomResourceDefinition a\x1b[2J\u202e" + strings.Repeat("x", 1<<20)}
	for i := range 100_000 {
		deleted = append(deleted, fmt.Sprintf("apiextensions.k8s.io/v1 CustomResourceDefinition widgets%d.example.com", i))
	}
	err := publish.Gate(v1alpha1.Gates{}, []render.Object{{Kind: "ConfigMap", Name: "a"}})(len(deleted), deleted)
	if err == nil {
		t.Fatal("the gate is open")
	}
	if text := err.Error(); len(text) > 16<<10 || strings.ContainsFunc(text, foreign.IsHidden) || !strings.Contains(text, " and 99951 more would be deleted") {
		t.Errorf("%d bytes: %.300q", len(text), text)
	}
}
