// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"

	"github.com/prerig/prerig/fn/podmap"
)

// removeVolumes removes the injected volumes except those that a container still mounts: the pod had them before.
func (r *removal) removeVolumes() {
	mounted := map[string]string{}
	for _, key := range []string{containersKey, initContainersKey} {
		for _, e := range r.pod.specListMaps(key) {
			c, _ := e.(map[string]any)
			name, _ := c["name"].(string)
			for _, mounts := range []string{"volumeMounts", "volumeDevices"} {
				list, _ := c[mounts].([]any)
				for _, volume := range podmap.Names(list) {
					mounted[volume] = name
				}
			}
		}
	}
	list := r.pod.specListMaps("volumes")
	for _, name := range r.writer.status.Volumes {
		if r.writer.appended {
			list = r.writer.removeOneNamed(list, name)
			continue
		}
		single := len(podmap.Without(list, name)) >= len(list)-1
		if own := r.volumeWithoutDefaults(podmap.Find(list, name)); own != nil && single {
			r.recordUnknownValue("spec.volumes["+name+"]", "the pod has a volume of its own under this name of Istio's; what is not Istio's of it stays")
			list = replaceNamedElement(list, name, own)
			continue
		}
		if by, ok := mounted[name]; ok && single {
			r.recordUnknownValue("spec.volumes["+name+"]", fmt.Sprintf("the container %s still mounts it, so it stays; what injection changed in it cannot be known", by))
			continue
		}
		list = r.writer.removeOneNamed(list, name)
	}
	r.pod.setOrDrop("volumes", list)
}

// istioVolumes are the volumes of Istio's templates, with the sources and their fields that those set (source:
// manifests/charts/istio-control/istio-discovery/files/*-template.yaml of Istio 1.9 to 1.31).
var istioVolumes = map[string]map[string][]string{
	"istio-envoy": {"emptyDir": {"medium"}}, "istio-data": {"emptyDir": {}},
	"istio-token": {"projected": {"sources"}}, "xds-token": {"projected": {"sources"}}, "istio-podinfo": {"downwardAPI": {"items"}},
	"istiod-ca-cert": {"configMap": {"name"}, "projected": {"sources"}}, "istio-ca-crl": {"configMap": {"name", "optional"}},
	"istio-certs": {"secret": {"secretName", "optional"}}, "lightstep-certs": {"secret": {"secretName", "optional"}},
	"credential-socket": {"emptyDir": {}}, "workload-certs": {"emptyDir": {}}, "workload-socket": {"emptyDir": {}, "csi": {"driver", "readOnly"}},
	"gke-workload-certificate": {"csi": {"driver"}}, "custom-bootstrap-volume": {"configMap": {"name"}}, "grpc-io-proxyless-bootstrap": {"emptyDir": {}},
}

// isInjectedVolume reports whether a volume has one of Istio's names and a source that Istio's templates use for
// it.
func isInjectedVolume(v map[string]any) bool {
	name, _ := v["name"].(string)
	for source, fields := range istioVolumes[name] {
		m, ok := v[source].(map[string]any)
		if ok && len(fields) > 0 && m[fields[0]] != nil {
			return true
		}
	}
	return false
}

// bareVolumes are those that Istio's templates write without a source, for which the API server makes an empty directory.
// Only those of gateways and waypoints write the directory. All other volumes have a source, so that one without is the pod's.
var bareVolumes = []string{"workload-socket", "credential-socket", "workload-certs"}

// volumeWithoutDefaults returns an injected volume without what Istio's templates set, and without the defaults of an
// API server that the pod came from. It returns nil if the rest is empty. The source of a volume that Istio's template
// is merged over stays beside the template's, and so do its fields that the template does not set.
func (r *removal) volumeWithoutDefaults(v map[string]any) map[string]any {
	name, _ := v["name"].(string)
	known := istioVolumes[name]
	if known == nil {
		return nil
	}
	bare := slices.Contains(bareVolumes, name) && !r.writer.custom && !r.writer.usesTemplatePrefix("gateway") && !r.writer.usesTemplatePrefix("waypoint") && !r.writer.usesTemplatePrefix("kube-gateway")
	own := map[string]any{}
	for key, source := range v {
		fields, istios := known[key]
		m, _ := source.(map[string]any)
		switch {
		case key == "name":
		case !istios, bare && key == "emptyDir" && !r.hasServerDefaults():
			own[key] = source
		default:
			for field, value := range m {
				if !slices.Contains(fields, field) && !(r.hasServerDefaults() && field == "defaultMode" && value == defaultFileMode) {
					own[key] = source
				}
			}
		}
	}
	if len(own) == 0 && (len(v) > 1 || slices.Contains(bareVolumes, name)) {
		return nil
	}
	own["name"] = name
	return own
}

// defaultFileMode is the mode that the API server assigns to the files of a volume: 0644.
const defaultFileMode = int64(420)

// hasServerDefaults reports whether the pod has come from an API server, and so with all defaults: its proxy has a
// field that the API server always sets and no template of Istio's. Where everything that may be the pod's own is kept,
// defaults are, too.
func (r *removal) hasServerDefaults() bool {
	_, defaulted := r.proxy.container["terminationMessagePath"]
	return defaulted && !r.mustKeepField("spec.volumes")
}

// replaceNamedElement is a list with another element of a name.
func replaceNamedElement(list []any, name string, by map[string]any) []any {
	out := slices.Clone(list)
	for i, e := range out {
		if m, _ := e.(map[string]any); m["name"] == name {
			out[i] = by
		}
	}
	return out
}
