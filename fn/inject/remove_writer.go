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
	// status lists what the injection claims to have added.
	status         status
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

// readWriter reads a pod's status annotation and reports whether an injection wrote it. The annotation alone is no
// evidence: it may have been copied from another pod or written by hand, and then the containers that it lists are
// the user's. So something that it lists has to be in the pod as injections leave it (see listsInjected). An
// annotation from before lists were written is recognisable by its text, and its names have never changed; in that
// case the proxy has to be Istio's (source: injectionStatus in pkg/kube/inject/webhook.go of Istio 1.0 to 1.8).
//
// A pod whose annotation was not written by an injection keeps it with all that it has, and is injected as the
// webhook does with such a pod: what the annotation can be read to list is hidden from the templates, and they are
// merged over it; an own istio-proxy that is not listed overrides the templates, and no annotation records it
// (source: reapplyOverwrittenContainers and parseStatus in pkg/kube/inject/webhook.go of Istio 1.17 to 1.31).
func readWriter(p *pod, names func(container string) bool) (*writer, bool) {
	w := &writer{appended: true}
	text, _ := p.annotation(statusAnnotation)
	if strings.HasPrefix(text, unlistedStatus) {
		w.status = status{InitContainers: legacyNames[initContainersKey], Containers: legacyNames[containersKey]}
		w.status.Volumes = legacyNames["volumes"]
		return w, isProxy(podmap.Find(p.specListMaps(containersKey), proxyContainer))
	}
	var version struct {
		Version *string `json:"version"`
	}
	// No injection has ever written a key in other letters, which the webhook would read all the same.
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &w.status); err != nil {
		return w, false
	}
	_ = json.Unmarshal([]byte(text), &version)
	w.appended = version.Version != nil
	w.readTemplates(p)
	return w, w.listsInjected(p, names)
}

// unlistedStatus is the prefix of a status annotation written by Istio before 1.0, which contains no lists.
const unlistedStatus = "injected-version-"

// listsInjected reports whether something that the status lists is in the pod as injections leave it: one of
// Istio's containers or volumes with what its templates set, a container that the pod's overrides annotation
// mentions, or one that a template names which is not Istio's.
func (w *writer) listsInjected(p *pod, names func(container string) bool) bool {
	own, _ := overridesOf(p)
	for _, key := range []string{containersKey, initContainersKey} {
		for _, name := range w.status.containersForKey(key) {
			c := podmap.Find(p.specListMaps(key), name)
			istios := isIstioContainer(name) || name == bootstrapContainer
			switch {
			case c == nil:
			case podmap.Find(own.containersForKey(key), name) != nil, w.custom, istios && isInjected(c),
				!istios && names != nil && names(name):
				return true
			}
		}
	}
	for _, name := range w.status.Volumes {
		if v := podmap.Find(p.specListMaps("volumes"), name); v != nil && (w.custom || isInjectedVolume(v)) {
			return true
		}
	}
	// A template may add only this.
	only := len(w.status.Containers)+len(w.status.InitContainers)+len(w.status.Volumes) == 0
	return only && slices.ContainsFunc(w.status.ImagePullSecrets, func(name string) bool {
		return podmap.Find(p.specListMaps(pullSecretsKey), name) != nil
	})
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

// detectVersion finds out what can be known of the version.
func (w *writer) detectVersion(p *pod, proxy injectedProxy) {
	switch {
	case w.appended:
		w.oldest, w.newest = 0, 8
	case w.status.Revision == nil:
		w.oldest, w.newest = 9, 10
	default:
		w.oldest, w.newest = 11, newestWriter
	}
	_, policy := proxy.env["JWT_POLICY"]
	_, canonical := p.label(canonicalRevisionLabel)
	if w.appended && (policy || canonical) {
		w.oldest = 5 // Istio's own templates have the variable since then, and its code sets the label
	}
	image, _ := proxy.container["image"].(string)
	if _, tag, tagged := strings.Cut(path.Base(image), ":"); tagged {
		if m := imageTag.FindStringSubmatch(tag); m != nil {
			if minor, err := strconv.Atoi(m[1]); err == nil && minor >= w.oldest && minor <= w.newest {
				w.oldest, w.newest = minor, minor
			}
		}
	}
}

// readTemplates reads which templates the pod names.
func (w *writer) readTemplates(p *pod) {
	list, ok := p.annotation(istio.TemplatesAnnotationName)
	if !ok {
		return
	}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		w.templates = append(w.templates, name)
		w.custom = w.custom || !slices.Contains(stockTemplates, name)
	}
}

// setsRevisionLabel reports whether the gateway template of 1.11 to 1.17 sets the label of the revision to a value.
func (w *writer) setsRevisionLabel(v string) bool {
	revision := w.status.Revision
	return w.usesTemplatePrefix("gateway") && w.surelyWithinVersions(11, 17) && revision != nil && v == *revision
}

// configuresTraffic reports whether the injection sets the annotations that configure what the CNI plugin redirects:
// the pod has istio-validation, or is of a version whose kube-inject always set them.
func (w *writer) configuresTraffic() bool {
	return w.appended || slices.Contains(w.status.InitContainers, validationContainer)
}

// surelyWithinVersions reports whether all versions that may have written the pod are in a range.
func (w *writer) surelyWithinVersions(from, to int) bool { return w.oldest >= from && w.newest <= to }

// surelyOutsideVersions reports whether none of them is.
func (w *writer) surelyOutsideVersions(from, to int) bool { return w.newest < from || w.oldest > to }

// usesTemplatePrefix reports whether the pod names a template whose name begins so.
func (w *writer) usesTemplatePrefix(prefix string) bool {
	return slices.ContainsFunc(w.templates, func(name string) bool { return strings.HasPrefix(name, prefix) })
}
