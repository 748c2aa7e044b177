// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/podmap"
)

// setMetadata sets the network's label, the status and the annotations that the configuration puts on every pod.
func (r *run) setMetadata() error {
	if network, ok := r.envs[networkEnv]; ok && r.profile.Has(feature.LabelNetwork) {
		r.pod.setMetadataValue("labels", networkLabel, network)
	}
	s := status{
		InitContainers:   r.injected.containerNames(initContainersKey),
		Containers:       r.injected.containerNames(containersKey),
		Volumes:          r.injected.containerNames("volumes"),
		ImagePullSecrets: r.injected.containerNames("imagePullSecrets"),
	}
	if r.profile.Has(feature.StatusRevision) {
		revision := r.in.Revision()
		s.Revision = &revision
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("writing the annotation %s: %w", statusAnnotation, err)
	}
	r.pod.setMetadataValue("annotations", statusAnnotation, string(text))
	for name, value := range r.in.Config().InjectedAnnotations {
		r.pod.setMetadataValue("annotations", name, value)
	}
	return nil
}

// listEnd is the end of the list at which a container is inserted.
type listEnd bool

const (
	toFirst listEnd = true
	toLast  listEnd = false
)

// reorderContainers puts the containers in the order in which they have to start (source: reorderPod in
// pkg/kube/inject/webhook.go).
func (r *run) reorderContainers() error {
	hold, err := r.holdsApplicationStart()
	if err != nil {
		return err
	}
	r.moveContainerTo(containersKey, proxyContainer, listEnd(hold))
	if podmap.Find(r.pod.specListMaps(initContainersKey), proxyContainer) != nil && r.profile.Has(feature.NativeSidecars) {
		for _, name := range []string{coreDumpContainer, proxyContainer, validationContainer, initContainer} {
			r.moveContainerTo(initContainersKey, name, toFirst)
		}
		return nil
	}
	r.moveContainerTo(initContainersKey, validationContainer, toFirst)
	r.moveContainerTo(initContainersKey, initContainer, toLast)
	r.moveContainerTo(initContainersKey, coreDumpContainer, toLast)
	return nil
}

// holdsApplicationStart reports whether the proxy has to come first, according to the mesh config with the pod's
// annotation, or the values.
func (r *run) holdsApplicationStart() (bool, error) {
	if r.in.Values().Bool("global", "proxy", "holdApplicationUntilProxyStarts") {
		return true, nil
	}
	if !r.profile.Has(feature.HoldFromAnnotation) {
		return false, nil
	}
	pc := r.in.Mesh().GetDefaultConfig()
	text, annotated := r.before.annotation(r.in.ProxyConfigAnnotation())
	switch {
	case !annotated && !r.profile.Has(feature.HoldFromMeshConfig):
		return false, nil
	case annotated:
		var err error
		if pc, err = applyAnnotation(text, pc); err != nil {
			return false, &podmap.FieldError{Field: "metadata.annotations[" + r.in.ProxyConfigAnnotation() + "]", Err: err}
		}
	}
	return pc.GetHoldApplicationUntilProxyStarts().GetValue(), nil
}

// moveContainerTo puts the container of a name first or last in its list.
func (r *run) moveContainerTo(key, name string, to listEnd) {
	list := r.pod.specListMaps(key)
	c := podmap.Find(list, name)
	if c == nil {
		return
	}
	rest := podmap.Without(list, name)
	if to == toFirst {
		r.pod.spec[key] = append([]any{c}, rest...)
	} else {
		r.pod.spec[key] = append(rest, c)
	}
}
