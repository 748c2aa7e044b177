// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package admission

// Default sets the defaults of a Pod in a pod's maps, which have the keys metadata and spec. Existing values stay,
// except null and empty ones that Kubernetes does not distinguish from unset, and quantities are written in
// Kubernetes' canonical form. Values of a wrong type are left alone. Elements of lists keep their positions. If the
// server has LimitRanges, their requests and limits follow, as the API server's admission adds them.
func (s Server) Default(pod map[string]any) {
	spec, ok := pod["spec"].(map[string]any)
	if !ok {
		return
	}
	forEachMapElement(spec["volumes"], s.defaultVolume)
	// The keys of the lists of containers, which the requests of the whole pod depend on.
	for _, key := range []string{"initContainers", "containers"} {
		forEachMapElement(spec[key], func(c map[string]any) {
			s.DefaultContainer(c)
			requestLimits(c)
		})
	}
	forEachMapElement(spec["ephemeralContainers"], s.DefaultContainer)
	canonicalizeFieldQuantities(spec, "overhead")
	if resources, ok := spec["resources"].(map[string]any); ok {
		canonicalizeFieldQuantities(resources, "limits")
		canonicalizeFieldQuantities(resources, "requests")
		if s.isRuleInEffect(podRequests) {
			defaultPodResources(spec, resources)
		}
	}
	s.defaultSpec(spec)
	for _, l := range s.limits {
		for _, key := range []string{"containers", "initContainers"} {
			forEachMapElement(spec[key], l.fillResources)
		}
	}
}

// DefaultTemplate sets the defaults of the pod template of a workload, which has the keys metadata and spec: fewer than
// those of a Pod, as requests, the links to services and ports of the host follow when a Pod is made of it. It treats
// values as Default does.
func (s Server) DefaultTemplate(template map[string]any) {
	spec, ok := template["spec"].(map[string]any)
	if !ok {
		return
	}
	forEachMapElement(spec["volumes"], s.defaultVolume)
	for _, key := range []string{"initContainers", "containers", "ephemeralContainers"} {
		forEachMapElement(spec[key], s.DefaultContainer)
	}
	canonicalizeFieldQuantities(spec, "overhead")
	visitMapField(spec, "resources", func(resources map[string]any) {
		canonicalizeFieldQuantities(resources, "limits")
		canonicalizeFieldQuantities(resources, "requests")
	})
	defaultPodSpec(spec)
	mirrorAccount(spec)
}

// defaultPodSpec sets what the specs of Pods and of templates have in common.
func defaultPodSpec(spec map[string]any) {
	setTextIfMissing(spec, "dnsPolicy", "ClusterFirst")
	setTextIfMissing(spec, "restartPolicy", "Always")
	setTextIfMissing(spec, "schedulerName", "default-scheduler")
	if spec["securityContext"] == nil {
		spec["securityContext"] = map[string]any{}
	}
	switch seconds := spec["terminationGracePeriodSeconds"].(type) {
	case nil:
		spec["terminationGracePeriodSeconds"] = int64(30)
	case int64:
		if seconds < 0 {
			spec["terminationGracePeriodSeconds"] = int64(1)
		}
	}
}

// defaultSpec sets the spec's own fields.
func (s Server) defaultSpec(spec map[string]any) {
	defaultPodSpec(spec)
	if s.isRuleInEffect(serviceLinks) && spec["enableServiceLinks"] == nil {
		spec["enableServiceLinks"] = true
	}
	mirrorAccount(spec)
	if host, _ := spec["hostNetwork"].(bool); host {
		for _, key := range []string{"initContainers", "containers"} {
			forEachMapElement(spec[key], useHostPorts)
		}
	}
}

// mirrorAccount also sets the service account under its old name. The new name wins if they differ.
func mirrorAccount(spec map[string]any) {
	name, _ := spec["serviceAccountName"].(string)
	if name == "" {
		name, _ = spec["serviceAccount"].(string)
	}
	if name != "" {
		spec["serviceAccountName"], spec["serviceAccount"] = name, name
	}
}

// useHostPorts sets the host port of each port of a container in the host's network to the same number.
func useHostPorts(c map[string]any) {
	forEachMapElement(c["ports"], func(port map[string]any) {
		if isUnsetOrZero(port["hostPort"]) && port["containerPort"] != nil {
			port["hostPort"] = port["containerPort"]
		}
	})
}

// forEachMapElement calls do with the elements of a list that are maps.
func forEachMapElement(list any, do func(map[string]any)) {
	elements, _ := list.([]any)
	for _, e := range elements {
		if m, ok := e.(map[string]any); ok {
			do(m)
		}
	}
}

// visitMapField calls do with a field that is a map.
func visitMapField(m map[string]any, key string, do func(map[string]any)) {
	if sub, ok := m[key].(map[string]any); ok {
		do(sub)
	}
}

// setTextIfMissing sets a text if it is missing.
func setTextIfMissing(m map[string]any, key, value string) {
	if v := m[key]; v == nil || v == "" {
		m[key] = value
	}
}

// setNumberIfMissing sets a number if it is missing.
func setNumberIfMissing(m map[string]any, key string, value int64) {
	if isUnsetOrZero(m[key]) {
		m[key] = value
	}
}

// setValueIfAbsent sets a value only if the key is absent: the field distinguishes an empty value from an unset one.
func setValueIfAbsent(m map[string]any, key string, value any) {
	if m[key] == nil {
		m[key] = value
	}
}

// isUnsetOrZero reports whether a number is missing or 0.
func isUnsetOrZero(v any) bool { return v == nil || v == int64(0) || v == float64(0) }
