// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/prerig/prerig/fn/podmap"
)

// checkResources finds an injected container whose requests are above its limits, which the cluster would refuse when the
// pod is created: a user sets a request by annotation, and the template's limit is lower. What the pod itself asks for in a
// container that a template only adds to, such as the application's in Istio's gRPC templates, is not the injection's.
func (r *run) checkResources() error {
	for _, key := range []string{initContainersKey, containersKey} {
		for i, e := range r.pod.list(key) {
			c, _ := e.(map[string]any)
			if name, _ := c["name"].(string); !r.injected.has(key, name) {
				continue
			}
			if own := r.seen.named(c); own != nil && podmap.Same(own["resources"], c["resources"]) {
				continue
			}
			res, _ := c["resources"].(map[string]any)
			requests, _ := res["requests"].(map[string]any)
			limits, _ := res["limits"].(map[string]any)
			for _, name := range podmap.SortedKeys(requests) {
				if err := checkNotAbove(requests[name], limits[name]); err != nil {
					return &podmap.FieldError{
						Field: fmt.Sprintf("spec.%s[%d].resources.requests[%s]", key, i, name),
						Err:   fmt.Errorf("container %v: %w", c["name"], err),
					}
				}
			}
		}
	}
	return nil
}

func checkNotAbove(request, limit any) error {
	if request == nil || limit == nil {
		return nil
	}
	if request == limit {
		return nil
	}
	r, err := resource.ParseQuantity(fmt.Sprint(request))
	if err != nil {
		return fmt.Errorf("the request %v is not a quantity such as 100m or 128Mi", request)
	}
	l, err := resource.ParseQuantity(fmt.Sprint(limit))
	if err != nil {
		return fmt.Errorf("the limit %v is not a quantity such as 100m or 128Mi", limit)
	}
	if r.Cmp(l) > 0 {
		return fmt.Errorf("the request %v is above the limit %v; raise the limit or lower the request", request, limit)
	}
	return nil
}
