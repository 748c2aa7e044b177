// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/source/gitname"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// FieldError is about one field of a pipeline.
type FieldError struct {
	// Path of the field, such as spec.publish[0].git.branch.
	Path string
	// Message describes what is wrong and what to do.
	Message string
}

// Error returns path and message.
func (e *FieldError) Error() string { return e.Path + ": " + e.Message }

// DefaultInterval is how often a source is looked at without an event.
const DefaultInterval = 10 * time.Minute

// Default sets what a user may leave out.
func (p *RenderPipeline) Default() {
	spec := &p.Spec
	if spec.Interval == nil {
		spec.Interval = &metav1.Duration{Duration: DefaultInterval}
	}
	setDefault(&spec.Build.Type, BuildAuto)
	if helm := spec.Build.Helm; helm != nil {
		helm.setDefaults(p)
		if spec.Build.Type == BuildAuto {
			spec.Build.Type = BuildHelm
		}
	}
	if charts := spec.Build.HelmCharts; charts != nil {
		setDefault(&charts.Lookup, ImpureRefuse)
		setDefault(&charts.Impure, ImpureRefuse)
	}
	if spec.Build.Releases != nil {
		spec.Build.Releases.setDefaults()
	}
	setDefault(&spec.Build.Path, ".")
	setDefault(&spec.Build.ChartLock, DefaultChartLock)
	setDefault(&spec.Gates.Severity, GateError)
	setDefault(&spec.DeletionPolicy, DeletionOrphan)
	setDefault(&spec.Drift, DriftReport)
	if spec.Gates.MaxDeleted == nil {
		half := 50
		spec.Gates.MaxDeleted = &half
	}
	for i := range spec.Publish {
		setDefault(&spec.Publish[i].Secrets, SecretsRefuse)
		for _, kind := range spec.Publish[i].publishKindsByName() {
			if kind != nil {
				kind.setDefaults(p)
			}
		}
	}
	if spec.Preview != nil {
		spec.Preview.setDefaults(p)
	}
	for i := range spec.Notify {
		if status := spec.Notify[i].CommitStatus; status != nil {
			setDefault(&status.Context, "prerig/"+p.Key())
		}
	}
}

func setDefault[T ~string](field *T, value T) {
	if *field == "" {
		*field = value
	}
}

// Validate returns what is wrong with a pipeline whose defaults are set: a FieldError, or several joined.
func (p *RenderPipeline) Validate() error {
	v := &validator{}
	v.checkName("metadata.name", p.Metadata.Name)
	if p.Metadata.Namespace != "" {
		v.checkName("metadata.namespace", p.Metadata.Namespace)
	}
	v.checkSources(p)
	v.checkBuild(p.Spec.Build)
	v.checkLoadRestrictor(p.Spec)
	for i, policy := range p.Spec.Policies {
		v.checkPolicy(fmt.Sprintf("spec.policies[%d]", i), policy)
	}
	v.checkPublish(p)
	v.checkGates(p.Spec.Gates)
	v.checkEnum("spec.deletionPolicy", string(p.Spec.DeletionPolicy), "Orphan", "Delete")
	v.checkEnum("spec.drift", string(p.Spec.Drift), "Report", "Repair")
	for i, notify := range p.Spec.Notify {
		v.checkNotification(fmt.Sprintf("spec.notify[%d]", i), notify)
	}
	if p.Spec.Preview != nil {
		p.Spec.Preview.checkPreview(v, p)
	}
	if p.Spec.Interval != nil && p.Spec.Interval.Duration < 0 {
		v.addError("spec.interval", "must not be negative")
	}
	return errors.Join(v.errs...)
}

type validator struct{ errs []error }

func (v *validator) addError(path, format string, args ...any) {
	v.errs = append(v.errs, &FieldError{Path: path, Message: fmt.Sprintf(format, args...)})
}

func (v *validator) checkExactlyOne(at string, given map[string]bool) {
	var keys, set []string
	for key, is := range given {
		keys = append(keys, key)
		if is {
			set = append(set, key)
		}
	}
	slices.Sort(keys)
	slices.Sort(set)
	if len(set) != 1 {
		found := "none"
		if len(set) > 0 {
			found = strings.Join(set, " and ")
		}
		v.addError(at, "exactly one of %s must be given, found %s", strings.Join(keys, ", "), found)
	}
}

