// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package opentelemetry

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// endpoint is where a component listens by default.
type endpoint struct {
	port     int64
	protocol string
}

// receiverEndpoints are the receivers with one endpoint of which the operator knows the port, and the scrapers, which
// have none (internal/components/receivers/helpers.go).
var receiverEndpoints = map[string]endpoint{
	"awsxray": {2000, "UDP"}, "carbon": {2003, ""}, "collectd": {8081, ""}, "fluentforward": {8006, ""},
	"influxdb": {8086, ""},
	"sapm":     {7276, ""}, "signalfx": {9943, ""}, "splunk_hec": {8088, ""}, "statsd": {8125, "UDP"},
	"tcplog": {0, "TCP"},
	"udplog": {0, "UDP"}, "wavefront": {2003, ""}, "zipkin": {9411, "TCP"},
}

// receiverProtocols are the receivers with an endpoint for each protocol.
var receiverProtocols = map[string]map[string]endpoint{
	"otlp":       {"grpc": {4317, ""}, "http": {4318, ""}},
	"skywalking": {"grpc": {11800, ""}, "http": {12800, ""}},
	"jaeger": {"grpc": {14250, "TCP"}, "thrift_http": {14268, "TCP"}, "thrift_compact": {6831, "UDP"},
		"thrift_binary": {6832, "UDP"}},
	"loki": {"grpc": {9095, ""}, "http": {3100, ""}},
}

// portlessReceivers have no port of their own, whatever their settings.
var portlessReceivers = []string{
	"kubeletstats", "k8s_events", "k8s_cluster", "k8sobjects", "prometheus", "sshcheck", "cloudfoundry", "vcenter",
	"oracledb", "snmp",
	"googlecloudpubsub", "chrony", "jmx", "podman_stats", "pulsar", "docker_stats", "aerospike", "zookeeper",
	"prometheus_simple",
	"saphana", "riak", "redis", "rabbitmq", "purefb", "postgresql", "nsxt", "nginx", "mysql", "memcached", "httpcheck",
	"haproxy",
	"flinkmetrics", "couchdb", "filelog",
}

const (
	anyAddress        = "0.0.0.0"
	healthCheck       = "health_check"
	healthCheckPort   = 13133
	prometheusPort    = 8888
	maxPortNameLength = 15
)

// componentType returns the type in a component's name: the part before the slash.
func componentType(name string) string {
	before, _, _ := strings.Cut(name, "/")
	return before
}

// settingsOf returns a component's settings, which may be absent; anything but a map is an error.
func settingsOf(components map[string]any, kind, name string) (map[string]any, error) {
	settings, ok := components[name].(map[string]any)
	if !ok && components[name] != nil {
		return nil, fmt.Errorf("config.%s.%s is not a map", kind, name)
	}
	return settings, nil
}

// textSetting returns a setting that has to be a text; empty where it is absent.
func textSetting(settings map[string]any, at, key string) (string, error) {
	text, ok := settings[key].(string)
	if !ok && settings[key] != nil {
		return "", fmt.Errorf("%s.%s is not a string", at, key)
	}
	return text, nil
}

// fillEndpoint returns the settings with an endpoint that has an address and a port.
func fillEndpoint(settings map[string]any, at string, port int64) (map[string]any, error) {
	text, err := textSetting(settings, at, "endpoint")
	if err != nil {
		return nil, err
	}
	out := maps.Clone(settings)
	if out == nil {
		out = map[string]any{}
	}
	parts := strings.Split(text, ":")
	switch {
	case text == "":
		out["endpoint"] = fmt.Sprintf("%s:%d", anyAddress, port)
	case len(parts) < 2 || parts[0] == "":
		out["endpoint"] = anyAddress + ":" + parts[len(parts)-1]
	}
	return out, nil
}

// endpointPort returns the port that the settings name, or the default.
func endpointPort(settings map[string]any, at string, byDefault int64) (int64, error) {
	for _, key := range []string{"endpoint", "listen_address"} {
		text, err := textSetting(settings, at, key)
		if err != nil {
			return 0, err
		}
		if text == "" {
			continue
		}
		if port := portOf(text); port != 0 {
			return port, nil
		}
		return byDefault, nil
	}
	return byDefault, nil
}

var portInEndpoint = regexp.MustCompile(`:\d+`)

// portOf returns the first port in an endpoint, or 0 if it has no numeric one.
func portOf(text string) int64 {
	port, err := strconv.ParseInt(strings.TrimPrefix(portInEndpoint.FindString(text), ":"), 10, 32)
	if err != nil {
		return 0
	}
	return port
}
