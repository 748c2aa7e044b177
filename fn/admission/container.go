// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package admission

// DefaultContainer sets the defaults that a container has in every pod and pod template. Not among them are the requests,
// which are the limits in Pods only.
func (s Server) DefaultContainer(c map[string]any) {
	if v := c["imagePullPolicy"]; v == nil || v == "" {
		image, _ := c["image"].(string)
		c["imagePullPolicy"] = s.pullPolicy(image)
	}
	orText(c, "terminationMessagePath", "/dev/termination-log")
	orText(c, "terminationMessagePolicy", "File")
	each(c["ports"], func(port map[string]any) { orText(port, "protocol", "TCP") })
	each(c["env"], s.defaultVariable)
	// Kubernetes writes the resources of a container even if it has none.
	if c["resources"] == nil {
		c["resources"] = map[string]any{}
	}
	in(c, "resources", func(resources map[string]any) {
		canonical(resources, "limits")
		canonical(resources, "requests")
	})
	for _, key := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		in(c, key, defaultProbe)
	}
	in(c, "lifecycle", func(lifecycle map[string]any) {
		for _, key := range []string{"postStart", "preStop"} {
			in(lifecycle, key, func(handler map[string]any) { in(handler, "httpGet", defaultHTTPGet) })
		}
	})
}

// pullPolicy returns the default pull policy of an image.
func (s Server) pullPolicy(image string) string {
	if s.isLatest(image) {
		return "Always"
	}
	return "IfNotPresent"
}

func (s Server) defaultVariable(env map[string]any) {
	in(env, "valueFrom", func(from map[string]any) {
		in(from, "fieldRef", defaultFieldRef)
		if s.has(fileKeyOptional) {
			in(from, "fileKeyRef", func(ref map[string]any) { orAbsent(ref, "optional", false) })
		}
	})
}

func defaultFieldRef(ref map[string]any) { orText(ref, "apiVersion", "v1") }

func defaultProbe(probe map[string]any) {
	orNumber(probe, "timeoutSeconds", 1)
	orNumber(probe, "periodSeconds", 10)
	orNumber(probe, "successThreshold", 1)
	orNumber(probe, "failureThreshold", 3)
	in(probe, "httpGet", defaultHTTPGet)
	in(probe, "grpc", func(grpc map[string]any) { orAbsent(grpc, "service", "") })
}

func defaultHTTPGet(get map[string]any) {
	orText(get, "path", "/")
	orText(get, "scheme", "HTTP")
}
