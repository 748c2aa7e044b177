// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package opentelemetry

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// ReadCollector reads the spec of an OpenTelemetryCollector of version v1beta1 and returns what the operator
// derives from it for the collector's container: "config", the text of the configuration with the defaults of the
// operator's webhook; "ports", in the form of a container's; "env", the names of variables that components need;
// and "health", the path and port of the extension health_check, if the service uses it. It modifies the spec by
// adding the defaults. An error names the field that the operator rejects, or Prerig does not support.
func ReadCollector(spec map[string]any) (map[string]any, error) {
	config, ok := spec["config"].(map[string]any)
	if !ok {
		return nil, errors.New("config is not a map; a text is what v1alpha1 has: take the object as v1beta1")
	}
	if err := checkConfig(config); err != nil {
		return nil, err
	}
	if err := applyDefaults(config); err != nil {
		return nil, err
	}
	ports, err := containerPorts(config, spec["ports"])
	if err != nil {
		return nil, err
	}
	health, err := healthOf(config)
	if err != nil {
		return nil, err
	}
	env, err := componentVariables(config)
	if err != nil {
		return nil, err
	}
	text, err := configText(config)
	if err != nil {
		return nil, err
	}
	return map[string]any{"config": text, "ports": ports, "health": health, "env": env}, nil
}

// checkConfig rejects keys that the custom resource does not have: the API server removes them silently.
func checkConfig(config map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		if !slices.Contains([]string{"receivers", "exporters", "processors", "connectors", "extensions", "service"}, key) {
			return fmt.Errorf("config.%s is not a field of an OpenTelemetryCollector", key)
		}
		if _, err := componentsOfKind(config, key); err != nil {
			return err
		}
	}
	for _, key := range []string{"receivers", "exporters", "service"} {
		if _, ok := config[key].(map[string]any); !ok {
			return fmt.Errorf("config.%s is missing", key)
		}
	}
	service, _ := config["service"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(service)) {
		if !slices.Contains([]string{"extensions", "telemetry", "pipelines"}, key) {
			return fmt.Errorf("config.service.%s is not a field of an OpenTelemetryCollector", key)
		}
	}
	_, err := pipelinesOf(config)
	return err
}

// containerPort is a port of the collector's container.
type containerPort struct {
	name     string
	number   int64
	protocol string
	hostPort int64
}

// containerPorts returns the ports that the components listen on, that of the collector's own metrics, and those of
// spec.ports, in the operator's order.
func containerPorts(config map[string]any, own any) ([]any, error) {
	ports, err := componentPorts(config)
	if err != nil {
		return nil, err
	}
	metrics, err := metricsPort(config)
	if err != nil {
		return nil, err
	}
	ports = append(ports, containerPort{name: "metrics", number: metrics, protocol: "TCP"})
	if ports, err = withOwnPorts(ports, own); err != nil {
		return nil, err
	}
	slices.SortStableFunc(ports, func(a, b containerPort) int { return strings.Compare(a.name, b.name) })
	out := []any{}
	for _, p := range ports {
		port := map[string]any{"name": p.name, "containerPort": p.number}
		if p.protocol != "" {
			port["protocol"] = p.protocol
		}
		if p.hostPort != 0 {
			port["hostPort"] = p.hostPort
		}
		out = append(out, port)
	}
	return out, nil
}

// componentPorts returns the ports of the receivers, exporters and extensions that are in use, by name.
func componentPorts(config map[string]any) ([]containerPort, error) {
	var ports []containerPort
	for _, kind := range []string{"receivers", "exporters", "extensions"} {
		names, err := enabledComponents(config, kind)
		if err != nil {
			return nil, err
		}
		components, err := componentsOfKind(config, kind)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			settings, err := settingsOf(components, kind, name)
			if err != nil {
				return nil, err
			}
			found, err := portsOf(kind, name, settings)
			if err != nil {
				return nil, err
			}
			ports = append(ports, found...)
		}
	}
	for _, p := range ports {
		if !portName.MatchString(p.name) || !strings.ContainsAny(p.name, "abcdefghijklmnopqrstuvwxyz") ||
			strings.Contains(p.name, "--") ||
			p.number < 1 || p.number > 65535 {
			return nil, fmt.Errorf("config: the port %d with the name %q is refused by the operator: a name has lower-case letters, figures and "+
				"single dashes", p.number, p.name)
		}
	}
	slices.SortStableFunc(ports, func(a, b containerPort) int { return cmp.Compare(a.name, b.name) })
	return ports, nil
}

var (
	portName     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	portNameText = regexp.MustCompile(`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`)
)

// namePort returns the name of a component's port (internal/naming/port.go).
func namePort(name string, port int64) string {
	candidate := strings.NewReplacer("/", "-", "_", "-").Replace(name)
	if len(name) > maxPortNameLength || !portNameText.MatchString(candidate) {
		return fmt.Sprintf("port-%d", port)
	}
	return candidate
}

