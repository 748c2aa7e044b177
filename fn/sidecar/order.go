// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/gotemplate"
)

// orderKey is what a template prints beside metadata and spec to place the containers itself.
const orderKey = "order"

// effectiveOrder returns the order that applies to a pod: the template's over the policy's. It removes the order from
// the overlay.
func (s *Sidecar) effectiveOrder(overlay map[string]any) (v1alpha1.SidecarOrder, error) {
	order := s.spec.Order
	printed, ok := overlay[orderKey]
	if !ok {
		return order, nil
	}
	delete(overlay, orderKey)
	fail := func(err error) (v1alpha1.SidecarOrder, error) {
		return order, &gotemplate.Error{Template: podTemplate, Err: fmt.Errorf("order: %w", err)}
	}
	m, ok := printed.(map[string]any)
	if !ok && printed != nil {
		return fail(errors.New("it has to be a map"))
	}
	fields := map[string]*string{"position": &order.Position, "container": &order.Container,
		"initPosition": &order.InitPosition, "initContainer": &order.InitContainer}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		to, ok := fields[key]
		text, isText := m[key].(string)
		switch {
		case !ok:
			return fail(fmt.Errorf("%s is not one of container, initContainer, initPosition, position", key))
		case !isText:
			return fail(fmt.Errorf("%s has to be a string", key))
		}
		*to = text
	}
	for _, position := range []string{order.Position, order.InitPosition} {
		if !slices.Contains([]string{"", v1alpha1.PositionFirst, v1alpha1.PositionLast, v1alpha1.PositionBefore, v1alpha1.PositionAfter}, position) {
			return fail(fmt.Errorf("%q is not one of First, Last, Before, After", position))
		}
	}
	return order, nil
}

// orderContainers moves the containers that the pod did not have before to their position in the order, and returns
// their names.
func orderContainers(before, pod map[string]any, order v1alpha1.SidecarOrder) (added []string) {
	initPosition, initContainer := order.InitPosition, order.InitContainer
	if initPosition == "" {
		initPosition, initContainer = order.Position, order.Container
	}
	added = reorderInjectedContainers(before, pod, initContainersKey, initPosition, initContainer)
	return append(added, reorderInjectedContainers(before, pod, containersKey, order.Position, order.Container)...)
}

func reorderInjectedContainers(before, pod map[string]any, key, position, container string) []string {
	old := listOf(before, key)
	var rest, group []any
	var names []string
	for _, c := range listOf(pod, key) {
		if indexOf(old, c["name"]) >= 0 {
			rest = append(rest, c)
			continue
		}
		group = append(group, c)
		name, _ := c["name"].(string)
		names = append(names, name)
	}
	if len(group) == 0 {
		return nil
	}
	at := len(rest)
	i := slices.IndexFunc(rest, func(e any) bool { return e.(map[string]any)["name"] == container })
	switch {
	case position == v1alpha1.PositionFirst:
		at = 0
	case position == v1alpha1.PositionBefore && i >= 0:
		at = i
	case position == v1alpha1.PositionAfter && i >= 0:
		at = i + 1
	}
	spec, _ := pod["spec"].(map[string]any)
	spec[key] = slices.Insert(rest, at, group...)
	return names
}
