// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package opentelemetry

import (
	"path"
	"strings"
)

// addExporter adds the endpoint, and the files by which the exporter trusts and is trusted (configureExporter).
func (t *target) addExporter() {
	if endpoint := t.nestedSpecText("exporter", "endpoint"); endpoint != "" {
		t.env = t.env.appendMissing(literalEnvVar("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint))
	}
	exporter, _ := t.spec["exporter"].(map[string]any)
	tls, _ := exporter["tls"].(map[string]any)
	if tls == nil {
		return
	}
	setting := func(key string) string { text, _ := tls[key].(string); return text }
	secret, configMap := setting("secretName"), setting("configMapName")
	secretPath, configMapPath := "/otel-auto-instrumentation-secret-"+secret, "/otel-auto-instrumentation-configmap-"+
		configMap
	authorities := secretPath
	if configMap != "" {
		authorities = configMapPath
	}
	for _, file := range []struct{ key, variable, directory string }{
		{"ca_file", "OTEL_EXPORTER_OTLP_CERTIFICATE", authorities},
		{"cert_file", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", secretPath},
		{"key_file", "OTEL_EXPORTER_OTLP_CLIENT_KEY", secretPath},
	} {
		name := setting(file.key)
		switch {
		case name == "":
		case path.IsAbs(name):
			t.env = t.env.appendMissing(literalEnvVar(file.variable, name))
		default:
			t.env = t.env.appendMissing(literalEnvVar(file.variable, file.directory+"/"+name))
		}
	}
	if secret != "" {
		t.addFiles("otel-auto-secret-", secret, secretPath,
			map[string]any{"secret": map[string]any{"secretName": secret}})
	}
	if configMap != "" {
		t.addFiles("otel-auto-configmap-", configMap, configMapPath,
			map[string]any{"configMap": map[string]any{"name": configMap}})
	}
}

// addFiles mounts a volume, whose name is at most 63 characters long (naming.Truncate).
func (t *target) addFiles(prefix, name, mountPath string, volume map[string]any) {
	const longest = 63
	alphanumeric := func(r rune) bool { return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
	name = prefix + name
	name = strings.TrimFunc(name[:min(len(name), longest)], func(r rune) bool { return !alphanumeric(r) })
	volume["name"] = name
	t.pod.addVolume(volume)
	for _, m := range variablesOf(t.container["volumeMounts"]) {
		if m["name"] == name && t.telemetryOf == nil {
			return
		}
	}
	t.mounts = append(t.mounts, map[string]any{"name": name, "mountPath": mountPath, "readOnly": true})
}

// addVolume adds a volume unless one of its name exists.
func (p *instrumented) addVolume(volume map[string]any) {
	for _, list := range []variables{variablesOf(p.spec["volumes"]), variablesOf(p.volumes)} {
		if list.indexOfName(volume["name"].(string)) >= 0 {
			return
		}
	}
	p.volumes = append(p.volumes, volume)
}
