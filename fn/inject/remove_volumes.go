// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"
)

// removeVolumes takes the injected volumes out, but for those that a container still mounts: the pod had them before.
func (r *removal) removeVolumes() {
	mounted := map[string]string{}
	for _, key := range []string{containersKey, initContainersKey} {
		for _, e := range r.pod.list(key) {
			c, _ := e.(map[string]any)
			name, _ := c["name"].(string)
			for _, mounts := range []string{"volumeMounts", "volumeDevices"} {
				list, _ := c[mounts].([]any)
				for _, volume := range names(list) {
					mounted[volume] = name
				}
			}
		}
	}
	list := r.pod.list("volumes")
	for _, name := range r.status.Volumes {
		if r.writer.appended {
			list = r.withoutOne(list, name)
			continue
		}
		if own := ownVolume(find(list, name)); own != nil && r.count(list, name) < 2 {
			r.cannotKnow("spec.volumes["+name+"]", "the pod has a volume of its own under this name of Istio's; what is not Istio's of it stays")
			list = replaced(list, name, own)
			continue
		}
		if by, ok := mounted[name]; ok && r.count(list, name) < 2 {
			r.cannotKnow("spec.volumes["+name+"]", fmt.Sprintf("the container %s still mounts it, so it stays; what injection changed in it cannot be known", by))
			continue
		}
		list = r.withoutOne(list, name)
	}
	r.setOrDrop("volumes", list)
}

// istioVolumes are the volumes of Istio's templates, with the fields that those set.
var istioVolumes = map[string]map[string][]string{
	"istio-envoy": {"emptyDir": {"medium"}}, "istio-data": {"emptyDir": {}}, "istio-token": {"projected": nil},
	"istio-podinfo": {"downwardAPI": nil}, "istiod-ca-cert": {"configMap": nil, "projected": nil}, "istio-certs": {"secret": nil},
	"istio-ca-crl": {"configMap": nil}, "credential-socket": {"emptyDir": {}}, "workload-certs": {"emptyDir": {}},
	"workload-socket": {"emptyDir": {}, "csi": nil}, "gke-workload-certificate": {"csi": nil}, "lightstep-certs": {"secret": nil},
	"custom-bootstrap-volume": {"configMap": nil}, "grpc-io-proxyless-bootstrap": {"emptyDir": {}}, "xds-token": {"projected": nil},
}

// bareVolumes are those that Istio's templates write without a source. All others have one, so that one without is the pod's.
var bareVolumes = []string{"workload-socket", "credential-socket", "workload-certs"}

// ownVolume is what is left of an injected volume without what Istio's templates set, or nil where that is nothing. The
// source of a volume that Istio's template is merged over stays beside the template's.
func ownVolume(v map[string]any) map[string]any {
	name, _ := v["name"].(string)
	known := istioVolumes[name]
	if known == nil {
		return nil
	}
	own := map[string]any{}
	for key, source := range v {
		fields, istios := known[key]
		m, _ := source.(map[string]any)
		switch {
		case key == "name":
		case !istios:
			own[key] = source
		case fields != nil:
			for field := range m {
				if !slices.Contains(fields, field) {
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

// replaced is a list with another element of a name.
func replaced(list []any, name string, by map[string]any) []any {
	out := slices.Clone(list)
	for i, e := range out {
		if m, _ := e.(map[string]any); m["name"] == name {
			out[i] = by
		}
	}
	return out
}

func (r *removal) count(list []any, name string) int {
	n := 0
	for _, e := range list {
		if m, _ := e.(map[string]any); m["name"] == name {
			n++
		}
	}
	return n
}
