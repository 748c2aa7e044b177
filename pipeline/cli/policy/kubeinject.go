// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// KubeInject names the files that istioctl kube-inject accepts (istioctl/pkg/kubeinject/kubeinject.go).
type KubeInject struct {
	// InjectConfig is data.config of the ConfigMap istio-sidecar-injector, or a template alone; Values is its
	// data.values (from Istio 1.2 on), and MeshConfig data.mesh of the ConfigMap istio. Each may also be the whole
	// ConfigMap.
	InjectConfig, Values, MeshConfig string
}

// Given reports whether any of the files is named.
func (k KubeInject) Given() bool { return k.InjectConfig != "" || k.Values != "" || k.MeshConfig != "" }

// Policy builds a policy from the files. Manual injection is a request to inject, so the policy: of the
// configuration counts as enabled, as in kube-inject; all of its other settings apply.
func (k KubeInject) Policy() (Named, error) {
	if k.InjectConfig == "" {
		return Named{}, errors.New("--valuesFile and --meshConfigFile require --injectConfigFile")
	}
	inject, err := readFlagFile("--injectConfigFile", k.InjectConfig)
	if err != nil {
		return Named{}, err
	}
	config, err := inject.textOrConfigMapKey("config")
	if err != nil {
		return Named{}, err
	}
	config = wrapTemplateAsConfig(config)
	values, mesh := inject.keys["values"], "" // the whole ConfigMap brings its values along; before 1.2 it has none
	for _, further := range []struct {
		flag, path, key string
		to              *string
	}{{"--valuesFile", k.Values, "values", &values}, {"--meshConfigFile", k.MeshConfig, "mesh", &mesh}} {
		if further.path == "" {
			continue
		}
		file, err := readFlagFile(further.flag, further.path)
		if err != nil {
			return Named{}, err
		}
		if *further.to, err = file.textOrConfigMapKey(further.key); err != nil {
			return Named{}, err
		}
	}
	p, err := v1alpha1.FromObject(map[string]any{
		"apiVersion": v1alpha1.APIVersion,
		"kind":       v1alpha1.Kind,
		"metadata":   map[string]any{"name": "kube-inject"},
		"spec": map[string]any{"istio": map[string]any{
			"injector":   map[string]any{"config": config, "values": values},
			"meshConfig": mesh,
		}},
	})
	if err != nil {
		return Named{}, fmt.Errorf("creating a policy from %s: %w", k.InjectConfig, err)
	}
	return Named{InjectionPolicy: p, Origin: k.flagNames()}, nil
}

var (
	// hasTemplates finds the key that makes a text a configuration and not a template.
	hasTemplates = lazyregexp.New(`(?m)^(templates|template):`)
	// isPod finds the keys of a pod, which a template renders from Istio 1.9 on; older ones render lists of
	// containers.
	isPod = lazyregexp.New(`(?m)^(metadata|spec):`)
	// policyLine is the policy of a configuration.
	policyLine = lazyregexp.New(`(?m)^policy:.*$`)
)

// wrapTemplateAsConfig makes a configuration of a template, and one that injects of any.
func wrapTemplateAsConfig(text string) string {
	if hasTemplates.MatchString(text) {
		if policyLine.MatchString(text) {
			return policyLine.ReplaceAllString(text, "policy: enabled")
		}
		return "policy: enabled\n" + text
	}
	indented := indentLines(text, "    ") // the indentation is explicit, because the first line may have blanks of its own
	if isPod.MatchString(text) {
		return "policy: enabled\ntemplates:\n  sidecar: |2\n" + indented
	}
	return "policy: enabled\ntemplate: |4\n" + indented
}

// indentLines puts the blanks before every line that is not empty.
func indentLines(text, blanks string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString(blanks)
		}
		b.WriteString(line)
	}
	return b.String()
}

func (k KubeInject) flagNames() string {
	var names []string
	for _, name := range []string{k.InjectConfig, k.Values, k.MeshConfig} {
		if name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// flagFile is a file that a flag names. It is read once: the file that a shell creates for <(command) cannot be
// read a second time.
type flagFile struct {
	flag, path string
	content    string
	keys       map[string]string // the data of a ConfigMap; nil for any other file
}

// flagKeys are the key and the ConfigMap of which each flag has the content.
var flagKeys = map[string][2]string{
	"--injectConfigFile": {"config", "istio-sidecar-injector"},
	"--valuesFile":       {"values", "istio-sidecar-injector"},
	"--meshConfigFile":   {"mesh", "istio"},
}

// readFlagFile reads a file.
func readFlagFile(flag, path string) (flagFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return flagFile{}, fmt.Errorf("reading %s of %s: %w", path, flag, err)
	}
	if strings.TrimSpace(string(data)) == "" {
		return flagFile{}, fmt.Errorf("reading %s of %s: the file is empty", path, flag)
	}
	var object struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	first, _, _ := strings.Cut(string(data), "\n---")
	if err := yaml.Unmarshal([]byte(first), &object); err == nil && object.APIVersion != "" && object.Kind != "" && object.Kind != "ConfigMap" {
		return flagFile{}, fmt.Errorf("reading %s of %s: it is a %s; specify data.%s of the ConfigMap %s, or the whole ConfigMap", path, flag, object.Kind, flagKeys[flag][0], flagKeys[flag][1])
	}
	f := flagFile{flag: flag, path: path, content: string(data)}
	if keys, ok := configMap(data); ok {
		f.keys = keys
		if f.keys == nil {
			f.keys = map[string]string{}
		}
	}
	return f, nil
}

// textOrConfigMapKey returns the content, or of a ConfigMap a key of its data.
func (f flagFile) textOrConfigMapKey(key string) (string, error) {
	if f.keys == nil {
		return f.content, nil // the engine reads it and reports its errors
	}
	text, ok := f.keys[key]
	if !ok {
		return "", fmt.Errorf("reading %s of %s: the ConfigMap has no data.%s", f.path, f.flag, key)
	}
	return text, nil
}

// configMap returns the data of a ConfigMap.
func configMap(data []byte) (map[string]string, bool) {
	var cm struct {
		Kind string            `json:"kind"`
		Data map[string]string `json:"data"`
	}
	if err := yaml.Unmarshal(data, &cm); err != nil || cm.Kind != "ConfigMap" {
		return nil, false
	}
	return cm.Data, true
}
