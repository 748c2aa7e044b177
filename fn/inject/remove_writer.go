// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// writer is what a pod reveals about its injection: the minors of Istio that may have written it, and the templates
// that were used.
type writer struct {
	oldest, newest int
	// appended reports that it is of Istio up to 1.8, which added at the end of lists and did not merge.
	appended bool
	// templates are those that the pod names, and custom reports that one of them is not Istio's.
	templates []string
	custom    bool
}

// newestWriter means "until now".
const newestWriter = 1 << 20

// stockTemplates are the templates that Istio comes with.
var stockTemplates = []string{"sidecar", "sidecar-spire", "spire", "gateway", "gateway-spire", "grpc-simple", "grpc-agent",
	"waypoint", "kube-gateway", "agentgateway", "agentgateway-waypoint"}

// imageTag finds the minor of Istio in the tag of a proxy's image: 1.31.1, v1.24-alpha.abc, 1.22.3-distroless.
var imageTag = lazyregexp.New(`^v?1\.(\d{1,3})(?:[.-]|$)`)

// readStatus reads the status annotation and reports whether an injection wrote it. The annotation alone is no
// evidence: it may have been copied from another pod or written by hand, and then the containers that it lists are
// the user's. So something that it lists has to be in the pod as injections leave it (see listsInjected). An
// annotation from before lists were written is recognisable by its text, and its names have never changed; in that
// case the proxy has to be Istio's (source: injectionStatus in pkg/kube/inject/webhook.go of Istio 1.0 to 1.8).
//
// A pod whose annotation was not written by an injection keeps it with all that it has, and is injected as the
// webhook does with such a pod: what the annotation can be read to list is hidden from the templates, and they are
// merged over it; an own istio-proxy that is not listed overrides the templates, and no annotation records it
// (source: reapplyOverwrittenContainers and parseStatus in pkg/kube/inject/webhook.go of Istio 1.17 to 1.31).
func (r *removal) readStatus() bool {
	text, _ := r.pod.annotation(statusAnnotation)
	if strings.HasPrefix(text, unlistedStatus) {
		r.status = status{InitContainers: legacyNames[initContainersKey], Containers: legacyNames[containersKey], Volumes: legacyNames["volumes"]}
		r.writer.appended = true
		return isProxy(podmap.Find(r.pod.specListMaps(containersKey), proxyContainer))
	}
	var version struct {
		Version *string `json:"version"`
	}
	// No injection has ever written a key in other letters, which the webhook would read all the same.
	var s status
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &s); err != nil {
		return false
	}
	_ = json.Unmarshal([]byte(text), &version)
	r.status, r.writer.appended = s, version.Version != nil
	r.readTemplates()
	return r.listsInjected()
}

// unlistedStatus is the prefix of a status annotation written by Istio before 1.0, which contains no lists.
const unlistedStatus = "injected-version-"

// listsInjected reports whether something that the status lists is in the pod as injections leave it: one of
// Istio's containers or volumes with what its templates set, a container that the pod's overrides annotation
// mentions, or one that a template names which is not Istio's.
func (r *removal) listsInjected() bool {
	own, _ := overridesOf(r.pod)
	for key, back := range map[string][]any{containersKey: own.Containers, initContainersKey: own.InitContainers} {
		listed := r.status.Containers
		if key == initContainersKey {
			listed = r.status.InitContainers
		}
		for _, name := range listed {
			c := podmap.Find(r.pod.specListMaps(key), name)
			istios := isIstioContainer(name) || name == bootstrapContainer
			switch {
			case c == nil:
			case podmap.Find(back, name) != nil, r.writer.custom, istios && isInjected(c), !istios && r.names != nil && r.names(name):
				return true
			}
		}
	}
	for _, name := range r.status.Volumes {
		if v := podmap.Find(r.pod.specListMaps("volumes"), name); v != nil && (r.writer.custom || isInjectedVolume(v)) {
			return true
		}
	}
	// A template may add only this.
	only := len(r.status.Containers)+len(r.status.InitContainers)+len(r.status.Volumes) == 0
	return only && slices.ContainsFunc(r.status.ImagePullSecrets, func(name string) bool { return podmap.Find(r.pod.specListMaps(pullSecretsKey), name) != nil })
}

// isInjected reports whether a container with one of Istio's names has what its templates print: the agent that
// runs as a proxy or sets up the redirection, or the agent's environment, which stays even if the pod's own
// container overrides all other fields.
func isInjected(c map[string]any) bool {
	if isProxy(c) {
		return true
	}
	args, _ := c["args"].([]any)
	if len(args) > 0 && args[0] == "istio-iptables" || slices.Contains(args, any("-u")) && slices.Contains(args, any("-m")) {
		return true
	}
	env, _ := c["env"].([]any)
	return slices.ContainsFunc(podmap.Names(env), func(name string) bool {
		return name == "PILOT_CERT_PROVIDER" || name == "PROXY_CONFIG" || name == "CA_ADDR" || strings.HasPrefix(name, "ISTIO_META")
	})
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

// detectWriterVersion finds out what can be known of the version and the templates.
func (w *writer) detectWriterVersion(r *removal) {
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
}

// readTemplates reads which templates the pod names.
func (r *removal) readTemplates() {
	list, ok := r.pod.annotation(istio.TemplatesAnnotationName)
	if !ok {
		return
	}
	w := &r.writer
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		w.templates = append(w.templates, name)
		w.custom = w.custom || !slices.Contains(stockTemplates, name)
	}
}

// surelyWithinVersions reports whether all versions that may have written the pod are in a range.
func (w *writer) surelyWithinVersions(from, to int) bool { return w.oldest >= from && w.newest <= to }

// surelyOutsideVersions reports whether none of them is.
func (w *writer) surelyOutsideVersions(from, to int) bool { return w.newest < from || w.oldest > to }

// usesTemplatePrefix reports whether the pod names a template whose name begins so.
func (w *writer) usesTemplatePrefix(prefix string) bool {
	return slices.ContainsFunc(w.templates, func(name string) bool { return strings.HasPrefix(name, prefix) })
}
