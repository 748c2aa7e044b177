// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/podmap"
)

// checkLayer7Policies is about policies that ztunnel gets. Source: convertAuthorizationPolicy and handleRule in
// pilot/pkg/serviceregistry/ambient/authorization.go of Istio.
func checkLayer7Policies(s *workloadSet) []setFinding {
	return s.ambient.each("AuthorizationPolicy", func(o *objectFacts) []setFinding {
		action := ambient.Action(o.spec)
		fields := ambient.Layer7Fields(o.spec)
		if len(fields) == 0 || action != "ALLOW" && action != "DENY" {
			return nil
		}
		pods, ok := s.ambient.ztunnelEnforces(o)
		if !ok {
			return nil
		}
		if action == "ALLOW" {
			return []setFinding{o.newFinding(fields[0], "ztunnel leaves the rule out, so that it allows nothing to "+describePods(pods))}
		}
		if field := ineffectiveField(o.spec, fields); field != "" {
			return []setFinding{o.newFinding(field, "ztunnel applies the rule to no connection, so that it denies nothing to "+describePods(pods))}
		}
		return []setFinding{o.newFinding(fields[0], "ztunnel enforces the rule without it, which denies more to "+describePods(pods))}
	})
}

// ineffectiveField returns the first of the fields in a DENY rule that ztunnel applies to nothing, or "".
func ineffectiveField(spec map[string]any, fields []string) string {
	for i, rule := range podmap.Maps(spec["rules"]) {
		prefix := fmt.Sprintf("spec.rules[%d].", i)
		at := slices.IndexFunc(fields, func(field string) bool { return strings.HasPrefix(field, prefix) })
		if at >= 0 && ambient.MatchesNothing(rule) {
			return fields[at]
		}
	}
	return ""
}

// ztunnelEnforces reports whether a policy is one for ztunnel, and for which pods.
func (a *ambientSet) ztunnelEnforces(o *objectFacts) ([]*Summary, bool) {
	if len(ambient.Targets(o.spec)) > 0 {
		return nil, false
	}
	return a.policyPods(o, stringMap(podmap.MapAt(o.spec, "selector")["matchLabels"]))
}

func checkUnsupportedActions(s *workloadSet) []setFinding {
	return s.ambient.each("AuthorizationPolicy", func(o *objectFacts) []setFinding {
		action := ambient.Action(o.spec)
		pods, ok := s.ambient.ztunnelEnforces(o)
		if !ok || action != "CUSTOM" && action != "AUDIT" || localAuthorizer(s, o) != "" {
			return nil
		}
		message := "ztunnel does not know AUDIT: nothing is audited at " + describePods(pods)
		if action == "CUSTOM" {
			message = "ztunnel does not know CUSTOM: the external authorizer is not asked about requests to " + describePods(pods)
		}
		one := o.newFinding("spec.action", message)
		one.field.CurrentValue = action
		return []setFinding{one}
	})
}

// checkLocalAuthorizers is about authorizers beside the application, whether a waypoint is to enforce the policy or ztunnel, which does not.
func checkLocalAuthorizers(s *workloadSet) []setFinding {
	return s.ambient.each("AuthorizationPolicy", func(o *objectFacts) []setFinding {
		why := localAuthorizer(s, o)
		if why == "" || ambient.SelectsGateway(stringMap(podmap.MapAt(o.spec, "selector")["matchLabels"])) {
			return nil
		}
		if _, ok := s.ambient.ztunnelEnforces(o); !ok && len(ambient.Targets(o.spec)) == 0 {
			return nil
		}
		return []setFinding{o.newFinding("spec.provider.name", LocalAuthorizer+why)}
	})
}

// LocalAuthorizer is the beginning of the messages about authorizers in the pods of applications.
const LocalAuthorizer = "ztunnel asks no authorizer, and a waypoint cannot ask this one: "

// localAuthorizer describes why the authorizer of a policy is in the pods of the application, or returns "".
func localAuthorizer(s *workloadSet, o *objectFacts) string {
	if ambient.Action(o.spec) != "CUSTOM" {
		return ""
	}
	if s.authorizers == nil {
		s.authorizers = &ambient.Authorizers{}
		for _, kind := range []string{"IstioOperator", "Istio", "HelmRelease", "Application", "ServiceEntry"} {
			for _, one := range s.objects[kind] {
				s.authorizers.Add(kind, one.Name, one.Object.Object)
			}
		}
	}
	var images []string
	selector := stringMap(podmap.MapAt(o.spec, "selector")["matchLabels"])
	for i := range s.pods {
		pod := &s.pods[i]
		if scope := serviceLookupScope(pod.ref.Namespace, pod.file); scope != o.scope && o.scope != s.root || !hasLabels(pod.labels, selector) {
			continue
		}
		for _, c := range pod.containers {
			images = append(images, c.image)
		}
	}
	return s.authorizers.Local(o.spec, images)
}

// targetKinds are the kinds of objects with targetRefs.
var targetKinds = []string{"AuthorizationPolicy", "RequestAuthentication", "WasmPlugin", "Telemetry", "EnvoyFilter"}

