// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"runtime"
	"time"

	"github.com/prerig/prerig/fn/quantity"
	"github.com/prerig/prerig/pipeline/render"
)

// Config is how the daemon and its workers are set up.
type Config struct {
	// Pipelines is the directory of RenderPipeline files, which is watched. It is empty if only repositories are
	// configured.
	Pipelines string `mapstructure:"pipelines"`
	// PipelinesGit is a Git repository of RenderPipeline files; PipelinesGitList are several, where the key has a list.
	PipelinesGit     PipelinesGit   `mapstructure:"pipelines_git"`
	PipelinesGitList []PipelinesGit `mapstructure:"-"`
	// Kubernetes is about a cluster that pipelines are objects of.
	Kubernetes Kubernetes `mapstructure:"kubernetes"`
	// Removals configures the handling of missing pipelines.
	Removals Removals `mapstructure:"removals"`
	// Policies is the directory that a pipeline's policies[].file is relative to.
	Policies string `mapstructure:"policies"`
	// Secrets is the directory of secrets: NAMESPACE/NAME/KEY.
	Secrets string `mapstructure:"secrets"`
	// RequireSecretHosts rejects secrets that do not list, in their key .hosts, the servers they are for.
	RequireSecretHosts bool `mapstructure:"require_secret_hosts"`
	// State is where mirrors, the embedded queue, the token and the socket are kept.
	State string `mapstructure:"state"`
	// Listen is the address for webhooks and health checks.
	Listen string `mapstructure:"listen"`
	// TLS configures the address for webhooks; without it, the address serves plain HTTP.
	TLS TLS `mapstructure:"tls"`
	// Health is about an address for health checks alone.
	Health Health `mapstructure:"health"`
	// Admin is about the web page, the metrics and the API.
	Admin Admin `mapstructure:"admin"`
	// ExternalURL is the public URL of the web page; it is included in commit statuses and events.
	ExternalURL string `mapstructure:"external_url"`
	// NATS is about the queue.
	NATS NATS `mapstructure:"nats"`
	// Workers is how many renders run at the same time in this process; 0 only receives and plans.
	Workers int `mapstructure:"workers"`
	// InFlight is how many jobs may be under way in this process, those included that wait for a renderer or for the
	// others of their commit.
	InFlight int `mapstructure:"in_flight"`
	// Debounce is the least time between the starts of two runs of a pipeline that events ask for.
	Debounce time.Duration `mapstructure:"debounce"`
	// History is how many runs are kept of each pipeline.
	History int `mapstructure:"history"`
	// AllowLocal allows sources that are directories of this machine.
	AllowLocal bool `mapstructure:"allow_local"`
	// Tenants bind directories of pipelines to namespaces, and to what their authors may read, write and call. With
	// any, a pipeline outside of all their directories is refused.
	Tenants []Tenant `mapstructure:"tenants"`
	// Egress bounds what the daemon connects to for pipelines.
	Egress Egress `mapstructure:"egress"`
	// AllowHostFiles lets pipelines publish to directories that Git hosts act upon, such as .github.
	AllowHostFiles bool `mapstructure:"allow_host_files"`
	// RemoteBases bounds which repositories pipelines may allow as remote bases (spec.build.remoteBases), as URLs
	// of repositories, or with /* at the end for all below. Empty sets no bound beyond those of each pipeline.
	RemoteBases []string `mapstructure:"remote_bases"`
	// Previews is about previews of pull requests (spec.preview).
	Previews Previews `mapstructure:"previews"`
	// Receivers take webhooks.
	Receivers []Receiver `mapstructure:"receivers"`

	places wherePlaced
	// Verify are clusters whose pods are compared with what was committed.
	Verify []Verify `mapstructure:"verify"`
	// Limits bound every render; a pipeline can only lower them.
	Limits Limits `mapstructure:"limits"`
	// Artifacts is about what is published as ExternalArtifacts.
	Artifacts Artifacts `mapstructure:"artifacts"`
	// BuildCache is about builds that are remembered.
	BuildCache BuildCache `mapstructure:"build_cache"`
	// Metrics is about the metrics.
	Metrics Metrics `mapstructure:"metrics"`
	// Log is about logging.
	Log Log `mapstructure:"log"`
	// Tracing is about OpenTelemetry traces.
	Tracing Tracing `mapstructure:"tracing"`
}

// Health configures an address for health checks alone, such as the probes of a pod. The other addresses answer
// them too, but any client of those can keep them busy, and they may use TLS, be local to this machine, or be
// disabled.
type Health struct {
	// Listen is the address, which speaks plain HTTP; empty has none.
	Listen string `mapstructure:"listen"`
}

