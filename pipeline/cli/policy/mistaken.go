// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/source/content"
)

// errDaemon is the error of a file that configures the daemon, which has the same name by default.
var errDaemon = errors.New("it is a configuration of prerig serve and not an InjectionPolicy; specify the policy with -p, or rename one of the two files")

// mistakenFileError identifies a file that is easily mistaken for a policy: the daemon's configuration, or the
// ConfigMap from which a policy can be made.
func mistakenFileError(origin string, data []byte) error {
	var top map[string]any
	if yaml.Unmarshal(data, &top) != nil {
		return nil // the policy's own reader reports the error with its line
	}
	kind, _ := top["kind"].(string)
	apiVersion, _ := top["apiVersion"].(string)
	group, _, _ := strings.Cut(apiVersion, "/")
	input := content.IstioInput(string(data))
	switch {
	case kind != "" && apiVersion != "" && kind != "ConfigMap" && kind != "List" && kind != "ConfigMapList" &&
		group != "prerig.dev":
		return fmt.Errorf("it is a %s and not an InjectionPolicy; to inject it, specify the file without -p", kind)
	case input != nil:
		return fmt.Errorf("it is a %s and not an InjectionPolicy; %s, and specify the policy that it writes", input.One, input.Instead)
	case isDaemonConfig(top):
		return errDaemon
	case kind == "List" || kind == "ConfigMapList" || kind == "ConfigMap" && isIstioConfigMap(top):
		return errors.New("it contains objects of a cluster and not an InjectionPolicy; create a policy from them: prerig import " + origin + " --to " + FileName)
	}
	return nil
}

// isDaemonConfig reports whether a document has a key of the daemon's configuration, and none that every Kubernetes
// object has.
func isDaemonConfig(top map[string]any) bool {
	for _, key := range []string{"apiVersion", "kind", "metadata", "spec"} {
		if _, ok := top[key]; ok {
			return false
		}
	}
	keys := config.Keys()
	for key := range top {
		if slices.Contains(keys, key) {
			return true
		}
	}
	return false
}

// isIstioConfigMap reports whether a ConfigMap is that of an injector or of a mesh.
func isIstioConfigMap(top map[string]any) bool {
	data, _ := top["data"].(map[string]any)
	for _, key := range []string{"config", "values", "mesh"} {
		if _, ok := data[key]; ok {
			return true
		}
	}
	return false
}
