// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbac "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	rbachttp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	rbactcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	corev1 "k8s.io/api/core/v1"

	"istio.io/istio/pilot/pkg/model"
)

// Names of what istiod generates.
const (
	virtualInbound = "virtualInbound"
	mainInternal   = "main_internal"
	managerFilter  = "envoy.filters.network.http_connection_manager"
	tcpRBACFilter  = "envoy.filters.network.rbac"
	rbacFilter     = "envoy.filters.http.rbac"
	jwtFilter      = "envoy.filters.http.jwt_authn"
)

// atSidecar sends a connection through the inbound listener of a sidecar.
func (s *state) atSidecar(d *Decision, pod *corev1.Pod, conn connection) error {
	d.Proxies = append(d.Proxies, "sidecar")
	l, err := s.listenerOf(pod, model.SidecarProxy, virtualInbound)
	if err != nil {
		return err
	}
	chain := inboundChain(l, conn)
	if chain == nil {
		d.reject("sidecar", "no chain of filters accepts the connection")
		return nil
	}
	return through(d, "sidecar", chain, conn)
}

// inboundChain returns the chain for the port, or the one for all other ports. Envoy chooses among several of one port by the protocol that
// it detects; HTTP comes first here.
func inboundChain(l *listener.Listener, conn connection) *listener.FilterChain {
	var best *listener.FilterChain
	rank := -1
	for _, c := range l.FilterChains {
		m := c.GetFilterChainMatch()
		port := m.GetDestinationPort()
		if c.Name == "virtualInbound-blackhole" || port != nil && port.Value != conn.port {
			continue
		}
		if transport := m.GetTransportProtocol(); conn.identity() != "" && transport != "tls" || conn.identity() == "" && transport == "tls" {
			continue
		}
		mine := 0
		if port != nil {
			mine += 2
		}
		if hasFilter(c, managerFilter) {
			mine++
		}
		if mine > rank {
			best, rank = c, mine
		}
	}
	return best
}

func hasFilter(c *listener.FilterChain, name string) bool {
	return slices.ContainsFunc(c.Filters, func(f *listener.Filter) bool { return f.Name == name })
}

// atWaypoint sends a connection through the chain of a waypoint for a Service.
func (s *state) atWaypoint(d *Decision, waypoint *corev1.Pod, service *corev1.Service, conn connection) error {
	d.Proxies = append(d.Proxies, "waypoint")
	l, err := s.listenerOf(waypoint, model.Waypoint, mainInternal)
	if err != nil {
		return err
	}
	for _, protocol := range []string{"http", "tcp"} {
		name := fmt.Sprintf("inbound-vip|%d|%s|%s.%s.svc.%s", conn.port, protocol, service.Name, service.Namespace, trustDomain)
		for _, chain := range l.FilterChains {
			if chain.Name == name {
				return through(d, "waypoint", chain, conn)
			}
		}
	}
	d.reject("waypoint", "no chain of filters is for the Service")
	return nil
}

// listenerOf returns a listener that istiod generates for the proxy of a pod, which it does once.
func (s *state) listenerOf(pod *corev1.Pod, kind model.NodeType, name string) (*listener.Listener, error) {
	key := pod.Namespace + "/" + pod.Name
	if s.listeners[key] == nil {
		s.listeners[key] = s.server.Listeners(s.proxy(pod, kind))
	}
	for _, l := range s.listeners[key] {
		if l.Name == name {
			return l, nil
		}
	}
	return nil, fmt.Errorf("istiod generates no listener %s for %s", name, key)
}

func (d *Decision) reject(proxy, why string) {
	d.Allowed, d.By = false, proxy+": "+why
}

// through applies the filters of a chain in their order. It ignores filters that reject nothing by themselves.
func through(d *Decision, proxy string, chain *listener.FilterChain, conn connection) error {
	e := &envoy{conn: conn, decision: d, proxy: proxy}
	for _, f := range chain.Filters {
		switch f.Name {
		case tcpRBACFilter:
			config := &rbactcp.RBAC{}
			if err := f.GetTypedConfig().UnmarshalTo(config); err != nil {
				return err
			}
			e.enforce(config.Rules, config.ShadowRules, config.ShadowRulesStatPrefix)
		case managerFilter:
			manager := &hcm.HttpConnectionManager{}
			if err := f.GetTypedConfig().UnmarshalTo(manager); err != nil {
				return err
			}
			e.http = true
			for _, h := range manager.HttpFilters {
				if err := e.filter(h); err != nil {
					return err
				}
			}
		}
		if e.err != nil || !d.Allowed {
			return e.err
		}
	}
	return e.err
}

