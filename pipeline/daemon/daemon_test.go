// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import "testing"

func TestTheServersOfTheQueueAreToldWithoutCredentials(t *testing.T) {
	for given, want := range map[string]string{
		"nats://nats:4222": "nats://nats:4222", "nats://u:p@a:4222, tls://token@b:4222": "a:4222,b:4222", "bogus": "bogus", "nats://u:p@ss@a": "a",
	} {
		if got := serverAddresses(given); got != want {
			t.Errorf("of %s: got %s, want %s", given, got, want)
		}
	}
}
