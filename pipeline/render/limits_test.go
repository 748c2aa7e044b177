// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
)

// TestTimeoutOfPipelines: a pipeline raises its time limit up to what the operator permits.
func TestTimeoutOfPipelines(t *testing.T) {
	for _, tc := range []struct{ limit, most, wanted, want time.Duration }{
		{2, 0, 1, 1}, {2, 0, 3, 2}, {2, 1, 3, 2}, {2, 10, 3, 3}, {2, 10, 11, 10},
	} {
		limits := render.Limits{Timeout: tc.limit * time.Minute, MaxTimeout: tc.most * time.Minute}
		got, err := limits.Lower(&v1alpha1.RenderLimits{Timeout: &metav1.Duration{Duration: tc.wanted * time.Minute}})
		if err != nil || got.Timeout != tc.want*time.Minute {
			t.Errorf("%+v: got %s, %v", tc, got.Timeout, err)
		}
	}
}
