// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// statusAnnotation is where an injection records which containers, volumes and pull secrets of a pod it has set.
const statusAnnotation = "sidecar.istio.io/status"

// injectionStatus is the record.
type injectionStatus struct {
	InitContainers   []string `json:"initContainers"`
	Containers       []string `json:"containers"`
	Volumes          []string `json:"volumes"`
	ImagePullSecrets []string `json:"imagePullSecrets"`
}

// templates knows the built-in kinds with pods, and those of custom resources that are known by name.
var templates = func() *workload.Registry {
	r, err := workload.NewRegistry(nil)
	if err != nil {
		panic(err)
	}
	return r
}()

// checkInjection reports pods that are no longer as the injection recorded them: something has changed them since, such
// as a patch of a kustomization that addresses a list by position.
func (c *checker) checkInjection(o gate.Object) {
	if isEncrypted(o.Value) || isLocal(o.Value) {
		return
	}
	found, err := templates.Templates(o.Value)
	if err != nil {
		return // the schema's findings are about that
	}
	for _, t := range found {
		meta, _ := t.Pod["metadata"].(map[string]any)
		annotations, _ := meta["annotations"].(map[string]any)
		text, _ := annotations[statusAnnotation].(string)
		var recorded injectionStatus
		if text == "" || json.Unmarshal([]byte(text), &recorded) != nil {
			continue
		}
		spec, _ := t.Pod["spec"].(map[string]any)
		a := &alteration{checker: c, object: o, at: t.Path, spec: spec, recorded: recorded}
		a.checkNames()
		a.checkContainers("initContainers", recorded.InitContainers)
		a.checkContainers("containers", recorded.Containers)
	}
}

// alteration compares one pod with its record.
type alteration struct {
	*checker
	object   gate.Object
	at       []any
	spec     map[string]any
	recorded injectionStatus
}

func (a *alteration) report(message string, path ...any) {
	a.addFieldFinding(a.object, gate.CodeInjectionAltered, slices.Concat(a.at, []any{"spec"}, path), message)
}

// checkNames reports what is recorded and missing.
func (a *alteration) checkNames() {
	for _, list := range []struct {
		key, what string
		names     []string
	}{
		{"initContainers", "init container", a.recorded.InitContainers},
		{"containers", "container", a.recorded.Containers},
		{"volumes", "volume", a.recorded.Volumes},
		{"imagePullSecrets", "pull secret", a.recorded.ImagePullSecrets},
	} {
		for _, name := range list.names {
			if _, there := named(a.spec[list.key], name); there < 0 {
				message := fmt.Sprintf("the injection recorded the %s %s, and the pod does not have it", list.what, name)
				a.report(message, list.key)
			}
		}
	}
}

// checkContainers reports injected containers of one list that have the image of an own container, or lost the user
// that they ran as. Other fields of a proxy may be those of a user's own definition of it.
func (a *alteration) checkContainers(key string, names []string) {
	for _, name := range names {
		container, i := named(a.spec[key], name)
		if i < 0 {
			continue
		}
		image, _ := container["image"].(string)
		if own := a.ownerOfImage(image); own != "" {
			message := fmt.Sprintf("the injected container %s has the image %s, which is that of the container %s", name, image, own)
			a.report(message, key, i, "image")
		}
		context, _ := container["securityContext"].(map[string]any)
		// Templates set both or none, except that proxies of Istio 1.2 with TPROXY have no user.
		capabilities, _ := context["capabilities"].(map[string]any)
		added, _ := capabilities["add"].([]any)
		transparent := name == "istio-proxy" && slices.Contains(added, any("NET_ADMIN"))
		if context["runAsUser"] == nil && context["runAsGroup"] != nil && !transparent {
			message := fmt.Sprintf("the injected container %s has a runAsGroup and no runAsUser: the injection sets both", name)
			a.report(message, key, i, "securityContext")
		}
	}
}

// ownerOfImage returns the container of the pod itself that has an image of the same repository, unless it is the image
// of a proxy: a pod may use that in a container of its own.
func (a *alteration) ownerOfImage(image string) string {
	repository := repositoryOf(image)
	if repository == "" || strings.Contains(path.Base(repository), "proxy") {
		return ""
	}
	injected := slices.Concat(a.recorded.InitContainers, a.recorded.Containers)
	for _, key := range []string{"initContainers", "containers"} {
		list, _ := a.spec[key].([]any)
		for _, item := range list {
			c, _ := item.(map[string]any)
			name, _ := c["name"].(string)
			own, _ := c["image"].(string)
			if !slices.Contains(injected, name) && repositoryOf(own) == repository {
				return name
			}
		}
	}
	return ""
}

// repositoryOf returns an image without its tag and digest.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndexByte(image, ':'); i > strings.LastIndexByte(image, '/') {
		image = image[:i]
	}
	return image
}

// named returns the element of a list with a name, and its position, which is -1 if the list has none.
func named(v any, name string) (map[string]any, int) {
	list, _ := v.([]any)
	for i, item := range list {
		if m, ok := item.(map[string]any); ok && m["name"] == name {
			return m, i
		}
	}
	return nil, -1
}
