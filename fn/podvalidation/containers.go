// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podvalidation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// checkContainerLists checks both lists of containers, and the names over both. Names are unique over init containers
// and others.
func (c *checker) checkContainerLists() {
	regular := listOf(c.spec[podmap.Containers])
	if len(regular) == 0 {
		c.addProblem(CodeNoContainer, podPlace.field(podmap.Containers), nil,
			"no container is left in spec.containers: the API server refuses the pod")
	}
	names := map[string]string{}
	volumes := volumesByName(c.spec)
	hostPorts := map[string]bool{}
	for _, key := range []string{podmap.InitContainers, podmap.Containers} {
		for i, e := range listOf(c.spec[key]) {
			m := mapOf(e)
			if m == nil {
				continue
			}
			one := containerChecker{checker: c, at: placeOfContainer(key, i, m), container: m}
			one.checkNameAndImage(names)
			one.checkFields(volumes)
			if key == podmap.InitContainers {
				one.checkInitFields()
				one.checkHostPorts(map[string]bool{})
				continue
			}
			one.checkProbesAndHooks()
			one.checkHostPorts(hostPorts)
		}
	}
}

// containerChecker checks one container of the pod.
type containerChecker struct {
	*checker
	at        place
	container map[string]any
}

// checkNameAndImage checks the name and the image.
func (c *containerChecker) checkNameAndImage(names map[string]string) {
	at, m := c.at, c.container
	first, twice := names[at.container]
	switch {
	case at.container == "":
		c.addProblem(CodeContainer, at.field("name"), nil,
			"a container of image %q has no name: the API server refuses the pod", text(m["image"]))
	case twice:
		c.addProblem(CodeContainer, at.field("name"), at.container,
			"container %s is there twice (%s and %s): the API server refuses the pod", at.container, first, at.path)
	case !isLabel(at.container):
		c.addProblem(CodeContainer, at.field("name"), at.container,
			"the name of container %s is not a lower-case DNS label: the API server refuses the pod", at.container)
	}
	if _, there := names[at.container]; !there {
		names[at.container] = at.path
	}
	image := text(m["image"])
	if image == "" {
		c.addProblem(CodeContainer, at, nil, "container %s has no image: the API server refuses the pod", at.container)
	}
	if fixed := strings.TrimSpace(image); fixed != image {
		c.rejectField(at.field("image"), image, "the image %q begins or ends with a space; write %s", image, fixed)
	}
}

func (c *containerChecker) checkFields(volumes map[string]map[string]any) {
	at, m := c.at, c.container
	c.checkPorts()
	c.checkEnv()
	c.checkEnvFrom()
	c.checkVolumeMounts(volumes)
	c.checkVolumeDevices(volumes)
	c.checkResizePolicy()
	c.checkResources()
	c.securityContext(at.field("securityContext"), mapOf(m["securityContext"]))
	if v := m["imagePullPolicy"]; !oneOf(v, "Always", "IfNotPresent", "Never") {
		c.rejectField(at.field("imagePullPolicy"), v,
			"imagePullPolicy is %v, and neither Always, IfNotPresent nor Never", v)
	}
	if v := m["terminationMessagePolicy"]; !oneOf(v, "File", "FallbackToLogsOnError") {
		c.rejectField(at.field("terminationMessagePolicy"), v,
			"terminationMessagePolicy is %v, and neither File nor FallbackToLogsOnError", v)
	}
}

// checkInitFields checks what only init containers may have, and may not.
func (c *containerChecker) checkInitFields() {
	at, m := c.at, c.container
	if v := m["restartPolicy"]; !oneOf(v, "Always", "OnFailure", "Never") {
		c.rejectField(at.field("restartPolicy"), v, "restartPolicy is %v, and not Always", v)
	}
	if text(m["restartPolicy"]) == "Always" {
		c.checkProbesAndHooks()
		return
	}
	for i, e := range listOf(m["resizePolicy"]) {
		if restart := text(mapOf(e)["restartPolicy"]); restart == "RestartContainer" && !c.isBeforeMinor(checkedRestart) {
			c.rejectField(at.field("resizePolicy").element(i, "init").field("restartPolicy"), restart,
				"restartPolicy may not be RestartContainer for an init container without restartPolicy: Always")
		}
	}
	for _, key := range []string{"lifecycle", "livenessProbe", "readinessProbe", "startupProbe"} {
		if m[key] != nil {
			c.rejectField(at.field(key), nil, "%s may not be set for an init container without restartPolicy: Always",
				key)
		}
	}
}