// Admin configures the web page, the metrics and the API. They are also always served on the Unix socket
// prerig.sock in the state directory, to every user that may open it.
type Admin struct {
	// Listen is the address; empty serves on the socket only.
	Listen string `mapstructure:"listen"`
	// Token is the file with the token that the API asks for. The default is admin.token in the state directory, which
	// is made where it does not exist.
	Token string `mapstructure:"token"`
	// Insecure shows pages and metrics without a token on an address that is not of this machine. Changes always need
	// it.
	Insecure bool `mapstructure:"insecure"`
	// Tokens is a file, or a directory of files, with the hashes of further tokens, their roles and their
	// namespaces. With it, every user must authenticate, even on a local address of this machine.
	Tokens string `mapstructure:"tokens"`
	// Audit is a file to which a line is appended for every change by a user and every denied request. The log has
	// these lines too.
	Audit string `mapstructure:"audit"`
	// TLS configures the address; without it, the address serves plain HTTP.
	TLS TLS `mapstructure:"tls"`
	// OIDC lets people sign in to the page.
	OIDC OIDC `mapstructure:"oidc"`
}

// TLS has an address speak TLS.
type TLS struct {
	// Certificate is a file with the certificate and those between it and its authority, Key the file of its key. Both
	// are read again when they change.
	Certificate string `mapstructure:"certificate"`
	Key         string `mapstructure:"key"`
}

// Enabled reports whether a certificate is configured.
func (t TLS) Enabled() bool { return t.Certificate != "" }

// NamesItsUsers reports whether every user has to authenticate to view pages and metrics.
func (a Admin) NamesItsUsers() bool { return a.Tokens != "" || a.OIDC.Issuer != "" }

// NATS is about the queue.
type NATS struct {
	// URL of the servers; empty embeds one.
	URL string `mapstructure:"url"`
	// Credentials is a file with a user's JWT and seed.
	Credentials string `mapstructure:"credentials"`
	// CA is a file with certificates that servers are checked against.
	CA string `mapstructure:"ca"`
	// Replicas of each stream in a cluster.
	Replicas int `mapstructure:"replicas"`
	// Prefix of the names of streams.
	Prefix string `mapstructure:"prefix"`
	// MaxStore bounds the files of the embedded server, as a quantity such as 1Gi.
	MaxStore string `mapstructure:"max_store"`
	// AckWait is how long a silent worker keeps its job.
	AckWait time.Duration `mapstructure:"ack_wait"`
}

// Receiver accepts the webhooks of one sender at /hook/NAME.
type Receiver struct {
	Name     string `mapstructure:"name"`
	Provider string `mapstructure:"provider"`
	// Secret is the file with the key or token.
	Secret string `mapstructure:"secret"`
	// Insecure accepts what is not signed.
	Insecure bool `mapstructure:"insecure"`
	// Audience and Email are what the token of a Pub/Sub subscription must be for and by whom, instead of a secret.
	Audience string `mapstructure:"audience"`
	Email    string `mapstructure:"email"`
}

// Previews is about previews of pull requests.
type Previews struct {
	// AtOnce is how many pull requests this process previews at the same time; 0 for none. A process without workers
	// previews none.
	AtOnce int `mapstructure:"at_once"`
	// Size bounds what is kept of pull requests' heads, and apart from that of what those of forks are rendered with.
	Size string `mapstructure:"size"`
}

// PreviewsSize returns the bound in bytes.
func (c *Config) PreviewsSize() (int64, error) {
	return parseQuantity("previews.size", c.Previews.Size)
}

// Tenant is a directory of pipelines and what its authors may do. Lists of addresses that are left out set no bound.
type Tenant struct {
	// Directory below that of the pipelines, or from the root of the repository.
	Directory string `mapstructure:"directory"`
	// Namespaces that its pipelines may be of.
	Namespaces []string `mapstructure:"namespaces"`
	// Sources, Targets and Notifications are what they may read, publish to and call, as URLs or with /* at the end.
	Sources       []string `mapstructure:"sources"`
	Targets       []string `mapstructure:"targets"`
	Notifications []string `mapstructure:"notifications"`
}

// Limits bound every render.
type Limits struct {
	// Timeout is the longest time of a render whose pipeline sets none, MaxTimeout the longest that a pipeline may set;
	// without it, a pipeline can only set less than the first.
	Timeout    time.Duration `mapstructure:"timeout"`
	MaxTimeout time.Duration `mapstructure:"max_timeout"`
	Memory     string        `mapstructure:"memory"`
	Output     string        `mapstructure:"output"`
	// Files is how many files a render may read, FileSize and ReadSize how large one of them and all together may be,
	// Entries how many entries the directories may have that it looks into.
	Files    int    `mapstructure:"files"`
	FileSize string `mapstructure:"file_size"`
	ReadSize string `mapstructure:"read_size"`
	Entries  int    `mapstructure:"entries"`
}

