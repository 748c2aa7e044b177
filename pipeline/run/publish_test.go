// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/status"
)

func TestStageOf(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		stage string
		final bool
	}{
		"a gate":             {fmt.Errorf("to x: %w", &publish.GateError{}), status.StageGate, true},
		"somebody's branch":  {fmt.Errorf("to x: %w", publish.ErrUnmanaged), status.StagePublish, true},
		"somebody's file":    {fmt.Errorf("to x: %w", publish.ErrNotOwned), status.StagePublish, true},
		"what is no file":    {fmt.Errorf("%w: a/b", errContent), status.StagePublish, true},
		"a server that errs": {errors.New("no route"), status.StagePublish, false},
	} {
		if got := publishError(test.err); got.Stage != test.stage || got.Final != test.final || !errors.Is(got, test.err) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestFindings(t *testing.T) {
	response := &render.Response{Warnings: []string{"w"}, Results: []result.Result{{Severity: result.Info, Message: "silent"}, {Severity: result.Error, Message: "loud"}}}
	got := findingLines(response)
	if len(got) != 2 || got[0] != "warning: w" || !strings.Contains(got[1], "loud") {
		t.Errorf("got %q", got)
	}
	for range 30 {
		response.Warnings = append(response.Warnings, "w")
	}
	if got := findingLines(response); len(got) != maxFindings+1 || got[maxFindings] != "and more" {
		t.Errorf("got %d findings, the last is %q", len(got), got[len(got)-1])
	}
}
