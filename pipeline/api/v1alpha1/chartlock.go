// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// KindChartLock is the kind of a ChartLock. Its apiVersion is [APIVersion].
const KindChartLock = "ChartLock"

// DefaultChartLock is where a source keeps its ChartLock unless the pipeline overrides it.
const DefaultChartLock = "charts.lock.yaml"

// localConfig is the annotation that keeps kustomize, kpt and a plain build from taking the lock for a cluster's object.
const localConfig = "config.kubernetes.io/local-config"

// ChartLock records what the references of a source to other servers resolved to: the version and digest of each chart, the
// commit of each remote base, and the digest of each remote file. It is written by prerig lock, kept in the source, and read before
// each render.
type ChartLock struct {
	// APIVersion is prerig.dev/v1alpha1.
	APIVersion string `json:"apiVersion" yaml:"apiVersion"`
	// Kind is ChartLock.
	Kind string `json:"kind" yaml:"kind"`
	// Metadata names the lock.
	Metadata ChartLockMetadata `json:"metadata" yaml:"metadata"`
	// Spec is what is locked.
	Spec ChartLockSpec `json:"spec" yaml:"spec"`
}

// ChartLockMetadata names a lock.
type ChartLockMetadata struct {
	// Name of the lock.
	Name string `json:"name" yaml:"name"`
	// Annotations of the lock.
	Annotations map[string]string `json:"annotations,omitempty" yaml:"annotations,omitempty"`
}

// ChartLockSpec is what is locked.
type ChartLockSpec struct {
	// Charts are sorted by repository, name and range.
	Charts []LockedChart `json:"charts,omitempty" yaml:"charts,omitempty"`
	// Bases are the repositories of remote bases, sorted by repository and ref. Those that are named by their commit are not here.
	Bases []LockedBase `json:"bases,omitempty" yaml:"bases,omitempty"`
	// Files are the files that kustomizations load over HTTP, sorted by URL.
	Files []LockedFile `json:"files,omitempty" yaml:"files,omitempty"`
}

// LockedChart is one chart of a repository, as something asks for it.
type LockedChart struct {
	// Name of the chart in its repository.
	Name string `json:"name" yaml:"name"`
	// Repository is the URL of the chart repository, https:// or http://, or oci:// without the chart's name.
	Repository string `json:"repository" yaml:"repository"`
	// Range is the requested version, as written in the request: exact, or a range such as ^1.2.0. It is omitted if
	// any version will do.
	Range string `json:"range,omitempty" yaml:"range,omitempty"`
	// Version that was chosen.
	Version string `json:"version" yaml:"version"`
	// Digest of the chart's archive, sha256: and 64 hexadecimal digits.
	Digest string `json:"digest" yaml:"digest"`
	// URL is the URL of the archive. It is omitted for a chart of a registry, where the digest identifies it.
	URL string `json:"url,omitempty" yaml:"url,omitempty"`
}

// String names the chart in messages.
func (c LockedChart) String() string { return c.Name + " " + c.Version + " of " + c.Repository }

// NewChartLock makes a lock of what is locked, sorted, that is not sent to a cluster.
func NewChartLock(locked ChartLockSpec) *ChartLock {
	locked.Charts = slices.SortedFunc(slices.Values(locked.Charts), func(a, b LockedChart) int {
		return cmp.Or(cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Range, b.Range))
	})
	locked.Bases = slices.SortedFunc(slices.Values(locked.Bases), func(a, b LockedBase) int {
		return cmp.Or(cmp.Compare(a.Repository, b.Repository), cmp.Compare(a.Ref, b.Ref))
	})
	locked.Files = slices.SortedFunc(slices.Values(locked.Files), func(a, b LockedFile) int { return cmp.Compare(a.URL, b.URL) })
	return &ChartLock{
		APIVersion: APIVersion, Kind: KindChartLock,
		Metadata: ChartLockMetadata{Name: "charts", Annotations: map[string]string{localConfig: "true"}},
		Spec:     locked,
	}
}

