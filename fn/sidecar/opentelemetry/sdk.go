// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package opentelemetry

import (
	"errors"
	"maps"
	"slices"
	"strings"
)

// target is a container that is instrumented.
type target struct {
	pod *instrumented
	// spec is the object's, and settings are those of the language in it.
	spec, settings map[string]any
	container      map[string]any
	name           string
	env            variables
	// telemetryOf are the variables of the container whose telemetry it is, where that is another one than that of env.
	telemetryOf variables
	// mounts are those that the container gets.
	mounts []any
}

const (
	podName            = "OTEL_RESOURCE_ATTRIBUTES_POD_NAME"
	podUID             = "OTEL_RESOURCE_ATTRIBUTES_POD_UID"
	nodeName           = "OTEL_RESOURCE_ATTRIBUTES_NODE_NAME"
	podIP              = "OTEL_POD_IP"
	nodeIP             = "OTEL_NODE_IP"
	resourceAttributes = "OTEL_RESOURCE_ATTRIBUTES"
	attributePrefix    = "resource.opentelemetry.io/"
)

// addCommon adds the variables that come first, and the object's own (injectCommonEnvVar).
func (t *target) addCommon() {
	if t.env.indexOfName(podIP) < 0 {
		t.env = slices.Insert(t.env, 0, fromField(podIP, "status.podIP"))
	}
	if t.env.indexOfName(nodeIP) < 0 {
		t.env = slices.Insert(t.env, 0, fromField(nodeIP, "status.hostIP"))
	}
	t.env = t.env.appendMissing(variablesOf(t.spec["env"])...)
}

// nestedSpecText returns a text in a section of the object's spec.
func (t *target) nestedSpecText(section, key string) string {
	m, _ := t.spec[section].(map[string]any)
	text, _ := m[key].(string)
	return text
}

// addSDK adds what configures the SDK (injectCommonSDKConfig).
func (t *target) addSDK() error {
	own, _, isText := t.env.textOfVariable(resourceAttributes)
	if !isText {
		return errors.New("the variable " + resourceAttributes + " is a reference; attributes cannot be added to it")
	}
	excluded := own
	if t.telemetryOf != nil {
		excluded, _, _ = t.telemetryOf.textOfVariable(resourceAttributes)
	}
	attributes := t.remainingResourceAttributes(excluded)
	t.env = t.env.appendMissing(literalEnvVar("OTEL_SERVICE_NAME", t.serviceName(attributes)))
	t.addExporter()
	t.env = append(t.env, fromField(podName, "metadata.name"))
	attributes["k8s.pod.name"] = "$(" + podName + ")"
	if t.addsUIDs() && attributes["k8s.pod.uid"] == "" {
		t.env = append(t.env, fromField(podUID, "metadata.uid"))
		attributes["k8s.pod.uid"] = "$(" + podUID + ")"
	}
	if version := t.serviceVersion(); version != "" && !strings.Contains(own, "service.version") {
		attributes["service.version"] = version
	}
	if attributes["k8s.node.name"] == "" {
		t.env = append(t.env, fromField(nodeName, "spec.nodeName"))
		attributes["k8s.node.name"] = "$(" + nodeName + ")"
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		parts = append(parts, key+"="+attributes[key])
	}
	text := strings.Join(parts, ",")
	if i := t.env.indexOfName(resourceAttributes); i >= 0 {
		if !strings.HasSuffix(own, ",") {
			text = "," + text
		}
		t.env = slices.Delete(slices.Clone(t.env), i, i+1)
	}
	t.addSampling()
	// It comes last, as it names other variables.
	t.env = append(t.env, literalEnvVar(resourceAttributes, own+text))
	return nil
}

// addSampling adds propagators and the sampler.
func (t *target) addSampling() {
	list, _ := t.spec["propagators"].([]any)
	var propagators []string
	for _, e := range list {
		text, _ := e.(string)
		propagators = append(propagators, text)
	}
	if len(propagators) > 0 {
		t.env = t.env.appendMissing(literalEnvVar("OTEL_PROPAGATORS", strings.Join(propagators, ",")))
	}
	const sampler, argument = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	kind := t.nestedSpecText("sampler", "type")
	if kind == "" || t.env.indexOfName(sampler) >= 0 || t.env.indexOfName(argument) >= 0 {
		return
	}
	t.env = append(t.env, literalEnvVar(sampler, kind))
	if value := t.nestedSpecText("sampler", "argument"); value != "" {
		t.env = append(t.env, literalEnvVar(argument, value))
	}
}

