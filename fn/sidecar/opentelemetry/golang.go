// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package opentelemetry

import (
	"errors"
	"fmt"
	"strings"
)

const (
	goTargetAnnotation = annotationDomain + "otel-go-auto-target-exe"
	goTargetVariable   = "OTEL_GO_AUTO_TARGET_EXE"
	kernelDebugVolume  = "kernel-debug"
	kernelDebugPath    = "/sys/kernel/debug"
)

// addGo adds the container that instruments a Go program of another container from outside (injectGoSDK).
func (p *instrumented) addGo(w wantedLanguage) error {
	if p.spec["shareProcessNamespace"] == false {
		return errors.New("the pod's shareProcessNamespace is false, and the agent has to see the program")
	}
	const own = annotationDomain + "go-container-names"
	if list, _ := p.annotations[own].(string); strings.Contains(list, ",") {
		return fmt.Errorf("%s names several containers; one program can be instrumented", own)
	}
	targets, inits, err := p.containersOfLanguage(w)
	if err != nil {
		return err
	}
	app := targets[0]
	if len(w.containers) > 0 {
		app = p.containerByName(w.containers[0])
	}
	name, _ := app["name"].(string)
	if inits > 0 && !p.isRegular(name) {
		return fmt.Errorf("%s is an init container; its program cannot be instrumented", name)
	}
	settings, _ := w.spec["go"].(map[string]any)
	t := target{pod: p, spec: w.spec, settings: settings, container: app, name: name,
		telemetryOf: append(variables{}, variablesOf(app["env"])...)}
	if path, ok := p.annotations[goTargetAnnotation].(string); ok {
		t.env = append(t.env, literalEnvVar(goTargetVariable, path))
	}
	t.env = t.env.appendMissing(variablesOf(settings["env"])...)
	t.addCommon()
	if err := t.addSDK(); err != nil {
		return err
	}
	if t.env.indexOfName(goTargetVariable) < 0 {
		return fmt.Errorf("no setting names the program to instrument: set %s, or %s in the Instrumentation",
			goTargetAnnotation, goTargetVariable)
	}
	image := settings["image"]
	if image == nil || image == "" {
		image = p.images["go"]
	}
	agent := map[string]any{"name": agentName, "image": image, "env": anyList(t.env),
		"resources":       resourcesOf(settings, w.language),
		"securityContext": map[string]any{"runAsUser": int64(0), "privileged": true},
		"volumeMounts": append([]any{map[string]any{"name": kernelDebugVolume, "mountPath": kernelDebugPath}},
			t.mounts...)}
	if policy, _ := w.spec["imagePullPolicy"].(string); policy != "" {
		agent["imagePullPolicy"] = policy
	}
	p.newContainers = append(p.newContainers, agent)
	p.addVolume(map[string]any{"name": kernelDebugVolume, "hostPath": map[string]any{"path": kernelDebugPath}})
	p.sharesProcesses = true
	return nil
}

// isRegular reports whether a container is none of the init containers.
func (p *instrumented) isRegular(name string) bool {
	for _, c := range p.containersOf("containers") {
		if c["name"] == name {
			return true
		}
	}
	return false
}

// anyList returns variables as decoded YAML has them.
func anyList(v variables) []any {
	out := make([]any, len(v))
	for i, e := range v {
		out[i] = e
	}
	return out
}
