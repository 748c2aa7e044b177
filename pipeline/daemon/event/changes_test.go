// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestNamesTimesReferencesAreBounded: whoever has the secret of a repository's webhook sends one with many names of the
// repository and many references, each of which has all names.
func TestNamesTimesReferencesAreBounded(t *testing.T) {
	var links, cloud, server strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&links, `{"href":"https://h/%d"},`, i)
		fmt.Fprintf(&cloud, `{"new":{"name":"%d","target":{"hash":"%s"}}},`, i, a40)
		fmt.Fprintf(&server, `{"ref":{"id":"refs/heads/%d"},"toHash":"%s"},`, i, a40)
	}
	names := links.String() + `{"href":"https://h/a"}`
	for provider, c := range map[Provider]struct{ key, body string }{
		BitbucketCloud: {"repo:push", `{"push":{"changes":[` + cloud.String() + `{}]},"repository":{"links":{"clone":[` + names + `]}}}`},
		BitbucketServer: {"repo:refs_changed", `{"changes":[` + server.String() + `{"ref":{"id":"x"}}],"repository":{"links":{"clone":[` +
			names + `]}}}`},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h := http.Header{"X-Event-Key": {c.key}}
		_, err := Receiver{Name: "git", Provider: provider, Insecure: true}.Read(h, "", []byte(c.body), time.Now())
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "more than 16 MiB") {
			t.Errorf("%s: got %v", provider, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 128<<20 {
			t.Errorf("%s: %d bytes took %d MiB", provider, len(c.body), took>>20)
		}
	}
}