func (c *containerChecker) checkPorts() {
	at, ports := func() place { return c.at.field("ports") }, listOf(c.container["ports"])
	var names []string
	for i, e := range ports {
		m := mapOf(e)
		number, isNumber := integer(m["containerPort"])
		here := func() place { return at().element(i, fmt.Sprint(m["containerPort"], "/", m["protocol"])) }
		if name := text(m["name"]); name != "" {
			switch {
			case !isPortName(name):
				c.rejectField(here().field("name"), name,
					"the port name %s is invalid: it has at most 15 lower-case letters, digits and single hyphens, and a letter", name)
			case slices.Contains(names, name):
				c.rejectField(here().field("name"), name, "two ports have the name %s", name)
			}
			names = append(names, name)
		}
		if !isNumber && m["containerPort"] != nil || isNumber && !isPort(number) || m["containerPort"] == nil {
			c.rejectField(here().field("containerPort"), m["containerPort"], "the port %v is not between 1 and 65535",
				m["containerPort"])
		}
		if host, ok := integer(m["hostPort"]); ok && host != 0 && !isPort(host) {
			c.rejectField(here().field("hostPort"), host, "the host port %d is not between 1 and 65535", host)
		}
		if v := m["protocol"]; !oneOf(v, "TCP", "UDP", "SCTP") {
			c.rejectField(here().field("protocol"), v, "the protocol is %v, and neither TCP, UDP nor SCTP", v)
		}
	}
}

// hostPorts checks that no two ports take the same port of the node.
func (c *containerChecker) checkHostPorts(taken map[string]bool) {
	onHost := c.spec["hostNetwork"] == true
	for i, e := range listOf(c.container["ports"]) {
		port := mapOf(e)
		number := port["hostPort"]
		if n, _ := integer(number); n == 0 && onHost {
			number = port["containerPort"]
		}
		n, ok := integer(number)
		if !ok || n == 0 {
			continue
		}
		protocol := text(port["protocol"])
		if protocol == "" {
			protocol = "TCP"
		}
		key := fmt.Sprintf("%s/%s/%d", protocol, text(port["hostIP"]), n)
		if taken[key] {
			c.rejectField(c.at.field("ports").element(i, key), n,
				"the port %d of the node is taken by another port of the pod", n)
		}
		taken[key] = true
	}
}

func (c *containerChecker) checkEnv() {
	at := func() place { return c.at.field("env") }
	for i, e := range listOf(c.container["env"]) {
		m := mapOf(e)
		name := text(m["name"])
		if !c.isVariable(name) {
			c.rejectField(at().element(i, name).field("name"), name, "the variable name %q is invalid", name)
		}
		from := mapOf(m["valueFrom"])
		if from == nil {
			continue
		}
		sources := 0
		for _, key := range []string{"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"} {
			if from[key] != nil {
				sources++
			}
		}
		here := func() place { return at().element(i, name).field("valueFrom") }
		switch {
		case sources > 1:
			c.rejectField(here(), nil, "the variable %s has several sources", name)
		case sources == 1 && text(m["value"]) != "":
			c.rejectField(here(), nil, "the variable %s has a value and a source", name)
		case len(from) == 0:
			c.rejectField(here(), nil, "valueFrom of the variable %s names no source", name)
		}
		for _, key := range []string{"configMapKeyRef", "secretKeyRef"} {
			if ref := mapOf(from[key]); ref != nil && text(ref["key"]) == "" {
				c.rejectField(here().field(key).field("key"), nil, "the variable %s names no key", name)
			}
		}
		if ref := mapOf(from["fieldRef"]); ref != nil && text(ref["fieldPath"]) == "" {
			c.rejectField(here().field("fieldRef").field("fieldPath"), nil, "the variable %s names no field", name)
		}
	}
}

