// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strconv"
	"strings"
)

// Server is an API server of one minor version of Kubernetes. The zero value is one of the newest version known here.
type Server struct {
	// minor is N of 1.N; 0 for the newest.
	minor int
	// limits are the LimitRanges of the pod's namespace.
	limits []LimitRange
}

// NewServer returns the API server of a version such as 1.34 or v1.34.2; an empty one means the newest version known
// here. Only the minor version counts.
func NewServer(version string) (Server, error) {
	if version == "" {
		return Server{}, nil
	}
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	n, err := strconv.Atoi(minor)
	if major != "1" || err != nil || n < 1 {
		return Server{}, fmt.Errorf("reading the version of Kubernetes %q: want one such as 1.34", version)
	}
	return Server{minor: n}, nil
}

// rule is a rule that not every version of Kubernetes follows.
type rule uint8

const (
	// registryNames are registries that are an IPv6 address or written in capitals, which older versions do not take
	// for registries: their images count as not valid.
	registryNames rule = iota
	// serviceLinks is enableServiceLinks: true.
	serviceLinks
	// podRequests are the requests of the pod as a whole, where it has limits.
	podRequests
	// fileKeyOptional is optional: false of a variable's fileKeyRef.
	fileKeyOptional
	// imageVolumePolicy is the pull policy of a volume that is an image.
	imageVolumePolicy
)

// since is the first minor version that follows the rule as it is delivered: one that hangs on a feature gate counts
// from when the gate is on by itself (source: defaults.go and pkg/features/kube_features.go of k8s.io/kubernetes).
var since = map[rule]int{
	serviceLinks:      13,
	registryNames:     29,
	podRequests:       34,
	fileKeyOptional:   34,
	imageVolumePolicy: 35,
}

func (s Server) isRuleInEffect(r rule) bool { return s.minor == 0 || s.minor >= since[r] }

// IsSince reports whether the server is of the version 1.MINOR or newer.
func (s Server) IsSince(minor int) bool { return s.minor == 0 || s.minor >= minor }
