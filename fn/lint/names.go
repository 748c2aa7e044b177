// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/strict"
)

// checkPortNames finds probes and hooks with a port name that the container does not have. The kubelet looks for the name among the ports of
// the same container only (source: ResolveContainerPort in pkg/kubelet of Kubernetes 1.34).
func checkPortNames(p *pod) []finding {
	var out []finding
	for _, c := range p.allContainers() {
		if p.injected[c.name] {
			continue
		}
		own := c
		if before := p.before[c.name]; before != nil {
			own.fields = before // the injection writes numbers
		}
		names := portNames(c)
		for _, at := range kubeletCalls {
			for _, kind := range []string{"httpGet", "tcpSocket"} {
				path := append(slices.Clone(at), kind, "port")
				name := textOf(own.nestedField(path...))
				if !strings.ContainsFunc(name, isLetter) || feature.HasPlaceholder(name) || slices.Contains(names, name) {
					continue
				}
				has := "it names no port"
				if len(names) > 0 {
					has = "it has " + strings.Join(names, ", ")
				}
				out = append(out, finding{
					path: c.path + "." + strings.Join(path, "."), container: c.name, current: name,
					message: fmt.Sprintf("the %s of container %s calls the port %s, which the container does not have%s; %s: it always fails",
						at[len(at)-1], c.name, foreign.Quote(name), strict.DidYouMean(name, names), has),
				})
			}
		}
	}
	return out
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// portNames are the names of the ports of a container.
func portNames(c container) []string {
	var names []string
	ports, _ := c.fields["ports"].([]any)
	for _, item := range ports {
		m, _ := item.(map[string]any)
		if name := textOf(m["name"]); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// checkTargetPorts finds ports of Services whose name none of the selected pods has.
func checkTargetPorts(s *workloadSet) []setFinding {
	var out []setFinding
	for _, f := range s.services {
		for _, port := range f.ports {
			name := port.targetName
			if name == "" || len(f.selected) == 0 || feature.HasPlaceholder(name) || !strings.ContainsFunc(name, isLetter) {
				continue
			}
			var names []string
			for _, pod := range f.selected {
				names = append(names, sortedKeys(pod.ports)...)
			}
			if slices.Contains(names, name) {
				continue
			}
			slices.Sort(names)
			names = slices.Compact(names)
			has := "names no port"
			if len(names) > 0 {
				has = "has " + strings.Join(names, ", ")
			}
			out = append(out, f.newFinding(&result.Field{Path: fmt.Sprintf("spec.ports[%d].targetPort", port.index), CurrentValue: name},
				fmt.Sprintf("no container of the selected pods has a port %s%s; %s %s: %s reaches no pod", foreign.Quote(name),
					strict.DidYouMean(name, names), f.selected[0].ref, has, port)))
		}
	}
	return out
}

// proxyImage is the annotation with the image of the proxy.
const proxyImage = "sidecar.istio.io/proxyImage"

// checkImages finds names of images that no container runtime can read.
func checkImages(p *pod) []finding {
	var out []finding
	if value := p.annotations[proxyImage]; value != "" {
		if problem := feature.ImageProblem(value); problem != "" {
			out = append(out, finding{
				path: annotationPath(proxyImage), current: value,
				message: fmt.Sprintf("annotation %s is %s, which %s: no node can pull the image of the proxy", proxyImage, foreign.Quote(value), problem),
			})
		}
	}
	for _, c := range p.allContainers() {
		image := textOf(c.fields["image"])
		if len(out) > 0 && (p.injected[c.name] || c.name == proxyName) {
			continue // the annotation is the reason
		}
		if problem := feature.ImageProblem(image); problem != "" {
			out = append(out, finding{
				path: c.path + ".image", container: c.name, current: image,
				message: fmt.Sprintf("the image of container %s is %s, which %s: no node can pull it", c.name, foreign.Quote(image), problem),
			})
		}
	}
	return out
}