// portsOf returns the ports of one component.
func portsOf(kind, name string, settings map[string]any) ([]containerPort, error) {
	at, is := "config."+kind+"."+name, componentType(name)
	known, ok := receiverEndpoints[is]
	switch {
	case kind == "exporters" && is == "prometheus":
		known = endpoint{port: prometheusPort}
	case kind == "extensions" && is == healthCheck:
		known = endpoint{port: healthCheckPort}
	case kind != "receivers" || slices.Contains(portlessReceivers, is):
		return nil, nil
	}
	if protocols, ok := receiverProtocols[is]; ok && kind == "receivers" {
		return protocolPorts(name, at, settings, protocols)
	}
	port, err := endpointPort(settings, at, known.port)
	switch {
	case err != nil:
		return nil, err
	case port == 0 && ok:
		return nil, fmt.Errorf("%s has no port, which the operator asks for", at)
	case port == 0:
		return nil, nil
	}
	return []containerPort{{name: namePort(name, port), number: port, protocol: known.protocol}}, nil
}

// protocolPorts returns the ports of a receiver with protocols.
func protocolPorts(name, at string, settings map[string]any, known map[string]endpoint) ([]containerPort, error) {
	set, err := protocolsOf(settings, at, known)
	if err != nil {
		return nil, err
	}
	var ports []containerPort
	for _, protocol := range slices.Sorted(maps.Keys(set)) {
		port, err := endpointPort(set[protocol], at+".protocols."+protocol, known[protocol].port)
		if err != nil {
			return nil, err
		}
		ports = append(ports, containerPort{name: namePort(name+"-"+protocol, port), number: port, protocol: known[protocol].protocol})
	}
	return ports, nil
}

// metricsPort returns the port of the collector's own metrics. applyDefaults has seen that the maps are maps.
func metricsPort(config map[string]any) (int64, error) {
	telemetry, _ := config["service"].(map[string]any)["telemetry"].(map[string]any)
	metrics, _ := telemetry["metrics"].(map[string]any)
	readers, _ := metrics["readers"].([]any)
	if address, _ := metrics["address"].(string); address != "" && len(readers) == 0 {
		if port := portOf(address); port != 0 {
			return port, nil
		}
		return 0, fmt.Errorf("config.service.telemetry.metrics.address %q has no port in figures", address)
	}
	for _, e := range readers {
		reader, _ := e.(map[string]any)
		pull, _ := reader["pull"].(map[string]any)
		exporter, _ := pull["exporter"].(map[string]any)
		prometheus, ok := exporter["prometheus"].(map[string]any)
		if !ok {
			continue
		}
		port, ok := wholeNumber(prometheus["port"])
		if !ok && prometheus["port"] != nil || port < 0 || port > 65535 {
			return 0, errors.New("config.service.telemetry.metrics.readers: the port of prometheus is not a port")
		}
		if port != 0 {
			return port, nil
		}
		return prometheusPort, nil
	}
	return prometheusPort, nil
}

// withOwnPorts puts the ports of spec.ports before those of the configuration. One of these with the number of one of
// those is left out; one with its name is called port-NUMBER.
func withOwnPorts(inferred []containerPort, own any) ([]containerPort, error) {
	list, ok := own.([]any)
	if !ok && own != nil {
		return nil, errors.New("ports is not a list")
	}
	if len(list) == 0 {
		return inferred, nil
	}
	var ports []containerPort
	names, numbers := map[string]bool{}, map[string]bool{}
	key := func(p containerPort) string { return fmt.Sprintf("%d/%s", p.number, cmp.Or(p.protocol, "TCP")) }
	for i, e := range list {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		protocol, _ := m["protocol"].(string)
		number, ok := wholeNumber(m["port"])
		if !ok || name == "" {
			return nil, fmt.Errorf("ports[%d] has no name or no port", i)
		}
		hostPort, _ := wholeNumber(m["hostPort"])
		if names[name] {
			return nil, fmt.Errorf("ports[%d]: there are two ports with the name %s", i, name)
		}
		p := containerPort{name: name, number: number, protocol: protocol, hostPort: hostPort}
		names[name], numbers[key(p)] = true, true
		ports = append(ports, p)
	}
	for _, p := range inferred {
		if numbers[key(p)] {
			continue
		}
		if names[p.name] {
			if p.name = fmt.Sprintf("port-%d", p.number); names[p.name] {
				continue
			}
		}
		ports = append(ports, p)
	}
	return ports, nil
}

// healthOf returns the path and port of the extension health_check; nil where the service does not use one.
func healthOf(config map[string]any) (any, error) {
	names, err := enabledComponents(config, "extensions")
	if err != nil || config["extensions"] == nil {
		return nil, err
	}
	var found any
	for _, name := range names {
		if componentType(name) != healthCheck {
			continue
		}
		if found != nil {
			return nil, errors.New("config.service.extensions has two of health_check; the operator takes either of them")
		}
		components, _ := config["extensions"].(map[string]any)
		settings, err := settingsOf(components, "extensions", name)
		if err != nil {
			return nil, err
		}
		port, err := endpointPort(settings, "config.extensions."+name, healthCheckPort)
		if err != nil {
			return nil, err
		}
		path, err := textSetting(settings, "config.extensions."+name, "path")
		if err != nil {
			return nil, err
		}
		found = map[string]any{"path": cmp.Or(path, "/"), "port": port}
	}
	return found, nil
}

// componentVariables returns the names of the variables that receivers need.
func componentVariables(config map[string]any) ([]any, error) {
	names, err := enabledComponents(config, "receivers")
	out := []any{}
	for _, name := range names {
		if componentType(name) == "kubeletstats" {
			out = append(out, "K8S_NODE_NAME")
		}
	}
	return out, err
}
