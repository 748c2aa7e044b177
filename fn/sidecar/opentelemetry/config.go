// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package opentelemetry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// pipelinesOf returns the pipelines of the service by name.
func pipelinesOf(config map[string]any) (map[string]map[string]any, error) {
	service, ok := config["service"].(map[string]any)
	if !ok {
		return nil, errors.New("config.service is not a map")
	}
	pipelines, ok := service["pipelines"].(map[string]any)
	if !ok {
		return nil, errors.New("config.service.pipelines is not a map")
	}
	out := map[string]map[string]any{}
	for name, value := range pipelines {
		pipeline, ok := value.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("config.service.pipelines.%s is not a map", name)
		}
		for key := range pipeline {
			if !slices.Contains([]string{"receivers", "processors", "exporters"}, key) {
				return nil, fmt.Errorf("config.service.pipelines.%s.%s is not one of receivers, processors, exporters", name, key)
			}
		}
		out[name] = pipeline
	}
	return out, nil
}

// enabledComponents returns the names of the components of one kind that a pipeline, or for extensions the service,
// uses.
func enabledComponents(config map[string]any, kind string) ([]string, error) {
	pipelines, err := pipelinesOf(config)
	if err != nil {
		return nil, err
	}
	from := []any{}
	if kind == "extensions" {
		list, ok := config["service"].(map[string]any)["extensions"].([]any)
		if !ok && config["service"].(map[string]any)["extensions"] != nil {
			return nil, errors.New("config.service.extensions is not a list")
		}
		from = list
	} else {
		for _, name := range slices.Sorted(maps.Keys(pipelines)) {
			list, ok := pipelines[name][kind].([]any)
			if !ok && pipelines[name][kind] != nil {
				return nil, fmt.Errorf("config.service.pipelines.%s.%s is not a list", name, kind)
			}
			from = append(from, list...)
		}
	}
	names := map[string]bool{}
	for _, e := range from {
		name, ok := e.(string)
		if !ok {
			return nil, fmt.Errorf("the service uses %v in %s, which is not a name", e, kind)
		}
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// componentsOfKind returns the components of a kind, or nil if none exist.
func componentsOfKind(config map[string]any, kind string) (map[string]any, error) {
	components, ok := config[kind].(map[string]any)
	if !ok && config[kind] != nil {
		return nil, fmt.Errorf("config.%s is not a map", kind)
	}
	return components, nil
}

// applyDefaults fills in what the operator's webhook does (Config.ApplyDefaults), in place.
func applyDefaults(config map[string]any) error {
	if err := defaultTelemetry(config); err != nil {
		return err
	}
	for _, kind := range []string{"receivers", "exporters", "extensions"} {
		names, err := enabledComponents(config, kind)
		if err != nil {
			return err
		}
		components, err := componentsOfKind(config, kind)
		if err != nil {
			return err
		}
		if components == nil {
			continue
		}
		for _, name := range names {
			settings, err := settingsOf(components, kind, name)
			if err != nil {
				return err
			}
			filled, err := defaultComponent(kind, name, settings)
			if err != nil {
				return err
			}
			if filled != nil {
				components[name] = filled
			}
		}
	}
	return nil
}

// defaultComponent returns a component's settings with its defaults; nil where the operator leaves them alone.
func defaultComponent(kind, name string, settings map[string]any) (map[string]any, error) {
	at := "config." + kind + "." + name
	is := componentType(name)
	switch {
	case kind == "extensions" && is == healthCheck:
		out, err := fillHealthCheck(settings, at)
		return out, err
	case kind == "extensions" && is == "jaeger_query":
		return nil, fmt.Errorf("%s: this extension is not supported", at)
	case kind == "exporters" && is == "prometheus":
		return fillEndpoint(settings, at, prometheusPort)
	case kind != "receivers":
		return nil, nil
	}
	if known, ok := receiverEndpoints[is]; ok && known.port != 0 {
		return fillEndpoint(settings, at, known.port)
	}
	protocols, ok := receiverProtocols[is]
	if !ok {
		return nil, nil
	}
	return fillProtocols(settings, at, protocols)
}

// fillProtocols fills in the endpoint of each protocol that is set.
func fillProtocols(settings map[string]any, at string, known map[string]endpoint) (map[string]any, error) {
	set, err := protocolsOf(settings, at, known)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for key, value := range settings {
		out[key] = value
	}
	filled := map[string]any{}
	for name, protocol := range set {
		port, err := endpointPort(protocol, at+".protocols."+name, known[name].port)
		if err != nil {
			return nil, err
		}
		if filled[name], err = fillEndpoint(protocol, at+".protocols."+name, port); err != nil {
			return nil, err
		}
	}
	out["protocols"] = filled
	return out, nil
}

// protocolsOf returns the settings of each protocol; one unknown to the operator is an error, as in the operator.
func protocolsOf(settings map[string]any, at string, known map[string]endpoint) (map[string]map[string]any, error) {
	protocols, ok := settings["protocols"].(map[string]any)
	if !ok && settings["protocols"] != nil {
		return nil, fmt.Errorf("%s.protocols is not a map", at)
	}
	out := map[string]map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(protocols)) {
		if _, ok := known[name]; !ok {
			return nil, fmt.Errorf("%s.protocols.%s: unknown protocol; the operator knows %v", at, name, slices.Sorted(maps.Keys(known)))
		}
		settings, ok := protocols[name].(map[string]any)
		if !ok && protocols[name] != nil {
			return nil, fmt.Errorf("%s.protocols.%s is not a map", at, name)
		}
		out[name] = settings
	}
	return out, nil
}

// fillHealthCheck fills in the address and path of the extension health_check.
func fillHealthCheck(settings map[string]any, at string) (map[string]any, error) {
	path, err := textSetting(settings, at, "path")
	if err != nil {
		return nil, err
	}
	text, err := textSetting(settings, at, "endpoint")
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for key, value := range settings {
		out[key] = value
	}
	if text == "" || text[0] == ':' {
		if out, err = fillEndpoint(settings, at, healthCheckPort); err != nil {
			return nil, err
		}
	}
	if path == "" {
		out["path"] = "/"
	}
	return out, nil
}

// defaultTelemetry adds the reader that serves the collector's own metrics, unless an address or a reader is set.
func defaultTelemetry(config map[string]any) error {
	service, ok := config["service"].(map[string]any)
	if !ok {
		return errors.New("config.service is not a map")
	}
	telemetry, ok := service["telemetry"].(map[string]any)
	if !ok {
		if service["telemetry"] != nil {
			return errors.New("config.service.telemetry is not a map")
		}
		telemetry = map[string]any{}
		service["telemetry"] = telemetry
	}
	metrics, ok := telemetry["metrics"].(map[string]any)
	if !ok {
		if telemetry["metrics"] != nil {
			return errors.New("config.service.telemetry.metrics is not a map")
		}
		metrics = map[string]any{}
		telemetry["metrics"] = metrics
	}
	address, err := textSetting(metrics, "config.service.telemetry.metrics", "address")
	if err != nil {
		return err
	}
	readers, ok := metrics["readers"].([]any)
	if !ok && metrics["readers"] != nil {
		return errors.New("config.service.telemetry.metrics.readers is not a list")
	}
	if address == "" && len(readers) == 0 {
		metrics["readers"] = []any{map[string]any{"pull": map[string]any{"exporter": map[string]any{
			"prometheus": map[string]any{"host": anyAddress, "port": int64(prometheusPort)}}}}}
	}
	return nil
}
