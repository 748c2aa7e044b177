// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// appendFormerGeneration injects a configuration of generation A or B: its one template prints lists of containers,
// volumes and pull secrets, which are added to the pod's (source: createPatch and InjectionData in pkg/kube/inject of
// Istio 1.0 to 1.8).
func (r *run) appendFormerGeneration(p *pod) error {
	r.pod = p
	r.removeFormer()
	r.before = p.deepCopy()
	if err := r.findProxyConfig(); err != nil {
		return err
	}
	r.setFSGroup()
	spec, err := r.renderAppended()
	if err != nil {
		return err
	}
	if r.profile.Has(feature.ApplyConcurrency) {
		applyConcurrency(spec.Containers)
	}
	lists, err := spec.containerListMaps()
	if err != nil {
		return err
	}
	status, err := r.appendedStatus(lists)
	if err != nil {
		return err
	}
	if err := r.addLists(lists, spec); err != nil {
		return err
	}
	r.envs = r.in.ClusterVariables(r.before.labels())
	r.setClusterEnvs()
	if err := r.appendProbers(spec); err != nil {
		return err
	}
	if err := r.mergePrometheus(); err != nil {
		return err
	}
	r.setAppendedMetadata(spec, status)
	return nil
}

// legacyNames are what an injection without a status annotation is known by (source: legacyInitContainerNames and the like
// in webhook.go up to 1.8).
var legacyNames = map[string][]string{
	initContainersKey: {initContainer, coreDumpContainer},
	containersKey:     {proxyContainer},
	"volumes":         {"istio-certs", "istio-envoy"},
}

// removeFormer removes what the status annotation lists from the pod, or otherwise whatever has one of the names
// that Istio's templates have always used (source: removeInjectedContainers and injectionStatus in webhook.go up to
// 1.8). The annotation at this point is one that no injection wrote: Remove has removed the others.
func (r *run) removeFormer() {
	r.replaced = map[string][]string{}
	s, ok := r.pod.readStatusAnnotation()
	former := map[string][]string{
		initContainersKey: s.InitContainers, containersKey: s.Containers, "volumes": s.Volumes, pullSecretsKey: s.ImagePullSecrets,
	}
	if !ok || !s.listsAnything() || r.req.KeepListed {
		former = legacyNames
		if podmap.Find(r.pod.specListMaps(containersKey), proxyContainer) != nil {
			r.warnings = append(r.warnings, fmt.Sprintf("the pod's own container %s is replaced, as Istio %s does", proxyContainer, r.in.Detection().Version.Short()))
		}
	}
	for key, gone := range former {
		list := r.pod.specListMaps(key)
		if kept := podmap.WithoutNames(list, gone); len(kept) < len(list) {
			r.pod.setList(key, kept)
			r.replaced[key] = gone
		}
	}
}

// istioGroup is the group that owns the files which the proxy has to read.
const istioGroup = int64(1337)

// setFSGroup sets the pod's fsGroup where the version does.
func (r *run) setFSGroup() {
	mc := r.in.Mesh()
	switch {
	case r.profile.Has(feature.FSGroupSdsToken) && mc.EnableSdsTokenMount && mc.SdsUdsPath != "":
	case r.profile.Has(feature.FSGroupSds) && mc.SdsUdsPath != "":
	case r.in.LegacyFSGroup():
	default:
		return
	}
	context, ok := r.pod.spec["securityContext"].(map[string]any)
	if !ok || r.profile.Has(feature.FSGroupReplacesAll) {
		context = map[string]any{}
	}
	context["fsGroup"] = istioGroup
	r.pod.spec["securityContext"] = context
}

// appendedStatus is the value of the status annotation: a hash of the template and the names of what it added. Lists
// that are empty are null.
func (r *run) appendedStatus(lists map[string][]any) (string, error) {
	hash := sha256.Sum256([]byte(r.in.Config().Template))
	data, err := json.Marshal(struct {
		Version string `json:"version"`
		status
	}{hex.EncodeToString(hash[:]), status{
		InitContainers:   podmap.Names(lists[initContainersKey]),
		Containers:       podmap.Names(lists[containersKey]),
		Volumes:          podmap.Names(lists["volumes"]),
		ImagePullSecrets: podmap.Names(lists["imagePullSecrets"]),
	}})
	return string(data), err
}

// addLists adds the template's lists to the pod's: at the end, but for what has to be first.
func (r *run) addLists(lists map[string][]any, spec *appended) error {
	hold, err := r.holdsApplicationStart()
	if err != nil {
		return err
	}
	first := map[string]string{}
	if r.profile.Has(feature.ValidationFirst) {
		first[initContainersKey] = validationContainer
	}
	if hold && r.profile.Has(feature.HoldFromValues) {
		first[containersKey] = proxyContainer
	}
	r.copyServiceAccount(podmap.Find(lists[containersKey], proxyContainer))
	for _, key := range injectedKeys {
		for _, e := range lists[key] {
			list := r.pod.specListMaps(key)
			if m, _ := e.(map[string]any); first[key] != "" && m["name"] == first[key] {
				r.pod.spec[key] = append([]any{e}, list...)
			} else {
				r.pod.spec[key] = append(list, e)
			}
		}
	}
	if r.profile.Has(feature.DNSConfig) && spec.dns != nil {
		r.pod.spec["dnsConfig"] = spec.dns
	}
	return nil
}

const serviceAccountPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// copyServiceAccount copies the application's service account mount to the proxy, if it has one.
func (r *run) copyServiceAccount(proxy map[string]any) {
	if proxy == nil || !r.profile.Has(feature.CopyServiceAccount) {
		return
	}
	var found map[string]any
	for _, e := range r.pod.specListMaps(containersKey) {
		c, _ := e.(map[string]any)
		mounts, _ := c["volumeMounts"].([]any)
		for _, e := range mounts {
			if m, _ := e.(map[string]any); m["mountPath"] == serviceAccountPath {
				found = m
			}
		}
	}
	if found != nil {
		mounts, _ := proxy["volumeMounts"].([]any)
		proxy["volumeMounts"] = append(mounts, podmap.CopyMap(found))
	}
}

// setAppendedMetadata sets annotations, which replace the user's, and labels, which do not.
func (r *run) setAppendedMetadata(spec *appended, status string) {
	if r.profile.Has(feature.ApplyRedirectAnnot) {
		for k, v := range spec.PodRedirectAnnot {
			if v != "" {
				r.pod.setMetadataValue("annotations", k, v)
			}
		}
	}
	r.pod.setMetadataValue("annotations", statusAnnotation, status)
	if r.profile.Has(feature.InjectedAnnotations) {
		for k, v := range r.in.Config().InjectedAnnotations {
			r.pod.setMetadataValue("annotations", k, cmp.Or(r.scraped[k], v)) // createPatch sets the metrics' annotations over the injected ones
		}
	}
	for k, v := range r.appendedLabels() {
		if have, _ := r.pod.label(k); have == "" {
			r.pod.setMetadataValue("labels", k, v)
		}
	}
}

// appendedLabels are the labels that the version's code sets.
func (r *run) appendedLabels() map[string]string {
	out := map[string]string{}
	if r.profile.Has(feature.LabelTLSMode) {
		out["security.istio.io/tlsMode"] = "istio"
	}
	if r.profile.Has(feature.LabelCanonical) {
		out["service.istio.io/canonical-name"] = r.firstLabel(r.workloadName(), "service.istio.io/canonical-name", "app.kubernetes.io/name", "app")
		out["service.istio.io/canonical-revision"] = r.firstLabel("latest", "service.istio.io/canonical-revision", "app.kubernetes.io/version", "version")
	}
	if r.profile.Has(feature.LabelRevision) {
		out["istio.io/rev"] = r.in.Revision()
	}
	if r.profile.Has(feature.LabelNetwork) {
		if network := networkOf(r.injectedProxyContainer()); network != "" {
			out[networkLabel] = network
		}
	}
	return out
}

// workloadName returns the name of the workload, or the pod's own name if it has no workload.
func (r *run) workloadName() string {
	if r.req.Owner.Name != "" {
		return r.req.Owner.Name
	}
	name, _ := r.pod.meta["name"].(string)
	return name
}

// firstLabel is the value of the first of some labels that the pod has.
func (r *run) firstLabel(otherwise string, keys ...string) string {
	for _, key := range keys {
		if v, ok := r.pod.label(key); ok {
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
// 1.1 to 1.8).
func (r *run) appendProbers(spec *appended) error {
	proxy := r.injectedProxyContainer()
	if !r.profile.Has(feature.ProbeRewrite) || proxy == nil || !r.appendWantsRewrite(spec) {
		return nil
	}
	port, known, err := r.agentPort(proxy)
	if err != nil {
		return err
	}
	probers, targets := map[string]prober{}, r.containersWithProbes()
	for _, c := range targets {
		if err := r.collectContainerProbers(c, port, probers); err != nil {
			return err
		}
	}
	if len(probers) > 0 || !r.profile.Has(feature.ProberOmitEmpty) {
		text, err := r.appendedProbersText(probers)
		if err != nil {
			return err
		}
		addEnv(proxy, probersEnv, text)
	}
	if !known {
		return nil
	}
	for _, c := range targets {
		r.rewriteContainerProbes(c, port)
	}
	return nil
}

// appendedProbersText is the value of the variable: up to 1.4 an entry is the HTTP action itself.
func (r *run) appendedProbersText(probers map[string]prober) (string, error) {
	if r.profile.Has(feature.ProberNested) {
		return marshalProbers(probers)
	}
	flat := map[string]*corev1.HTTPGetAction{}
	for path, p := range probers {
		flat[path] = p.HTTPGet
	}
	text, err := json.Marshal(flat)
	return string(text), err
}

// appendWantsRewrite returns the setting of the pod's annotation, or the template's if the pod has none.
func (r *run) appendWantsRewrite(spec *appended) bool {
	if text, ok := r.pod.annotation(rewriteProbesAnnotation); ok && r.profile.Has(feature.ProbeRewriteAnnotation) {
		if want, err := strconv.ParseBool(text); err == nil {
			return want
		}
	}
	return spec.RewriteAppHTTPProbe
}

// agentPort returns the port on which the agent answers. known is false if the proxy's arguments must specify it
// and do not.
func (r *run) agentPort(proxy map[string]any) (port int64, known bool, err error) {
	if r.profile.Has(feature.ProbePortFromArgs) {
		list, _ := proxy["args"].([]any)
		args := make([]string, len(list))
		for i, e := range list {
			args[i], _ = e.(string)
		}
		n := parseNumericFlag(args, statusPortFlag)
		return int64(n), n >= 0, nil
	}
	if text, ok := r.pod.annotation(statusPortAnnotation); ok {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return 0, false, &podmap.FieldError{Field: "metadata.annotations[" + statusPortAnnotation + "]", Err: err}
		}
		return n, true, nil
	}
	return int64(r.in.Mesh().GetDefaultConfig().GetStatusPort()), true, nil
}
