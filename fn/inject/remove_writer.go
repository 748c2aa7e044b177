// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/istio"
)

// writer is what a pod tells of the injection that was made in it: the minors of Istio that may have written it, and the
// templates that were used.
type writer struct {
	oldest, newest int
	// appended reports that it is of Istio up to 1.8, which added at the end of lists and did not merge.
	appended bool
	// templates are those that the pod names, and custom reports that one of them is not Istio's.
	templates []string
	custom    bool
}

// newestWriter stands for "until now".
const newestWriter = 1 << 20

// stockTemplates are the templates that Istio comes with.
var stockTemplates = []string{"sidecar", "sidecar-spire", "spire", "gateway", "gateway-spire", "grpc-simple", "grpc-agent",
	"waypoint", "kube-gateway", "agentgateway", "agentgateway-waypoint"}

// imageTag finds the minor of Istio in the tag of a proxy's image: 1.31.1, v1.24-alpha.abc, 1.22.3-distroless.
var imageTag = regexp.MustCompile(`^v?1\.(\d{1,3})(?:[.-]|$)`)

// readStatus reads the status annotation and reports whether an injection wrote it: something that it lists is in the pod.
// One that lists nothing is of an injection before lists were written, whose names have never changed; there the proxy
// itself has to show that it is Istio's.
func (r *removal) readStatus() bool {
	text, _ := r.pod.annotation(statusAnnotation)
	var version struct {
		Version *string `json:"version"`
	}
	s, ok := r.pod.status()
	if ok && len(s.InitContainers)+len(s.Containers)+len(s.Volumes)+len(s.ImagePullSecrets) > 0 {
		_ = json.Unmarshal([]byte(text), &version)
		r.status, r.writer.appended = s, version.Version != nil
		return r.present(s)
	}
	s = status{InitContainers: legacyNames[initContainersKey], Containers: legacyNames[containersKey], Volumes: legacyNames["volumes"]}
	r.status, r.writer.appended = s, true
	return isProxy(find(r.pod.list(containersKey), proxyContainer))
}

// present reports whether something that the status lists is in the pod.
func (r *removal) present(s status) bool {
	for key, listed := range map[string][]string{
		initContainersKey: s.InitContainers, containersKey: s.Containers, "volumes": s.Volumes, "imagePullSecrets": s.ImagePullSecrets,
	} {
		for _, name := range listed {
			if find(r.pod.list(key), name) != nil {
				return true
			}
		}
	}
	return false
}

// isProxy reports whether a container is one that Istio's templates print: it runs the agent as a proxy.
func isProxy(c map[string]any) bool {
	args, _ := c["args"].([]any)
	if len(args) > 0 && args[0] == "proxy" {
		return true
	}
	image, _ := c["image"].(string)
	name, _, _ := strings.Cut(path.Base(image), ":")
	return strings.HasPrefix(name, "proxy")
}

// read finds out what can be known of the version and the templates.
func (w *writer) read(r *removal) {
	switch {
	case w.appended:
		w.oldest, w.newest = 0, 8
	case r.status.Revision == nil:
		w.oldest, w.newest = 9, 10
	default:
		w.oldest, w.newest = 11, newestWriter
	}
	_, policy := r.env["JWT_POLICY"]
	_, canonical := r.pod.label(canonicalRevisionLabel)
	if w.appended && (policy || canonical) {
		w.oldest = 5 // Istio's own templates have the variable since then, and its code sets the label
	}
	image, _ := r.proxy["image"].(string)
	if _, tag, tagged := strings.Cut(path.Base(image), ":"); tagged {
		if m := imageTag.FindStringSubmatch(tag); m != nil {
			if minor, err := strconv.Atoi(m[1]); err == nil && minor >= w.oldest && minor <= w.newest {
				w.oldest, w.newest = minor, minor
			}
		}
	}
	list, ok := r.pod.annotation(istio.TemplatesAnnotationName)
	if !ok {
		return
	}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		w.templates = append(w.templates, name)
		w.custom = w.custom || !slices.Contains(stockTemplates, name)
	}
}

// within reports whether all versions that may have written the pod are in a range.
func (w *writer) within(from, to int) bool { return w.oldest >= from && w.newest <= to }

// outside reports whether none of them is.
func (w *writer) outside(from, to int) bool { return w.newest < from || w.oldest > to }

// uses reports whether the pod names a template whose name begins so.
func (w *writer) uses(prefix string) bool {
	return slices.ContainsFunc(w.templates, func(name string) bool { return strings.HasPrefix(name, prefix) })
}
