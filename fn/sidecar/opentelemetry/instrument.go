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

// instrumented is a pod that gets instrumentations.
type instrumented struct {
	namespace, kind, name string
	// labels and annotations are the pod's, and inherited are the annotations of its namespace.
	labels, annotations, inherited map[string]any
	// spec is the pod's.
	spec map[string]any
	// objects are the Instrumentations, and images the operator's own by language.
	objects []any
	images  map[string]any

	initContainers, volumes []any
	// newContainers are those besides the app's; sharesProcesses reports whether they have to see the app's
	// processes.
	newContainers   []any
	sharesProcesses bool
	// patches change containers, by name; before is the init container that the new ones precede, if any.
	patches map[string]map[string]any
	before  string
	placed  bool
}

// Instrument returns what the operator's auto-instrumentation changes in a pod: "skip", why the pod is unchanged; or
// "initContainers", "volumes", and "containers" and "inits", which are patches for the pod's own, and new ones;
// "sharesProcesses"; and "before", the init container before which the new ones are inserted, empty for the end.
// The request has "namespace", "kind" and "name" of the workload, "labels", "annotations" and "spec" of the pod,
// "inherited", the annotations of the namespace, "instrumentations", the objects, and "images" by language. It
// mirrors internal/instrumentation of the operator 0.148.0.
func Instrument(request map[string]any) (map[string]any, error) {
	p := &instrumented{patches: map[string]map[string]any{}}
	p.namespace, _ = request["namespace"].(string)
	p.kind, _ = request["kind"].(string)
	p.name, _ = request["name"].(string)
	p.labels, _ = request["labels"].(map[string]any)
	p.annotations, _ = request["annotations"].(map[string]any)
	p.inherited, _ = request["inherited"].(map[string]any)
	p.spec, _ = request["spec"].(map[string]any)
	p.objects, _ = request["instrumentations"].([]any)
	p.images, _ = request["images"].(map[string]any)
	if p.hasInstrumentation() {
		return map[string]any{"skip": "the pod is instrumented already"}, nil
	}
	wanted, err := p.wantedLanguages()
	if err != nil {
		return nil, err
	}
	if len(wanted) == 0 {
		return map[string]any{"skip": "no annotation instrumentation.opentelemetry.io/inject-… asks for it"}, nil
	}
	for _, w := range wanted {
		if err := p.addLanguage(w); err != nil {
			return nil, fmt.Errorf("%s%s: %w", injectPrefix, w.language.name, err)
		}
	}
	return map[string]any{"initContainers": p.initContainers, "sharesProcesses": p.sharesProcesses,
			"volumes": p.volumes, "before": p.before,
			"containers": append(p.patchesOf("containers"), p.newContainers...),
			"inits":      p.patchesOf("initContainers")},
		nil
}

// containersOf returns the pod's containers of a list.
func (p *instrumented) containersOf(key string) []map[string]any { return variablesOf(p.spec[key]) }

// hasInstrumentation reports whether the pod has what the operator mistakes for its own work
// (isAutoInstrumentationInjected).
func (p *instrumented) hasInstrumentation() bool {
	own := func(c map[string]any) bool {
		name, _ := c["name"].(string)
		suffix, ok := strings.CutPrefix(name, agentName+"-")
		return ok && slices.Contains([]string{"java", "nodejs", "python", "dotnet"}, suffix) ||
			slices.Contains([]string{"otel-agent-source-container-clone",
				"otel-agent-attach-apache"}, name)
	}
	return slices.ContainsFunc(p.containersOf("initContainers"), own) || slices.ContainsFunc(p.containersOf("containers"), func(c map[string]any) bool {
		return c["name"] == agentName || c["name"] != "otc-container" && variablesOf(c["env"]).indexOfName(nodeName) >= 0
	})
}

// wantedLanguage is a language with its object and the containers that it is for; none for the first one.
type wantedLanguage struct {
	language   language
	spec       map[string]any
	containers []string
}

const (
	annotationDomain = "instrumentation.opentelemetry.io/"
	injectPrefix     = annotationDomain + "inject-"
	agentName        = "opentelemetry-auto-instrumentation"
)

// combinedAnnotation returns the combined value of the pod and its namespace (annotationValue).
func (p *instrumented) combinedAnnotation(name string) string {
	pod, _ := p.annotations[name].(string)
	namespace, _ := p.inherited[name].(string)
	switch {
	case namespace == "":
		return pod
	case pod == "":
		return namespace
	case !strings.EqualFold(pod, "true") || strings.EqualFold(namespace, "false"):
		return pod
	}
	return namespace
}