// envoy evaluates filters for one connection.
type envoy struct {
	conn     connection
	http     bool
	payload  map[string]any // of the token that the JWT filter has accepted
	decision *Decision
	proxy    string
	err      error
}

func (e *envoy) filter(f *hcm.HttpFilter) error {
	if !e.decision.Allowed {
		return nil
	}
	switch f.Name {
	case rbacFilter:
		config := &rbachttp.RBAC{}
		if err := f.GetTypedConfig().UnmarshalTo(config); err != nil {
			return err
		}
		e.enforce(config.Rules, config.ShadowRules, config.ShadowRulesStatPrefix)
	case jwtFilter:
		config := &jwt.JwtAuthentication{}
		if err := f.GetTypedConfig().UnmarshalTo(config); err != nil {
			return err
		}
		e.authenticate(config)
	}
	return e.err
}

// authenticate accepts a token of one of the issuers, and no token. All tokens of calls are in the usual header and have valid signatures.
func (e *envoy) authenticate(config *jwt.JwtAuthentication) {
	claims := e.conn.call.Claims
	if claims == nil {
		return
	}
	for _, p := range config.Providers {
		audience, _ := claims["aud"].(string)
		if p.Issuer == claims["iss"] && (len(p.Audiences) == 0 || slices.Contains(p.Audiences, audience)) {
			e.payload = claims
			return
		}
	}
	e.decision.reject(e.proxy, "no provider accepts the token")
}

// enforce applies the rules of one RBAC filter. Shadow rules of CUSTOM policies choose the requests about which ext_authz asks.
func (e *envoy) enforce(rules, shadow *rbac.RBAC, prefix string) {
	if matched := e.policies(shadow); len(matched) > 0 && strings.HasPrefix(prefix, "istio_ext_authz") {
		for _, name := range matched {
			provider, _, _ := strings.Cut(strings.TrimPrefix(name, "istio-ext-authz-"), "-ns[")
			e.decision.Asked = append(e.decision.Asked, provider)
		}
		slices.Sort(e.decision.Asked)
		e.decision.Asked = slices.Compact(e.decision.Asked)
	}
	if rules == nil {
		return
	}
	matched := e.policies(rules)
	switch rules.Action {
	case rbac.RBAC_ALLOW:
		if len(matched) == 0 {
			e.decision.reject(e.proxy, "no ALLOW policy matches")
		}
	case rbac.RBAC_DENY:
		if len(matched) > 0 {
			e.decision.reject(e.proxy, "denied by "+matched[0])
		}
	case rbac.RBAC_LOG:
		e.decision.Audited = e.decision.Audited || len(matched) > 0
	}
}

// policies returns the names of the policies that match.
func (e *envoy) policies(rules *rbac.RBAC) (matched []string) {
	for name, p := range rules.GetPolicies() {
		if some(p.Permissions, e.permission) && some(p.Principals, e.principal) {
			matched = append(matched, name)
		}
	}
	slices.Sort(matched)
	return matched
}

func some[T any](list []T, matches func(T) bool) bool { return slices.ContainsFunc(list, matches) }

func every[T any](list []T, matches func(T) bool) bool {
	return !slices.ContainsFunc(list, func(t T) bool { return !matches(t) })
}

func (e *envoy) unknown(what any) bool {
	e.err = cmp.Or(e.err, fmt.Errorf("no meaning is known for %T of %v", what, what))
	return false
}

func (e *envoy) permission(p *rbac.Permission) bool {
	switch r := p.Rule.(type) {
	case *rbac.Permission_Any:
		return r.Any
	case *rbac.Permission_AndRules:
		return every(r.AndRules.Rules, e.permission)
	case *rbac.Permission_OrRules:
		return some(r.OrRules.Rules, e.permission)
	case *rbac.Permission_NotRule:
		return !e.permission(r.NotRule)
	case *rbac.Permission_DestinationPort:
		return r.DestinationPort == e.conn.port
	case *rbac.Permission_DestinationIp:
		return within(r.DestinationIp.AddressPrefix, r.DestinationIp.PrefixLen.GetValue(), e.conn.to)
	case *rbac.Permission_Header:
		return e.header(r.Header)
	case *rbac.Permission_UrlPath:
		path, _, _ := strings.Cut(e.conn.call.Path, "?")
		return e.http && e.text(r.UrlPath.GetPath(), path)
	}
	return e.unknown(p.Rule)
}

