// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
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
	if before, known := r.formerLabels(); known {
		r.restoreFormerLabels(before)
		r.dropEmpty("labels")
		return
	}
	const note = "it has the value that injection sets"
	drop := func(name, value string) {
		if v, ok := r.pod.label(name); ok && v == value && r.takeKnownField("metadata.labels["+name+"]", note) {
			r.pod.removeMetadataValue("labels", name)
		}
	}
	drop("security.istio.io/tlsMode", "istio")
	drop(canonicalRevisionLabel, r.labelValueOr("latest", "app.kubernetes.io/version", "version"))
	for _, name := range canonicalNames(r.labelValueOr(r.workloadOwnerName(), "app.kubernetes.io/name", "app")) {
		drop(canonicalNameLabel, name)
	}
	r.recordDerivedLabels(canonicalRevisionLabel, canonicalNameLabel)
	if strings.Contains(r.env["PROXY_CONFIG"], "ISTIO_META_ENABLE_HBONE") {
		drop("networking.istio.io/tunnel", "http")
	}
	if v, ok := r.pod.label(networkLabel); ok && v == r.env[networkEnv] && !r.writer.surelyOutsideVersions(8, newestWriter) {
		if r.doubtful {
			r.pod.removeMetadataValue("labels", networkLabel)
		} else {
			r.recordUnknownValue("metadata.labels["+networkLabel+"]", "it stays; injection sets it from its configuration, or takes it from the pod; take it out if it was injected")
		}
	}
	r.revisionLabel()
	r.dropEmpty("labels")
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

// revisionLabel removes the revision label if it only names the default revision. Istio 1.6 to 1.10 set it.
func (r *removal) revisionLabel() {
	const name = istioRevision
	v, ok := r.pod.label(name)
	if !ok || r.writer.surelyOutsideVersions(6, 10) && !r.gatewayRevision(v) {
		return
	}
	if r.gatewayRevision(v) {
		if r.takeKnownField("metadata.labels["+name+"]", "the gateway template sets it") {
			r.pod.removeMetadataValue("labels", name)
		}
		return
	}
	if v == "" || v == "default" {
		if r.takeKnownField("metadata.labels["+name+"]", "it names the default revision, as injection sets it") {
			r.pod.removeMetadataValue("labels", name)
		}
		return
	}
	if r.mustKeepField("metadata.labels[" + name + "]") {
		return
	}
	if r.writer.appended {
		r.pod.removeMetadataValue("labels", name)
		r.recordUnknownValue("metadata.labels["+name+"]", "removed: Istio 1.6 to 1.8 set it, and hardly ever let a pod choose its revision with it")
		return
	}
	r.recordUnknownValue("metadata.labels["+name+"]", "it stays; injection may have set it, or the pod may have chosen its revision with it")
}

// gatewayRevision reports whether the gateway template of 1.11 to 1.17 sets the label of the revision to a value.
func (r *removal) gatewayRevision(v string) bool {
	return r.writer.usesTemplatePrefix("gateway") && r.writer.surelyWithinVersions(11, 17) && r.status.Revision != nil && v == *r.status.Revision
}

// formerLabels returns the pod's own labels if the proxy received them, as it did from Istio's own templates up to
// 1.8.
func (r *removal) formerLabels() (map[string]string, bool) {
	text, ok := r.env[labelsEnv]
	if !ok || !r.writer.appended {
		return nil, false
	}
	out := map[string]string{}
	if err := json.Unmarshal([]byte(strings.TrimSpace(text)), &out); err != nil {
		return nil, false
	}
	return out, true
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

func (r *removal) labelValueOr(otherwise string, keys ...string) string {
	for _, key := range keys {
		if v, ok := r.pod.label(key); ok && v != "" {
			return v
		}
	}
	return otherwise
}

func (r *removal) workloadOwnerName() string {
	if v, ok := r.env["ISTIO_META_WORKLOAD_NAME"]; ok {
		return v
	}
	if r.owner.Name != "" {
		return r.owner.Name
	}
	name, _ := r.pod.meta["name"].(string)
	return name
}

// canonicalNames are the forms in which versions write a canonical name: whole, and cut to the length of a label.
func canonicalNames(name string) []string {
	short := name
	if len(short) > 63 {
		short = short[:63]
	}
	return []string{name, strings.TrimSuffix(short, "-"), strings.Trim(short, "-_.")}
}
