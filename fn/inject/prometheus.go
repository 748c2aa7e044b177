// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/podmap"
)

// Prometheus' settings of a pod, by their last part.
const (
	prometheusScrape = "scrape"
	prometheusPath   = "path"
	prometheusPort   = "port"
)

const (
	prometheusPrefix     = "prometheus.io/"
	prometheusEnv        = "ISTIO_PROMETHEUS_ANNOTATIONS"
	mergedPath           = "/stats/prometheus"
	mergeAnnotation      = "prometheus.istio.io/merge-metrics"
	targetsAnnotation    = "prometheus.istio.io/scrape-targets"
	securePortAnnotation = "prometheus.istio.io/secure-port"
	securePortEnv        = "ENVOY_SECURE_MERGED_METRICS_PORT"
)

// scrapeSettings is the JSON that describes the application's metrics to the agent.
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

func (s scrapeSettings) isEmpty() bool {
	return s.Scrape == "" && s.Path == "" && s.Port == "" && len(s.Targets) == 0
}

// spelling is how Prometheus annotations are recognised: only as prometheus.io/NAME, or in every spelling that
// Prometheus treats as equal. targets reports whether the release knows the annotation for several targets.
type spelling struct{ variants, targets bool }

func prometheusSpelling(p *istio.Profile) spelling {
	return spelling{variants: p.Has(feature.PrometheusVariants), targets: p.Has(feature.PrometheusScrapeTargets)}
}

// matchingAnnotationKeys returns the pod's annotations that are the setting, in order.
func (s spelling) matchingAnnotationKeys(p *pod, setting string) []string {
	annotations, _ := p.meta["annotations"].(map[string]any)
	if !s.variants {
		if _, ok := annotations[prometheusPrefix+setting]; ok {
			return []string{prometheusPrefix + setting}
		}
		return nil
	}
	return annotationsLike(p, prometheusPrefix+setting)
}