func (e *envoy) principal(p *rbac.Principal) bool {
	switch id := p.Identifier.(type) {
	case *rbac.Principal_Any:
		return id.Any
	case *rbac.Principal_AndIds:
		return every(id.AndIds.Ids, e.principal)
	case *rbac.Principal_OrIds:
		return some(id.OrIds.Ids, e.principal)
	case *rbac.Principal_NotId:
		return !e.principal(id.NotId)
	case *rbac.Principal_Authenticated_:
		return e.conn.identity() != "" && e.text(id.Authenticated.GetPrincipalName(), e.conn.identity())
	case *rbac.Principal_FilterState:
		if id.FilterState.Key != "io.istio.peer_principal" {
			return e.unknown(p.Identifier)
		}
		return e.conn.identity() != "" && e.text(id.FilterState.GetStringMatch(), e.conn.identity())
	case *rbac.Principal_DirectRemoteIp:
		return within(id.DirectRemoteIp.AddressPrefix, id.DirectRemoteIp.PrefixLen.GetValue(), e.conn.ip)
	case *rbac.Principal_RemoteIp: // no call has the header that would change it
		return within(id.RemoteIp.AddressPrefix, id.RemoteIp.PrefixLen.GetValue(), e.conn.ip)
	case *rbac.Principal_Header:
		return e.header(id.Header)
	case *rbac.Principal_Metadata:
		return e.metadata(id.Metadata)
	}
	return e.unknown(p.Identifier)
}

func (e *envoy) header(h *route.HeaderMatcher) bool {
	var have string
	var ok bool
	switch name := strings.ToLower(h.Name); name {
	case ":method":
		have, ok = e.conn.call.Method, true
	case ":authority":
		have, ok = e.conn.call.Host, true
	default:
		for k, v := range e.conn.call.Headers {
			if strings.EqualFold(k, name) {
				have, ok = v, true
			}
		}
	}
	matches := false
	switch m := h.HeaderMatchSpecifier.(type) {
	case *route.HeaderMatcher_PresentMatch:
		matches = ok == m.PresentMatch
	case *route.HeaderMatcher_StringMatch:
		matches = ok && e.text(m.StringMatch, have)
	default:
		return e.unknown(m)
	}
	return matches != h.InvertMatch
}

func (e *envoy) metadata(m *matcher.MetadataMatcher) bool {
	if m.Filter != jwtFilter || len(m.Path) < 2 || m.Path[0].GetKey() != "payload" {
		return e.unknown(m)
	}
	var value any = e.payload
	for _, part := range m.Path[1:] {
		fields, _ := value.(map[string]any)
		value = fields[part.GetKey()]
	}
	return e.value(m.Value, value) != m.Invert
}

func (e *envoy) value(m *matcher.ValueMatcher, have any) bool {
	switch p := m.MatchPattern.(type) {
	case *matcher.ValueMatcher_StringMatch:
		s, ok := have.(string)
		return ok && e.text(p.StringMatch, s)
	case *matcher.ValueMatcher_ListMatch:
		list, _ := have.([]any)
		return some(list, func(v any) bool { return e.value(p.ListMatch.GetOneOf(), v) })
	case *matcher.ValueMatcher_OrMatch:
		return some(p.OrMatch.ValueMatchers, func(one *matcher.ValueMatcher) bool { return e.value(one, have) })
	}
	return e.unknown(m.MatchPattern)
}

func (e *envoy) text(m *matcher.StringMatcher, have string) bool {
	fold := func(s string) string {
		if m.GetIgnoreCase() {
			return strings.ToLower(s)
		}
		return s
	}
	have = fold(have)
	switch p := m.GetMatchPattern().(type) {
	case *matcher.StringMatcher_Exact:
		return have == fold(p.Exact)
	case *matcher.StringMatcher_Prefix:
		return strings.HasPrefix(have, fold(p.Prefix))
	case *matcher.StringMatcher_Suffix:
		return strings.HasSuffix(have, fold(p.Suffix))
	case *matcher.StringMatcher_SafeRegex:
		whole, err := regexp.Compile("^(?:" + p.SafeRegex.Regex + ")$")
		e.err = cmp.Or(e.err, err)
		return err == nil && whole.MatchString(have)
	}
	return e.unknown(m.GetMatchPattern())
}
