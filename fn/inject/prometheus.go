// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/istio"
)

// Prometheus' settings of a pod, by their last part.
const (
	prometheusScrape = "scrape"
	prometheusPath   = "path"
	prometheusPort   = "port"
)

const (
	prometheusPrefix      = "prometheus.io/"
	prometheusEnv         = "ISTIO_PROMETHEUS_ANNOTATIONS"
	mergedPath            = "/stats/prometheus"
	mergeAnnotation       = "prometheus.istio.io/merge-metrics"
	targetsAnnotation     = "prometheus.istio.io/scrape-targets"
	securePortAnnotation  = "prometheus.istio.io/secure-port"
	securePortMetadataEnv = "ENVOY_SECURE_MERGED_METRICS_PORT"
)

// scrapeSettings is the JSON that tells the agent what the application's metrics are.
type scrapeSettings struct {
	Scrape  string         `json:"scrape"`
	Path    string         `json:"path"`
	Port    string         `json:"port"`
	Targets []scrapeTarget `json:"targets,omitempty"`
}

type scrapeTarget struct {
	Port string `json:"port"`
	Path string `json:"path"`
}

func (s scrapeSettings) empty() bool {
	return s.Scrape == "" && s.Path == "" && s.Port == "" && len(s.Targets) == 0
}

// spelling is how Prometheus annotations are recognised: only as prometheus.io/NAME, or in every way of writing that
// Prometheus takes for the same.
type spelling struct{ variants bool }

func prometheusSpelling(p *istio.Profile) spelling {
	return spelling{variants: p.Has(istio.PrometheusVariants)}
}

// keys are the pod's annotations that are the setting, in order.
func (s spelling) keys(p *pod, setting string) []string {
	annotations, _ := p.meta["annotations"].(map[string]any)
	if !s.variants {
		if _, ok := annotations[prometheusPrefix+setting]; ok {
			return []string{prometheusPrefix + setting}
		}
		return nil
	}
	var out []string
	for key := range annotations {
		if len(key) == len(prometheusPrefix)+len(setting) && asLabelName(key) == "prometheus_io_"+setting {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// asLabelName puts an underscore for every character that a Prometheus label cannot have.
func asLabelName(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, s)
}

// get is a setting. Where it is written in several ways the webhook takes any; here the last in order counts.
func (s spelling) get(p *pod, setting string) (string, bool) {
	keys := s.keys(p, setting)
	if len(keys) == 0 {
		return "", false
	}
	return p.annotation(keys[len(keys)-1])
}

// clear takes all of the settings out.
func (s spelling) clear(p *pod) {
	for _, setting := range []string{prometheusScrape, prometheusPath, prometheusPort} {
		for _, key := range s.keys(p, setting) {
			p.unset("annotations", key)
		}
	}
}

// mergePrometheus makes Prometheus scrape the agent, which scrapes the application, if the mesh or the pod wants it.
func (r *run) mergePrometheus() error {
	if !r.profile.Has(istio.PrometheusMerge) || !r.wantsMerge() {
		return nil
	}
	s := prometheusSpelling(r.profile)
	if s.variants {
		if text, ok := s.get(r.pod, prometheusScrape); ok {
			if scrape, err := strconv.ParseBool(text); err == nil && !scrape {
				return nil
			}
		}
	}
	port := statusPort(r.in)
	if got, ok := s.get(r.pod, prometheusPort); ok && got == port && r.profile.Has(istio.PrometheusSkipOwnPort) {
		return nil
	}
	settings, err := r.scrapeSettings(s)
	if err != nil {
		return err
	}
	if proxy := r.proxy(); proxy != nil && !settings.empty() {
		text, err := json.Marshal(settings)
		if err != nil {
			return fmt.Errorf("writing %s: %w", prometheusEnv, err)
		}
		addEnv(proxy, prometheusEnv, string(text))
	}
	s.clear(r.pod)
	if r.profile.Has(istio.PrometheusScrapeTargets) {
		r.pod.unset("annotations", targetsAnnotation)
	}
	for setting, value := range map[string]string{prometheusPort: port, prometheusPath: mergedPath, prometheusScrape: "true"} {
		r.pod.set("annotations", prometheusPrefix+setting, value)
	}
	return nil
}

// wantsMerge is what the pod's annotation says, else the mesh.
func (r *run) wantsMerge() bool {
	if text, ok := r.pod.annotation(mergeAnnotation); ok {
		if want, err := strconv.ParseBool(text); err == nil {
			return want
		}
	}
	return r.in.Mesh().PrometheusMerge()
}

func (r *run) scrapeSettings(s spelling) (scrapeSettings, error) {
	var out scrapeSettings
	out.Scrape, _ = s.get(r.pod, prometheusScrape)
	out.Path, _ = s.get(r.pod, prometheusPath)
	out.Port, _ = s.get(r.pod, prometheusPort)
	if !r.profile.Has(istio.PrometheusScrapeTargets) {
		return out, nil
	}
	text, ok := r.pod.annotation(targetsAnnotation)
	if !ok {
		return out, nil
	}
	targets, err := parseTargets(text, r.in.Mesh().GetDefaultConfig().GetStatusPort())
	if err != nil {
		return out, &FieldError{Field: "metadata.annotations[" + targetsAnnotation + "]", Err: err}
	}
	if len(targets) == 0 {
		return out, nil
	}
	out.Targets, out.Port, out.Path = targets, targets[0].Port, targets[0].Path
	return out, nil
}

// reservedPorts are those of Istio's data plane, which have no application's metrics (source:
// pilot/cmd/pilot-agent/status of Istio 1.31).
var reservedPorts = map[int]string{
	15000: "Envoy's administration", 15001: "outbound traffic", 15004: "debugging", 15006: "inbound traffic",
	15008: "HBONE", 15020: "the agent's status", 15021: "Envoy's health", 15053: "DNS", 15090: "Envoy's metrics",
}

// parseTargets reads PORT:PATH,PORT:PATH… The path is /metrics where there is none.
func parseTargets(text string, status int32) ([]scrapeTarget, error) {
	var out []scrapeTarget
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		port, path, _ := strings.Cut(entry, ":")
		port, path = strings.TrimSpace(port), strings.TrimSpace(path)
		if port == "" {
			return nil, fmt.Errorf("%q has no port", entry)
		}
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return nil, fmt.Errorf("%q is not a port", port)
		}
		if n == int(status) {
			return nil, fmt.Errorf("port %d is the agent's own", n)
		}
		if use, reserved := reservedPorts[n]; reserved {
			return nil, fmt.Errorf("port %d is Istio's (%s)", n, use)
		}
		if path == "" {
			path = "/metrics"
		}
		out = append(out, scrapeTarget{Port: port, Path: path})
	}
	return out, nil
}

// setSecurePort tells Prometheus the port on which the merged metrics are served with mutual TLS, if the proxy has one.
func (r *run) setSecurePort() {
	if !r.profile.Has(istio.PrometheusSecurePort) || r.proxy() == nil {
		return
	}
	port := r.proxyConfig.GetProxyMetadata()[securePortMetadataEnv]
	if n, err := strconv.Atoi(port); err != nil || n <= 0 {
		return
	}
	r.pod.set("annotations", securePortAnnotation, port)
}

// validateTargets checks the annotation as the webhook does before anything else.
func validateTargets(in *istio.Injector) func(string) error {
	return func(text string) error {
		targets, err := parseTargets(text, in.Mesh().GetDefaultConfig().GetStatusPort())
		if err == nil && len(targets) == 0 {
			return errors.New("it names no target")
		}
		return err
	}
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
