// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
)

// clean takes PRERIG_ variables of whoever runs the tests away.
func clean(t *testing.T) {
	for _, entry := range os.Environ() {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "PRERIG_") {
			t.Setenv(name, value)
			os.Unsetenv(name)
		}
	}
}

func load(t *testing.T, text string, args ...string) (*Config, []string, error) {
	t.Helper()
	clean(t)
	return loadHere(t, text, args...)
}

func loadHere(t *testing.T, text string, args ...string) (*Config, []string, error) {
	t.Helper()
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	Flags(flags)
	if text != "" {
		file := filepath.Join(t.TempDir(), "prerig.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", file)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Load(flags)
}

func TestDefaults(t *testing.T) {
	c, warnings, err := load(t, "")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	want := Default()
	if diff := cmp.Diff(&want, c, cmpopts.IgnoreUnexported(Config{})); diff != "" {
		t.Error(diff)
	}
}

func TestPrecedence(t *testing.T) {
	clean(t)
	t.Setenv("PRERIG_LIMITS_TIMEOUT", "7s")
	t.Setenv("PRERIG_NATS_URL", "nats://env")
	t.Setenv("PRERIG_TYPO", "x")
	t.Setenv("PRERIG_SERVICE_HOST", "10.0.0.1")
	c, warnings, err := loadHere(t, `
workers: 3
nats: {url: "nats://file", replicas: 3}
limits: {timeout: 5s, memory: 2Gi}
log: {format: json}
receivers:
- {name: hub, provider: github, secret: hub.key}
`, "--nats-url", "nats://flag")
	if err != nil {
		t.Fatal(err)
	}
	if c.Workers != 3 || c.NATS.URL != "nats://flag" || c.NATS.Replicas != 3 || c.Limits.Timeout != 7*time.Second || c.Limits.Memory != "2Gi" || c.Log.Format != "json" {
		t.Errorf("%+v", c)
	}
	if len(c.Receivers) != 1 || filepath.Base(c.Receivers[0].Secret) != "hub.key" || !filepath.IsAbs(c.Receivers[0].Secret) {
		t.Errorf("receivers: %+v", c.Receivers)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "PRERIG_TYPO") {
		t.Errorf("warnings: %q", warnings)
	}
}

func TestPathsOfTheFileAreRelativeToIt(t *testing.T) {
	c, _, err := load(t, "pipelines: p\nstate: s\n", "--state", "elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(c.Pipelines) || c.State != "elsewhere" || c.Policies != "policies" {
		t.Errorf("pipelines %s, state %s, policies %s", c.Pipelines, c.State, c.Policies)
	}
}

func TestLoadRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"unknown key":             {"wokers: 2\n", "wokers"},
		"unknown nested key":      {"nats: {uri: x}\n", "uri"},
		"unknown receiver key":    {"receivers:\n- {name: a, secrett: b}\n", "secrett"},
		"value of a wrong type":   {"workers: many\n", "workers"},
		"not YAML":                {"a: [\n", "reading the configuration"},
		"quantity":                {"limits: {memory: lots}\n", "configuration limits.memory"},
		"negative workers":        {"workers: -1\n", "configuration workers"},
		"no address":              {"listen: ''\n", "configuration listen: must be HOST:PORT"},
		"address":                 {"listen: nowhere\n", "configuration listen"},
		"external URL":            {"external_url: ftp://x\n", "configuration external_url"},
		"level":                   {"log: {level: loud}\n", "configuration log.level"},
		"series of pipelines":     {"metrics: {pipelines: -1}\n", "configuration metrics.pipelines"},
		"ratio":                   {"tracing: {ratio: 2}\n", "configuration tracing.ratio"},
		"collector":               {"tracing: {endpoint: \"::\"}\n", "configuration tracing.endpoint"},
		"collector, no scheme":    {"tracing: {endpoint: collector:4318}\n", "configuration tracing.endpoint"},
		"collector, credentials":  {"tracing: {endpoint: \"https://u:s3cr3t@collector\"}\n", "configuration tracing.endpoint"},
		"bound of the queue":      {"nats: {max_store: none}\n", "configuration nats.max_store"},
		"name of streams":         {"nats: {prefix: \"a.b *\"}\n", "configuration nats.prefix: must be of letters"},
		"duration":                {"debounce: soon\n", "debounce"},
		"ack wait":                {"nats: {ack_wait: 1ms}\n", "configuration nats.ack_wait"},
		"two places":              {"pipelines: p\npipelines_git: {url: https://h/p}\n", "configuration pipelines: must not be given together"},
		"Git without a URL":       {"pipelines_git: {branch: main}\n", "configuration pipelines_git.url"},
		"two references":          {"pipelines_git: {url: https://h/p, branch: main, ref: refs/tags/v1}\n", "configuration pipelines_git.ref"},
		"reference not in full":   {"pipelines_git: {url: https://h/p, ref: v1}\n", "configuration pipelines_git: branch must be"},
		"path out of Git":         {"pipelines_git: {url: https://h/p, path: ../x}\n", "configuration pipelines_git.path"},
		"secret with a key":       {"pipelines_git: {url: https://h/p, secret: a/b/c}\n", "configuration pipelines_git.secret"},
		"interval of Git":         {"pipelines_git: {url: https://h/p, interval: 1ms}\n", "configuration pipelines_git.interval"},
		"interval without unit":   {"pipelines_git: {url: https://h/p, interval: 5}\n", "configuration pipelines_git.interval: must be a time with its unit"},
		"debounce without unit":   {"debounce: 5\n", "configuration debounce: must be a time with its unit, such as 5s"},
		"delay without unit":      {"removals: {delay: 60}\n", "configuration removals.delay: must be a time with its unit"},
		"time limit without unit": {"limits: {timeout: 30}\n", "configuration limits.timeout: must be a time with its unit"},
		"share":                   {"removals: {max_share: 200}\n", "configuration removals.max_share"},
		"credentials in the URL":  {"external_url: https://u:p@x\n", "configuration external_url"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := load(t, tc.text); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestReceiversNeedTheirSecrets(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &Config{Receivers: []Receiver{{Name: "a", Provider: "github", Secret: key}, {Name: "b", Provider: "quay", Insecure: true}}}
	receivers, err := c.EventReceivers(nil)
	if err != nil || string(receivers[0].Secret) != "secret" || !receivers[1].Insecure {
		t.Fatalf("%+v, %v", receivers, err)
	}
	for name, r := range map[string]Receiver{
		"no secret": {Name: "a", Provider: "github"}, "both": {Name: "a", Provider: "github", Secret: key, Insecure: true},
		"no file": {Name: "a", Provider: "github", Secret: key + "x"}, "provider": {Name: "a", Provider: "gitfoo", Insecure: true},
	} {
		c := &Config{Receivers: []Receiver{r}}
		if _, err := c.EventReceivers(nil); err == nil || strings.Contains(err.Error(), "secret\n") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A secret that is changed counts at once, two are good while senders change over, and a file that is gone for a moment stops nobody.
func TestReceiversReadTheirSecretsAgain(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(key, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old\n")
	receivers, err := (&Config{Receivers: []Receiver{{Name: "a", Provider: "quay", Secret: key}}}).EventReceivers(nil)
	if err != nil {
		t.Fatal(err)
	}
	good := func(token string) bool {
		return receivers[0].CheckHeaders(http.Header{"Authorization": {"Bearer " + token}}, "", time.Now()) == nil
	}
	check := func(when string, old, next bool) {
		t.Helper()
		if good("old") != old || good("new") != next || good("") || good("other") {
			t.Errorf("%s: the old one is good %v, the new one %v", when, good("old"), good("new"))
		}
	}
	check("at first", true, false)
	write("old\nnew\n")
	check("with both", true, true)
	write("new")
	check("with the new one", false, true)
	write("")
	check("while it is empty", false, true)
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	check("while it is gone", false, true)
}

func TestPipelinesFromGit(t *testing.T) {
	clean(t)
	t.Setenv("PRERIG_PIPELINES_GIT_BRANCH", "production")
	c, warnings, err := loadHere(t, "pipelines_git: {url: https://h/p, branch: main, secret: platform/git}\n",
		"--pipelines-git-path", "pipelines", "--pipelines-git-interval", "5s")
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	want := PipelinesGit{URL: "https://h/p", Branch: "production", Path: "pipelines", Secret: "platform/git", Interval: 5 * time.Second}
	if diff := cmp.Diff(want, c.PipelinesGit); diff != "" || c.Pipelines != "" {
		t.Errorf("directory %q; %s", c.Pipelines, diff)
	}
	if namespace, name := c.PipelinesGit.SecretName(); namespace != "platform" || name != "git" || c.PipelinesGit.RefName() != "refs/heads/production" {
		t.Errorf("secret %s of %s, reference %s", name, namespace, c.PipelinesGit.RefName())
	}
}

func TestACredentialInTheURLIsNotRepeated(t *testing.T) {
	_, _, err := load(t, "pipelines_git: {url: 'https://bob:hunter2@h/p'}\n")
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "pipelines_git.secret") {
		t.Errorf("got %v", err)
	}
}

func TestPathsArePutBehindTheExternalURL(t *testing.T) {
	c, _, err := load(t, "external_url: https://prerig.example/apps/\nadmin: {listen: ''}\n")
	if err != nil || c.ExternalURL != "https://prerig.example/apps" || c.Admin.Listen != "" {
		t.Errorf("%q, %q, %v", c.ExternalURL, c.Admin.Listen, err)
	}
}

// A receiver of Artifact Registry has no secret: it knows tokens by whom they are of and for.
func TestReceiversThatCheckTokens(t *testing.T) {
	for name, tc := range map[string]struct {
		receiver Receiver
		want     string
	}{
		"good":        {Receiver{Name: "a", Provider: "artifact-registry", Audience: "https://x/hook/a", Email: "a@b"}, ""},
		"no audience": {Receiver{Name: "a", Provider: "artifact-registry", Email: "a@b"}, "audience"},
		"no address":  {Receiver{Name: "a", Provider: "artifact-registry", Audience: "x", Email: "a"}, "email address"},
		"neither":     {Receiver{Name: "a", Provider: "artifact-registry"}, "audience and email"},
		"another":     {Receiver{Name: "a", Provider: "ecr", Audience: "x", Email: "a@b"}, "artifact-registry alone"},
	} {
		got, err := (&Config{Receivers: []Receiver{tc.receiver}}).EventReceivers(nil)
		if tc.want == "" && (err != nil || got[0].Token == nil) || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
