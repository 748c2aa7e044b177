// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// isNativeSidecar reports whether the container is an init container that always restarts.
func (c container) isNativeSidecar() bool {
	return c.init && textOf(c.fields["restartPolicy"]) == "Always"
}

func (c container) nestedField(path ...string) any {
	var v any = c.fields
	for _, key := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[key]
	}
	return v
}

func (c container) stringList(key string) []string {
	list, _ := c.fields[key].([]any)
	out := make([]string, 0, len(list))
	for _, v := range list {
		out = append(out, textOf(v))
	}
	return out
}

// literalEnvValue returns the value of a variable that is written out, and false where it is absent or comes from
// elsewhere.
func (c container) literalEnvValue(name string) (string, bool) {
	list, _ := c.fields["env"].([]any)
	for _, item := range list {
		m, _ := item.(map[string]any)
		if textOf(m["name"]) == name {
			value, ok := m["value"].(string)
			return value, ok
		}
	}
	return "", false
}

// flagValue returns the argument that follows name.
func (c container) flagValue(name string) string {
	args := c.stringList("args")
	if len(args) == 0 || !strings.HasPrefix(args[0], "istio-iptables") {
		args = append(c.stringList("command"), args...)
	}
	for i := 0; i+1 < len(args); i++ {
		if args[i] == name {
			return args[i+1]
		}
	}
	return ""
}

// runAs reads a number of the container's security context, and the pod's where the container has none.
func (p *pod) runAs(c container, key string) (id int64, path string, ok bool) {
	if id, ok := integerOf(c.nestedField("securityContext", key)); ok {
		return id, c.path + ".securityContext." + key, true
	}
	podContext, _ := p.spec["securityContext"].(map[string]any)
	if id, ok := integerOf(podContext[key]); ok {
		return id, "spec.securityContext." + key, true
	}
	return 0, "", false
}

// hookFacts describes what a preStop or postStart hook does, as far as its text shows.
type hookFacts struct {
	exists  bool
	path    string
	command []string
	// wait is how long the hook is known to take; loop reports whether it waits for something, with no known end.
	wait time.Duration
	loop bool
}

var (
	sleepCall = lazyregexp.New(`(?:^|[\s;&|({"'/])sleep\s+(\d+(?:\.\d+)?)([smh]?)(?:$|[\s;&|)}"'])`)
	loopWord  = lazyregexp.New(`(?:^|[\s;&|({])(?:while|until)\s`)
)

// runsProxy reports whether the container is a whole proxy and not a user's partial override of one: its arguments
// run it as a sidecar or a gateway.
func (c container) runsProxy() bool {
	args := c.stringList("args")
	return len(args) > 1 && args[0] == "proxy" && (args[1] == "sidecar" || args[1] == "router")
}

// lifecycleHook reads the hook of the name, preStop or postStart.
func (c container) lifecycleHook(name string) hookFacts {
	h := hookFacts{path: c.path + ".lifecycle." + name}
	handler, ok := c.nestedField("lifecycle", name).(map[string]any)
	if !ok {
		return h
	}
	h.exists = true
	if sleep, ok := handler["sleep"].(map[string]any); ok {
		if n, ok := integerOf(sleep["seconds"]); ok {
			h.wait = time.Duration(n) * time.Second
		}
	}
	exec, _ := handler["exec"].(map[string]any)
	list, _ := exec["command"].([]any)
	for _, v := range list {
		h.command = append(h.command, textOf(v))
	}
	line := h.commandLine()
	h.loop = loopWord.MatchString(line)
	if h.loop {
		return h
	}
	for _, m := range sleepCall.FindAllStringSubmatch(line, -1) {
		unit := m[2]
		if unit == "" {
			unit = "s"
		}
		if d, err := time.ParseDuration(m[1] + unit); err == nil {
			h.wait += d
		}
	}
	return h
}

func (h hookFacts) commandLine() string { return strings.Join(h.command, " ") }

// drainsProxyAtOnce reports whether the hook asks the agent to drain the proxy at once, as the stock hook of native
// sidecars does. The agent then exits on termination without any wait of its own.
func (h hookFacts) drainsProxyAtOnce() bool {
	line := h.commandLine()
	return strings.Contains(line, "POST drain") || strings.Contains(line, "/drain") && strings.Contains(line, "15020")
}

// programBaseName returns the base name of what the hook runs.
func (h hookFacts) programBaseName() string {
	if len(h.command) == 0 {
		return ""
	}
	return h.command[0][strings.LastIndex(h.command[0], "/")+1:]
}

// isDistrolessImage reports whether the image is one of Istio's without a shell. Where the image is named by a digest
// alone it is not known.
func (c container) isDistrolessImage() bool {
	return slices.ContainsFunc(strings.Split(imageTag(textOf(c.fields["image"])), "-"), func(part string) bool { return part == "distroless" })
}

// imageRepository returns an image without its tag and digest.
func imageRepository(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if tag := imageTag(image); tag != "" {
		image = strings.TrimSuffix(image, ":"+tag)
	}
	return image
}

// imageTag returns the tag of an image, "" where it has none. A digest after the tag is left out.
func imageTag(image string) string {
	image, _, _ = strings.Cut(image, "@")
	name := image[strings.LastIndex(image, "/")+1:]
	_, tag, _ := strings.Cut(name, ":")
	return tag
}
