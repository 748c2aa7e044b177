// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"strconv"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/podmap"
)

// status is the annotation sidecar.istio.io/status: what an injection added.
type status struct {
	InitContainers   []string `json:"initContainers"`
	Containers       []string `json:"containers"`
	Volumes          []string `json:"volumes"`
	ImagePullSecrets []string `json:"imagePullSecrets"`
	Revision         *string  `json:"revision,omitempty"`
}

// listsAnything reports whether the status lists anything.
func (s *status) listsAnything() bool {
	return len(s.InitContainers)+len(s.Containers)+len(s.Volumes)+len(s.ImagePullSecrets) > 0
}

// containersForKey returns the names of one of the lists of containers.
func (s *status) containersForKey(key string) []string {
	if key == initContainersKey {
		return s.InitContainers
	}
	return s.Containers
}

// readStatusAnnotation reads the pod's status annotation. One that cannot be read counts as none, as in the injector.
func (p *pod) readStatusAnnotation() (status, bool) {
	text, ok := p.annotation(statusAnnotation)
	if !ok {
		return status{}, false
	}
	var s status
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return status{}, false
	}
	return s, true
}

// removeEarlierInjection returns what the templates see of a pod: without the containers and settings that an earlier
// injection added, and with the containers of the user that they hid.
func removeEarlierInjection(in *istio.Injector, p *pod) (*pod, error) {
	s, was := p.readStatusAnnotation()
	overrides, err := knownOverrides(in.Profile(), p)
	if err != nil {
		return nil, err
	}
	if !was && overrides.hasNoContainers() {
		return p, nil
	}
	out := p.deepCopy()
	if was {
		for _, name := range s.Containers {
			out.setList(containersKey, podmap.Without(out.specListMaps(containersKey), name))
		}
		for _, name := range s.InitContainers {
			out.setList(initContainersKey, podmap.Without(out.specListMaps(initContainersKey), name))
		}
		stripPrometheus(in, out)
		out.removeMetadataValue("annotations", statusAnnotation)
	}
	for key, list := range map[string][]any{containersKey: overrides.Containers, initContainersKey: overrides.InitContainers} {
		for _, e := range list {
			c, _ := e.(map[string]any)
			name, _ := c["name"].(string)
			if podmap.Find(out.specListMaps(key), name) == nil {
				out.spec[key] = append(out.specListMaps(key), podmap.CopyMap(c))
			}
		}
	}
	return out, nil
}

// stripPrometheus removes the Prometheus annotations if an injection wrote them.
func stripPrometheus(in *istio.Injector, p *pod) {
	s := prometheusSpelling(in.Profile())
	if port, ok := s.scrapeSettingValue(p, prometheusPort); ok && port == statusPort(in) {
		s.removeScrapeSettings(p)
	}
}

// statusPort returns the agent's port as text. It is the mesh's, regardless of the pod's proxy config.
func statusPort(in *istio.Injector) string {
	return strconv.Itoa(int(in.Mesh().GetDefaultConfig().GetStatusPort()))
}