// checkPolicyTargets is about targetRefs that no waypoint follows. Source: ShouldAttachPolicy in pilot/pkg/model/policyattachment.go.
func checkPolicyTargets(s *workloadSet) (out []setFinding) {
	for _, kind := range targetKinds {
		out = append(out, s.ambient.each(kind, func(o *objectFacts) (found []setFinding) {
			for _, t := range ambient.Targets(o.spec) {
				if message, unsure := s.ambient.describeTarget(o, t); message != "" {
					one := o.newFinding(t.Path, message)
					one.unsure, one.field.CurrentValue = unsure, t.Kind+" "+t.Name
					found = append(found, one)
				}
			}
			return found
		})...)
	}
	return out
}

// describeTarget describes why a reference has no effect, or returns "".
func (a *ambientSet) describeTarget(o *objectFacts, t ambient.TargetReference) (message string, unsure bool) {
	if t.Namespace != "" && t.Namespace != o.scope {
		return fmt.Sprintf("the reference is to namespace %s, and only those to objects of the policy's own namespace have an effect", t.Namespace), false
	}
	switch t.Group + "/" + t.Kind {
	case "/Service":
		service := a.serviceByName[o.scope+"\x00"+t.Name]
		if service == nil {
			return fmt.Sprintf("Service %s is not among the files", t.Name), true
		}
		if _, ok := a.waypointFor(service); !ok {
			return fmt.Sprintf("Service %s has no waypoint, so that the policy has no effect", t.Name), false
		}
	case "networking.istio.io/ServiceEntry":
		i := slices.IndexFunc(a.objects["ServiceEntry"], func(e *objectFacts) bool { return e.scope == o.scope && e.Name == t.Name })
		if i < 0 {
			return fmt.Sprintf("ServiceEntry %s is not among the files", t.Name), true
		}
		if _, ok := a.waypointOf(a.objects["ServiceEntry"][i].labels(), o.scope); !ok {
			return fmt.Sprintf("ServiceEntry %s has no waypoint, so that the policy has no effect", t.Name), false
		}
	case ambient.GatewayGroup + "/Gateway":
		if !slices.ContainsFunc(a.objects[kubernetesGateway], func(g *objectFacts) bool { return g.scope == o.scope && g.Name == t.Name }) {
			return fmt.Sprintf("Gateway %s is not among the files", t.Name), !a.gatewaysIn[o.scope]
		}
	case ambient.GatewayGroup + "/GatewayClass":
		if o.scope != a.root {
			return fmt.Sprintf("references to a GatewayClass have an effect in Istio's root namespace %s only", a.root), false
		}
	}
	return "", false
}

// checkPeersBehindWaypoint is about policies of layer 4 for pods that a waypoint calls: the peer is the waypoint then.
func checkPeersBehindWaypoint(s *workloadSet) []setFinding {
	return s.ambient.each("AuthorizationPolicy", func(o *objectFacts) []setFinding {
		fields := ambient.PeerFields(o.spec)
		action := ambient.Action(o.spec)
		if len(fields) == 0 || len(ambient.Layer7Fields(o.spec)) > 0 || action != "ALLOW" && action != "DENY" {
			return nil
		}
		pods, ok := s.ambient.ztunnelEnforces(o)
		if !ok {
			return nil
		}
		waypoint, found := s.ambient.waypointBefore(o, pods)
		if !found || namesAccount(o.spec, waypoint.Name) {
			return nil
		}
		message := fmt.Sprintf("calls to %s come from waypoint %s/%s, whose identity ztunnel sees in the place of the client's", describePods(pods), waypoint.Namespace, waypoint.Name)
		return []setFinding{o.newFinding(fields[0], message)}
	})
}

// waypointBefore returns a waypoint that calls one of the pods that a policy is for.
func (a *ambientSet) waypointBefore(o *objectFacts, pods []*Summary) (ref ambient.Reference, ok bool) {
	for _, pod := range pods {
		for _, service := range a.servicesOf(pod) {
			if ref, ok := a.waypointFor(service); ok {
				return ref, true
			}
		}
	}
	if len(pods) > 0 {
		return ref, false
	}
	return a.waypointOf(nil, o.scope)
}

// namesAccount reports whether the policy has the ServiceAccount of a waypoint among its principals, or all of them.
func namesAccount(spec map[string]any, name string) bool {
	return anyString(spec["rules"], func(text string) bool {
		return text == "*" || text == name || strings.HasSuffix(text, "/"+name)
	})
}

// anyString reports whether a string below a value satisfies a condition.
func anyString(v any, is func(string) bool) bool {
	return forEachString(v, "", func(_, text string) bool { return is(text) })
}

func checkRequestAuthentications(s *workloadSet) []setFinding {
	return s.ambient.each("RequestAuthentication", func(o *objectFacts) []setFinding {
		if pods, ok := s.ambient.ztunnelEnforces(o); ok && !isAtWaypoints(s, o, pods) {
			return []setFinding{o.newFinding(selectorField(o), "no token of requests to "+describePods(pods)+" is checked: ztunnel does not read requests")}
		}
		return nil
	})
}

