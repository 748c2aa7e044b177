// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"slices"
	"testing"
)

// Errors that come in another order each time look like other errors to whoever compares logs.
func TestErrorsComeInTheSameOrder(t *testing.T) {
	wrong := Config{Listen: "x", Workers: -1, InFlight: -1, Debounce: 1}
	wrong.Admin.Listen, wrong.Health.Listen = "y", "z"
	wrong.Removals.Delay = 1
	first := wrong.Validate()
	if first == nil {
		t.Fatal("nothing was found")
	}
	for range 50 {
		if again := wrong.Validate(); again.Error() != first.Error() {
			t.Fatalf("first:\n%v\nagain:\n%v", first, again)
		}
	}
	var keys []string
	for _, match := range regexp.MustCompile(`(?m)^configuration (\S+):`).FindAllStringSubmatch(first.Error(), -1) {
		keys = append(keys, match[1])
	}
	for _, key := range []string{"admin.listen", "health.listen", "listen", "state", "workers", "in_flight", "history", "debounce", "removals.delay", "nats.replicas"} {
		if !slices.Contains(keys, key) {
			t.Errorf("nothing about %s in\n%v", key, first)
		}
	}
}
