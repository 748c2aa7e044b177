// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// flagKeys are the flags of the daemon by the key that each sets.
var flagKeys = map[string]string{
	"pipelines": "pipelines", "pipelines-git-url": "pipelines_git.url", "pipelines-git-branch": "pipelines_git.branch",
	"pipelines-git-ref": "pipelines_git.ref", "pipelines-git-path": "pipelines_git.path",
	"pipelines-git-secret":   "pipelines_git.secret",
	"pipelines-git-interval": "pipelines_git.interval", "kubernetes": "kubernetes.pipelines",
	"kubeconfig": "kubernetes.kubeconfig", "policies": "policies", "secrets": "secrets", "state": "state",
	"listen":       "listen",
	"admin-listen": "admin.listen", "health-listen": "health.listen", "external-url": "external_url",
	"nats-url": "nats.url", "nats-credentials": "nats.credentials",
	"nats-replicas": "nats.replicas", "workers": "workers", "allow-local": "allow_local", "log-level": "log.level",
	"log-format": "log.format", "tracing-endpoint": "tracing.endpoint",
}

// Flags adds the flags to a command, the file's among them.
func Flags(f *pflag.FlagSet) {
	d := Default()
	f.StringP("config", "c", "", "configuration file (YAML)")
	f.String("pipelines", d.Pipelines, "directory of RenderPipeline files, watched for changes")
	f.String("pipelines-git-url", "", "URL of a Git repository of RenderPipeline files, instead of --pipelines")
	f.String("pipelines-git-branch", "", "branch to follow (default: the repository's default branch)")
	f.String("pipelines-git-ref", "", "full name of another reference to follow, such as refs/tags/production")
	f.String("pipelines-git-path", "", "directory in the repository (default: its root)")
	f.String("pipelines-git-secret", "", "secret for reading the repository, NAMESPACE/NAME in the directory of secrets")
	f.Duration("pipelines-git-interval", d.PipelinesGit.Interval,
		"polling interval of the repository, in addition to events")
	f.Bool("kubernetes", false, "read RenderPipeline objects from the cluster that this runs in, instead of --pipelines")
	f.String("kubeconfig", "", "kubeconfig of the cluster (default: the ServiceAccount of this pod)")
	f.String("policies", d.Policies, "directory of the policies that pipelines reference by policies[].file")
	f.String("secrets", d.Secrets, "directory of secrets, with files NAMESPACE/NAME/KEY")
	f.String("state", d.State, "directory for mirrors, the queue, the token and the socket")
	f.String("listen", d.Listen, "address for webhooks and health checks")
	f.String("admin-listen", d.Admin.Listen, "address for the web page, metrics and the API; empty for the socket only")
	f.String("health-listen", "", "address for health checks only, such as the probes of a pod; empty for none")
	f.String("external-url", "", "URL at which users reach the web page")
	f.String("nats-url", "", "URL of NATS servers; empty for an embedded server")
	f.String("nats-credentials", "", "file with the NATS user's JWT and seed")
	f.Int("nats-replicas", d.NATS.Replicas, "replicas of each stream in a NATS cluster")
	f.Int("workers", d.Workers, "number of concurrent renders in this process; 0 to receive and plan only")
	f.Bool("allow-local", false, "allow local directories as sources")
	f.String("log-level", d.Log.Level, "log level: debug, info, warn or error")
	f.String("log-format", d.Log.Format, "log format: text or json")
	f.String("tracing-endpoint", "", "URL of an OTLP collector over HTTP; empty for no traces")
}

// Load reads the file that the flag config or the variable PRERIG_CONFIG names, the environment and the flags. Relative
// paths in the file are relative to the file. The warnings are about variables that look like ours and are not known.
func Load(flags *pflag.FlagSet) (c *Config, warnings []string, err error) {
	v, known, err := withoutFile(flags)
	if err != nil {
		return nil, nil, err
	}
	file := ""
	if flags != nil {
		file, _ = flags.GetString("config")
	}
	if file == "" {
		file = os.Getenv("PRERIG_CONFIG")
	}
	var repositories []PipelinesGit
	var text []byte
	if file != "" {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return nil, nil, fmt.Errorf("reading the configuration: %w", err)
		}
		values, list, err := readFile(file, text)
		if err != nil {
			return nil, nil, err
		}
		repositories = list
		if err := v.MergeConfigMap(values); err != nil {
			return nil, nil, fmt.Errorf("reading the configuration %s: %w", file, err)
		}
	}
	if err := checkVariables(func(key string) bool { return isSetByFlag(flags, key) }); err != nil {
		return nil, nil, err
	}
	c = &Config{}
	if err := v.UnmarshalExact(c); err != nil {
		return nil, nil, fmt.Errorf("reading the configuration %s: %w", file, onOneLine(err))
	}
	c.ExternalURL = strings.TrimRight(c.ExternalURL, "/") // paths are put behind it
	c.PipelinesGitList = repositories
	if (len(c.Repositories()) > 0 || c.Kubernetes.Pipelines) && !isGiven(v, flags, "pipelines") {
		c.Pipelines = "" // its default
	}
	if file != "" {
		c.resolveRelativePaths(v, flags, filepath.Dir(file))
	}
	c.places = wherePlaced{flags, file, text}
	if err := c.Validate(); err != nil {
		return nil, nil, c.places.placeErrors(err)
	}
	return c, unknownVariables(known), nil
}

