// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
)

// checkGuaranteedLost looks at all containers, init containers among them. Pods whose class comes from their own resources keep it.
// Source: ComputePodQOS in pkg/apis/core/v1/helper/qos of Kubernetes 1.36.
func checkGuaranteedLost(p *pod) []finding {
	if p.podLevelResources() != nil {
		return nil
	}
	var lost []container
	own := 0
	for _, c := range p.allContainers() {
		switch {
		case p.injected[c.name] && !c.hasGuaranteedResources():
			lost = append(lost, c)
		case p.injected[c.name]:
		case !c.hasGuaranteedResources():
			return nil
		default:
			own++
		}
	}
	if own == 0 || len(lost) == 0 {
		return nil
	}
	names := make([]string, len(lost))
	for i, c := range lost {
		names[i] = c.name
	}
	at := lost[0]
	if i := slices.Index(names, proxyName); i >= 0 {
		at = lost[i]
	}
	return []finding{{
		path: at.path + ".resources", container: at.name,
		message: fmt.Sprintf("the pod would be Guaranteed and becomes Burstable: requests and limits of CPU and memory are not equal in %s", strings.Join(names, ", ")),
	}}
}

// hasGuaranteedResources reports whether the container has limits of CPU and memory and no request that differs.
func (c container) hasGuaranteedResources() bool {
	for _, name := range []string{"cpu", "memory"} {
		limit, ok := quantityOf(c.nestedField("resources", "limits", name))
		if !ok || limit.Sign() <= 0 {
			return false
		}
		asked := c.nestedField("resources", "requests", name)
		if request, ok := quantityOf(asked); asked != nil && (!ok || request.Cmp(limit) != 0) {
			return false
		}
	}
	return true
}