// wantedLanguages returns the languages that are asked for, in the operator's order.
func (p *instrumented) wantedLanguages() ([]wantedLanguage, error) {
	var wanted []wantedLanguage
	for _, l := range languages {
		value := p.combinedAnnotation(injectPrefix + l.name)
		if value == "" || strings.EqualFold(value, "false") {
			continue
		}
		if l.environment == nil && l.name != "go" {
			return nil, fmt.Errorf("%s%s: instrumentation of this kind is not supported; java, nodejs, python, dotnet, go and sdk are", injectPrefix, l.name)
		}
		spec, err := p.instrumentationForAnnotation(value)
		if err != nil {
			return nil, fmt.Errorf("%s%s: %w", injectPrefix, l.name, err)
		}
		wanted = append(wanted, wantedLanguage{language: l, spec: spec})
	}
	return wanted, p.chooseContainers(wanted)
}

var containerNames = regexp.MustCompile("^[a-zA-Z0-9-,]+$")

// containersInAnnotation returns the containers that an annotation lists.
func (p *instrumented) containersInAnnotation(annotation string) ([]string, error) {
	text := p.combinedAnnotation(annotation)
	if text == "" {
		return nil, nil
	}
	if !containerNames.MatchString(text) {
		return nil, fmt.Errorf("%s: %q is not a list of containers with commas between them", annotation, text)
	}
	names := strings.Split(text, ",")
	for _, name := range names {
		if p.containerByName(name) == nil {
			return nil, fmt.Errorf("%s: the pod has no container %q", annotation, name)
		}
	}
	return names, nil
}

// containerByName returns a container of the pod by name, or nil if none exists.
func (p *instrumented) containerByName(name string) map[string]any {
	for _, c := range slices.Concat(p.containersOf("containers"), p.containersOf("initContainers")) {
		if c["name"] == name {
			return c
		}
	}
	return nil
}

// chooseContainers fills in the containers, and refuses what the operator leaves alone: one container in two languages,
// or one of several languages without containers.
func (p *instrumented) chooseContainers(wanted []wantedLanguage) error {
	common, err := p.containersInAnnotation(annotationDomain + "container-names")
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, w := range wanted {
		own, err := p.containersInAnnotation(annotationDomain + w.language.name + "-container-names")
		if err != nil {
			return err
		}
		wanted[i].containers = slices.Concat(common, own)
		if len(wanted) > 1 && len(wanted[i].containers) == 0 {
			return fmt.Errorf("the pod asks for %d instrumentations; each has to name its containers: %s%s-container-names", len(wanted), annotationDomain, w.language.name)
		}
		for _, name := range wanted[i].containers {
			if seen[name] {
				return fmt.Errorf("the container %s is named for two instrumentations, or twice", name)
			}
			seen[name] = true
		}
	}
	return nil
}

// instrumentationForAnnotation returns the spec of the Instrumentation that an annotation asks for.
func (p *instrumented) instrumentationForAnnotation(value string) (map[string]any, error) {
	anyOne := strings.EqualFold(value, "true")
	namespace, name := p.namespace, value
	if before, after, ok := strings.Cut(value, "/"); ok {
		namespace, name = before, after
	}
	var found []map[string]any
	for _, e := range p.objects {
		object, _ := e.(map[string]any)
		meta, _ := object["metadata"].(map[string]any)
		of, _ := meta["namespace"].(string)
		if cmp.Or(of, namespace) == namespace && (anyOne || meta["name"] == name) {
			found = append(found, object)
		}
	}
	switch {
	case len(found) == 0 && anyOne:
		return nil, fmt.Errorf("none of values.instrumentations is in the namespace %q", namespace)
	case len(found) == 0:
		return nil, fmt.Errorf("%s is not among values.instrumentations in the namespace %q", name, namespace)
	case len(found) > 1:
		return nil, fmt.Errorf("values.instrumentations has %d in the namespace %q: the annotation has to name one", len(found), namespace)
	case found[0]["apiVersion"] != "opentelemetry.io/v1alpha1":
		return nil, errors.New("the apiVersion of an Instrumentation has to be opentelemetry.io/v1alpha1")
	}
	spec, _ := found[0]["spec"].(map[string]any)
	return spec, checkInstrumentation(spec)
}

