// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	_ "embed"
	"fmt"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/result"
)

// rules are all rules in the order of their codes, without their texts.
var rules = []Rule{
	{Code: "PR101", Severity: result.Warning, Audience: Applications, check: checkGracePeriod},
	{Code: "PR102", Severity: result.Warning, Mesh: true, check: checkIgnoredDrain},
	{Code: "PR103", Severity: result.Info, Audience: Operators, Mesh: true, check: checkTwoWaits},
	{Code: "PR104", Severity: result.Warning, Audience: Operators, Mesh: true, check: checkListenerWait},
	{Code: "PR105", Severity: result.Warning, Audience: Operators, Mesh: true, check: checkDistrolessHook},
	{Code: "PR106", Severity: result.Warning, check: checkProxyEndsFirst},
	{Code: "PR107", Severity: result.Info, Audience: Operators, Mesh: true, check: checkProxyMayEndFirst},
	{Code: "PR108", Severity: result.Warning, Audience: Operators, Mesh: true, check: checkSettingsAfterDrain},
	{Code: "PR109", Severity: result.Warning, check: checkListenerClosesAtOnce},
	{Code: "PR110", Severity: result.Warning, check: checkStopsOfSidecars},
	{Code: "PR111", Severity: result.Info, Audience: Applications, checkSet: checkEndpointRemoval},
	{Code: "PR112", Severity: result.Info, Audience: Operators, checkSet: checkLoadBalancerDelay},
	{Code: "PR113", Severity: result.Info, checkSet: checkDisruptionBudgets},
	{Code: "PR201", Severity: result.Warning, Audience: Operators, Mesh: true, check: checkNoHold},
	{Code: "PR202", Severity: result.Warning, Audience: Operators, check: checkBeforeHold},
	{Code: "PR203", Severity: result.Warning, Mesh: true, check: checkNativeReady},
	{Code: "PR204", Severity: result.Warning, Audience: Applications, check: checkInitUnderCNI},
	{Code: "PR205", Severity: result.Warning, Mesh: true, check: checkInitAfterCapture},
	{Code: "PR206", Severity: result.Error, Audience: Operators, Mesh: true, check: checkNativeSupported},
	{Code: "PR207", Severity: result.Error, check: checkNoContainer},
	{Code: "PR208", Severity: result.Error, Always: result.Warning, concerns: hasHooks, check: checkWaitsForAgent},
	{Code: "PR209", Severity: result.Warning, Audience: Applications, check: checkFailsBeforeAgent},
	{Code: "PR210", Severity: result.Error, Always: result.Error, checkSet: checkPrunedSidecars},
	{Code: "PR211", Severity: result.Info, Audience: Applications, check: checkIgnoredHold},
	{Code: "PR301", Severity: result.Warning, Mesh: true, check: checkJobCompletes},
	{Code: "PR302", Severity: result.Warning, Mesh: true, check: checkProxyEndsForGood},
	{Code: "PR401", Severity: result.Warning, Audience: Applications, check: checkAnnotationLimits},
	{Code: "PR402", Severity: result.Info, Audience: Applications, check: checkAnnotationRequests},
	{Code: "PR403", Severity: result.Error, check: checkRequestAboveLimit},
	{Code: "PR404", Severity: result.Warning, Mesh: true, check: checkNoRequests},
	{Code: "PR405", Severity: result.Error, check: checkQuantities},
	{Code: "PR406", Severity: result.Warning, Audience: Applications, checkSet: checkAutoscalers},
	{Code: "PR407", Severity: result.Error, Always: result.Error, checkSet: checkLimitRanges},
	{Code: "PR408", Severity: result.Error, Always: result.Error, checkSet: checkQuotas},
	{Code: "PR409", Severity: result.Info, check: checkGuaranteedLost},
	{Code: "PR410", Severity: result.Error, Audience: Applications, check: checkPodResources},
	{Code: "PR501", Severity: result.Warning, Audience: Applications, check: checkTproxyUser},
	{Code: "PR502", Severity: result.Error, Audience: Operators, Mesh: true, check: checkProxyUser},
	{Code: "PR503", Severity: result.Warning, Audience: Applications, Analyzers: []string{"IST0144"},
		check: checkAppUser},
	{Code: "PR504", Severity: result.Error, Always: result.Error, Audience: Operators, Mesh: true,
		concerns: enforcesLevel, check: checkPodSecurity},
	{Code: "PR505", Severity: result.Warning, Audience: Operators, Mesh: true, check: checkPrivileged},
	{Code: "PR601", Severity: result.Warning, Audience: Applications, Analyzers: []string{"IST0146", "IST0147"},
		check: checkImageAuto},
	{Code: "PR602", Severity: result.Warning, Audience: Applications, Analyzers: []string{"IST0107"},
		check: checkMisplaced, checkSet: checkMisplacedOnObjects},
	{Code: "PR603", Severity: result.Warning, Audience: Applications, Analyzers: []string{"IST0108"},
		check: checkUnknown, checkSet: checkUnknownOnObjects},
	{Code: "PR604", Severity: result.Warning, Audience: Applications, Analyzers: []string{"IST0135"},
		check: checkDeprecated, checkSet: checkDeprecatedOnObjects},
	{Code: "PR605", Audience: Applications, Analyzers: []string{"IST0136"},
		check: checkAlpha, checkSet: checkAlphaOnObjects},
	{Code: "PR606", Severity: result.Warning, Audience: Applications, Analyzers: []string{"IST0125"},
		check: checkValues},
	{Code: "PR607", Severity: result.Warning, Audience: Applications, check: checkVersionOfAnnotation},
	{Code: "PR608", Severity: result.Error, check: checkInjectFalseCNI},
	{Code: "PR609", Severity: result.Warning, check: checkProbes},
	{Code: "PR610", Severity: result.Warning, Audience: Applications, check: checkReservedPorts},
	{Code: "PR611", Severity: result.Error, check: checkContainerNames},
	{Code: "PR612", Severity: result.Warning, Mesh: true, Analyzers: []string{"IST0105"}, check: checkProxySkew},
	{Code: "PR613", Severity: result.Warning, Audience: Applications, check: checkProxyConfigFields},
	{Code: "PR614", Severity: result.Warning, Audience: Applications, check: checkUncapturedPorts},
	{Code: "PR615", Severity: result.Error, check: checkWindows},
	{Code: "PR616", Severity: result.Info, Audience: Applications, check: checkHostNetwork},
	{Code: "PR617", Audience: Applications, check: checkTelemetryLabels},
	{Code: "PR618", Severity: result.Error, Audience: Applications, check: checkUnquoted},
	{Code: "PR620", Severity: result.Warning, Always: result.Warning, checkSet: checkSubstitution},
	{Code: "PR622", Severity: result.Error, check: checkRejected},
	{Code: "PR623", Severity: result.Error, Audience: Applications, check: checkLogLevels},
	{Code: "PR624", Severity: result.Error, Always: result.Warning, Audience: Applications, check: checkPortNames},
	{Code: "PR625", Severity: result.Error, Always: result.Warning, Audience: Applications, check: checkImages},
	{Code: "PR701", Severity: result.Warning, Audience: Operators, Analyzers: []string{"IST0123"},
		checkSet: checkNamespaceLabels},
	{Code: "PR702", Severity: result.Warning, Analyzers: []string{"IST0158", "IST0105"},
		checkSet: checkNamespaceVersions},
	{Code: "PR703", Severity: result.Warning, Audience: Operators, Analyzers: []string{"IST0123"},
		checkSet: checkAmbientLabels},
	{Code: "PR704", Severity: result.Warning, checkSet: checkEgressToControlPlane},
	{Code: "PR801", Severity: result.Info, Audience: Applications, Analyzers: []string{"IST0118"},
		checkSet: checkPortProtocols},
	{Code: "PR802", Severity: result.Warning, Audience: Applications, Analyzers: []string{"IST0118"},
		checkSet: checkServerFirst},
	{Code: "PR803", Severity: result.Warning, Audience: Applications, Analyzers: []string{"IST0116"},
		checkSet: checkProtocolConflicts},
	{Code: "PR804", Severity: result.Warning, Audience: Applications, checkSet: checkServiceSelectors},
	{Code: "PR805", Severity: result.Info, Audience: Applications, checkSet: checkHeadlessPorts},
	{Code: "PR806", Severity: result.Warning, checkSet: checkDestinationTLS},
	{Code: "PR807", Severity: result.Warning, Audience: Applications, Analyzers: []string{"IST0101"},
		checkSet: checkRouteSubsets},
	{Code: "PR808", Severity: result.Warning, Audience: Applications, Analyzers: []string{"IST0173"},
		checkSet: checkSubsetLabels},
	{Code: "PR809", Severity: result.Warning, Analyzers: []string{"IST0110", "IST0111"}, checkSet: checkSidecars},
	{Code: "PR810", Severity: result.Info, checkSet: checkFilterVersions},
	{Code: "PR811", Severity: result.Warning, Audience: Applications, Analyzers: []string{"IST0101"},
		checkSet: checkRouteGateways},
	{Code: "PR812", Severity: result.Warning, Audience: Applications, Analyzers: []string{"IST0132"},
		checkSet: checkRouteHosts},
	{Code: "PR813", Severity: result.Warning, Analyzers: []string{"IST0145"}, checkSet: checkGatewayConflicts},
	{Code: "PR814", Severity: result.Warning, Analyzers: []string{"IST0162"}, checkSet: checkGatewayPorts},
	{Code: "PR815", Severity: result.Warning, Audience: Applications, Analyzers: []string{"IST0101"},
		checkSet: checkRoutePorts},
	{Code: "PR816", Severity: result.Warning, Audience: Applications, Analyzers: []string{"IST0130", "IST0131"},
		checkSet: checkUnusedRoutes},
	{Code: "PR817", Severity: result.Warning, Analyzers: []string{"IST0109"}, checkSet: checkSameHosts},
	{Code: "PR818", Severity: result.Warning, Analyzers: []string{"IST0159", "IST0160"}, checkSet: checkTelemetries},
	{Code: "PR819", Severity: result.Warning, Analyzers: []string{"IST0152", "IST0153", "IST0154"},
		checkSet: checkFilterOperations},
	{Code: "PR820", Severity: result.Info, Analyzers: []string{"IST0138"}, checkSet: checkSharedCertificates},
	{Code: "PR821", Audience: Applications, Analyzers: []string{"IST0101", "IST0127", "IST0174"},
		checkSet: checkReferences},
	{Code: "PR822", Severity: result.Warning, Analyzers: []string{"IST0177"}, checkSet: checkEntryProtocols},
	{Code: "PR823", Severity: result.Warning, Audience: Applications, checkSet: checkTargetPorts},
	{Code: "PR901", Severity: result.Error, checkSet: checkMissingWaypoints},
	{Code: "PR902", Severity: result.Error, checkSet: checkWaypointsServe},
	{Code: "PR903", Severity: result.Error, checkSet: checkLayer7Policies},
	{Code: "PR904", Severity: result.Error, checkSet: checkUnsupportedActions},
	{Code: "PR905", Severity: result.Error, checkSet: checkPolicyTargets},
	{Code: "PR906", Severity: result.Warning, checkSet: checkPeersBehindWaypoint},
	{Code: "PR907", Severity: result.Error, checkSet: checkRequestAuthentications},
	{Code: "PR908", Severity: result.Warning, checkSet: checkWasmPlugins},
	{Code: "PR909", Severity: result.Info, checkSet: checkTelemetrySelectors},
	{Code: "PR910", Severity: result.Warning, concernsSet: hasAmbient, checkSet: checkRoutesWithoutWaypoint},
	{Code: "PR911", Severity: result.Warning, concernsSet: hasAmbient, checkSet: checkDestinationsWithoutWaypoint},
	{Code: "PR912", Severity: result.Error, concernsSet: hasAmbient, checkSet: checkTwoRoutes},
	{Code: "PR913", Severity: result.Warning, checkSet: checkRouteSources},
	{Code: "PR914", Severity: result.Info, checkSet: checkAlphaRoutes},
	{Code: "PR915", Severity: result.Warning, checkSet: checkFiltersInAmbient},
	{Code: "PR916", Severity: result.Warning, Analyzers: []string{"IST0167"}, checkSet: checkSidecarsInAmbient},
	{Code: "PR917", Severity: result.Warning, checkSet: checkDisabledMutualTLS},
	{Code: "PR918", Severity: result.Info, checkSet: checkProxyConfigsInAmbient},
	{Code: "PR919", Severity: result.Error, checkSet: checkIngressTunnel},
	{Code: "PR920", Severity: result.Error, checkSet: checkEgressTunnel},
	{Code: "PR921", Severity: result.Warning, concernsSet: hasAmbient, checkSet: checkProbeAddress},
	{Code: "PR922", Severity: result.Error, checkSet: checkWaypointReachesPods},
	{Code: "PR923", Severity: result.Warning, concerns: mayBeAmbient, check: checkKeepsSidecar},
	{Code: "PR924", Severity: result.Warning, concerns: mayBeAmbient, check: checkOptOut},
	{Code: "PR925", Severity: result.Info, concerns: mayBeAmbient, check: checkHostNetworkInAmbient},
	{Code: "PR926", Severity: result.Error, concerns: mayBeAmbient, check: checkSPIRE},
	{Code: "PR927", Severity: result.Warning, checkSet: checkVirtualMachines},
	{Code: "PR928", Severity: result.Error, concernsSet: hasAmbient, checkSet: checkRemoteControlPlanes},
	{Code: "PR929", Severity: result.Info, concerns: mayBeAmbient, check: checkSidecarSettings},
	{Code: "PR930", Severity: result.Warning, concerns: mayBeAmbient, check: checkCaptureExceptions},
	{Code: "PR931", Severity: result.Error, concerns: mayBeAmbient, check: checkWaitsForProxy},
	{Code: "PR932", Severity: result.Warning, concerns: mayBeAmbient, check: checkQuitsProxy},
	{Code: "PR933", Severity: result.Warning, concernsSet: hasAmbient, checkSet: checkIngressPassesWaypoint},
	{Code: "PR934", Severity: result.Warning, concernsSet: hasAmbient, checkSet: checkSidecarsPassWaypoint},
	{Code: "PR935", Severity: result.Warning, checkSet: checkAmbientVersion},
	{Code: "PR936", Severity: result.Warning, concernsSet: hasAmbient, checkSet: checkGatewaySubsets},
	{Code: "PR937", Severity: result.Warning, concernsSet: hasAmbient, checkSet: checkInstallation},
	{Code: "PR938", Severity: result.Error, concernsSet: hasAmbient, checkSet: checkServiceMeshTwo},
	{Code: "PR939", Severity: result.Warning, checkSet: checkCanaries},
	{Code: "PR940", Severity: result.Warning, concernsSet: hasAmbient, checkSet: checkQueries},
	{Code: "PR941", Severity: result.Warning, concerns: mayBeAmbient, check: checkMergedMetrics},
	{Code: "PR942", Severity: result.Info, concernsSet: hasAmbient, checkSet: checkMonitors},
	{Code: "PR943", Severity: result.Warning, concernsSet: hasAmbient, checkSet: checkNetworkGateways},
	{Code: "PR944", Severity: result.Info, concernsSet: hasAmbient, checkSet: checkSharedLimits},
	{Code: "PR945", Severity: result.Warning, concerns: mayBeAmbient, check: checkTracing},
	{Code: "PR946", Severity: result.Warning, checkSet: checkClusterNames},
	{Code: "PR947", Severity: result.Warning, concernsSet: hasAmbient, checkSet: checkInjectorExceptions},
	{Code: "PR948", Severity: result.Info, concernsSet: hasAmbient, checkSet: checkStreamsWithoutWaypoint},
	{Code: "PR949", Severity: result.Warning, checkSet: checkCiliumTunnel},
	{Code: "PR950", Severity: result.Error, checkSet: checkLocalAuthorizers},
	{Code: "PR951", Severity: result.Error, concernsSet: hasAmbient, checkSet: checkManagedMeshes},
}

//go:embed rules.yaml
var ruleTexts []byte

// described are all rules with their texts, which are read when people ask for them.
var described = sync.OnceValue(func() []Rule {
	all, err := describe(rules, ruleTexts)
	if err != nil {
		panic("lint: " + err.Error()) // the file is a part of the program
	}
	return all
})

// describe returns the rules with their texts. Every rule has one entry in the file, in the same order.
func describe(rules []Rule, file []byte) ([]Rule, error) {
	var texts []struct {
		Code string `json:"code"`
		RuleText
	}
	if err := yaml.UnmarshalStrict(file, &texts); err != nil {
		return nil, fmt.Errorf("reading the texts of the rules: %w", err)
	}
	if len(texts) != len(rules) {
		return nil, fmt.Errorf("reading the texts of the rules: they are %d, for %d rules", len(texts), len(rules))
	}
	out := make([]Rule, len(rules))
	for i, r := range rules {
		if texts[i].Code != r.Code {
			return nil, fmt.Errorf("reading the texts of the rules: the text of %s is in the place of %s", texts[i].Code, r.Code)
		}
		r.RuleText = texts[i].RuleText
		out[i] = r
	}
	return out, nil
}
