// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

const (
	canonicalRevisionLabel = "service.istio.io/canonical-revision"
	canonicalNameLabel     = "service.istio.io/canonical-name"
	istioRevision          = "istio.io/rev"
)

// restoreLabels removes the injected labels.
func (r *removal) restoreLabels() {
	if before, known := r.proxy.formerLabels(); known && r.writer.appended {
		r.restoreFormerLabels(before)
		r.pod.dropEmpty("labels")
		return
	}
	const note = "it has the value that injection sets"
	drop := func(name, value string) {
		if v, ok := r.pod.label(name); ok && v == value {
			r.removeLabel(name, note)
		}
	}
	drop("security.istio.io/tlsMode", "istio")
	drop(canonicalRevisionLabel, firstLabelValue(r.pod, "latest", "app.kubernetes.io/version", "version"))
	workload, known := r.proxy.env["ISTIO_META_WORKLOAD_NAME"]
	if !known {
		workload = workloadName(r.req.Owner, r.pod)
	}
	for _, name := range canonicalNames(firstLabelValue(r.pod, workload, "app.kubernetes.io/name", "app")) {
		drop(canonicalNameLabel, name)
	}
	r.recordDerivedLabels(canonicalRevisionLabel, canonicalNameLabel)
	if strings.Contains(r.proxy.env["PROXY_CONFIG"], "ISTIO_META_ENABLE_HBONE") {
		drop("networking.istio.io/tunnel", "http")
	}
	network, ok := r.pod.label(networkLabel)
	if ok && network == r.proxy.env[networkEnv] && !r.writer.surelyOutsideVersions(8, newestWriter) {
		if r.req.Doubtful {
			r.pod.removeMetadataValue("labels", networkLabel)
		} else {
			r.recordUnknownValue("metadata.labels["+networkLabel+"]", "it stays; injection sets it from its configuration, or takes it from the pod; take it out if it was injected")
		}
	}
	r.restoreRevision()
	r.pod.dropEmpty("labels")
}

// recordDerivedLabels notes labels with values that injection would not assign to the pod as it is. They are the pod's
// own, or injection derived them from labels that were changed since: an own value that injection leaves alone is in no
// record. A custom name is the purpose of the label, so it is only a hint.
func (r *removal) recordDerivedLabels(names ...string) {
	for _, name := range names {
		if v, ok := r.pod.label(name); ok && v != "" && !r.mustKeepField("metadata.labels["+name+"]") {
			r.unknown = append(r.unknown, Note{Field: "metadata.labels[" + name + "]", Unrecorded: true, Hint: name == canonicalNameLabel,
				Reason: fmt.Sprintf("%q stays, although injection would set another value now; take the label out if it is of an injection before the pod's labels were changed", v)})
		}
	}
}

// restoreFormerLabels removes the injected labels if the pod's original ones are known. Injection by Istio up to
// 1.8 treats an empty label as missing and sets it.
func (r *removal) restoreFormerLabels(before map[string]string) {
	for _, name := range podmap.SortedKeys(r.pod.labels()) {
		was, had := before[name]
		now, _ := r.pod.label(name)
		switch {
		case !isIstiosLabel(name):
		case !had:
			r.pod.removeMetadataValue("labels", name)
		case was == "" && now != "":
			r.pod.setMetadataValue("labels", name, was)
			r.recordAssumption("metadata.labels["+name+"]", "it was empty when the pod was injected")
		}
	}
}

// restoreRevision removes the revision label if it only names the default revision. Istio 1.6 to 1.10 set it.
func (r *removal) restoreRevision() {
	const field = "metadata.labels[" + istioRevision + "]"
	v, ok := r.pod.label(istioRevision)
	byGateway := ok && r.writer.setsRevisionLabel(v)
	switch {
	case !ok || r.writer.surelyOutsideVersions(6, 10) && !byGateway:
	case byGateway:
		r.removeLabel(istioRevision, "the gateway template sets it")
	case v == "" || v == "default":
		r.removeLabel(istioRevision, "it names the default revision, as injection sets it")
	case r.mustKeepField(field):
	case r.writer.appended:
		r.pod.removeMetadataValue("labels", istioRevision)
		r.recordUnknownValue(field,
			"removed: Istio 1.6 to 1.8 set it, and hardly ever let a pod choose its revision with it")
	default:
		r.recordUnknownValue(field,
			"it stays; injection may have set it, or the pod may have chosen its revision with it")
	}
}

// removeLabel removes a label that the injection is known to set to the value that it has.
func (r *removal) removeLabel(name, note string) {
	if r.takeKnownField("metadata.labels["+name+"]", note) {
		r.pod.removeMetadataValue("labels", name)
	}
}

// isIstiosLabel reports whether injection by Istio up to 1.8 sets a label of this name.
func isIstiosLabel(name string) bool {
	switch name {
	case "security.istio.io/tlsMode", canonicalNameLabel, canonicalRevisionLabel, istioRevision, networkLabel:
		return true
	default:
		return false
	}
}

// firstLabelValue is the value of the first of some labels that the pod has with one.
func firstLabelValue(p *pod, otherwise string, keys ...string) string {
	for _, key := range keys {
		if v, _ := p.label(key); v != "" {
			return v
		}
	}
	return otherwise
}

// canonicalNames are the forms in which versions write a canonical name: whole, and cut to the length of a label.
func canonicalNames(name string) []string {
	short := name
	if len(short) > 63 {
		short = short[:63]
	}
	return []string{name, strings.TrimSuffix(short, "-"), strings.Trim(short, "-_.")}
}
