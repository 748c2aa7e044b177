// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// KubeInject names the files that istioctl kube-inject takes (istioctl/pkg/kubeinject/kubeinject.go).
type KubeInject struct {
	// InjectConfig is data.config of the ConfigMap istio-sidecar-injector, or a template alone; Values is its data.values (from
	// Istio 1.2 on), and MeshConfig data.mesh of the ConfigMap istio. Each may also be the whole ConfigMap.
	InjectConfig, Values, MeshConfig string
}

// Given reports whether any of the files is named.
func (k KubeInject) Given() bool { return k.InjectConfig != "" || k.Values != "" || k.MeshConfig != "" }

// Policy makes a policy of the files. As whoever injects by hand wants it done, the policy: of the configuration is taken
// for enabled, as kube-inject does; all else in it is followed.
func (k KubeInject) Policy() (Named, error) {
	if k.InjectConfig == "" {
		return Named{}, errors.New("--injectConfigFile is missing: --valuesFile and --meshConfigFile only go with it")
	}
	config, err := readFlagFile("--injectConfigFile", k.InjectConfig, "config")
	if err != nil {
		return Named{}, err
	}
	config = asConfig(config)
	var values, mesh string
	switch {
	case k.Values != "":
		values, err = readFlagFile("--valuesFile", k.Values, "values")
	case isConfigMap(k.InjectConfig): // the whole ConfigMap brings its values along; before 1.2 it has none
		values, _ = readFlagFile("--injectConfigFile", k.InjectConfig, "values")
	}
	if err != nil {
		return Named{}, err
	}
	if k.MeshConfig != "" {
		if mesh, err = readFlagFile("--meshConfigFile", k.MeshConfig, "mesh"); err != nil {
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
		return Named{}, fmt.Errorf("making a policy of %s: %w", k.InjectConfig, err)
	}
	return Named{InjectionPolicy: p, Origin: k.flagNames()}, nil
}

var (
	// hasTemplates finds the key that makes a text a configuration and not a template.
	hasTemplates = regexp.MustCompile(`(?m)^(templates|template):`)
	// isPod finds the keys of a pod, which a template from Istio 1.9 on gives; older ones give lists of containers.
	isPod = regexp.MustCompile(`(?m)^(metadata|spec):`)
	// policyLine is the policy of a configuration.
	policyLine = regexp.MustCompile(`(?m)^policy:.*$`)
)

// asConfig makes a configuration of a template, and one that injects of any.
func asConfig(text string) string {
	if hasTemplates.MatchString(text) {
		if policyLine.MatchString(text) {
			return policyLine.ReplaceAllString(text, "policy: enabled")
		}
		return "policy: enabled\n" + text
	}
	indented := indentLines(text, "    ") // said in numbers, as the first line may have blanks of its own
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

// readFlagFile reads a file; of a ConfigMap it gives the key.
func readFlagFile(flag, path, key string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		var pe *fs.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		return "", fmt.Errorf("reading %s of %s: %w", path, flag, err)
	}
	if strings.TrimSpace(string(data)) == "" {
		return "", fmt.Errorf("reading %s of %s: the file is empty", path, flag)
	}
	keys, ok := configMap(data)
	if !ok {
		return string(data), nil // the engine reads it, and says what is wrong with it
	}
	text, ok := keys[key]
	if !ok {
		return "", fmt.Errorf("reading %s of %s: the ConfigMap has no data.%s", path, flag, key)
	}
	return text, nil
}

func isConfigMap(path string) bool {
	data, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	_, ok := configMap(data)
	return ok
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
