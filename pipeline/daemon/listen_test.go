// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/server"
	"github.com/prerig/prerig/pipeline/telemetry"
)

// TestReceiversAreMeasuredFromTheStart has no webhook come: alerts take the first one that is refused for an increase.
func TestReceiversAreMeasuredFromTheStart(t *testing.T) {
	c := &config.Config{State: t.TempDir(), Receivers: []config.Receiver{{Name: "git", Provider: "github", Insecure: true}}}
	p := &components{config: c, metrics: telemetry.NewMetrics("1"), dialer: egress.NewDialer(egress.Rules{})}
	if _, err := openServer(p, server.Options{Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	p.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if want := `prerig_deliveries_total{outcome="refused",receiver="git"} 0`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("there is no %s", want)
	}
}
