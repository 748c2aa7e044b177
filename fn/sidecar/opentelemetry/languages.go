// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package opentelemetry

import (
	"errors"
	"fmt"
)

// language is a kind of instrumentation.
type language struct {
	// name is that in annotations and in the object's spec.
	name string
	// mountPath is where the agent is; empty for sdk, which has none. perContainer reports whether the container's
	// name is appended to it.
	mountPath    string
	perContainer bool
	// copy is the command that the init container runs, without the mount path at its end; resources are in which
	// field, and which memory is requested by default.
	copy      []any
	resources string
	memory    string
	// environment sets the variables of a container that are the language's own; nil for go, and where
	// the language is not supported.
	environment func(*target) error
}

// languages are in the operator's order.
var languages = []language{
	{name: "java", mountPath: javaHome, perContainer: true, copy: []any{"cp", "/javaagent.jar"},
		resources: "resources", memory: "64Mi", environment: (*target).addJava},
	{name: "nodejs", mountPath: "/otel-auto-instrumentation-nodejs", copy: []any{"cp", "-r", "/autoinstrumentation/."},
		resources: "resourceRequirements", memory: "128Mi", environment: (*target).addNodeJS},
	{name: "python", mountPath: pythonHome, copy: []any{"cp", "-r", "/autoinstrumentation/."},
		resources: "resourceRequirements", memory: "64Mi", environment: (*target).addPython},
	{name: "dotnet", mountPath: dotnetHome, copy: []any{"cp", "-r", "/autoinstrumentation/."},
		resources: "resourceRequirements", memory: "128Mi", environment: (*target).addDotnet},
	{name: "go", resources: "resourceRequirements", memory: "64Mi"}, {name: "apache-httpd"}, {name: "nginx"},
	{name: "sdk", environment: func(t *target) error { t.addCommon(); return nil }},
}

const (
	javaHome       = "/otel-auto-instrumentation-java"
	pythonHome     = "/otel-auto-instrumentation-python"
	dotnetHome     = "/otel-auto-instrumentation-dotnet"
	pythonPlatform = annotationDomain + "otel-python-platform"
	dotnetRuntime  = annotationDomain + "otel-dotnet-auto-runtime"
)

// mountPathOf is where a container has the agent.
func (l language) mountPathOf(container string) string {
	if l.perContainer {
		return l.mountPath + "-" + container
	}
	return l.mountPath
}

// addAgent adds the init container that copies the agent, and its volume.
func (p *instrumented) addAgent(w wantedLanguage) error {
	l := w.language
	settings, _ := w.spec[l.name].(map[string]any)
	name := agentName + "-" + l.name
	volume := map[string]any{"name": name}
	if claim, _ := settings["volumeClaimTemplate"].(map[string]any); len(claim) > 0 {
		if settings["volumeLimitSize"] != nil {
			return errors.New("the operator refuses volumeClaimTemplate together with volumeLimitSize")
		}
		volume["ephemeral"] = map[string]any{"volumeClaimTemplate": claim}
	} else {
		size := settings["volumeLimitSize"]
		if size == nil {
			size = "200Mi"
		}
		volume["emptyDir"] = map[string]any{"sizeLimit": size}
	}
	image := settings["image"]
	if image == nil || image == "" {
		image = p.images[l.name]
	}
	command := append([]any{}, l.copy...)
	if l.name == "python" && p.combinedAnnotation(pythonPlatform) == "musl" {
		command[2] = "/autoinstrumentation-musl/."
	}
	path := l.mountPath
	if l.name == "java" {
		path += "/javaagent.jar"
	}
	mounts := []any{map[string]any{"name": name, "mountPath": l.mountPath}}
	c := map[string]any{"name": name, "image": image, "command": append(command, path),
		"resources": resourcesOf(settings, l), "volumeMounts": mounts}
	if policy, _ := w.spec["imagePullPolicy"].(string); policy != "" {
		c["imagePullPolicy"] = policy
	}
	p.volumes = append(p.volumes, volume)
	p.initContainers = append(p.initContainers, c)
	for i, extension := range variablesOf(settings["extensions"]) {
		p.initContainers = append(p.initContainers,
			map[string]any{"name": fmt.Sprintf("%s-extension-%d", agentName, i), "image": extension["image"],
				"command":   []any{"cp", "-r", fmt.Sprintf("%v/.", extension["dir"]), l.mountPath + "/extensions"},
				"resources": resourcesOf(settings, l), "volumeMounts": mounts})
	}
	return nil
}

// resourcesOf returns the init container's resources with the defaults of the operator's webhook.
func resourcesOf(settings map[string]any, l language) map[string]any {
	out := map[string]any{}
	have, _ := settings[l.resources].(map[string]any)
	for key, value := range have {
		out[key] = value
	}
	if out["limits"] == nil {
		out["limits"] = map[string]any{"cpu": "500m", "memory": "256Mi"}
	}
	if out["requests"] == nil {
		out["requests"] = map[string]any{"cpu": "50m", "memory": l.memory}
	}
	return out
}

