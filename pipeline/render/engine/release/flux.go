// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render/engine/helmchart"
)

// Render renders a release. Findings, errors too, are among the results; an error is one that is about no object.
func (s *Set) Render(ctx context.Context, o *Object) (*Rendered, error) {
	out := &Rendered{}
	var err error
	switch o.Ref().Kind {
	case "HelmRelease":
		err = s.renderHelmRelease(ctx, o, out)
	case "Application":
		err = s.renderApplication(ctx, o, out)
	default:
		err = s.renderApplicationSet(o, out)
	}
	if err == nil {
		return out, nil
	}
	if ctx.Err() != nil {
		return nil, err
	}
	return &Rendered{Local: out.Local, Unit: out.Unit, Results: append(out.Results, ErrorFinding(o, err))}, nil
}

// maxNameLength is the maximum length of a release name that Helm accepts; hashLength is the length of the hash
// suffix that shortens a longer one.
const (
	maxNameLength = 53
	hashLength    = 12
)

// shortName shortens the name of a release as helm-controller does (internal/release, ShortenName).
func shortName(name string) string {
	if len(name) <= maxNameLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxNameLength-hashLength-1] + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

// knownVersions are the versions of HelmRelease whose fields are those of v2.
var knownVersions = []string{"v2", "v2beta2"}

func (s *Set) renderHelmRelease(ctx context.Context, o *Object, out *Rendered) error {
	var hr helmv2.HelmRelease
	unknown, err := decodeReleaseType(o, &hr)
	if err != nil {
		return err
	}
	for _, field := range unknown {
		out.Results = append(out.Results, Finding(result.Warning, o, field, "is no field of a HelmRelease, and has no effect"))
	}
	if hr.Namespace = s.namespaceOf(o); hr.Namespace == "" {
		return errorAboutField(o, "metadata.namespace", "is missing, and the release depends on it; set it, or spec.build.releases.namespace of the pipeline")
	}
	if err := s.checkHelmRelease(o, &hr, out); err != nil {
		return err
	}
	if field, message := s.checkVariables(o, "spec", o.Value["spec"]); field != "" {
		return errorAboutField(o, field, "%s", message)
	}
	spec := s.newSpec()
	spec.ReleaseName, spec.Namespace = shortName(hr.GetReleaseName()), hr.GetReleaseNamespace()
	options := s.sharedRenderOptions(map[string]string{"values": "spec.values", "skipSchemaValidation": "spec.install.disableSchemaValidation"})
	found, err := s.findFluxChart(o, &hr)
	if err != nil {
		return err
	}
	if !found.useChartInRelease(s, spec, out) {
		return nil
	}
	if options.DefaultValues, err = found.defaultValues(s, spec, options); err != nil {
		return err
	}
	if spec.Values, err = s.fluxValues(o, &hr, out); err != nil {
		return err
	}
	installFrom(&hr, spec)
	manifests, err := helmchart.Render(ctx, s.in.Files, spec, options)
	if err != nil {
		return errorAboutField(o, found.field, "%v", err)
	}
	if manifests, err = postRender(&hr, manifests); err != nil {
		return errorAboutField(o, "spec.postRenderers", "%v", err)
	}
	out.addChart(manifests)
	out.Namespace = spec.Namespace
	if install := hr.Spec.Install; install != nil && install.CreateNamespace && hr.Spec.TargetNamespace != "" {
		out.Created = newNamespace(spec.Namespace, map[string]any{"name": spec.Namespace}, nil)
	}
	return nil
}

// newSpec returns a release with the pipeline's settings for all releases.
func (s *Set) newSpec() *v1alpha1.Helm {
	all := s.in.Spec
	return &v1alpha1.Helm{
		KubeVersion: all.KubeVersion, APIVersions: all.APIVersions, Hooks: all.Hooks,
		Lookup: all.Lookup, Captured: all.Captured, Impure: all.Impure,
	}
}

