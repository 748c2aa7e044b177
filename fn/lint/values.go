// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// valueCheck says which values of an annotation are right, and from which minor version on a wrong one makes the injector
// refuse the pod. Source: the validation of annotations in pkg/kube/inject of Istio 1.0 to 1.31.
type valueCheck struct {
	right func(string) bool
	want  string
	since int // 0: every version refuses it
}

const (
	wantPort       = "a port"
	wantPorts      = "ports separated by commas"
	wantCIDRs      = "IP ranges (CIDR) separated by commas"
	wantNumber     = "a whole number that is not negative"
	wantQuantity   = "a quantity such as 100m or 128Mi"
	wantInterfaces = "names of network interfaces separated by commas"
)

var valueChecks = map[string]valueCheck{
	"sidecar.istio.io/interceptionMode":                     {isMode, "REDIRECT, TPROXY or NONE", 0},
	"status.sidecar.istio.io/port":                          {isPort, wantPort, 0},
	"readiness.status.sidecar.istio.io/initialDelaySeconds": {isNumber, wantNumber, 0},
	"readiness.status.sidecar.istio.io/periodSeconds":       {isNumber, wantNumber, 0},
	"readiness.status.sidecar.istio.io/failureThreshold":    {isNumber, wantNumber, 0},
	"readiness.status.sidecar.istio.io/applicationPorts":    {listOf(isPort), wantPorts, 0},
	"traffic.sidecar.istio.io/includeOutboundIPRanges":      {orStar(listOf(isCIDR)), wantCIDRs + ", or *", 0},
	"traffic.sidecar.istio.io/excludeOutboundIPRanges":      {listOf(isCIDR), wantCIDRs, 0},
	"traffic.sidecar.istio.io/includeInboundPorts":          {orStar(listOf(isPort)), wantPorts + ", or *", 0},
	"traffic.sidecar.istio.io/excludeInboundPorts":          {listOf(isPort), wantPorts, 0},
	"traffic.sidecar.istio.io/includeOutboundPorts":         {orStar(listOf(isPort)), wantPorts + ", or *", 0},
	"traffic.sidecar.istio.io/excludeOutboundPorts":         {listOf(isPort), wantPorts, 0},
	"prometheus.istio.io/merge-metrics":                     {isBool, "true or false", 6},
	"proxy.istio.io/config":                                 {isObject, "a ProxyConfig in YAML", 6},
	"sidecar.istio.io/proxyCPU":                             {isQuantity, wantQuantity, 27},
	"sidecar.istio.io/proxyCPULimit":                        {isQuantity, wantQuantity, 27},
	"sidecar.istio.io/proxyMemory":                          {isQuantity, wantQuantity, 27},
	"sidecar.istio.io/proxyMemoryLimit":                     {isQuantity, wantQuantity, 27},
	"traffic.sidecar.istio.io/excludeInterfaces":            {listOf(isInterface), wantInterfaces, 28},
	"traffic.sidecar.istio.io/kubevirtInterfaces":           {listOf(isInterface), wantInterfaces, 28},
	"istio.io/reroute-virtual-interfaces":                   {listOf(isInterface), wantInterfaces, 28},
}

// strictInject is the first minor version that reads only "true" and "false" of sidecar.istio.io/inject.
const strictInject = 27

func checkValues(p *pod) []finding {
	plane, known := parseVersion(p.in.Facts.IstioVersion)
	var out []finding
	for _, key := range p.own() {
		check, ok := valueChecks[key]
		value := p.annotations[key]
		if !ok || check.right(value) {
			continue
		}
		effect := "Istio refuses the pod"
		switch {
		case check.since == 0:
		case !known:
			effect = fmt.Sprintf("Istio refuses the pod from 1.%d on", check.since)
		case plane.before(1, check.since):
			effect = fmt.Sprintf("Istio %s accepts it, and 1.%d and later refuse the pod", plane, check.since)
		default:
			effect = fmt.Sprintf("Istio %s refuses the pod", plane)
		}
		out = append(out, finding{
			path: annotationPath(key), current: value,
			message: fmt.Sprintf("annotation %s is %q, and not %s: %s", key, value, check.want, effect),
		})
	}
	return append(out, p.injectValues(plane, known)...)
}

// injectValues looks at the words that older versions took for a yes or a no.
func (p *pod) injectValues(plane version, known bool) []finding {
	const key = "sidecar.istio.io/inject"
	var out []finding
	for _, place := range []struct {
		what, path string
		values     map[string]string
	}{{"label", labelPath(key), p.labels}, {"annotation", annotationPath(key), p.annotations}} {
		value, ok := place.values[key]
		if !ok || value == "true" || value == "false" || value == "" {
			continue
		}
		meant := "false"
		if slices.Contains([]string{"y", "yes", "true", "on"}, strings.ToLower(value)) {
			meant = "true"
		}
		effect := fmt.Sprintf("up to Istio 1.26 it means %s, from 1.%d on it means nothing and the default policy decides", meant, strictInject)
		if known && !plane.before(1, strictInject) {
			effect = fmt.Sprintf("on Istio %s it means nothing, and the default policy decides (up to 1.26 it meant %s)", plane, meant)
		}
		out = append(out, finding{
			path: place.path, current: value, proposed: meant,
			message: fmt.Sprintf("%s %s is %q, and not \"true\" or \"false\": %s", place.what, key, value, effect),
		})
	}
	return out
}

func isMode(s string) bool { return s == "REDIRECT" || s == "TPROXY" || s == "NONE" }

func isPort(s string) bool {
	_, err := strconv.ParseUint(strings.TrimSpace(s), 10, 16)
	return err == nil
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

func isBool(s string) bool {
	_, err := strconv.ParseBool(s)
	return err == nil
}

func isQuantity(s string) bool {
	_, ok := quantity(s)
	return ok
}

func isCIDR(s string) bool {
	_, err := netip.ParsePrefix(strings.TrimSpace(s))
	return err == nil
}

// interfaceName leaves out what no interface of Linux has, so that no right name is ever reported.
var interfaceName = regexp.MustCompile(`^[^\s/;&|$"'` + "`" + `]{1,15}$`)

func isInterface(s string) bool { return interfaceName.MatchString(strings.TrimSpace(s)) }

func isObject(s string) bool {
	var v map[string]any
	return yaml.Unmarshal([]byte(s), &v) == nil
}

// listOf accepts an empty list.
func listOf(one func(string) bool) func(string) bool {
	return func(s string) bool {
		return strings.TrimSpace(s) == "" || !slices.ContainsFunc(strings.Split(s, ","), func(e string) bool { return !one(e) })
	}
}

func orStar(other func(string) bool) func(string) bool {
	return func(s string) bool { return s == "*" || other(s) }
}
