// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestArtifacts has one process serve artifacts, and never several.
func TestArtifacts(t *testing.T) {
	const good = "artifacts: {listen: ':8082', url: 'http://prerig.prerig:8082'}\n"
	for name, tc := range map[string]struct{ text, want string }{
		"good":              {good, ""},
		"with its cluster":  {"artifacts: {listen: ':8082', url: 'https://a.example', kubeconfig: k, keep: 1h}\n", ""},
		"none":              {"", ""},
		"no address":        {"artifacts: {url: 'http://a.example'}\n", "artifacts.listen: must be given"},
		"an odd address":    {"artifacts: {listen: x, url: 'http://a.example'}\n", "artifacts.listen: must be HOST:PORT"},
		"no URL":            {"artifacts: {listen: ':8082'}\n", "artifacts.url"},
		"credentials":       {"artifacts: {listen: ':8082', url: 'http://a:b@a.example'}\n", "artifacts.url"},
		"too short":         {"artifacts: {listen: ':8082', url: 'http://a.example', keep: 1s}\n", "artifacts.keep: must be at least 1m0s"},
		"several processes": {good + "nats: {url: 'nats://nats.example:4222'}\n", "artifacts.listen: cannot be together with nats.url"},
		"nobody who works":  {good + "workers: 0\n", "artifacts.listen: needs workers"},
	} {
		t.Run(name, func(t *testing.T) {
			c, file, err := loadText(t, tc.text)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if err == nil && strings.Contains(tc.text, "kubeconfig") && c.ArtifactsKubeconfig() != filepath.Join(filepath.Dir(file), "k") {
				t.Errorf("the kubeconfig is %q", c.ArtifactsKubeconfig())
			}
		})
	}
}