// Metrics is about the metrics.
type Metrics struct {
	// Pipelines is how many pipelines have series of their own, five each; 0 for none.
	Pipelines int `mapstructure:"pipelines"`
}

// Log is about logging.
type Log struct {
	// Level is debug, info, warn or error.
	Level string `mapstructure:"level"`
	// Format is text or json.
	Format string `mapstructure:"format"`
}

// Tracing configures OpenTelemetry traces. Without an endpoint none are sent.
type Tracing struct {
	// Endpoint is the URL of an OTLP collector over HTTP, such as http://collector:4318.
	Endpoint string `mapstructure:"endpoint"`
	// Headers is a file with further headers, one "Name: value" a line.
	Headers string `mapstructure:"headers"`
	// Ratio of the traces that are kept, from 0 to 1.
	Ratio float64 `mapstructure:"ratio"`
}

// Default returns the configuration without any file, variable or flag.
func Default() Config {
	return Config{
		Pipelines: "pipelines", PipelinesGit: PipelinesGit{Interval: time.Minute},
		Removals: Removals{Delay: time.Minute, MaxShare: 50},
		Policies: "policies", Secrets: "secrets", State: "state",
		Listen: "127.0.0.1:8080", Admin: Admin{Listen: "127.0.0.1:8081", OIDC: defaultOIDC()},
		Kubernetes: Kubernetes{MeshNamespaces: []string{"istio-system"}},
		NATS:       NATS{Replicas: 1, Prefix: "PRERIG", MaxStore: "1Gi", AckWait: 15 * time.Second},
		Workers:    max(1, runtime.NumCPU()), InFlight: 1000, Debounce: time.Second, History: 20,
		Limits: Limits{
			Timeout: 2 * time.Minute, Memory: "1Gi", Output: "64Mi", Files: 20_000, FileSize: "16Mi", ReadSize: "128Mi",
			Entries: 100_000,
		},
		Previews:   Previews{AtOnce: 2, Size: "2Gi"},
		Artifacts:  Artifacts{Keep: 10 * time.Minute},
		BuildCache: BuildCache{Size: "256Mi"},
		Metrics:    Metrics{Pipelines: 2000}, Log: Log{Level: "info", Format: "text"}, Tracing: Tracing{Ratio: 1},
	}
}

// absentOrHTTP reports whether a text is empty or the URL of a web server, without credentials.
func absentOrHTTP(text string) bool {
	u, err := url.Parse(text)
	return text == "" || err == nil && u.Hostname() != "" && u.User == nil && (u.Scheme == "http" || u.Scheme == "https")
}

// Level returns the level of logging.
func (c *Config) Level() (slog.Level, error) {
	var level slog.Level
	err := level.UnmarshalText([]byte(c.Log.Level))
	return level, err
}

// RenderLimits returns the limits in the renderer's form.
func (c *Config) RenderLimits() (render.Limits, error) {
	limits := render.Limits{Timeout: c.Limits.Timeout, MaxTimeout: c.Limits.MaxTimeout}
	limits.Read.Files, limits.Read.Entries = c.Limits.Files, c.Limits.Entries
	if c.Limits.Timeout <= 0 || c.Limits.Files <= 0 || c.Limits.Entries <= 0 {
		return limits, errors.New("configuration limits: timeout, files and entries must be more than 0")
	}
	for key, value := range map[string]struct {
		text string
		to   *int64
	}{
		"memory": {c.Limits.Memory, &limits.Memory}, "output": {c.Limits.Output, &limits.Output},
		"file_size": {c.Limits.FileSize, &limits.Read.FileBytes},
		"read_size": {c.Limits.ReadSize, &limits.Read.TotalBytes},
	} {
		n, err := parseQuantity("limits."+key, value.text)
		if err != nil {
			return limits, err
		}
		*value.to = n
	}
	return limits, nil
}

// StoreSize returns the bound of the embedded server's files in bytes.
func (n NATS) StoreSize() (int64, error) { return parseQuantity("nats.max_store", n.MaxStore) }

func parseQuantity(key, text string) (int64, error) {
	q, err := quantity.Parse(text)
	if err != nil || q.Value() <= 0 {
		return 0, fmt.Errorf("configuration %s: must be a quantity such as 512Mi, found %q", key, text)
	}
	return q.Value(), nil
}

// Socket is the path of the Unix socket for the command line.
func (c *Config) Socket() string { return filepath.Join(c.State, "prerig.sock") }

// TokenFile is the path of the API's token.
func (c *Config) TokenFile() string {
	if c.Admin.Token != "" {
		return c.Admin.Token
	}
	return filepath.Join(c.State, "admin.token")
}
