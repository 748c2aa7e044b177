// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// appendFormerGeneration injects a configuration of generation A or B: its one template prints lists of containers,
// volumes and pull secrets, which are added to the pod's (source: createPatch and InjectionData in pkg/kube/inject of
// Istio 1.0 to 1.8).
func (r *run) appendFormerGeneration(p *pod) error {
	r.before = p.deepCopy()
	proxyConfig, err := r.findProxyConfig(p)
	if err != nil {
		return err
	}
	setFSGroup(r.in, p)
	spec, err := r.renderAppended(proxyConfig)
	if err != nil {
		return err
	}
	if r.in.Profile().Has(feature.ApplyConcurrency) {
		applyConcurrency(spec.Containers)
	}
	lists, err := spec.containerListMaps()
	if err != nil {
		return err
	}
	status, err := appendedStatus(r.in.Config().Template, lists)
	if err != nil {
		return err
	}
	hold, err := holdsApplicationStart(r.in, r.before)
	if err != nil {
		return err
	}
	addLists(r.in.Profile(), p, lists, hold)
	if r.in.Profile().Has(feature.DNSConfig) && spec.dns != nil {
		p.spec["dnsConfig"] = spec.dns
	}
	setClusterEnvs(injectedProxyContainer(r.in, p), r.in.ClusterVariables(r.before.labels()))
	if err := appendProbers(r.in, p, spec.RewriteAppHTTPProbe); err != nil {
		return err
	}
	scraped, err := mergePrometheus(r.in, p, &r.warnings)
	if err != nil {
		return err
	}
	r.setAppendedMetadata(p, spec.PodRedirectAnnot, status, scraped)
	return nil
}

// legacyNames are what an injection without a status annotation is known by (source: legacyInitContainerNames and the like
// in webhook.go up to 1.8).
var legacyNames = map[string][]string{
	initContainersKey: {initContainer, coreDumpContainer},
	containersKey:     {proxyContainer},
	"volumes":         {"istio-certs", "istio-envoy"},
}

// removeFormer removes what the status annotation lists from the pod, or otherwise whatever has one of the names that
// Istio's templates have always used (source: removeInjectedContainers and injectionStatus in webhook.go up to 1.8).
// The annotation at this point is one that no injection wrote: Remove has removed the others. It returns the names of
// what it removed, by list.
func (r *run) removeFormer(p *pod) map[string][]string {
	s, ok := p.readStatusAnnotation()
	former := map[string][]string{
		initContainersKey: s.InitContainers, containersKey: s.Containers, "volumes": s.Volumes, pullSecretsKey: s.ImagePullSecrets,
	}
	if !ok || !s.listsAnything() || r.req.KeepListed {
		former = legacyNames
		if podmap.Find(p.specListMaps(containersKey), proxyContainer) != nil {
			version := r.in.Detection().Version.Short()
			r.warnings.addf("the pod's own container %s is replaced, as Istio %s does", proxyContainer, version)
		}
	}
	replaced := map[string][]string{}
	for key, names := range former {
		list := p.specListMaps(key)
		if kept := podmap.WithoutNames(list, names); len(kept) < len(list) {
			p.setList(key, kept)
			replaced[key] = names
		}
	}
	return replaced
}

// istioGroup is the group that owns the files which the proxy has to read.
const istioGroup = int64(1337)

// setFSGroup sets the pod's fsGroup where the version does.
func setFSGroup(in *istio.Injector, p *pod) {
	mc, profile := in.Mesh(), in.Profile()
	switch {
	case profile.Has(feature.FSGroupSdsToken) && mc.EnableSdsTokenMount && mc.SdsUdsPath != "":
	case profile.Has(feature.FSGroupSds) && mc.SdsUdsPath != "":
	case in.LegacyFSGroup():
	default:
		return
	}
	context, ok := p.spec["securityContext"].(map[string]any)
	if !ok || profile.Has(feature.FSGroupReplacesAll) {
		context = map[string]any{}
	}
	context["fsGroup"] = istioGroup
	p.spec["securityContext"] = context
}

// appendedStatus is the value of the status annotation: a hash of the template and the names of what it added. Lists
// that are empty are null.
func appendedStatus(template string, lists map[string][]any) (string, error) {
	hash := sha256.Sum256([]byte(template))
	data, err := json.Marshal(struct {
		Version string `json:"version"`
		status
	}{hex.EncodeToString(hash[:]), status{
		InitContainers:   podmap.Names(lists[initContainersKey]),
		Containers:       podmap.Names(lists[containersKey]),
		Volumes:          podmap.Names(lists["volumes"]),
		ImagePullSecrets: podmap.Names(lists[pullSecretsKey]),
	}})
	return string(data), err
}

// addLists adds the template's lists to the pod's: at the end, but for what has to be first. hold reports whether the
// application waits for the proxy.
func addLists(profile *istio.Profile, p *pod, lists map[string][]any, hold bool) {
	first := map[string]string{}
	if profile.Has(feature.ValidationFirst) {
		first[initContainersKey] = validationContainer
	}
	if hold && profile.Has(feature.HoldFromValues) {
		first[containersKey] = proxyContainer
	}
	if profile.Has(feature.CopyServiceAccount) {
		copyServiceAccount(p, podmap.Find(lists[containersKey], proxyContainer))
	}
	for _, key := range injectedKeys {
		for _, e := range lists[key] {
			list := p.specListMaps(key)
			if m, _ := e.(map[string]any); first[key] != "" && m["name"] == first[key] {
				p.spec[key] = append([]any{e}, list...)
			} else {
				p.spec[key] = append(list, e)
			}
		}
	}
}

const serviceAccountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// copyServiceAccount copies the application's service account mount to the proxy, if it has one.
func copyServiceAccount(p *pod, proxy map[string]any) {
	var found map[string]any
	for _, e := range p.specListMaps(containersKey) {
		c, _ := e.(map[string]any)
		mounts, _ := c["volumeMounts"].([]any)
		for _, e := range mounts {
			if m, _ := e.(map[string]any); m["mountPath"] == serviceAccountPath {
				found = m
			}
		}
	}
	if found != nil && proxy != nil {
		mounts, _ := proxy["volumeMounts"].([]any)
		proxy["volumeMounts"] = append(mounts, podmap.CopyMap(found))
	}
}

// setAppendedMetadata sets annotations, which replace the user's, and labels, which do not.
func (r *run) setAppendedMetadata(p *pod, redirect map[string]string, status string, scraped map[string]string) {
	if r.in.Profile().Has(feature.ApplyRedirectAnnot) {
		for k, v := range redirect {
			if v != "" {
				p.setMetadataValue("annotations", k, v)
			}
		}
	}
	p.setMetadataValue("annotations", statusAnnotation, status)
	if r.in.Profile().Has(feature.InjectedAnnotations) {
		for k, v := range r.in.Config().InjectedAnnotations {
			// createPatch sets the metrics' annotations over the injected ones.
			p.setMetadataValue("annotations", k, cmp.Or(scraped[k], v))
		}
	}
	for k, v := range appendedLabels(r.in, r.req.Owner, p) {
		if have, _ := p.label(k); have == "" {
			p.setMetadataValue("labels", k, v)
		}
	}
}

// appendedLabels are the labels that the version's code sets.
func appendedLabels(in *istio.Injector, owner workload.Owner, p *pod) map[string]string {
	profile := in.Profile()
	out := map[string]string{}
	if profile.Has(feature.LabelTLSMode) {
		out["security.istio.io/tlsMode"] = "istio"
	}
	if profile.Has(feature.LabelCanonical) {
		name := workloadName(owner, p)
		out[canonicalNameLabel] = firstLabel(p, name, canonicalNameLabel, "app.kubernetes.io/name", "app")
		out[canonicalRevisionLabel] = firstLabel(p, "latest", canonicalRevisionLabel,
			"app.kubernetes.io/version", "version")
	}
	if profile.Has(feature.LabelRevision) {
		out[istioRevision] = in.Revision()
	}
	if profile.Has(feature.LabelNetwork) {
		if network := networkOf(injectedProxyContainer(in, p)); network != "" {
			out[networkLabel] = network
		}
	}
	return out
}

// workloadName returns the name of the workload, or the pod's own name if it has no workload.
func workloadName(owner workload.Owner, p *pod) string {
	name, _ := p.meta["name"].(string)
	return cmp.Or(owner.Name, name)
}

// firstLabel is the value of the first of some labels that the pod has.
func firstLabel(p *pod, otherwise string, keys ...string) string {
	for _, key := range keys {
		if v, ok := p.label(key); ok {
			return v
		}
	}
	return otherwise
}

// networkOf is the network that the proxy's environment names.
func networkOf(proxy map[string]any) string {
	env, _ := proxy["env"].([]any)
	network, _ := podmap.Find(env, networkEnv)["value"].(string)
	return network
}

// statusPortFlag matches the flag in its forms: -statusPort, --statusPort and with =N.
var statusPortFlag = lazyregexp.New(`^-{1,2}statusPort(?:=(\d+))?$`)

// appendProbers makes the agent answer the probes of the pod's containers (source: pkg/kube/inject/app_probe.go of Istio
// 1.1 to 1.8). rewrite is the template's setting.
func appendProbers(in *istio.Injector, p *pod, rewrite bool) error {
	profile := in.Profile()
	proxy := injectedProxyContainer(in, p)
	if !profile.Has(feature.ProbeRewrite) || proxy == nil || !wantsProbeRewrite(in, p, rewrite) {
		return nil
	}
	port, known, err := findAgentPort(in, p, proxy)
	if err != nil {
		return err
	}
	probers, err := collectProbers(in, p, port)
	if err != nil {
		return err
	}
	if len(probers) > 0 || !profile.Has(feature.ProberOmitEmpty) {
		text, err := appendedProbersText(profile, probers)
		if err != nil {
			return err
		}
		addEnv(proxy, probersEnv, text)
	}
	if known {
		pointProbes(in, p, port)
	}
	return nil
}

// appendedProbersText is the value of the variable: up to 1.4 an entry is the HTTP action itself.
func appendedProbersText(profile *istio.Profile, probers map[string]prober) (string, error) {
	if profile.Has(feature.ProberNested) {
		return marshalProbers(probers)
	}
	flat := map[string]*corev1.HTTPGetAction{}
	for path, own := range probers {
		flat[path] = own.HTTPGet
	}
	text, err := json.Marshal(flat)
	return string(text), err
}

// findAgentPort returns the port on which the agent answers. known is false if the proxy's arguments must specify it
// and do not.
func findAgentPort(in *istio.Injector, p *pod, proxy map[string]any) (port int64, known bool, err error) {
	if !in.Profile().Has(feature.ProbePortFromArgs) {
		port, err = agentPortOf(p, int64(in.Mesh().GetDefaultConfig().GetStatusPort()))
		return port, err == nil, err
	}
	list, _ := proxy["args"].([]any)
	args := make([]string, len(list))
	for i, e := range list {
		args[i], _ = e.(string)
	}
	n := parseNumericFlag(args, statusPortFlag)
	return int64(n), n >= 0, nil
}
