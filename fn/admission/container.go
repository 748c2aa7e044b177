// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package admission

// DefaultContainer sets the defaults that a container has in every pod and pod template. Not among them are the
// requests, which are the limits in Pods only.
func (s Server) DefaultContainer(c map[string]any) {
	if v := c["imagePullPolicy"]; v == nil || v == "" {
		image, _ := c["image"].(string)
		c["imagePullPolicy"] = s.PullPolicy(image)
	}
	setTextIfMissing(c, "terminationMessagePath", "/dev/termination-log")
	setTextIfMissing(c, "terminationMessagePolicy", "File")
	forEachMapElement(c["ports"], func(port map[string]any) { setTextIfMissing(port, "protocol", "TCP") })
	forEachMapElement(c["env"], s.defaultVariable)
	// Kubernetes writes the resources of a container even if it has none.
	if c["resources"] == nil {
		c["resources"] = map[string]any{}
	}
	visitMapField(c, "resources", func(resources map[string]any) {
		canonicalizeFieldQuantities(resources, "limits")
		canonicalizeFieldQuantities(resources, "requests")
	})
	for _, key := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		visitMapField(c, key, defaultProbe)
	}
	visitMapField(c, "lifecycle", func(lifecycle map[string]any) {
		for _, key := range []string{"postStart", "preStop"} {
			visitMapField(lifecycle, key, func(handler map[string]any) { visitMapField(handler, "httpGet", defaultHTTPGet) })
		}
	})
}

// PullPolicy returns the default pull policy of an image.
func (s Server) PullPolicy(image string) string {
	if s.isLatest(image) {
		return "Always"
	}
	return "IfNotPresent"
}

func (s Server) defaultVariable(env map[string]any) {
	visitMapField(env, "valueFrom", func(from map[string]any) {
		visitMapField(from, "fieldRef", defaultFieldRef)
		if s.isRuleInEffect(fileKeyOptional) {
			visitMapField(from, "fileKeyRef", func(ref map[string]any) { setValueIfAbsent(ref, "optional", false) })
		}
	})
}

func defaultFieldRef(ref map[string]any) { setTextIfMissing(ref, "apiVersion", "v1") }

func defaultProbe(probe map[string]any) {
	setNumberIfMissing(probe, "timeoutSeconds", 1)
	setNumberIfMissing(probe, "periodSeconds", 10)
	setNumberIfMissing(probe, "successThreshold", 1)
	setNumberIfMissing(probe, "failureThreshold", 3)
	visitMapField(probe, "httpGet", defaultHTTPGet)
	visitMapField(probe, "grpc", func(grpc map[string]any) { setValueIfAbsent(grpc, "service", "") })
}

func defaultHTTPGet(get map[string]any) {
	setTextIfMissing(get, "path", "/")
	setTextIfMissing(get, "scheme", "HTTP")
}