// checkInstrumentation refuses fields that are not read.
func checkInstrumentation(spec map[string]any) error {
	known := []string{"exporter", "resource", "propagators", "sampler", "defaults", "env", "imagePullPolicy", "java",
		"nodejs", "python", "dotnet", "go",
		"apacheHttpd", "nginx"}
	for _, key := range slices.Sorted(maps.Keys(spec)) {
		if !slices.Contains(known, key) {
			return fmt.Errorf("spec.%s is not a field of an Instrumentation of the operator 0.148.0", key)
		}
	}
	return nil
}

// containersOfLanguage returns the containers of a language, init containers first, in the pod's order.
func (p *instrumented) containersOfLanguage(w wantedLanguage) (targets []map[string]any, inits int, err error) {
	regular := p.containersOf("containers")
	if len(regular) == 0 {
		return nil, 0, errors.New("the pod has no containers")
	}
	if len(w.containers) == 0 {
		return regular[:1], 0, nil
	}
	for _, c := range p.containersOf("initContainers") {
		if name, _ := c["name"].(string); slices.Contains(w.containers, name) {
			targets = append(targets, c)
		}
	}
	inits = len(targets)
	for _, name := range w.containers {
		if i := slices.IndexFunc(regular, func(c map[string]any) bool { return c["name"] == name }); i >= 0 {
			targets = append(targets, regular[i])
		}
	}
	return targets, inits, nil
}

// addLanguage instruments the containers of one language.
func (p *instrumented) addLanguage(w wantedLanguage) error {
	if w.language.name == "go" {
		return p.addGo(w)
	}
	targets, inits, err := p.containersOfLanguage(w)
	if err != nil {
		return err
	}
	for _, c := range targets {
		if err := p.patchContainer(w, c); err != nil {
			return err
		}
	}
	if w.language.mountPath == "" {
		return nil
	}
	before := ""
	if inits > 0 {
		before, _ = targets[0]["name"].(string)
	}
	if p.placed && before != p.before {
		return errors.New("init containers of several languages are not supported where one of them is for an init container")
	}
	p.before, p.placed = before, true
	return p.addAgent(w)
}

// patchContainer makes the patch of one container.
func (p *instrumented) patchContainer(w wantedLanguage, c map[string]any) error {
	name, _ := c["name"].(string)
	env := variablesOf(c["env"])
	had := slices.Clone(env)
	for _, taken := range []string{podName, podUID} {
		if env.indexOfName(taken) >= 0 {
			return fmt.Errorf("the container %s has the variable %s, which the operator sets once more", name, taken)
		}
	}
	settings, _ := w.spec[w.language.name].(map[string]any)
	t := target{pod: p, spec: w.spec, settings: settings, container: c, name: name, env: env}
	if err := w.language.environment(&t); err != nil {
		return fmt.Errorf("container %s: %w", name, err)
	}
	if err := t.addSDK(); err != nil {
		return fmt.Errorf("container %s: %w", name, err)
	}
	var changed, order []any
	seen := map[string]bool{}
	for _, v := range t.env {
		variable, _ := v["name"].(string)
		if variable == "" {
			return fmt.Errorf("the container %s or the Instrumentation has a variable without a name", name)
		}
		if seen[variable] {
			return fmt.Errorf("the container %s has the variable %s twice", name, variable)
		}
		seen[variable] = true
		order = append(order, map[string]any{"name": variable})
		if i := had.indexOfName(variable); i < 0 || had[i]["value"] != v["value"] {
			changed = append(changed, v)
		}
	}
	patch := map[string]any{"name": name, "env": changed, "$setElementOrder/env": order}
	mounts := t.mounts
	if w.language.mountPath != "" {
		mounts = append([]any{map[string]any{"name": agentName + "-" + w.language.name, "mountPath": w.language.mountPathOf(name)}}, mounts...)
	}
	if len(mounts) > 0 {
		patch["volumeMounts"] = mounts
	}
	p.patches[name] = patch
	return nil
}

// patchesOf returns the patches for the containers of one list.
func (p *instrumented) patchesOf(key string) []any {
	out := []any{}
	for _, c := range p.containersOf(key) {
		name, _ := c["name"].(string)
		if patch := p.patches[name]; patch != nil {
			out = append(out, patch)
		}
	}
	return out
}
