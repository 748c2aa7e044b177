// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/podmap"
)

// setMetadata sets the network's label, the status and the annotations that the configuration puts on every pod.
func setMetadata(in *istio.Injector, p *pod, added *injected, envs map[string]string) error {
	if network, ok := envs[networkEnv]; ok && in.Profile().Has(feature.LabelNetwork) {
		p.setMetadataValue("labels", networkLabel, network)
	}
	s := status{
		InitContainers:   added.containerNames(initContainersKey),
		Containers:       added.containerNames(containersKey),
		Volumes:          added.containerNames("volumes"),
		ImagePullSecrets: added.containerNames(pullSecretsKey),
	}
	if in.Profile().Has(feature.StatusRevision) {
		revision := in.Revision()
		s.Revision = &revision
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("writing the annotation %s: %w", statusAnnotation, err)
	}
	p.setMetadataValue("annotations", statusAnnotation, string(text))
	for name, value := range in.Config().InjectedAnnotations {
		p.setMetadataValue("annotations", name, value)
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
// pkg/kube/inject/webhook.go). hold reports whether the application waits for the proxy.
func reorderContainers(p *pod, hold, native bool) {
	moveContainerTo(p, containersKey, proxyContainer, listEnd(hold))
	if native && podmap.Find(p.specListMaps(initContainersKey), proxyContainer) != nil {
		for _, name := range []string{coreDumpContainer, proxyContainer, validationContainer, initContainer} {
			moveContainerTo(p, initContainersKey, name, toFirst)
		}
		return
	}
	moveContainerTo(p, initContainersKey, validationContainer, toFirst)
	moveContainerTo(p, initContainersKey, initContainer, toLast)
	moveContainerTo(p, initContainersKey, coreDumpContainer, toLast)
}

// holdsApplicationStart reports whether the proxy has to come first, according to the mesh config with the pod's
// annotation, or the values.
func holdsApplicationStart(in *istio.Injector, before *pod) (bool, error) {
	if in.Values().Bool("global", "proxy", "holdApplicationUntilProxyStarts") {
		return true, nil
	}
	if !in.Profile().Has(feature.HoldFromAnnotation) {
		return false, nil
	}
	pc := in.Mesh().GetDefaultConfig()
	text, annotated := before.annotation(in.Profile().ProxyConfigAnnotation())
	switch {
	case !annotated && !in.Profile().Has(feature.HoldFromMeshConfig):
		return false, nil
	case annotated:
		var err error
		if pc, err = applyAnnotation(text, pc); err != nil {
			field := "metadata.annotations[" + in.Profile().ProxyConfigAnnotation() + "]"
			return false, &podmap.FieldError{Field: field, Err: err}
		}
	}
	return pc.GetHoldApplicationUntilProxyStarts().GetValue(), nil
}

// moveContainerTo puts the container of a name first or last in its list.
func moveContainerTo(p *pod, key, name string, to listEnd) {
	list := p.specListMaps(key)
	c := podmap.Find(list, name)
	if c == nil {
		return
	}
	rest := podmap.Without(list, name)
	if to == toFirst {
		p.spec[key] = append([]any{c}, rest...)
	} else {
		p.spec[key] = append(rest, c)
	}
}