// Find returns the lock entry for a requested chart, or nil if none exists.
func (l *ChartLock) Find(repository, name, versions string) *LockedChart {
	for i, chart := range l.Spec.Charts {
		if NormalChartRepository(chart.Repository) == NormalChartRepository(repository) && chart.Name == name && chart.Range == versions {
			return &l.Spec.Charts[i]
		}
	}
	return nil
}

// ParseChartLock reads a lock from YAML or JSON, strictly. The error names the keys that are wrong, and their lines.
func ParseChartLock(data []byte) (*ChartLock, error) {
	doc, err := strict.ReadOne(data, maxDocument)
	if err != nil {
		return nil, fmt.Errorf("reading the ChartLock: %w", err)
	}
	obj, _ := doc.Value.(map[string]any)
	if obj["kind"] != KindChartLock || obj["apiVersion"] != APIVersion {
		if obj["kind"] == nil {
			return nil, fmt.Errorf("reading the ChartLock: line %d: it has no kind; a lock begins with apiVersion: %s and kind: %s, and prerig lock writes it",
				doc.Line(), APIVersion, KindChartLock)
		}
		return nil, fmt.Errorf("reading the ChartLock: line %d: found %v %v, expected %s %s", doc.Line(), obj["apiVersion"], obj["kind"], APIVersion, KindChartLock)
	}
	ps := strict.Problems{List: append(doc.Duplicates(nil), doc.Aliases()...)}
	lock := &ChartLock{}
	strict.Decoder{Optional: true, Open: []string{"ChartLockMetadata"}}.Decode(nil, obj, lock, &ps)
	if len(ps.List) == 0 {
		lock.validateLockedCharts(&ps)
		lock.validateLockedRemotes(&ps)
	}
	if len(ps.List) == 0 {
		return lock, nil
	}
	ps.Locate(doc)
	texts := make([]string, len(ps.List))
	for i, problem := range ps.List {
		texts[i] = problem.String()
	}
	return nil, fmt.Errorf("reading the ChartLock: %s", strings.Join(texts, "; "))
}