var nameRule = lazyregexp.New(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

func (v *validator) checkName(at, name string) {
	if len(name) > 253 || !nameRule.MatchString(name) || strings.Contains(name, "..") {
		v.addError(at, "must be lower case letters, digits, '-' and '.', found %q", name)
	}
}

func (v *validator) checkSource(at string, source Source) {
	v.checkExactlyOne(at, map[string]bool{"git": source.Git != nil, "oci": source.OCI != nil, "dir": source.Dir != nil})
	if git := source.Git; git != nil {
		v.gitURL(at+".git.url", git.URL)
		v.gitRef(at+".git.ref", git.Ref)
	}
	if oci := source.OCI; oci != nil {
		v.ociURL(at+".oci.url", oci.URL)
		if oci.Ref.Tag != "" && oci.Ref.Digest != "" {
			v.addError(at+".oci.ref", "tag and digest exclude each other")
		}
		if oci.Ref.Digest != "" && !digestRule.MatchString(oci.Ref.Digest) {
			v.addError(at+".oci.ref.digest", "must be sha256: and 64 hexadecimal digits")
		}
	}
	if source.Dir != nil && source.Dir.Path == "" {
		v.addError(at+".dir.path", "must be given")
	}
}

var (
	commitRule = lazyregexp.New(`^[0-9a-f]{40}$`)
	digestRule = lazyregexp.New(`^sha256:[0-9a-f]{64}$`)
)

// CheckGitURL reports whether a URL is one of a Git repository, without credentials. The error never quotes it.
func CheckGitURL(raw string) error {
	v := &validator{}
	v.gitURL("url", raw)
	return errors.Join(v.errs...)
}

// CheckRefName reports whether a name can be that of a branch or another Git reference.
func CheckRefName(name string) error {
	v := &validator{}
	v.refName("ref", name)
	return errors.Join(v.errs...)
}

func (v *validator) gitRef(at string, ref GitRef) {
	count := 0
	for _, value := range []string{ref.Branch, ref.Tag, ref.Name} {
		if value != "" {
			count++
		}
	}
	if count > 1 {
		v.addError(at, "branch, tag and name exclude each other")
	}
	if ref.Commit != "" && !commitRule.MatchString(ref.Commit) {
		v.addError(at+".commit", "must be 40 lower case hexadecimal digits, found %q", ref.Commit)
	}
	for key, value := range map[string]string{"branch": ref.Branch, "tag": ref.Tag, "name": ref.Name} {
		if value != "" {
			v.refName(at+"."+key, value)
		}
	}
	if ref.Name != "" && !strings.HasPrefix(ref.Name, "refs/") {
		v.addError(at+".name", "must be a reference in full, such as refs/heads/main")
	}
}

func (v *validator) refName(at, name string) {
	if err := gitname.CheckRef(name); err != nil {
		v.addError(at, "%s", err)
	}
}

// branchName checks the name of a branch that is written. Those below prerig/ are the heads of pull requests.
func (v *validator) branchName(at, name string) {
	if err := gitname.CheckBranch(name); err != nil {
		v.addError(at, "%s", err)
	}
	if key := gitname.Key(name); key == headRoot || strings.HasPrefix(key, headRoot+"/") {
		v.addError(at, "must not be %s or below it, where the heads of pull requests are; use another branch", headRoot)
	}
}

func (v *validator) gitURL(at, raw string) {
	for _, problem := range giturl.Check(raw) {
		v.addError(at, "%s", problem)
	}
}

func (v *validator) ociURL(at, raw string) {
	rest, ok := strings.CutPrefix(raw, "oci://")
	host, repository, found := strings.Cut(rest, "/")
	if !ok || !found || host == "" || repository == "" {
		v.addError(at, "must be of the form oci://registry/repository")
		return
	}
	if strings.ContainsAny(repository, "@:") || strings.Contains(host, "@") {
		v.addError(at, "must have no tag, digest or credentials")
	}
}

func (v *validator) checkBuild(build Build) {
	v.checkEnum("spec.build.type", string(build.Type), "Auto", "Kustomize", "Plain", "Kpt", "Helm")
	v.checkPath("spec.build.path", build.Path)
	v.remoteBases("spec.build.remoteBases", build)
	v.checkHelm(build)
	v.checkHelmCharts("spec.build.helmCharts", build)
	v.checkReleases("spec.build.releases", build.Releases)
	v.checkChartRepositories("spec.build.chartRepositories", build.ChartRepositories)
	v.checkPath("spec.build.chartLock", build.ChartLock)
	if limits := build.Limits; limits != nil {
		for key, value := range map[string]string{"memory": limits.Memory, "output": limits.Output} {
			if value == "" {
				continue
			}
			if quantity, err := resource.ParseQuantity(value); err != nil || quantity.Value() <= 0 {
				v.addError("spec.build.limits."+key, "must be a quantity such as 512Mi, found %q", value)
			}
		}
		if limits.Timeout != nil && limits.Timeout.Duration <= 0 {
			v.addError("spec.build.limits.timeout", "must be more than 0s")
		}
		if limits.Files < 0 {
			v.addError("spec.build.limits.files", "must not be negative")
		}
	}
}

func (v *validator) checkLoadRestrictor(spec RenderPipelineSpec) {
	const at = "spec.build.loadRestrictor"
	build := spec.Build
	v.checkEnum(at, string(build.LoadRestrictor), "", string(LoadRestrictionsRootOnly), string(LoadRestrictionsNone))
	switch {
	case build.LoadRestrictor == "":
	case build.Type != "" && build.Type != BuildAuto && build.Type != BuildKustomize:
		v.addError(at, "is for kustomizations, and type is %s", build.Type)
	case build.LoadRestrictor == LoadRestrictionsNone && len(build.RemoteBases)+len(spec.Sources) > 0:
		v.addError(at, "None cannot be combined with remoteBases and spec.sources, whose kustomizations could load files of the pipeline's own source")
	}
}

func (v *validator) checkPolicy(at string, policy PolicyRef) {
	v.checkExactlyOne(at, map[string]bool{"path": policy.Path != "", "file": policy.File != "", "builtIn": policy.BuiltIn != "", "name": policy.Name != ""})
	if policy.Name != "" {
		v.checkName(at+".name", policy.Name)
	}
	v.checkPath(at+".path", policy.Path)
	v.checkPath(at+".file", policy.File)
}

func (v *validator) checkEnum(at, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		v.addError(at, "must be one of %s, found %q", strings.Join(allowed, ", "), value)
	}
}

