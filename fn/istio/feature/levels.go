// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"slices"
	"strings"
)

// ProxyLevels are the log levels of Envoy, and AgentLevels those of Istio's agent. Source: source/server/options_impl.cc of
// Envoy 1.37, and pkg/log/options.go of Istio 1.31.
var (
	ProxyLevels = []string{"trace", "debug", "info", "warning", "warn", "error", "critical", "off"}
	AgentLevels = []string{"none", "debug", "info", "warn", "error", "fatal"}
)

// IsProxyLevel reports whether Envoy accepts a log level.
func IsProxyLevel(s string) bool { return s == "" || slices.Contains(ProxyLevels, s) }

// AreProxyLevels reports whether Envoy accepts log levels of components, such as misc:error,http:debug.
func AreProxyLevels(s string) bool { return areLevels(s, ProxyLevels, true) }

// AreAgentLevels reports whether Istio's agent accepts log levels of scopes, such as default:info,ads:debug.
func AreAgentLevels(s string) bool { return areLevels(s, AgentLevels, false) }

// areLevels reports whether a text is a list of NAME:LEVEL with known levels. A level without a name is one of all.
func areLevels(s string, levels []string, named bool) bool {
	if s == "" {
		return true
	}
	for one := range strings.SplitSeq(s, ",") {
		name, level, found := strings.Cut(one, ":")
		if !found {
			name, level = "", one
		}
		if named && name == "" || !slices.Contains(levels, level) {
			return false
		}
	}
	return true
}
