// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"encoding/json"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/resid"

	"github.com/prerig/prerig/pipeline/render/engine/helmchart"
)

// postRender applies the post-renderers of a HelmRelease and adds its common metadata. Objects from a crds
// directory bypass them, and hooks follow the strategy.
func postRender(hr *helmv2.HelmRelease, manifests []helmchart.Manifest) ([]helmchart.Manifest, error) {
	steps := postRenderers(hr)
	if len(steps) == 0 {
		return manifests, nil
	}
	var out, hooks, ordinary []helmchart.Manifest
	for _, one := range manifests {
		switch {
		case one.CRD, one.Hook && hr.Spec.PostRenderStrategy == helmv2.PostRenderStrategyNoHooks:
			out = append(out, one)
		case one.Hook && hr.Spec.PostRenderStrategy == helmv2.PostRenderStrategySeparate:
			hooks = append(hooks, one)
		default:
			ordinary = append(ordinary, one)
		}
	}
	for _, stream := range [][]helmchart.Manifest{ordinary, hooks} {
		text := joinManifestStream(stream)
		if strings.TrimSpace(text) == "" {
			continue
		}
		for _, step := range steps {
			var err error
			if text, err = kustomizeText(step, text); err != nil {
				return nil, err
			}
		}
		out = append(out, helmchart.Manifest{Template: stream[0].Template, YAML: text})
	}
	return out, nil
}

// joinManifestStream returns manifests as one stream.
func joinManifestStream(manifests []helmchart.Manifest) string {
	var text strings.Builder
	for _, one := range manifests {
		text.WriteString("---\n" + one.YAML + "\n")
	}
	return text.String()
}

// postRenderers returns the kustomizations that are applied one after the other.
func postRenderers(hr *helmv2.HelmRelease) []types.Kustomization {
	var out []types.Kustomization
	for _, renderer := range hr.Spec.PostRenderers {
		if renderer.Kustomize == nil {
			continue
		}
		var k types.Kustomization
		for _, patch := range renderer.Kustomize.Patches {
			one := types.Patch{Patch: patch.Patch}
			if t := patch.Target; t != nil {
				one.Target = &types.Selector{
					ResId:         resid.ResId{Gvk: resid.Gvk{Group: t.Group, Version: t.Version, Kind: t.Kind}, Name: t.Name, Namespace: t.Namespace},
					LabelSelector: t.LabelSelector, AnnotationSelector: t.AnnotationSelector,
				}
			}
			k.Patches = append(k.Patches, one)
		}
		for _, image := range renderer.Kustomize.Images {
			k.Images = append(k.Images, types.Image{Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest})
		}
		out = append(out, k)
	}
	if common := hr.Spec.CommonMetadata; common != nil && len(common.Labels)+len(common.Annotations) > 0 {
		// Labels without selectors and templates, and annotations on the objects alone: as a patch for each object does it.
		metadata := map[string]any{}
		if len(common.Labels) > 0 {
			metadata["labels"] = common.Labels
		}
		if len(common.Annotations) > 0 {
			metadata["annotations"] = common.Annotations
		}
		patch, err := json.Marshal(map[string]any{"apiVersion": "any/v1", "kind": "Any", "metadata": withName(metadata)})
		if err == nil {
			out = append(out, types.Kustomization{Patches: []types.Patch{{Patch: string(patch), Target: &types.Selector{ResId: resid.ResId{Name: ".*"}}}}})
		}
	}
	return out
}

// withName adds the mandatory name to the metadata of a patch; it has no meaning if a target is set.
func withName(metadata map[string]any) map[string]any {
	metadata["name"] = "any"
	return metadata
}

// kustomizeText builds a kustomization whose only resource is a text. Plugins are disabled, and no other files exist.
func kustomizeText(k types.Kustomization, text string) (string, error) {
	const resource = "release.yaml"
	k.TypeMeta = types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind}
	k.Resources = []string{resource}
	content, err := json.Marshal(k)
	if err != nil {
		return "", err
	}
	files := filesys.MakeFsInMemory()
	if err := files.WriteFile("/"+resource, []byte(text)); err != nil {
		return "", err
	}
	if err := files.WriteFile("/kustomization.yaml", content); err != nil {
		return "", err
	}
	options := krusty.MakeDefaultOptions()
	options.PluginConfig = types.DisabledPluginConfig()
	objects, err := krusty.MakeKustomizer(options).Run(files, "/")
	if err != nil {
		return "", err
	}
	out, err := objects.AsYaml()
	return string(out), err
}
