// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/mesh"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/quantity"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// validator describes what is wrong with the value of an annotation.
type validator struct {
	annotation string
	feature    feature.Name
	// parameter is the setting of the values that the annotation overrides, which Istio's own messages name.
	parameter string
	check     func(string) error
}

// validators are the annotations that the injector checks before it injects (source: AnnotationValidation in
// pkg/kube/inject/validate.go).
var validators = []validator{
	{"readiness.status.sidecar.istio.io/applicationPorts", feature.ValidateApplicationPorts, "readinessApplicationPorts", allowWildcard(portList)},
	{"sidecar.istio.io/enableCoreDump", feature.ValidateCoreDump, "", validateBool},
	{"sidecar.istio.io/interceptionMode", "", "interceptionMode", oneOf("REDIRECT", "TPROXY", "NONE")},
	{statusPortAnnotation, "", "", portNumber},
	{"readiness.status.sidecar.istio.io/initialDelaySeconds", "", "", validateUnsigned},
	{"readiness.status.sidecar.istio.io/periodSeconds", "", "", validateUnsigned},
	{"readiness.status.sidecar.istio.io/failureThreshold", "", "", validateUnsigned},
	{includeRangesAnnotation, "", "includeIPRanges", allowWildcard(validateCIDRList)},
	{excludeRangesAnnotation, "", "excludeIPRanges", validateCIDRList},
	{"traffic.sidecar.istio.io/includeInboundPorts", "", "includeInboundPorts", allowWildcard(portList)},
	{"traffic.sidecar.istio.io/excludeInboundPorts", "", "excludeInboundPorts", portList},
	{"traffic.sidecar.istio.io/excludeOutboundPorts", feature.ValidateExcludeOutboundPorts, "excludeOutboundPorts", portList},
	{mergeAnnotation, feature.ValidateMergeMetrics, "", validateBool},
	{"sidecar.istio.io/proxyCPU", feature.ValidateResources, "", validateQuantity},
	{"sidecar.istio.io/proxyCPULimit", feature.ValidateResources, "", validateQuantity},
	{"sidecar.istio.io/proxyMemory", feature.ValidateResources, "", validateQuantity},
	{"sidecar.istio.io/proxyMemoryLimit", feature.ValidateResources, "", validateQuantity},
	{"traffic.sidecar.istio.io/excludeInterfaces", feature.ValidateInterfaces, "", validateInterfaceList},
	{"traffic.sidecar.istio.io/kubevirtInterfaces", feature.ValidateInterfaces, "", validateInterfaceList},
	{"istio.io/reroute-virtual-interfaces", feature.ValidateInterfaces, "", validateInterfaceList},
}

const (
	includeRangesAnnotation = "traffic.sidecar.istio.io/includeOutboundIPRanges"
	excludeRangesAnnotation = "traffic.sidecar.istio.io/excludeOutboundIPRanges"
)

// quoteAnnotation quotes the value of an annotation in an error. The proxy's configuration may hold tokens.
func quoteAnnotation(name, value string) string {
	if name == string(feature.ProxyConfigAnnotation) || strings.Contains(value, "\n") {
		return fmt.Sprintf("the value of %d bytes", len(value))
	}
	return foreign.Quote(value)
}

// maxCause bounds what a cause may repeat of a value.
const maxCause = 300

// foreignError is an error about a value of others, no longer than it may be.
type foreignError struct{ err error }

func (e foreignError) Error() string { return foreign.Text(e.err.Error(), maxCause) }

func (e foreignError) Unwrap() error { return e.err }

