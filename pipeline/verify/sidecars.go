// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// DefaultSidecars are the containers that count as sidecars: those of the sidecars that come with Prerig.
var DefaultSidecars = []string{"istio-proxy", "linkerd-proxy", "daprd", "vault-agent", "otc-container", "cloud-sql-proxy"}

// fleet counts the sidecars of pods.
type fleet struct {
	names []string
	by    map[string]*fleetSidecar
}

type fleetSidecar struct {
	pods, arrived      int
	running, committed map[string]int
}

// countPodSidecars counts a pod, whose committed template is that of the newest commit.
func (f *fleet) countPodSidecars(committed, pod map[string]any) {
	for _, name := range f.names {
		want, ok := sidecarVersion(committed, name)
		if !ok {
			continue
		}
		s := f.by[name]
		if s == nil {
			s = &fleetSidecar{running: map[string]int{}, committed: map[string]int{}}
			f.by[name] = s
		}
		found, _ := sidecarVersion(pod, name)
		s.pods++
		s.running[found]++
		s.committed[want]++
		if found == want {
			s.arrived++
		}
	}
}

// sidecarVersion returns the version of the image of a container, which may be among the init containers.
func sidecarVersion(pod map[string]any, name string) (string, bool) {
	for _, key := range []string{"containers", "initContainers"} {
		for _, c := range mapsAtPath(pod, "spec", key) {
			if c["name"] == name {
				return imageVersion(podmap.TextAt(c, "image")), true
			}
		}
	}
	return "", false
}

// imageVersion is the tag of an image, or its digest where it has none.
func imageVersion(image string) string {
	name, digest, _ := strings.Cut(image, "@")
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name[i+1:]
	}
	if digest != "" {
		return digest
	}
	return "latest"
}

// countedSidecars returns what was counted, in the order of the names.
func (f *fleet) countedSidecars() []Sidecar {
	var out []Sidecar
	for _, name := range f.names {
		s := f.by[name]
		if s == nil {
			continue
		}
		one := Sidecar{Container: name, Pods: s.pods, Arrived: s.arrived}
		versions := maps.Clone(s.committed)
		maps.Copy(versions, s.running)
		for version := range versions {
			one.Versions = append(one.Versions, SidecarVersion{Version: version, Pods: s.running[version], Committed: s.committed[version]})
		}
		slices.SortFunc(one.Versions, func(a, b SidecarVersion) int {
			return cmp.Or(b.Committed-a.Committed, b.Pods-a.Pods, cmp.Compare(a.Version, b.Version))
		})
		out = append(out, one)
	}
	return out
}
