// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"slices"
	"strings"
)

// difference is why lint has no finding about the object of a message of istioctl analyze.
type difference struct {
	// codes are those of the messages; file, object and text are parts of what they are about, where only some are meant.
	codes              []string
	file, object, text string
	// rule is one that says it about another object of the same files.
	rule   string
	reason string
}

func (d difference) isAbout(run analyzed, m analyzerMessage) bool {
	return slices.Contains(d.codes, m.Code) && strings.Contains(run.Files[0], d.file) && strings.Contains(m.Object, d.object) && strings.Contains(m.Text, d.text)
}

const (
	saidOnce   = "a conflict is said once, of the second object"
	notServed  = "a Gateway that is not there serves no host: the reference is the finding"
	inMesh     = "no pod with a proxy is among the files"
	noValidity = "the API server of a cluster with Istio validates fields of Istio's kinds"
)

// analyzerDifferences are looked through in their order. docs/limits.md has the same by code.
var analyzerDifferences = []difference{
	{codes: []string{"IST0002"}, reason: "deprecated fields of Istio's kinds are not looked at"},
	{codes: []string{"IST0101"}, text: "Referenced selector", reason: "the pod is there, without a namespace, which one of istioctl's analyzers takes for no pod"},
	{codes: []string{"IST0101"}, file: "virtualservice_destinationhosts", reason: "the host is there, but for other namespaces (exportTo)"},
	{codes: []string{"IST0101"}, text: "Referenced credentialName", reason: "Secrets are seldom among manifests"},
	{codes: []string{"IST0102", "IST0103", "IST0148"}, reason: "prerig explain says of each pod whether it is injected, and why"},
	{codes: []string{"IST0106", "IST0133"}, reason: noValidity},
	{codes: []string{"IST0107"}, text: "kubernetes.io/ingress.class", reason: "the annotation is not one of Istio's"},
	{codes: []string{"IST0109"}, file: "exportto", object: "productpage-", reason: "what is private to a namespace goes before what is for all"},
	{codes: []string{"IST0109"}, object: "team2/ratings", reason: "what is private to a namespace goes before what is for all"},
	{codes: []string{"IST0109"}, file: "virtualservice_destinationhosts", reason: "what is private to a namespace goes before what is for all"},
	{codes: []string{"IST0109"}, rule: "PR817", reason: saidOnce},
	{codes: []string{"IST0110", "IST0111"}, rule: "PR809", reason: saidOnce},
	{codes: []string{"IST0112"}, reason: "without a port, a sidecar takes the one that was called"},
	{codes: []string{"IST0116"}, reason: "the transport protocol HTTP of the Services is one that the API server refuses; PR803 goes by names and appProtocol"},
	{codes: []string{"IST0118"}, reason: inMesh},
	{codes: []string{"IST0123"}, text: "istio.io/rev", reason: "in ambient mode istio.io/rev names the revision of waypoints"},
	{codes: []string{"IST0125"}, reason: "the pod cannot be injected, which is an error"},
	{codes: []string{"IST0126"}, reason: "the networks of a mesh are not among the files"},
	{codes: []string{"IST0127"}, reason: "a policy for a whole namespace may be there before its pods"},
	{codes: []string{"IST0128", "IST0129"}, reason: "without caCertificates, proxies verify with the authorities of their system"},
	{codes: []string{"IST0131"}, reason: "both matches lead to the same route"},
	{codes: []string{"IST0132"}, rule: "PR821", reason: notServed},
	{codes: []string{"IST0134"}, reason: "the control plane allocates addresses by itself (PILOT_ENABLE_IP_AUTOALLOCATE)"},
	{codes: []string{"IST0135"}, rule: "PR602", reason: "the annotation is misplaced, and has no effect"},
	{codes: []string{"IST0137"}, reason: "Services with different ports for one port of a pod work"},
	{codes: []string{"IST0138"}, file: "gateway-secrets", rule: "PR813", reason: "the host is claimed by both, which goes before"},
	{codes: []string{"IST0138"}, rule: "PR820", reason: saidOnce},
	{codes: []string{"IST0139", "IST0163", "IST0164"}, reason: "webhooks of the control plane are not looked at"},
	{codes: []string{"IST0140"}, reason: "routes for sidecars alone may be meant"},
	{codes: []string{"IST0145"}, file: "gateway-secrets", rule: "PR813", reason: saidOnce},
	{codes: []string{"IST0145"}, reason: "servers without TLS are merged, and both work"},
	{codes: []string{"IST0146", "IST0147"}, reason: "lint injects the pod; of pods that are not injected, PR601 says it"},
	{codes: []string{"IST0149"}, reason: "the RequestAuthentication may be in other files"},
	{codes: []string{"IST0150"}, reason: "from Istio 1.21 on, an ExternalName is an alias of the other name"},
	{codes: []string{"IST0151", "IST0155"}, reason: "nearly every EnvoyFilter is placed relative to others, mostly rightly"},
	{codes: []string{"IST0153", "IST0154"}, reason: "Istio does add and remove routes in this way (patchHTTPRoutes in pilot/pkg/networking/core/envoyfilter/rc_patch.go)"},
	{codes: []string{"IST0157"}, reason: "the providers are those of the mesh config"},
	{codes: []string{"IST0158"}, reason: "lint injects the image itself; what stays in pods is said of each by PR612 and PR702"},
	{codes: []string{"IST0159"}, file: "k8sgateway", reason: "the API server refuses one of the two"},
	{codes: []string{"IST0159", "IST0160"}, rule: "PR818", reason: saidOnce},
	{codes: []string{"IST0161"}, reason: "Secrets are seldom among manifests"},
	{codes: []string{"IST0162"}, reason: "no Service of the gateway's pods is among the files"},
	{codes: []string{"IST0165"}, reason: "names that Istio makes itself are left alone"},
	{codes: []string{"IST0166"}, reason: "the pods of Kubernetes Gateways are made in the cluster"},
	{codes: []string{"IST0171"}, reason: "manifests have no status"},
	{codes: []string{"IST0173"}, file: "topology", reason: "where pods run is not in manifests"},
	{codes: []string{"IST0173"}, reason: "no workload of the host is among the files"},
	{codes: []string{"IST0175"}, reason: "settings of istiod are not looked at"},
	{codes: []string{"IST0176"}, reason: "versions of CRDs are not looked at"},
	{codes: []string{"IST0177"}, rule: "PR822", reason: saidOnce},
}

// furtherFindings are rules that find more than the analyzers that they answer.
var furtherFindings = map[string]string{
	"PR604": "istioctl does not read the pod templates of workloads",
	"PR605": "istioctl does not run this analyzer unless it is named",
	"PR612": "istioctl compares with the version of the cluster's control plane",
	"PR702": "istioctl says it of the namespace, where it knows the injector's image",
}