// isVariable reports whether a text can name a variable: printable ASCII without an equals sign since 1.32, before
// letters, digits and _-.
func (o Options) isVariable(name string) bool {
	strict := o.isBeforeMinor(32)
	for i := range len(name) {
		b := name[i]
		switch {
		case b < ' ' || b > '~' || b == '=':
			return false
		case !strict:
		case !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' && i > 0 || b == '_' || b == '-' ||
			b == '.'):
			return false
		}
	}
	return name != "" && !(strict && (name == "." || strings.HasPrefix(name, "..")))
}

func (c *containerChecker) checkEnvFrom() {
	at := func() place { return c.at.field("envFrom") }
	for i, e := range listOf(c.container["envFrom"]) {
		m := mapOf(e)
		n := 0
		for _, key := range []string{"configMapRef", "secretRef"} {
			ref := mapOf(m[key])
			if ref == nil {
				continue
			}
			n++
			if text(ref["name"]) == "" {
				c.rejectField(at().element(i, key).field(key).field("name"), nil, "envFrom names no object")
			}
		}
		if n > 1 || n == 0 && len(m) == 0 {
			c.rejectField(at().element(i, i), nil, "an element of envFrom has to have one source, and has %d", n)
		}
	}
}

func (c *containerChecker) checkVolumeMounts(volumes map[string]map[string]any) {
	at := func() place { return c.at.field("volumeMounts") }
	var paths []string
	for i, e := range listOf(c.container["volumeMounts"]) {
		m := mapOf(e)
		name, path := text(m["name"]), text(m["mountPath"])
		here := func() place { return at().element(i, name+" "+path) }
		switch {
		case name == "":
			c.rejectField(here().field("name"), nil, "the mount at %q names no volume", path)
		case volumes[name] == nil:
			c.rejectField(here().field("name"), name,
				"the mount at %s is of the volume %s, and the pod has no such volume", path, name)
			c.found[len(c.found)-1].Volume = name
		}
		switch {
		case path == "":
			c.rejectField(here().field("mountPath"), nil, "the mount of the volume %s has no mountPath", name)
		case slices.Contains(paths, path):
			c.rejectField(here().field("mountPath"), path, "two volumes are mounted at %s", path)
		}
		paths = append(paths, path)
		for _, key := range []string{"subPath", "subPathExpr"} {
			if v := text(m[key]); strings.HasPrefix(v, "/") || slices.Contains(strings.Split(v, "/"), "..") {
				c.rejectField(here().field(key), v, "%s of the mount at %s has to be a relative path without ..", key,
					path)
			}
		}
		if text(m["subPath"]) != "" && text(m["subPathExpr"]) != "" {
			c.rejectField(here().field("subPathExpr"), nil, "the mount at %s has both subPath and subPathExpr", path)
		}
		if v := m["mountPropagation"]; !oneOf(v, "None", "HostToContainer", "Bidirectional") {
			c.rejectField(here().field("mountPropagation"), v,
				"mountPropagation is %v, and neither None, HostToContainer nor Bidirectional", v)
		} else if v == "Bidirectional" && mapOf(c.container["securityContext"])["privileged"] != true {
			c.rejectField(here().field("mountPropagation"), v,
				"only a privileged container can have a mount with the propagation Bidirectional")
		}
	}
}

