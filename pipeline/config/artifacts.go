// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net"
	"path/filepath"
	"time"
)

// Artifacts is about what is published as ExternalArtifacts: files that this process serves, and objects in a cluster.
type Artifacts struct {
	// Listen is the address that the files are served at; without it no artifact can be published.
	Listen string `mapstructure:"listen"`
	// URL is where Flux reaches that address.
	URL string `mapstructure:"url"`
	// Keep is how long a file stays after another one has taken its place.
	Keep time.Duration `mapstructure:"keep"`
	// Kubeconfig is a file with the connection to the API server. Without it, the connection is that of
	// kubernetes.kubeconfig, or the cluster that the daemon runs in.
	Kubeconfig string `mapstructure:"kubeconfig"`
}

// Enabled reports whether artifacts are configured.
func (a Artifacts) Enabled() bool { return a.Listen != "" }

// ArtifactsDir is where their files are kept.
func (c *Config) ArtifactsDir() string { return filepath.Join(c.State, "artifacts") }

// ArtifactsKubeconfig is the file with the way to their cluster, "" for the one that the daemon runs in.
func (c *Config) ArtifactsKubeconfig() string {
	if c.Artifacts.Kubeconfig != "" {
		return c.Artifacts.Kubeconfig
	}
	return c.Kubernetes.Kubeconfig
}

// shortestKeep is less than what Flux needs to take a file that it has just read of.
const shortestKeep = time.Minute

func (a Artifacts) validate(add addError, queueURL string, workers int) {
	if !a.Enabled() {
		if a.URL != "" || a.Kubeconfig != "" {
			add("artifacts.listen", "must be given where another key of artifacts is")
		}
		return
	}
	if _, _, err := net.SplitHostPort(a.Listen); err != nil {
		add("artifacts.listen", "must be HOST:PORT, found %q", a.Listen)
	}
	if a.URL == "" || !absentOrHTTP(a.URL) {
		add("artifacts.url", "must be the http:// or https:// URL that Flux reaches artifacts.listen by, without credentials")
	}
	if a.Keep < shortestKeep {
		add("artifacts.keep", "must be at least %s, found %s", shortestKeep, a.Keep)
	}
	if queueURL != "" {
		add("artifacts.listen", "cannot be together with nats.url: the files are in the state directory of one process, and others could not serve them")
	}
	if workers == 0 {
		add("artifacts.listen", "needs workers, as they write the files")
	}
}