// withoutFile returns the configuration from defaults, the environment and the flags, and the known keys.
func withoutFile(flags *pflag.FlagSet) (v *viper.Viper, known []string, err error) {
	v = viper.New()
	defaults := map[string]any{}
	if err := mapstructure.Decode(Default(), &defaults); err != nil {
		return nil, nil, fmt.Errorf("reading the configuration's defaults: %w", err)
	}
	known = listKeys(reflect.TypeFor[Config](), "")
	for _, key := range known {
		v.SetDefault(key, lookupKey(defaults, key))
	}
	v.SetEnvPrefix("PRERIG")
	v.SetEnvKeyReplacer(strings.NewReplacer(".", "_"))
	v.AutomaticEnv()
	if flags == nil {
		return v, known, nil
	}
	for name, key := range flagKeys {
		if flag := flags.Lookup(name); flag != nil {
			if err := v.BindPFlag(key, flag); err != nil {
				return nil, nil, err
			}
		}
	}
	return v, known, nil
}

// onOneLine puts mapstructure's errors in one line.
func onOneLine(err error) error {
	return fmt.Errorf("%s", strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "*", "")), " "))
}

// resolveRelativePaths makes the paths that come from the file relative to it.
func (c *Config) resolveRelativePaths(v *viper.Viper, flags *pflag.FlagSet, dir string) {
	fromFile := func(key string) bool {
		// A variable that is set but empty has no effect.
		if os.Getenv(variableName(key)) != "" || !v.InConfig(key) {
			return false
		}
		return !isSetByFlag(flags, key)
	}
	paths := map[string]*string{
		"pipelines": &c.Pipelines, "policies": &c.Policies, "secrets": &c.Secrets, "state": &c.State,
		"admin.token":  &c.Admin.Token,
		"admin.tokens": &c.Admin.Tokens, "admin.audit": &c.Admin.Audit,
		"admin.oidc.client_secret": &c.Admin.OIDC.ClientSecret, "admin.oidc.ca": &c.Admin.OIDC.CA,
		"tls.certificate": &c.TLS.Certificate, "tls.key": &c.TLS.Key, "admin.tls.certificate": &c.Admin.TLS.Certificate,
		"admin.tls.key":         &c.Admin.TLS.Key,
		"kubernetes.kubeconfig": &c.Kubernetes.Kubeconfig, "artifacts.kubeconfig": &c.Artifacts.Kubeconfig,
		"nats.credentials": &c.NATS.Credentials, "nats.ca": &c.NATS.CA, "tracing.headers": &c.Tracing.Headers,
	}
	for key, path := range paths {
		if *path != "" && !filepath.IsAbs(*path) && fromFile(key) {
			*path = filepath.Join(dir, *path)
		}
	}
	for i := range c.Verify {
		if path := &c.Verify[i].Kubeconfig; *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
	for i := range c.Receivers {
		if path := &c.Receivers[i].Secret; *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
}

// isSetByFlag reports whether a flag sets the key.
func isSetByFlag(flags *pflag.FlagSet, key string) bool {
	for name, of := range flagKeys {
		if of == key && flags != nil && flags.Changed(name) {
			return true
		}
	}
	return false
}

// isGiven reports whether anybody has set the key.
func isGiven(v *viper.Viper, flags *pflag.FlagSet, key string) bool {
	text, ok := os.LookupEnv(variableName(key))
	return ok && text != "" || v.InConfig(key) || isSetByFlag(flags, key)
}

func variableName(key string) string {
	return "PRERIG_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// unknownVariables returns unknown variables, which are not errors: Kubernetes sets variables named after services
// in every pod, and a service may well be called prerig.
func unknownVariables(known []string) []string {
	names := []string{"PRERIG_CONFIG", "PRERIG_CORPUS"}
	for _, key := range known {
		names = append(names, variableName(key))
	}
	var out []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "PRERIG_") && !slices.Contains(names, name) &&
			!strings.Contains(name, "_SERVICE_") && !strings.Contains(name, "_PORT") {
			out = append(out, "the environment variable "+name+" is not known and has no effect")
		}
	}
	sort.Strings(out)
	return out
}

// listKeys lists the keys of a configuration's type. A list is one key.
func listKeys(t reflect.Type, prefix string) []string {
	var out []string
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Tag.Get("mapstructure") == "-" || !field.IsExported() {
			continue
		}
		key := prefix + field.Tag.Get("mapstructure")
		if field.Type.Kind() == reflect.Struct {
			out = append(out, listKeys(field.Type, key+".")...)
			continue
		}
		out = append(out, key)
	}
	return out
}

func lookupKey(m map[string]any, key string) any {
	first, rest, nested := strings.Cut(key, ".")
	if !nested {
		return m[first]
	}
	inner, _ := m[first].(map[string]any)
	return lookupKey(inner, rest)
}