// isAtWaypoints reports whether the waypoints of pods have the rules of a RequestAuthentication of the root namespace, by a copy for their class.
func isAtWaypoints(s *workloadSet, o *objectFacts, pods []*Summary) bool {
	hasCopy := o.scope == s.root && slices.ContainsFunc(s.objects["RequestAuthentication"], func(other *objectFacts) bool {
		return other.scope == o.scope && reflect.DeepEqual(other.spec["jwtRules"], o.spec["jwtRules"]) &&
			slices.ContainsFunc(ambient.Targets(other.spec), func(t ambient.TargetReference) bool { return t.Kind == "GatewayClass" })
	})
	return hasCopy && len(pods) > 0 && !slices.ContainsFunc(pods, func(pod *Summary) bool {
		_, found := s.ambient.waypointOf(nil, serviceLookupScope(pod.ref.Namespace, pod.file))
		return !found
	})
}

func checkWasmPlugins(s *workloadSet) []setFinding {
	return s.ambient.each("WasmPlugin", func(o *objectFacts) []setFinding {
		if pods, ok := s.ambient.ztunnelEnforces(o); ok {
			return []setFinding{o.newFinding(selectorField(o), "the plugin does not run for "+describePods(pods)+": ztunnel runs none, and a waypoint those with targetRefs")}
		}
		return nil
	})
}

// checkTelemetrySelectors leaves out Telemetries for a namespace or the mesh, which waypoints read as well. Source: effectiveTelemetry in
// pilot/pkg/model/telemetry.go.
func checkTelemetrySelectors(s *workloadSet) []setFinding {
	return s.ambient.each("Telemetry", func(o *objectFacts) []setFinding {
		if len(podmap.MapAt(o.spec, "selector")) == 0 {
			return telemetryWithoutWaypoint(s, o)
		}
		if pods, ok := s.ambient.ztunnelEnforces(o); ok {
			return []setFinding{o.newFinding("spec.selector", "it has no effect on "+describePods(pods)+": waypoints read Telemetries with targetRefs or for all of a namespace")}
		}
		return nil
	})
}

// telemetryWithoutWaypoint is about one for a whole namespace that has no waypoint to follow it.
func telemetryWithoutWaypoint(s *workloadSet, o *objectFacts) []setFinding {
	if _, ok := s.ambient.waypointOf(nil, o.scope); ok || o.scope == s.root || len(ambient.Targets(o.spec)) > 0 || !s.ambient.has(o.scope) {
		return nil
	}
	return []setFinding{o.newFinding("spec", "it has no effect on its pods: ztunnel follows no Telemetry, and the namespace has no waypoint")}
}

// selectorField is the field that selects the pods of a policy, or the whole specification.
func selectorField(o *objectFacts) string {
	if o.spec["selector"] != nil {
		return "spec.selector"
	}
	return "spec"
}

// checkDisabledMutualTLS is about modes that ztunnel does not follow. Source: convertPeerAuthentication in the same file as
// convertAuthorizationPolicy, where DISABLE is PERMISSIVE.
func checkDisabledMutualTLS(s *workloadSet) []setFinding {
	return s.ambient.each("PeerAuthentication", func(o *objectFacts) (out []setFinding) {
		pods, ok := s.ambient.ztunnelEnforces(o)
		if !ok {
			return nil
		}
		if textOf(podmap.MapAt(o.spec, "mtls")["mode"]) == "DISABLE" {
			one := o.newFinding("spec.mtls.mode", "ztunnel uses mutual TLS between pods of the mesh in any case, with "+describePods(pods)+" too")
			one.field.CurrentValue = "DISABLE"
			out = append(out, one)
		}
		ports := podmap.MapAt(o.spec, "portLevelMtls")
		for _, port := range sortedKeys(ports) {
			if textOf(podmap.MapAt(ports, port)["mode"]) == "DISABLE" {
				one := o.newFinding(fmt.Sprintf("spec.portLevelMtls[%q].mode", port), "ztunnel uses mutual TLS for this port as well")
				one.field.CurrentValue = "DISABLE"
				out = append(out, one)
			}
		}
		return out
	})
}

// targetRefsSince is the minor in which policies have targetRefs. Source: security/v1beta1/authorization_policy.proto of istio.io/api.
const targetRefsSince, stableSince = 22, 24

// checkAmbientVersion reports each namespace of ambient mode once. Source: Istio's releases notes of 1.22 (beta) and 1.24 (stable).
func checkAmbientVersion(s *workloadSet) (out []setFinding) {
	v, ok := parseVersion(s.istio)
	if !ok || !s.ambient.any || !v.isBeforeMinor(stableSince) {
		return nil
	}
	message := fmt.Sprintf("Istio is %s, and ambient mode is stable from 1.%d on", v, stableSince)
	if v.isBeforeMinor(targetRefsSince) {
		message = fmt.Sprintf("Istio is %s, and policies have targetRefs, which waypoints need, from 1.%d on", v, targetRefsSince)
	}
	for i := range s.namespaces {
		if ns := &s.namespaces[i]; ambient.EnrolledNamespace(ns.Labels) {
			out = append(out, newNamespaceFinding(ns, ambient.DataplaneMode, message))
		}
	}
	return out
}
