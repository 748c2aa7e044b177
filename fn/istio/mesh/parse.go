// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"reflect"
	"slices"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/release"
)

// Parse reads data.mesh of the ConfigMap istio over the built-in defaults of a release, as istiod of that release
// does. Fields replace the defaults, except for defaultConfig, whose fields do. Unknown fields, and those that the version
// does not have, are left out and named in the warnings; a value of a wrong type is an error that names the field.
func Parse(text string, r release.Release) (*MeshConfig, []string, error) {
	raw, err := parseYAML(text)
	if err != nil {
		return nil, nil, err
	}
	d := &decoder{release: r}
	mc := Default(r)
	providers, extensions := mc.DefaultProviders, mc.ExtensionProviders
	if err := d.decodeMessage(reflect.ValueOf(mc).Elem(), raw, ""); err != nil {
		return nil, nil, err
	}
	if err := d.defaultConfig(mc, raw); err != nil {
		return nil, nil, err
	}
	if feature.In(r, feature.ProvidersMerged) {
		if err := mergeProviders(mc, raw, providers, extensions, r); err != nil {
			return nil, nil, err
		}
		slices.Sort(mc.TrustDomainAliases)
		mc.TrustDomainAliases = slices.Compact(mc.TrustDomainAliases)
	}
	return mc, d.warnings, nil
}

// defaultConfig applies the field of that name over the built-in default. Problems in it were already reported when
// the whole mesh config was decoded.
func (d *decoder) defaultConfig(mc *MeshConfig, raw map[string]any) error {
	decoded := mc.DefaultConfig
	mc.DefaultConfig = DefaultProxyConfig(d.release)
	if feature.In(d.release, feature.DefaultsReencoded) {
		e := encoder{keepEmpty: true}
		if err := e.encodeMessage(reflect.ValueOf(decoded).Elem()); err != nil {
			return err
		}
		fields, err := parseYAML(e.out.String())
		if err != nil {
			return err
		}
		quiet := &decoder{release: d.release}
		return quiet.decodeMessage(reflect.ValueOf(mc.DefaultConfig).Elem(), fields, "defaultConfig")
	}
	if _, ok := raw["default_config"]; ok && raw["defaultConfig"] == nil {
		d.warnings = append(d.warnings, "field default_config is ignored: istiod reads it as defaultConfig only")
	}
	fields, ok := raw["defaultConfig"].(map[string]any)
	if !ok {
		return nil
	}
	quiet := &decoder{release: d.release}
	return quiet.applyProxyConfig(mc.DefaultConfig, fields, "defaultConfig")
}

// applyProxyConfig decodes over pc with the rules that hold for defaultConfig and for the annotation.
func (d *decoder) applyProxyConfig(pc *ProxyConfig, fields map[string]any, path string) error {
	metadata, headers := pc.ProxyMetadata, pc.ProxyHeaders
	if err := d.decodeMessage(reflect.ValueOf(pc).Elem(), fields, path); err != nil {
		return err
	}
	restoreKeptFields(pc, metadata, headers)
	return nil
}

// restoreKeptFields puts the former values back where they are not replaced as a whole: keys of the metadata, and the
// headers that are not set.
func restoreKeptFields(pc *ProxyConfig, metadata map[string]string, headers *ProxyHeaders) {
	if feature.In(pc.release, feature.ProxyMetadataMerged) {
		pc.ProxyMetadata = mergeStrings(metadata, pc.ProxyMetadata)
	}
	if feature.In(pc.release, feature.ProxyHeadersMerged) && headers != nil && pc.ProxyHeaders != nil && headers != pc.ProxyHeaders {
		inheritProxyHeaders(pc.ProxyHeaders, headers)
	}
}

func mergeStrings(base, over map[string]string) map[string]string {
	if base == nil {
		return over
	}
	merged := make(map[string]string, len(base)+len(over))
	for k, v := range base {
		merged[k] = v
	}
	for k, v := range over {
		merged[k] = v
	}
	return merged
}

// inheritProxyHeaders sets those of headers that istiod keeps from the mesh config where they are unset.
func inheritProxyHeaders(headers, from *ProxyHeaders) {
	if headers.ForwardedClientCert == 0 {
		headers.ForwardedClientCert = from.ForwardedClientCert
	}
	if headers.RequestId == nil {
		headers.RequestId = cloneMessage(from.RequestId)
	}
	if headers.AttemptCount == nil {
		headers.AttemptCount = cloneMessage(from.AttemptCount)
	}
	if headers.Server == nil {
		headers.Server = cloneMessage(from.Server)
	}
	if headers.EnvoyDebugHeaders == nil {
		headers.EnvoyDebugHeaders = cloneMessage(from.EnvoyDebugHeaders)
	}
}

// mergeProviders applies defaultProviders over the built-in ones and adds extension providers to them by name.
func mergeProviders(mc *MeshConfig, raw map[string]any, providers *DefaultProviders, extensions []*ExtensionProvider, r release.Release) error {
	if fields, ok := raw["defaultProviders"].(map[string]any); ok {
		providers = cloneMessage(providers)
		quiet := &decoder{release: r}
		if err := quiet.decodeMessage(reflect.ValueOf(providers).Elem(), fields, "defaultProviders"); err != nil {
			return err
		}
	}
	mc.DefaultProviders = providers
	merged := slices.Clone(extensions)
	for _, p := range mc.ExtensionProviders {
		i := slices.IndexFunc(merged, func(e *ExtensionProvider) bool { return e.Name == p.Name })
		if i >= 0 {
			merged[i] = p
		} else {
			merged = append(merged, p)
		}
	}
	mc.ExtensionProviders = merged
	return nil
}

// ApplyProxyConfig returns base with the proxy.istio.io/config annotation over it, as istiod of base's version does
// for decisions outside of templates (container order, status port), and up to 1.12 for the templates too. Before
// 1.6, which has no such annotation, it returns base.
func ApplyProxyConfig(annotation string, base *ProxyConfig) (*ProxyConfig, []string, error) {
	if !feature.In(base.release, feature.ProxyConfigAnnotation) {
		return base, nil, nil
	}
	fields, err := parseYAML(annotation)
	if err != nil {
		return nil, nil, err
	}
	d := &decoder{release: base.release}
	pc := cloneMessage(base)
	if err := d.applyProxyConfig(pc, fields, ""); err != nil {
		return nil, nil, err
	}
	return pc, d.warnings, nil
}
