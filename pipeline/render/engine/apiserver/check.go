// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/definitions"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/openapi"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// Check returns what the API server would refuse of the objects, in their order. The error is about the options.
func Check(ctx context.Context, objects []gate.Object, o gate.Options) (result.Results, error) {
	server, err := openapi.NewServer(o.KubernetesVersion)
	if err != nil {
		return nil, err
	}
	if o.Published {
		objects = withoutLocal(objects)
	}
	c := &checker{
		report: report{severities: o.Severities}, server: server,
		builtIn: builtIn{istioVersions: o.IstioVersions}, published: o.Published,
	}
	c.addDefinitions(objects, o.Catalog)
	var admission *admissionCheck
	if !o.SkipAdmission {
		if admission, err = newAdmissionCheck(c, objects, o); err != nil {
			return nil, err
		}
	}
	for i, object := range objects {
		if o.UpdatesOnly && object.Old == nil {
			continue
		}
		first := len(c.results)
		var validated gate.Validated
		if i < len(o.Validated) {
			validated = o.Validated[i]
		}
		if !o.SkipSchemas && !o.UpdatesOnly {
			c.checkObject(ctx, object)
		}
		if !o.SkipSchemas {
			c.addValidation(object, validated, first)
		}
		if object.Old != nil {
			c.checkUpdate(ctx, object, validated, first)
		}
		if !o.SkipSchemas && !o.UpdatesOnly {
			c.checkInjection(object)
		}
		switch {
		case o.SkipAdmission:
		case o.UpdatesOnly:
			admission.checkUpdate(ctx, object)
		default:
			admission.check(ctx, object)
		}
		slices.SortStableFunc(c.results[first:], func(a, b result.Result) int { return cmp.Compare(lineOfResult(a), lineOfResult(b)) })
	}
	if !o.SkipAdmission && !o.UpdatesOnly {
		admission.finish(o.Catalog)
	}
	return c.results, nil
}

// lineOfResult is 0 where the line is not known.
func lineOfResult(r result.Result) int {
	if r.File == nil {
		return 0
	}
	return r.File.Line
}

// checker is one check.
type checker struct {
	report
	server      *openapi.Server
	definitions definedKinds
	builtIn     builtIn
	published   bool // all objects are for a cluster
}

// groupKind names a kind in all of its versions.
type groupKind struct{ group, kind string }

// namedRef names an object in findings: by its generateName if it has no name.
func namedRef(o gate.Object) result.ResourceRef {
	ref := o.Ref()
	if ref.Name == "" {
		ref.Name = result.GeneratedName(o.Value)
	}
	return ref
}