// annotationsLike are the pod's annotations that are the same label for Prometheus as a name, in order.
func annotationsLike(p *pod, name string) []string {
	annotations, _ := p.meta["annotations"].(map[string]any)
	var out []string
	for key := range annotations {
		if len(key) == len(name) && asLabelName(key) == asLabelName(name) {
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

// scrapeSettingValue returns a setting. If it is written in several spellings the webhook picks an arbitrary one; here
// the last in order wins.
func (s spelling) scrapeSettingValue(p *pod, setting string) (string, bool) {
	keys := s.matchingAnnotationKeys(p, setting)
	if len(keys) == 0 {
		return "", false
	}
	return p.annotation(keys[len(keys)-1])
}

// optsOutOfScraping reports whether the pod opts out of scraping. Values that are neither true nor false are ignored.
func (s spelling) optsOutOfScraping(p *pod) bool {
	refuses := false
	for _, key := range s.matchingAnnotationKeys(p, prometheusScrape) {
		text, _ := p.annotation(key)
		if scrape, err := strconv.ParseBool(text); err == nil {
			refuses = !scrape
		}
	}
	return refuses
}

// removeScrapeSettings removes all of the settings.
func (s spelling) removeScrapeSettings(p *pod) {
	for _, setting := range []string{prometheusScrape, prometheusPath, prometheusPort} {
		for _, key := range s.matchingAnnotationKeys(p, setting) {
			p.removeMetadataValue("annotations", key)
		}
	}
	if !s.targets {
		return
	}
	for _, key := range annotationsLike(p, targetsAnnotation) {
		p.removeMetadataValue("annotations", key)
	}
}

// mergePrometheus makes Prometheus scrape the agent, which scrapes the application, if the mesh or the pod wants it. It
// returns the annotations that locate the proxy's merged metrics.
func mergePrometheus(in *istio.Injector, p *pod, warn *warnings) (map[string]string, error) {
	if !in.Profile().Has(feature.PrometheusMerge) || !p.boolAnnotation(mergeAnnotation, in.Mesh().PrometheusMerge()) {
		return nil, nil
	}
	s := prometheusSpelling(in.Profile())
	if s.variants && s.optsOutOfScraping(p) {
		return nil, nil
	}
	port := statusPort(in)
	own, ok := s.scrapeSettingValue(p, prometheusPort)
	if ok && own == port && in.Profile().Has(feature.PrometheusSkipOwnPort) {
		return nil, nil
	}
	settings, err := readScrapeSettings(in, p, s, warn)
	if err != nil {
		return nil, err
	}
	if proxy := injectedProxyContainer(in, p); proxy != nil && !settings.isEmpty() {
		text, err := json.Marshal(settings)
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", prometheusEnv, err)
		}
		addEnv(proxy, prometheusEnv, string(text))
	}
	s.removeScrapeSettings(p)
	scraped := map[string]string{}
	for setting, value := range map[string]string{prometheusPort: port, prometheusPath: mergedPath, prometheusScrape: "true"} {
		scraped[prometheusPrefix+setting] = value
		p.setMetadataValue("annotations", prometheusPrefix+setting, value)
	}
	return scraped, nil
}

// readScrapeSettings returns the pod's own settings. Targets count only if each has a port; they also set port and
// path, for agents that do not support targets.
func readScrapeSettings(in *istio.Injector, p *pod, s spelling, warn *warnings) (scrapeSettings, error) {
	var out scrapeSettings
	out.Scrape, _ = s.scrapeSettingValue(p, prometheusScrape)
	out.Path, _ = s.scrapeSettingValue(p, prometheusPath)
	out.Port, _ = s.scrapeSettingValue(p, prometheusPort)
	status := in.Mesh().GetDefaultConfig().GetStatusPort()
	fail := func(key string, err error) (scrapeSettings, error) {
		return out, &podmap.FieldError{Field: "metadata.annotations[" + key + "]", Err: err}
	}
	if in.Profile().Has(feature.PrometheusScrapeTargets) {
		for _, key := range annotationsLike(p, targetsAnnotation) {
			text, _ := p.annotation(key)
			targets, ok := parseTargets(text)
			if !ok {
				warn.addf("annotation %s: an entry of %s has no port, so all are ignored", key, foreign.Quote(text))
				continue
			}
			for _, t := range targets {
				if err := applicationPort(t.Port, status); err != nil {
					return fail(key, err)
				}
			}
			out.Targets = targets
		}
	}
	if len(out.Targets) > 0 {
		out.Port, out.Path = out.Targets[0].Port, out.Targets[0].Path
		return out, nil
	}
	if out.Port != "" && in.Profile().Has(feature.PrometheusPortChecked) {
		if err := applicationPort(out.Port, status); err != nil {
			keys := s.matchingAnnotationKeys(p, prometheusPort)
			return fail(keys[len(keys)-1], err)
		}
	}
	return out, nil
}

// reservedPorts are those of Istio's data plane, which have no application's metrics (source:
// pilot/cmd/pilot-agent/status of Istio 1.31).
var reservedPorts = map[int]string{
	15000: "Envoy's administration", 15001: "outbound traffic", 15004: "debugging", 15006: "inbound traffic",
	15008: "HBONE", 15020: "the agent's status", 15021: "Envoy's health", 15053: "DNS", 15090: "Envoy's metrics",
}

// parseTargets parses PORT:PATH,PORT:PATH… The path defaults to /metrics. ok is false if an entry has no port.
func parseTargets(text string) (targets []scrapeTarget, ok bool) {
	for entry := range strings.SplitSeq(text, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		port, path, _ := strings.Cut(entry, ":")
		port, path = strings.TrimSpace(port), strings.TrimSpace(path)
		if port == "" {
			return nil, false
		}
		targets = append(targets, scrapeTarget{Port: port, Path: cmp.Or(path, "/metrics")})
	}
	return targets, true
}

// applicationPort makes sure that a port can be the application's.
func applicationPort(port string, status int32) error {
	n, err := strconv.Atoi(port)
	if err != nil || n < 1 || n > 65535 {
		return fmt.Errorf("%s is not a port", foreign.Quote(port))
	}
	if n == int(status) {
		return fmt.Errorf("port %d is the agent's own", n)
	}
	if use, reserved := reservedPorts[n]; reserved {
		return fmt.Errorf("port %d is Istio's (%s)", n, use)
	}
	return nil
}

// setSecurePort sets the port on which Prometheus finds the merged metrics served with mutual TLS, if the proxy has
// one and the pod does not set it itself.
func setSecurePort(in *istio.Injector, p *pod) {
	if !in.Profile().Has(feature.PrometheusSecurePort) || len(annotationsLike(p, securePortAnnotation)) > 0 {
		return
	}
	env, _ := injectedProxyContainer(in, p)["env"].([]any)
	for _, e := range env {
		m, _ := e.(map[string]any)
		port, _ := m["value"].(string)
		if m["name"] == securePortEnv && port != "" && port != "0" {
			p.setMetadataValue("annotations", securePortAnnotation, port)
			return
		}
	}
}