// checkVolumeDevices checks the block devices of a container (source: ValidateVolumeDevices).
func (c *containerChecker) checkVolumeDevices(volumes map[string]map[string]any) {
	at := func() place { return c.at.field("volumeDevices") }
	var paths, names []string
	for _, e := range listOf(c.container["volumeMounts"]) {
		paths, names = append(paths, text(mapOf(e)["mountPath"])), append(names, text(mapOf(e)["name"]))
	}
	for i, e := range listOf(c.container["volumeDevices"]) {
		m := mapOf(e)
		name, path := text(m["name"]), text(m["devicePath"])
		here := func() place { return at().element(i, name+" "+path) }
		volume := volumes[name]
		switch {
		case name == "":
			c.rejectField(here().field("name"), nil, "the device at %q names no volume", path)
		case volume == nil:
			c.rejectField(here().field("name"), name,
				"the device at %s is the volume %s, and the pod has no such volume", path, name)
			c.found[len(c.found)-1].Volume = name
		case volume["persistentVolumeClaim"] == nil && volume["ephemeral"] == nil:
			c.rejectField(here().field("name"), name,
				"the volume %s is no persistentVolumeClaim and not ephemeral, so it is no device", name)
		}
		switch {
		case path == "" || slices.Contains(paths, path):
			c.rejectField(here().field("devicePath"), path,
				"the device path %q is empty, or there twice, or that of a mount", path)
		case slices.Contains(strings.Split(path, "/"), ".."):
			c.rejectField(here().field("devicePath"), path, "the device path %s contains ..", path)
		}
		if name != "" && slices.Contains(names, name) {
			c.rejectField(here().field("name"), name, "the volume %s is already mounted, or a device, in the container",
				name)
		}
		paths, names = append(paths, path), append(names, name)
	}
}

// inPlaceResize is the first minor version that keeps the field resizePolicy by default, and checkedRestart the first
// that rejects a restart for ordinary init containers.
const (
	inPlaceResize  = 33
	checkedRestart = 36
)

// checkResizePolicy checks how a container is resized (source: validateResizePolicy).
func (c *containerChecker) checkResizePolicy() {
	at := func() place { return c.at.field("resizePolicy") }
	if c.isBeforeMinor(inPlaceResize) {
		return
	}
	var names []string
	for i, e := range listOf(c.container["resizePolicy"]) {
		m := mapOf(e)
		name, restart := text(m["resourceName"]), text(m["restartPolicy"])
		here := func() place { return at().element(i, name) }
		switch {
		case name != "cpu" && name != "memory":
			c.rejectField(here().field("resourceName"), name, "resourceName is %q, and neither cpu nor memory", name)
		case slices.Contains(names, name):
			c.rejectField(here().field("resourceName"), name, "resizePolicy has %s twice", name)
		}
		names = append(names, name)
		switch {
		case restart != "NotRequired" && restart != "RestartContainer":
			c.rejectField(here().field("restartPolicy"), restart,
				"restartPolicy is %q, and neither NotRequired nor RestartContainer", restart)
		case restart != "NotRequired" && text(c.spec["restartPolicy"]) == "Never":
			c.rejectField(here().field("restartPolicy"), restart,
				"restartPolicy must be NotRequired in a pod with restartPolicy: Never")
		}
	}
}

// maxID is the largest user or group id.
const maxID = 1<<31 - 1

func (c *checker) securityContext(at place, m map[string]any) {
	if m == nil {
		return
	}
	if m["allowPrivilegeEscalation"] == false {
		added := listOf(mapOf(m["capabilities"])["add"])
		if m["privileged"] == true || slices.Contains(added, any("CAP_SYS_ADMIN")) {
			c.rejectField(at, nil, "allowPrivilegeEscalation is false, and the container is privileged or has CAP_SYS_ADMIN")
		}
	}
	for _, key := range []string{"runAsUser", "runAsGroup"} {
		if id, ok := integer(m[key]); ok && (id < 0 || id > maxID) {
			c.rejectField(at.field(key), id, "%s is %d, and not between 0 and %d", key, id, maxID)
		}
	}
	profile := mapOf(m["seccompProfile"])
	if profile == nil {
		return
	}
	kind, local := text(profile["type"]), text(profile["localhostProfile"])
	if !slices.Contains([]string{"Localhost", "RuntimeDefault", "Unconfined"}, kind) ||
		(kind == "Localhost") != (local != "") {
		c.rejectField(at.field("seccompProfile"), kind,
			"the type of the seccomp profile is %q, and neither RuntimeDefault, Unconfined nor Localhost with a localhostProfile", kind)
	}
}