func groupOf(apiVersion string) string {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

// ofOtherTools are API groups of files that lie among manifests and that no cluster gets.
var ofOtherTools = map[string]bool{
	"prerig.dev": true, "kustomize.config.k8s.io": true, "kpt.dev": true, "config.kubernetes.io": true, "skaffold": true,
	"kind.x-k8s.io": true, "k3d.io": true, "eksctl.io": true, "kuttl.dev": true, "kubeadm.k8s.io": true,
	"kubelet.config.k8s.io": true, "kubeproxy.config.k8s.io": true, "kubescheduler.config.k8s.io": true,
	"apiserver.config.k8s.io": true, "apiserver.k8s.io": true, "audit.k8s.io": true, "client.authentication.k8s.io": true,
	// Generators of kustomize, tests of policies, and the files of other command lines and portals.
	"viaduct.ai": true, "ran.openshift.io": true, "policyGenerator": true, "cli.kyverno.io": true,
	"test.gatekeeper.sh": true, "chainsaw.kyverno.io": true, "backstage.io": true,
	"scaffolder.backstage.io": true, "kapp.k14s.io": true, "kbld.k14s.io": true, "vendir.k14s.io": true,
	"imgpkg.carvel.dev": true, "k0sctl.k0sproject.io": true, "kops.k8s.io": true, "ctlptl.dev": true,
	"zarf.dev": true, "score.dev": true, "krew.googlecontainertools.github.com": true,
}

// operatorOfIstio is the group of files for istioctl, which clusters up to Istio 1.23 could get, too.
const operatorOfIstio = "install.istio.io"

// isForOtherTool reports whether no cluster gets an object: it is of a group of other tools, or a kubeconfig.
func isForOtherTool(o gate.Object) bool {
	ref := o.Ref()
	group := groupOf(ref.APIVersion)
	isKubeconfig := ref.APIVersion == "v1" && ref.Kind == "Config" && o.Value["clusters"] != nil
	isGenerator := group == "policy.open-cluster-management.io" && ref.Kind == "PolicyGenerator"
	return ofOtherTools[group] || isKubeconfig || isGenerator
}

func (c *checker) checkObject(ctx context.Context, o gate.Object) {
	ref := o.Ref()
	group := groupOf(ref.APIVersion)
	if isForOtherTool(o) || isEncrypted(o.Value) || isLocal(o.Value) {
		return
	}
	if ref.APIVersion == "" || ref.Kind == "" {
		c.addFieldFinding(o, gate.CodeRequired, nil, "an object needs apiVersion and kind")
		return
	}
	if kind, ok := c.server.Lookup(ref.APIVersion, ref.Kind); ok {
		c.checkBuiltIn(ctx, o, kind)
		return
	}
	if all := c.definitions[groupKind{group, ref.Kind}]; len(all) > 0 {
		c.checkByDefinitions(ctx, o, all)
		return
	}
	if c.server.HasGroup(group) && !isConfiguration(c.server, ref) {
		c.addFieldFinding(o, gate.CodeUnservedKind, []any{"apiVersion"}, "Kubernetes "+c.server.Minor+" has no "+ref.Kind+" of "+ref.APIVersion+c.server.OtherVersions(group, ref.Kind))
		return
	}
	_, version, _ := strings.Cut(ref.APIVersion, "/")
	if known := c.builtIn.serving(groupKind{group, ref.Kind}, version); known != nil && c.checkKnown(ctx, o, known) {
		return
	}
	if group == operatorOfIstio && !c.published {
		return
	}
	others := c.builtIn.otherVersions(groupKind{group, ref.Kind})
	if others.product == definitions.Istio {
		c.addFieldFinding(o, gate.CodeUnservedKind, []any{"apiVersion"}, "Istio has no "+ref.Kind+" of "+ref.APIVersion+others.text())
		return
	}
	c.addFieldFinding(o, gate.CodeUndescribedKind, []any{"kind"},
		"only the metadata was checked, as no CustomResourceDefinition describes the kind "+ref.Kind+" of "+ref.APIVersion+others.text())
	first := len(c.results)
	c.checkUndescribed(o, group)
	if !c.published {
		c.limitSeverity(first, result.Warning) // the file may be for a tool that is not known
	}
}

// isConfiguration reports whether a kind without a group is none of Kubernetes, where everything without one is of v1: files of Talos and
// of OpenShift's installer are like that.
func isConfiguration(server *openapi.Server, ref result.ResourceRef) bool {
	return groupOf(ref.APIVersion) == "" && ref.APIVersion != "v1" &&
		!slices.ContainsFunc(server.Kinds(), func(k openapi.Kind) bool { return k.Kind == ref.Kind })
}

// checkUndescribed checks the metadata of a kind without a description: it is the same for all kinds.
func (c *checker) checkUndescribed(o gate.Object, group string) {
	if !c.checkMetadataTypes(o) {
		return
	}
	name := validation.NameIsDNSSubdomain
	if strings.HasSuffix(group, ".openshift.io") {
		name = checkPathSegment // served by OpenShift's own API server, with names such as system:admin
	}
	metadata, _ := o.Value["metadata"].(map[string]any)
	namespace, _ := metadata["namespace"].(string)
	c.checkMetadata(o, namespace != "", name)
}

// checkMetadataTypes reports whether the metadata can be decoded, and adds what is wrong with its fields.
func (c *checker) checkMetadataTypes(o gate.Object) bool {
	decoded := true
	for _, p := range c.server.CheckMetadata(o.Value) {
		decoded = decoded && p.Fault != openapi.WrongType
		c.addFieldFinding(o, codeOf[p.Fault], p.Path, p.Message)
	}
	return decoded
}

// isEncrypted reports whether SOPS has encrypted values of the object: what reaches the API server is another one.
func isEncrypted(object map[string]any) bool {
	sops, _ := object["sops"].(map[string]any)
	return sops["mac"] != nil
}

// isLocal reports whether the object is for tools alone, as kpt and kustomize have it.
func isLocal(object map[string]any) bool {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations[v1alpha1.LocalConfig] == "true"
}

// withoutLocal returns objects without the annotation that makes one for tools alone. None of them is changed.
func withoutLocal(objects []gate.Object) []gate.Object {
	out := slices.Clone(objects)
	for i, o := range out {
		if !isLocal(o.Value) {
			continue
		}
		metadata := maps.Clone(o.Value["metadata"].(map[string]any))
		annotations := maps.Clone(metadata["annotations"].(map[string]any))
		delete(annotations, v1alpha1.LocalConfig)
		metadata["annotations"] = annotations
		out[i].Value = maps.Clone(o.Value)
		out[i].Value["metadata"] = metadata
	}
	return out
}
