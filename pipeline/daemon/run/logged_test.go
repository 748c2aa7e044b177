// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// A line about a run that published to two places has each key once, in both formats.
func TestPublishedPlacesAreOneValueOfALine(t *testing.T) {
	published := loggedTargets{{Target: "https://git.example.com/a#live", Revision: "aaa"}, {Target: "oci://registry.example.com/a", Revision: "sha256:bbb"}}
	var text, object bytes.Buffer
	slog.New(slog.NewTextHandler(&text, nil)).Info("run ended", "published", published)
	if want := `published="https://git.example.com/a#live@aaa oci://registry.example.com/a@sha256:bbb"`; !strings.Contains(text.String(), want) {
		t.Errorf("got %s want %s", text.String(), want)
	}
	slog.New(slog.NewJSONHandler(&object, nil)).Info("run ended", "published", published)
	var line struct{ Published []v1alpha1.Published }
	if err := json.Unmarshal(object.Bytes(), &line); err != nil || len(line.Published) != 2 || line.Published[1].Revision != "sha256:bbb" {
		t.Errorf("%v\n%s", err, object.String())
	}
}
