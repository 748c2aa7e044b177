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
)

// KubeInject names the files that istioctl kube-inject takes.
type KubeInject struct {
	// InjectConfig is data.config of the ConfigMap istio-sidecar-injector, Values its data.values (from Istio 1.2 on), and
	// MeshConfig data.mesh of the ConfigMap istio. Each may also be the whole ConfigMap.
	InjectConfig, Values, MeshConfig string
}

// Given says whether any of the files is named.
func (k KubeInject) Given() bool { return k.InjectConfig != "" || k.Values != "" || k.MeshConfig != "" }

// Policy makes a policy of the files.
func (k KubeInject) Policy() (Named, error) {
	if k.InjectConfig == "" {
		return Named{}, errors.New("--injectConfigFile is missing: --valuesFile and --meshConfigFile only go with it")
	}
	config, err := content("--injectConfigFile", k.InjectConfig, "config")
	if err != nil {
		return Named{}, err
	}
	var values, mesh string
	switch {
	case k.Values != "":
		values, err = content("--valuesFile", k.Values, "values")
	case isConfigMap(k.InjectConfig): // the whole ConfigMap brings its values along; before 1.2 it has none
		values, _ = content("--injectConfigFile", k.InjectConfig, "values")
	}
	if err != nil {
		return Named{}, err
	}
	if k.MeshConfig != "" {
		if mesh, err = content("--meshConfigFile", k.MeshConfig, "mesh"); err != nil {
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
	return Named{InjectionPolicy: p, Origin: k.origin()}, nil
}

func (k KubeInject) origin() string {
	var names []string
	for _, name := range []string{k.InjectConfig, k.Values, k.MeshConfig} {
		if name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// content reads a file; of a ConfigMap it gives the key.
func content(flag, path, key string) (string, error) {
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

// configMap gives the data of a ConfigMap.
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
