// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// endlessSidecars are containers that never end by themselves, by the names that the injectors of Dapr, Linkerd,
// Vault and OpenTelemetry use. A user's own container may also have a name of endlessIfInjected, and end.
var (
	endlessSidecars   = []string{"daprd", "linkerd-proxy", "vault-agent", "otc-container"}
	endlessIfInjected = []string{"otel-collector", "fluent-bit"}
)

// isEndless reports whether the container is such a sidecar.
func isEndless(injected map[string]bool, c container) bool {
	return slices.Contains(endlessSidecars, c.name) || injected[c.name] && slices.Contains(endlessIfInjected, c.name)
}

// mayEndSidecar reports whether something could end one of the endless sidecars: a call that the application makes, another container that
// sees its process, or its own settings. An endpoint that is switched on counts as called, as the application's own code may do it, and
// one that is switched off as not called. Collectors and shippers have none.
func mayEndSidecar(p *pod, c container) bool {
	if seesAll(p) || textOf(c.fields["image"]) == "" {
		return true
	}
	switch c.name {
	case "daprd":
		return strings.Contains(containerCommandText(p), "/v1.0/shutdown")
	case "linkerd-proxy":
		// Older proxies have no switch: the endpoint is always enabled.
		enabled, ok := c.literalEnvValue("LINKERD2_PROXY_SHUTDOWN_ENDPOINT_ENABLED")
		return enabled == "true" || !ok && endsLinkerd(containerCommandText(p))
	case "vault-agent":
		return c.vaultAgentMayEnd()
	}
	return false
}

// endsLinkerd reports whether the application asks the proxy's endpoint to end it, or has linkerd-await do so.
func endsLinkerd(said string) bool {
	_, options, found := strings.Cut(said, "linkerd-await")
	return strings.Contains(said, "/shutdown") ||
		found && (strings.Contains(options, "--shutdown") || slices.Contains(strings.Fields(options), "-S"))
}

// vaultAgentMayEnd reads the configuration that Vault's injector writes to a variable. A configuration stored
// elsewhere, as in a ConfigMap, may contain anything.
func (c container) vaultAgentMayEnd() bool {
	text, _ := c.literalEnvValue("VAULT_CONFIG")
	data, err := base64.StdEncoding.DecodeString(text)
	var config struct {
		ExitAfterAuth bool `json:"exit_after_auth"`
		Listener      []struct {
			API struct {
				EnableQuit bool `json:"enable_quit"`
			} `json:"agent_api"`
		} `json:"listener"`
	}
	if err != nil || json.Unmarshal(data, &config) != nil || config.ExitAfterAuth {
		return true
	}
	for _, l := range config.Listener {
		if l.API.EnableQuit {
			return true
		}
	}
	return false
}