// sharedRenderOptions returns the options shared by the renders of all releases. own names the fields that a release
// sets itself, rather than the pipeline.
func (s *Set) sharedRenderOptions(own map[string]string) helmchart.Options {
	return helmchart.Options{Archives: s.in.Archives, Warn: s.in.Warn, FieldName: func(field string) string {
		if name, ok := own[field]; ok {
			return name
		}
		return "spec.build.releases." + field
	}}
}

// checkHelmRelease refuses what cannot be rendered here.
func (s *Set) checkHelmRelease(o *Object, hr *helmv2.HelmRelease, out *Rendered) error {
	version := strings.TrimPrefix(o.Ref().APIVersion, fluxGroup+"/")
	if !slices.Contains(knownVersions, version) {
		return errorAboutField(o, "apiVersion", "version %s is not read; move it to %s/v2", version, fluxGroup)
	}
	if hr.Spec.KubeConfig != nil {
		return errorAboutField(o, "spec.kubeConfig", "installs the release in another cluster, and what is rendered here goes to one; give it a pipeline of its own without this field, %s", keepHint)
	}
	if name := hr.Spec.ReleaseName; len(name) > maxNameLength {
		return errorAboutField(o, "spec.releaseName", "must have at most %d characters", maxNameLength)
	}
	if hr.Spec.Suspend {
		out.Results = append(out.Results, Finding(result.Warning, o, "spec.suspend", "has no effect on what is rendered; suspend the pipeline, "+keepHint))
	}
	return nil
}

// installFrom applies the install settings of a HelmRelease.
func installFrom(hr *helmv2.HelmRelease, spec *v1alpha1.Helm) {
	install, upgrade := hr.Spec.Install, hr.Spec.Upgrade
	include := true
	if install != nil {
		spec.SkipSchemaValidation = install.DisableSchemaValidation
		if install.DisableHooks {
			spec.Hooks = v1alpha1.HooksDrop
		}
		skipsUpgrade := upgrade == nil || upgrade.CRDs == "" || upgrade.CRDs == helmv2.Skip
		include = install.CRDs != helmv2.Skip || !skipsUpgrade
	}
	spec.IncludeCRDs = &include
}

// fluxValues returns the values of a HelmRelease in the order of helm-controller: those of references one after the other, then its
// own, and those with a targetPath over all (github.com/fluxcd/pkg/chartutil, ChartValuesFromReferences).
func (s *Set) fluxValues(o *Object, hr *helmv2.HelmRelease, out *Rendered) (map[string]any, error) {
	own := map[string]any{}
	if hr.Spec.Values != nil {
		if err := json.Unmarshal(hr.Spec.Values.Raw, &own); err != nil {
			return nil, errorAboutField(o, "spec.values", "must be a mapping")
		}
	}
	merged := map[string]any{}
	for i, ref := range hr.Spec.ValuesFrom {
		at := fmt.Sprintf("spec.valuesFrom[%d]", i)
		content, found, err := s.readReference(o, at, hr.Namespace, ref, out)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		if ref.TargetPath != "" {
			merged = mergeMaps(merged, own)
			if err := setPath(merged, ref.TargetPath, content, ref.Literal); err != nil {
				return nil, errorAboutField(o, at+".targetPath", "cannot be set: %v", err)
			}
			continue
		}
		values, err := readValues([]byte(content))
		if err != nil {
			return nil, errorAboutField(o, at, "its values cannot be read: %v", err)
		}
		merged = mergeMaps(merged, values)
	}
	return mergeMaps(merged, own), nil
}

// newNamespace returns a Namespace that is not deleted with what is in it when it is not rendered any more.
func newNamespace(name string, labels, annotations map[string]any) map[string]any {
	all := map[string]any{"kustomize.toolkit.fluxcd.io/prune": "disabled", "argocd.argoproj.io/sync-options": "Prune=false"}
	for key, value := range annotations {
		all[key] = value
	}
	metadata := map[string]any{"name": name, "annotations": all}
	if len(labels) > 0 {
		metadata["labels"] = labels
	}
	return map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
}