var (
	// chartNameRule is narrower than Helm's, which accepts everything without a path separator.
	chartNameRule = lazyregexp.New(`^[a-zA-Z0-9]([-a-zA-Z0-9._]{0,248}[a-zA-Z0-9])?$`)
	// chartVersionRule accepts semantic versions, and what Helm accepts as such: with a leading v, and with parts
	// left out.
	chartVersionRule = lazyregexp.New(`^v?[0-9]+(\.[0-9]+){0,2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
)

func (l *ChartLock) validateLockedCharts(ps *strict.Problems) {
	type asked struct{ repository, name, versions string }
	seen := map[asked]int{}
	for i, chart := range l.Spec.Charts {
		at := func(key string) []any { return []any{"spec", "charts", i, key} }
		if !chartNameRule.MatchString(chart.Name) {
			ps.Add(at("name"), "%q is not the name of a chart", chart.Name)
		}
		if err := CheckChartRepository(chart.Repository); err != nil {
			ps.Add(at("repository"), "%v", err)
		}
		if !chartVersionRule.MatchString(chart.Version) {
			ps.Add(at("version"), "%q is not a version, such as 1.2.3", chart.Version)
		}
		if !digestRule.MatchString(chart.Digest) {
			ps.Add(at("digest"), "%q is not a digest, sha256: and 64 hexadecimal digits", chart.Digest)
		}
		registry := strings.HasPrefix(chart.Repository, "oci://")
		if !registry && (strings.HasPrefix(chart.URL, "oci://") || CheckChartRepository(chart.URL) != nil) {
			ps.Add(at("url"), "must be the URL of the chart's archive, without credentials")
		}
		if registry && chart.URL != "" {
			ps.Add(at("url"), "must be omitted: the repository is in a registry")
		}
		key := asked{NormalChartRepository(chart.Repository), chart.Name, chart.Range}
		if first, twice := seen[key]; twice {
			ps.Add(at("name"), "spec.charts[%d] locks the same chart for the same range", first)
		}
		seen[key] = i
	}
}

// MarshalChartLock encodes a lock as YAML that ParseChartLock can read. The output is deterministic.
func MarshalChartLock(lock *ChartLock) ([]byte, error) {
	var b bytes.Buffer
	encoder := yamlv3.NewEncoder(&b)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := errors.Join(encoder.Encode(lock), encoder.Close()); err != nil {
		return nil, fmt.Errorf("writing the ChartLock: %w", err)
	}
	return b.Bytes(), nil
}

// ChartRepository allows a chart repository, and describes how it is reached.
type ChartRepository struct {
	// URL of the repository: https:// or http://, or oci:// without the chart's name; or one that ends in /* for everything
	// below it.
	URL string `json:"url"`
	// SecretRef names the secret with username and password, and ca.crt; for a registry also .dockerconfigjson.
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`
	// Insecure uses plain HTTP for a registry.
	Insecure bool `json:"insecure,omitempty"`
}

// Covers reports whether a repository is the one that is allowed, or one below.
func (r ChartRepository) Covers(repository string) bool {
	allowed, below := strings.CutSuffix(r.URL, "/*")
	allowed, repository = NormalChartRepository(allowed), NormalChartRepository(repository)
	return repository == allowed || below && strings.HasPrefix(repository, allowed+"/")
}

// NormalChartRepository returns the form of a repository's URL in which two of them are compared.
func NormalChartRepository(url string) string {
	scheme, rest, _ := strings.Cut(strings.TrimRight(url, "/"), "://")
	host, at, _ := strings.Cut(rest, "/")
	return strings.TrimRight(strings.ToLower(scheme)+"://"+strings.ToLower(host)+"/"+at, "/")
}

// CheckChartRepository returns what is wrong with the URL of a chart repository. The error does not quote it, as it
// may contain a password.
func CheckChartRepository(raw string) error {
	scheme, rest, found := strings.Cut(raw, "://")
	if !found || !slices.Contains([]string{"https", "http", "oci"}, scheme) {
		return errors.New("must be a URL with https://, http:// or oci://")
	}
	host, at, _ := strings.Cut(rest, "/")
	clean := strings.TrimRight(at, "/")
	switch {
	case host == "" || len(raw) > 2048:
		return errors.New("must name a server, in at most 2048 bytes")
	case strings.Contains(host, "@"):
		return errors.New("must have no credentials; name a secret under spec.build.chartRepositories")
	case strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f }):
		return errors.New("must not contain a space, a backslash or a control character")
	case strings.ContainsAny(raw, "?#") || clean != "" && clean != path.Clean(clean) || strings.HasPrefix(clean, "../") || clean == "..":
		return errors.New("must have no query, and no . or .. in its path")
	case scheme == "oci" && clean == "":
		return errors.New("must name a path in the registry, oci://HOST/PATH")
	}
	return nil
}

func (v *validator) checkChartRepositories(at string, list []ChartRepository) {
	seen := map[string]bool{}
	for i, one := range list {
		at := fmt.Sprintf("%s[%d]", at, i)
		if err := CheckChartRepository(strings.TrimSuffix(one.URL, "/*")); err != nil {
			v.addError(at+".url", "%v", err)
		}
		if seen[NormalChartRepository(one.URL)] {
			v.addError(at+".url", "is given twice")
		}
		seen[NormalChartRepository(one.URL)] = true
		if one.SecretRef != nil && one.SecretRef.Name == "" {
			v.addError(at+".secretRef.name", "must be given")
		}
		if one.Insecure && !strings.HasPrefix(one.URL, "oci://") {
			v.addError(at+".insecure", "is for registries; other URLs say http:// themselves")
		}
	}
}

// checkHelmRepository checks where a chart is: in the source, or in a repository.
func (v *validator) checkHelmRepository(at string, helm *Helm) {
	if helm.Repository == "" {
		v.checkPath(at+".chart", helm.Chart)
		if helm.Version != "" {
			v.addError(at+".version", "is for charts of a repository; a chart in the source has one version")
		}
		return
	}
	if err := CheckChartRepository(helm.Repository); err != nil {
		v.addError(at+".repository", "%v", err)
	}
	if helm.Chart != "" && !chartNameRule.MatchString(helm.Chart) {
		v.addError(at+".chart", "must be the name of a chart in the repository, found %q", helm.Chart)
	}
}