// validateAnnotations checks the annotations that the version checks. The first in order that is wrong is the error.
func validateAnnotations(in *istio.Injector, annotations map[string]string) error {
	profile := in.Profile()
	fail := func(name, value string, err error) error {
		return &podmap.FieldError{Field: "metadata.annotations[" + name + "]", Err: fmt.Errorf("%s is not valid: %w", quoteAnnotation(name, value), foreignError{err})}
	}
	for _, v := range validators {
		value, ok := annotations[v.annotation]
		if !ok || v.feature != "" && !profile.Has(v.feature) {
			continue
		}
		if profile.Has(feature.ValidateLaxRanges) && (v.annotation == includeRangesAnnotation || v.annotation == excludeRangesAnnotation) {
			value = plainPrefixes(value)
		}
		if err := v.check(value); err != nil {
			if v.parameter != "" {
				err = fmt.Errorf("%s: %w", v.parameter, err)
			}
			return fail(v.annotation, value, err)
		}
	}
	name := in.Profile().ProxyConfigAnnotation()
	if value, ok := annotations[name]; ok && profile.Has(feature.ValidateProxyConfig) {
		pc, err := applyAnnotation(value, mesh.DefaultProxyConfig(profile.Release()))
		if err == nil {
			err = mesh.ValidateProxyConfig(pc, profile.Release())
		}
		if err != nil {
			return fail(name, value, err)
		}
	}
	return nil
}

// applyAnnotation is base with the annotation proxy.istio.io/config over it.
func applyAnnotation(text string, base *mesh.ProxyConfig) (*mesh.ProxyConfig, error) {
	pc, _, err := mesh.ApplyProxyConfig(text, base)
	return pc, err
}

func oneOf(want ...string) func(string) error {
	return func(s string) error {
		for _, w := range want {
			if s == w {
				return nil
			}
		}
		return fmt.Errorf("want one of %s", strings.Join(want, ", "))
	}
}

func allowWildcard(check func(string) error) func(string) error {
	return func(s string) error {
		if s == "*" {
			return nil
		}
		return check(s)
	}
}

func portNumber(s string) error {
	if _, err := strconv.ParseUint(strings.TrimSpace(s), 10, 16); err != nil {
		return fmt.Errorf("%q is not a port", s)
	}
	return nil
}

func portList(s string) error {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	for port := range strings.SplitSeq(strings.TrimSpace(s), ",") {
		if err := portNumber(port); err != nil {
			return err
		}
	}
	return nil
}

func validateCIDRList(s string) error {
	if s == "" {
		return nil
	}
	for cidr := range strings.SplitSeq(s, ",") {
		if _, err := netip.ParsePrefix(cidr); err != nil {
			return fmt.Errorf("%q is not a range of addresses such as 10.0.0.0/8", cidr)
		}
	}
	return nil
}

// plainPrefixes removes leading zeros from the prefix lengths in a list of ranges, as in 10.0.0.0/08, which Go's
// net accepts and netip does not.
func plainPrefixes(list string) string {
	ranges := strings.Split(list, ",")
	for i, r := range ranges {
		address, length, ok := strings.Cut(r, "/")
		if plain := strings.TrimLeft(length, "0"); ok && plain != length {
			ranges[i] = address + "/" + cmp.Or(plain, "0")
		}
	}
	return strings.Join(ranges, ",")
}

func validateUnsigned(s string) error {
	if _, err := strconv.ParseUint(s, 10, 32); err != nil {
		return errors.New("want a whole number that is not negative")
	}
	return nil
}

func validateBool(s string) error {
	if _, err := strconv.ParseBool(s); err != nil {
		return errors.New("want true or false")
	}
	return nil
}

func validateQuantity(s string) error {
	if strings.ContainsFunc(s, unicode.IsControl) {
		return errors.New("it has control characters")
	}
	if _, err := quantity.Parse(s); err != nil {
		return errors.New("want a quantity such as 100m or 128Mi")
	}
	return nil
}

// maxInterface is the length of the longest name of a network interface in Linux.
const maxInterface = 15

// interfaceName is the form that the injector wants (source: ValidateInterfaceNames in pkg/util/net/ip.go of Istio 1.30).
var interfaceName = lazyregexp.New(`^[a-zA-Z][a-zA-Z0-9_.\-]*$`)

func validateInterfaceList(s string) error {
	if s == "" {
		return nil
	}
	for name := range strings.SplitSeq(s, ",") {
		name = strings.TrimSpace(name)
		if len(name) > maxInterface || !interfaceName.MatchString(name) {
			return fmt.Errorf("%q is not the name of a network interface", name)
		}
	}
	return nil
}
