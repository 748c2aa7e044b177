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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/prerig/prerig/fn/quantity"
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
	if flux := spec.Build.Flux; flux != nil {
		setDefault(&flux.Source, DefaultFluxSource)
		if spec.Build.Type == BuildAuto {
			spec.Build.Type = BuildFlux
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
	for _, name := range slices.Sorted(maps.Keys(p.Metadata.Labels)) {
		value := p.Metadata.Labels[name]
		if len(validation.IsQualifiedName(name)) > 0 || strings.ContainsAny(value, " \t\r\n") {
			v.addError("metadata.labels."+name, "%s=%q is not a label: it has letters, digits, '-', '_' and '.', and no space", name, value)
		}
	}
	v.checkSources(p)
	v.checkBuild(p.Spec.Build)
	p.Spec.checkLoadRestrictor(v)
	for i, policy := range p.Spec.Policies {
		policy.validate(v, fmt.Sprintf("spec.policies[%d]", i))
	}
	v.checkPublish(p)
	v.checkGates(p.Spec.Gates)
	v.checkEnum("spec.deletionPolicy", string(p.Spec.DeletionPolicy), "Orphan", "Delete")
	v.checkEnum("spec.drift", string(p.Spec.Drift), "Report", "Repair")
	for i, notify := range p.Spec.Notify {
		notify.checkNotification(v, fmt.Sprintf("spec.notify[%d]", i))
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

// addProblems adds what is wrong with one value.
func (v *validator) addProblems(path string, problems []string) {
	for _, problem := range problems {
		v.addError(path, "%s", problem)
	}
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
	if name == "" {
		v.addError(at, "is missing; a name has lower case letters, digits, '-' and '.'")
		return
	}
	if len(name) > 253 || !nameRule.MatchString(name) || strings.Contains(name, "..") {
		v.addError(at, "must be lower case letters, digits, '-' and '.', found %q", name)
	}
}

func (s Source) validate(v *validator, at string) {
	v.checkExactlyOne(at, map[string]bool{"git": s.Git != nil, "oci": s.OCI != nil, "dir": s.Dir != nil})
	if git := s.Git; git != nil {
		v.addProblems(at+".git.url", giturl.Check(git.URL))
		git.Ref.validate(v, at+".git.ref")
	}
	if oci := s.OCI; oci != nil {
		v.addProblems(at+".oci.url", ociURLProblems(oci.URL))
		if oci.Ref.Tag != "" && oci.Ref.Digest != "" {
			v.addError(at+".oci.ref", "tag and digest exclude each other")
		}
		if oci.Ref.Digest != "" && !digestRule.MatchString(oci.Ref.Digest) {
			v.addError(at+".oci.ref.digest", "must be sha256: and 64 hexadecimal digits")
		}
	}
	if s.Dir != nil && s.Dir.Path == "" {
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
	v.addProblems("url", giturl.Check(raw))
	return errors.Join(v.errs...)
}

// CheckRefName reports whether a name can be that of a branch or another Git reference.
func CheckRefName(name string) error {
	v := &validator{}
	v.addProblems("ref", refProblems(name))
	return errors.Join(v.errs...)
}

func (r GitRef) validate(v *validator, at string) {
	count := 0
	for _, value := range []string{r.Branch, r.Tag, r.Name} {
		if value != "" {
			count++
		}
	}
	if count > 1 {
		v.addError(at, "branch, tag and name exclude each other")
	}
	if r.Commit != "" && !commitRule.MatchString(r.Commit) {
		v.addError(at+".commit", "must be 40 lower case hexadecimal digits, found %q", r.Commit)
	}
	for key, value := range map[string]string{"branch": r.Branch, "tag": r.Tag, "name": r.Name} {
		if value != "" {
			v.addProblems(at+"."+key, refProblems(value))
		}
	}
	if r.Name != "" && !strings.HasPrefix(r.Name, "refs/") {
		v.addError(at+".name", "must be a reference in full, such as refs/heads/main")
	}
}

func refProblems(name string) []string {
	if err := gitname.CheckRef(name); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// writtenBranchProblems returns what is wrong with the name of a branch that is written. Those below prerig/ are the heads
// of pull requests.
func writtenBranchProblems(name string) (problems []string) {
	if err := gitname.CheckBranch(name); err != nil {
		problems = append(problems, err.Error())
	}
	if key := gitname.Key(name); key == headRoot || strings.HasPrefix(key, headRoot+"/") {
		problems = append(problems, "must not be "+headRoot+" or below it, where the heads of pull requests are; use another branch")
	}
	return problems
}

func ociURLProblems(raw string) []string {
	rest, ok := strings.CutPrefix(raw, "oci://")
	host, repository, found := strings.Cut(rest, "/")
	if !ok || !found || host == "" || repository == "" {
		return []string{"must be of the form oci://registry/repository"}
	}
	if strings.ContainsAny(repository, "@:") || strings.Contains(host, "@") {
		return []string{"must have no tag, digest or credentials"}
	}
	return nil
}

func (v *validator) checkBuild(build Build) {
	v.checkEnum("spec.build.type", string(build.Type), "Auto", "Kustomize", "Plain", "Kpt", "Helm", "Flux")
	v.checkPath("spec.build.path", build.Path)
	v.remoteBases("spec.build.remoteBases", build)
	v.checkHelm(build)
	v.checkFlux(build)
	v.checkHelmCharts("spec.build.helmCharts", build)
	build.Releases.checkReleases(v, "spec.build.releases")
	v.checkChartRepositories("spec.build.chartRepositories", build.ChartRepositories)
	v.checkPath("spec.build.chartLock", build.ChartLock)
	if limits := build.Limits; limits != nil {
		for key, value := range map[string]string{"memory": limits.Memory, "output": limits.Output} {
			if value == "" {
				continue
			}
			if amount, err := quantity.Parse(value); err != nil || amount.Value() <= 0 {
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

func (spec RenderPipelineSpec) checkLoadRestrictor(v *validator) {
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

func (r PolicyRef) validate(v *validator, at string) {
	v.checkExactlyOne(at, map[string]bool{"path": r.Path != "", "file": r.File != "", "builtIn": r.BuiltIn != "", "name": r.Name != ""})
	if r.Name != "" {
		v.checkName(at+".name", r.Name)
	}
	v.checkPath(at+".path", r.Path)
	v.checkPath(at+".file", r.File)
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

func (n Notification) checkNotification(v *validator, at string) {
	v.checkExactlyOne(at, map[string]bool{
		"fluxReceiver": n.FluxReceiver != nil, "cloudEvent": n.CloudEvent != nil, "commitStatus": n.CommitStatus != nil,
	})
	for key, endpoint := range map[string]*Endpoint{"fluxReceiver": n.FluxReceiver, "cloudEvent": n.CloudEvent} {
		if endpoint == nil {
			continue
		}
		parsed, err := url.Parse(endpoint.URL)
		if err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.User != nil {
			v.addError(at+"."+key+".url", "must be an http:// or https:// URL without credentials")
		}
	}
	if n.FluxReceiver != nil && n.FluxReceiver.SecretRef == nil {
		v.addError(at+".fluxReceiver.secretRef", "must be given: a Receiver of type generic-hmac refuses what is not signed")
	}
	if status := n.CommitStatus; status != nil {
		v.checkEnum(at+".commitStatus.provider", status.Provider, giturl.Kinds()...)
		if status.SecretRef.Name == "" {
			v.addError(at+".commitStatus.secretRef", "must be given")
		}
	}
}
