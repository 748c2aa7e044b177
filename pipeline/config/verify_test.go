// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
	"time"
)

// TestVerify reads clusters that are compared, and says what is wrong with them.
func TestVerify(t *testing.T) {
	c := Default()
	c.Verify = []Verify{{Name: "prod", URL: "https://git.example.com/c.git", Branch: "rendered", Paths: []string{"shop"}}}
	if err := c.Validate(); err != nil || c.Verify[0].Every() != 5*time.Minute {
		t.Errorf("%v, every %s", err, c.Verify[0].Every())
	}
	good := c.Verify[0]
	for name, want := range map[string]struct {
		change func(*Verify)
		says   string
	}{
		"no name":       {func(v *Verify) { v.Name = "" }, "verify[1].name: must be of letters"},
		"a name twice":  {func(v *Verify) { v.Name = "prod" }, "verify[1].name: is that of another cluster"},
		"credentials":   {func(v *Verify) { v.URL = "https://u:hidden@git.example.com/c.git" }, "verify[1].url: must start with"},
		"too often":     {func(v *Verify) { v.Interval = time.Second }, "verify[1].interval: must be at least 10s"},
		"a bad hook":    {func(v *Verify) { v.Notify.URL = "ftp://x" }, "verify[1].notify.url: must be an http"},
		"a lone secret": {func(v *Verify) { v.Notify.Secret = "x" }, "verify[1].notify.url: must be given"},
		"a way out":     {func(v *Verify) { v.Paths = []string{"../x"} }, "verify[1].paths: must be directories in the repository"},
	} {
		t.Run(name, func(t *testing.T) {
			other := good
			other.Name = "other"
			want.change(&other)
			c.Verify = []Verify{good, other}
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want.says) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("%v, want %s", err, want.says)
			}
		})
	}
}