func (v *validator) checkGates(gates Gates) {
	v.checkEnum("spec.gates.severity", string(gates.Severity), "Error", "Warning", "Never")
	if gates.MaxDeleted != nil && (*gates.MaxDeleted < 0 || *gates.MaxDeleted > 100) {
		v.addError("spec.gates.maxDeleted", "must be between 0 and 100 percent")
	}
	if schemas := gates.Schemas; schemas != nil {
		v.checkGate("spec.gates.schemas", "crds", schemas.CRDs, schemas.Rules)
	}
	admission := gates.Admission
	if admission == nil {
		return
	}
	v.checkGate("spec.gates.admission", "policies", admission.Policies, admission.Rules)
	if schemas := gates.Schemas; schemas != nil && schemas.KubernetesVersion != "" && admission.KubernetesVersion != "" &&
		schemas.KubernetesVersion != admission.KubernetesVersion {
		v.addError("spec.gates.admission.kubernetesVersion", "must be that of spec.gates.schemas, %s, or left out", schemas.KubernetesVersion)
	}
	if admission.User != nil && admission.User.Name == "" {
		v.addError("spec.gates.admission.user.name", "must be given")
	}
}

// checkGate checks the files that a gate reads and the severities of its rules.
func (v *validator) checkGate(at, key string, names []string, rules map[string]string) {
	for i, name := range names {
		v.checkPath(fmt.Sprintf("%s.%s[%d]", at, key, i), name)
	}
	for _, code := range slices.Sorted(maps.Keys(rules)) {
		v.checkEnum(at+".rules."+code, rules[code], "Error", "Warning", "Info", "Off")
	}
}

func (v *validator) checkNotification(at string, notify Notification) {
	v.checkExactlyOne(at, map[string]bool{
		"fluxReceiver": notify.FluxReceiver != nil, "cloudEvent": notify.CloudEvent != nil, "commitStatus": notify.CommitStatus != nil,
	})
	for key, endpoint := range map[string]*Endpoint{"fluxReceiver": notify.FluxReceiver, "cloudEvent": notify.CloudEvent} {
		if endpoint == nil {
			continue
		}
		parsed, err := url.Parse(endpoint.URL)
		if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.User != nil {
			v.addError(at+"."+key+".url", "must be an http:// or https:// URL without credentials")
		}
	}
	if notify.FluxReceiver != nil && notify.FluxReceiver.SecretRef == nil {
		v.addError(at+".fluxReceiver.secretRef", "must be given: a Receiver of type generic-hmac refuses what is not signed")
	}
	if status := notify.CommitStatus; status != nil {
		v.checkEnum(at+".commitStatus.provider", status.Provider, giturl.Kinds()...)
		if status.SecretRef.Name == "" {
			v.addError(at+".commitStatus.secretRef", "must be given")
		}
	}
}