// addsUIDs reports whether the UIDs of objects are wanted as attributes.
func (t *target) addsUIDs() bool {
	resource, _ := t.spec["resource"].(map[string]any)
	adds, _ := resource["addK8sUIDAttributes"].(bool)
	return adds
}

// remainingResourceAttributes returns the resource attributes without those that the container's own variable has
// (createResourceMap). It omits the UIDs and names of objects that do not exist yet.
func (t *target) remainingResourceAttributes(own string) map[string]string {
	has := map[string]bool{}
	for part := range strings.SplitSeq(own, ",") {
		if pair := strings.Split(strings.TrimSpace(part), "="); len(pair) == 2 {
			has[pair[0]] = true
		}
	}
	out := map[string]string{}
	set := func(key, value string) {
		if !has[key] && value != "" {
			out[key] = value
		}
	}
	resource, _ := t.spec["resource"].(map[string]any)
	declared, _ := resource["resourceAttributes"].(map[string]any)
	for key, value := range declared {
		text, _ := value.(string)
		if !has[key] {
			out[key] = text
		}
	}
	p := t.pod
	set("k8s.namespace.name", p.namespace)
	set("k8s.container.name", t.name)
	assigned, _ := p.spec["nodeName"].(string)
	set("k8s.node.name", assigned)
	if p.kind == "Pod" {
		set("k8s.pod.name", p.name)
	}
	instance := t.metadataAttributeValue("service.instance.id", false)
	if instance == "" && p.namespace != "" {
		instance = p.namespace + ".$(" + podName + ")." + t.name
	}
	set("service.instance.id", instance)
	if key := ownerAttributes[p.kind]; key != "" {
		set(key, p.name)
	}
	for key, value := range p.annotations {
		name, ok := strings.CutPrefix(key, attributePrefix)
		text, _ := value.(string)
		if ok && !has[name] && name != "service.name" {
			out[name] = text
		}
	}
	namespace := t.metadataAttributeValue("service.namespace", false)
	if namespace == "" {
		namespace = p.namespace
	}
	set("service.namespace", namespace)
	return out
}

// ownerAttributes name the workload of a pod by its kind.
var ownerAttributes = map[string]string{"Deployment": "k8s.deployment.name", "ReplicaSet": "k8s.replicaset.name",
	"StatefulSet": "k8s.statefulset.name",
	"DaemonSet":   "k8s.daemonset.name", "Job": "k8s.job.name", "CronJob": "k8s.cronjob.name"}

// metadataAttributeValue returns an attribute that the pod's annotation sets, or, where the object wants it, one of the
// labels.
func (t *target) metadataAttributeValue(attribute string, withLabels bool, labels ...string) string {
	if text, _ := t.pod.annotations[attributePrefix+attribute].(string); text != "" {
		return text
	}
	defaults, _ := t.spec["defaults"].(map[string]any)
	if use, _ := defaults["useLabelsForResourceAttributes"].(bool); !use || !withLabels {
		return ""
	}
	for _, label := range labels {
		if text, _ := t.pod.labels[label].(string); text != "" {
			return text
		}
	}
	return ""
}

// serviceName follows chooseServiceName.
func (t *target) serviceName(attributes map[string]string) string {
	if name := t.metadataAttributeValue("service.name", true, "app.kubernetes.io/instance", "app.kubernetes.io/name"); name != "" {
		return name
	}
	for _, owner := range []string{"deployment", "replicaset", "statefulset", "daemonset", "cronjob", "job", "pod"} {
		if name := attributes["k8s."+owner+".name"]; name != "" {
			return name
		}
	}
	return t.name
}

// serviceVersion follows chooseServiceVersion: an annotation, a label, or the image's tag and digest.
func (t *target) serviceVersion() string {
	if version := t.metadataAttributeValue("service.version", true, "app.kubernetes.io/version"); version != "" {
		return version
	}
	image, _ := t.container["image"].(string)
	name, digest, _ := strings.Cut(image, "@")
	_, tag, _ := strings.Cut(name[strings.LastIndex(name, "/")+1:], ":")
	if tag != "" && digest != "" {
		return tag + "@" + digest
	}
	return tag + digest
}