// requireTextVariables refuses a variable that is a reference.
func (t *target) requireTextVariables(names ...string) error {
	for _, name := range names {
		if _, _, isText := t.env.textOfVariable(name); !isText {
			return fmt.Errorf("the variable %s is a reference; the operator leaves such a container out", name)
		}
	}
	return nil
}

// addOptions appends to a variable with options, unless the object's own is a reference.
func (t *target) addOptions(name, options string) {
	if value, _, isText := t.env.textOfVariable(name); isText {
		t.env = t.env.setTextVariable(name, value+options)
	}
}

func (t *target) addJava() error {
	const options = "JAVA_TOOL_OPTIONS"
	if err := t.requireTextVariables(options); err != nil {
		return err
	}
	t.env = t.env.appendMissing(variablesOf(t.settings["env"])...)
	t.addCommon()
	path := javaHome + "-" + t.name
	argument := " -javaagent:" + path + "/javaagent.jar"
	if extensions, _ := t.settings["extensions"].([]any); len(extensions) > 0 {
		argument += " -Dotel.javaagent.extensions=" + path + "/extensions"
	}
	t.addOptions(options, argument)
	return nil
}

func (t *target) addNodeJS() error {
	const options = "NODE_OPTIONS"
	if err := t.requireTextVariables(options); err != nil {
		return err
	}
	t.env = t.env.appendMissing(variablesOf(t.settings["env"])...)
	t.addCommon()
	t.addOptions(options, " --require /otel-auto-instrumentation-nodejs/autoinstrumentation.js")
	return nil
}

func (t *target) addPython() error {
	const path = "PYTHONPATH"
	if err := t.requireTextVariables(path); err != nil {
		return err
	}
	switch platform := t.pod.combinedAnnotation(pythonPlatform); platform {
	case "", "glibc", "musl":
	default:
		return fmt.Errorf("%s: %q is not glibc or musl", pythonPlatform, platform)
	}
	t.env = t.env.appendMissing(variablesOf(t.settings["env"])...)
	value, found, _ := t.env.textOfVariable(path)
	if found {
		value += ":"
	}
	t.env = t.env.setTextVariable(path, pythonHome+"/opentelemetry/instrumentation/auto_instrumentation:"+value+pythonHome)
	t.addCommon()
	t.env = t.env.appendMissing(literalEnvVar("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
		literalEnvVar("OTEL_TRACES_EXPORTER", "otlp"),
		literalEnvVar("OTEL_METRICS_EXPORTER", "otlp"), literalEnvVar("OTEL_LOGS_EXPORTER", "otlp"))
	return nil
}

func (t *target) addDotnet() error {
	const home = "OTEL_DOTNET_AUTO_HOME"
	joined := []string{"DOTNET_STARTUP_HOOKS", "DOTNET_ADDITIONAL_DEPS", "DOTNET_SHARED_STORE"}
	if err := t.requireTextVariables(joined...); err != nil {
		return err
	}
	if t.env.indexOfName(home) >= 0 || variablesOf(t.settings["env"]).indexOfName(home) >= 0 {
		return errors.New(home + " is set already; the operator leaves such a container out")
	}
	profiler := "linux-x64"
	switch runtime := t.pod.combinedAnnotation(dotnetRuntime); runtime {
	case "", profiler:
	case "linux-musl-x64":
		profiler = runtime
	default:
		return fmt.Errorf("%s: %q is not linux-x64 or linux-musl-x64", dotnetRuntime, runtime)
	}
	t.env = t.env.appendMissing(variablesOf(t.settings["env"])...)
	t.addCommon()
	t.env = t.env.appendMissing(literalEnvVar("CORECLR_ENABLE_PROFILING", "1"),
		literalEnvVar("CORECLR_PROFILER", "{918728DD-259F-4A6A-AC2B-B85E1B658318}"),
		literalEnvVar("CORECLR_PROFILER_PATH", dotnetHome+"/"+profiler+"/OpenTelemetry.AutoInstrumentation.Native.so"))
	t.joinPath(joined[0], dotnetHome+"/net/OpenTelemetry.AutoInstrumentation.StartupHook.dll")
	t.joinPath(joined[1], dotnetHome+"/AdditionalDeps")
	t.env = t.env.appendMissing(literalEnvVar(home, dotnetHome))
	t.joinPath(joined[2], dotnetHome+"/store")
	return nil
}

// joinPath appends to a variable with paths, unless it is a reference.
func (t *target) joinPath(name, path string) {
	value, found, isText := t.env.textOfVariable(name)
	switch {
	case !found:
		t.env = t.env.setTextVariable(name, path)
	case isText:
		t.env = t.env.setTextVariable(name, value+":"+path)
	}
}
