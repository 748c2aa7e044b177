// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podvalidation

import (
	"net/netip"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/prerig/prerig/fn/podmap"
)

// checkAddedMetadata checks the labels and annotations that the pod did not have before.
func (c *checker) checkAddedMetadata(meta, before map[string]any) {
	at := place{path: "metadata", named: "metadata"}
	labels, had := mapOf(meta["labels"]), mapOf(before["labels"])
	for _, key := range podmap.SortedKeys(labels) {
		value := text(labels[key])
		if was, ok := had[key]; ok && was == labels[key] {
			continue
		}
		if !isPlainKey(key) && len(validation.IsQualifiedName(key)) > 0 {
			c.rejectField(at.field("labels").key(key), nil, "the name of the label %s is invalid", key)
		}
		if !isPlainName(value) && len(validation.IsValidLabelValue(value)) > 0 {
			c.rejectField(at.field("labels").key(key), value,
				"the value %q of the label %s is invalid: it has at most 63 letters, digits, hyphens, underscores and dots", value, key)
		}
	}
	annotations, had := mapOf(meta["annotations"]), mapOf(before["annotations"])
	size := 0
	for _, key := range podmap.SortedKeys(annotations) {
		size += len(key) + len(text(annotations[key]))
		if _, ok := had[key]; ok {
			continue
		}
		if !isPlainKey(key) && len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
			c.rejectField(at.field("annotations").key(key), nil, "the name of the annotation %s is invalid", key)
		}
	}
	if size > apivalidation.TotalAnnotationSizeLimitB {
		c.rejectField(at.field("annotations"), nil, "the annotations have more than %d bytes",
			apivalidation.TotalAnnotationSizeLimitB)
	}
	c.checkAppArmorProfiles(at.field("annotations"), annotations)
}

// checkAppArmorProfiles checks the annotations with the AppArmor profiles of containers (source:
// ValidateAppArmorPodAnnotations).
func (c *checker) checkAppArmorProfiles(at place, annotations map[string]any) {
	for _, key := range podmap.SortedKeys(annotations) {
		name, ok := strings.CutPrefix(key, podmap.AppArmorPrefix)
		if !ok {
			continue
		}
		isThere := func(list string) bool { return podmap.FindBy(listOf(c.spec[list]), "name", name) != nil }
		if !isThere(podmap.InitContainers) && !isThere(podmap.Containers) {
			c.rejectField(at.key(key), annotations[key],
				"the annotation sets the AppArmor profile of container %s, which the pod does not have", name)
		}
		profile := text(annotations[key])
		switch {
		case profile == "", profile == "runtime/default", profile == "unconfined",
			strings.HasPrefix(profile, "localhost/"):
		default:
			c.rejectField(at.key(key), profile, "the AppArmor profile is %s, and neither runtime/default, unconfined nor localhost/NAME", profile)
		}
	}
}

// checkPodSettings checks the fields of the pod beside its containers and volumes.
func (c *checker) checkPodSettings() {
	at := podPlace
	if n, ok := integer(c.spec["terminationGracePeriodSeconds"]); ok && n < 0 {
		c.rejectField(at.field("terminationGracePeriodSeconds"), n, "terminationGracePeriodSeconds is negative")
	}
	if v := c.spec["restartPolicy"]; !oneOf(v, "Always", "OnFailure", "Never") {
		c.rejectField(at.field("restartPolicy"), v, "restartPolicy is %v, and neither Always, OnFailure nor Never", v)
	}
	if name := text(c.spec["serviceAccountName"]); name != "" && !isSubdomain(name) {
		c.rejectField(at.field("serviceAccountName"), name, "the name %q of the service account is invalid", name)
	}
	for i, e := range listOf(c.spec["hostAliases"]) {
		ip := text(mapOf(e)["ip"])
		if _, err := netip.ParseAddr(ip); err != nil {
			c.rejectField(at.field("hostAliases").element(i, ip).field("ip"), ip, "%q in hostAliases is not an address",
				ip)
		}
	}
	c.securityContext(at.field("securityContext"), mapOf(c.spec["securityContext"]))
	c.checkSecurityGroups(at.field("securityContext"), mapOf(c.spec["securityContext"]))
	c.checkDNSSettings(at)
	c.checkOperatingSystemFields()
}

func (c *checker) checkSecurityGroups(at place, m map[string]any) {
	if id, ok := integer(m["fsGroup"]); ok && (id < 0 || id > maxID) {
		c.rejectField(at.field("fsGroup"), id, "fsGroup is %d, and not between 0 and %d", id, maxID)
	}
	var names []string
	for i, e := range listOf(m["sysctls"]) {
		name := text(mapOf(e)["name"])
		if name == "" || slices.Contains(names, name) {
			c.rejectField(at.field("sysctls").element(i, name), name, "the sysctl %q has no name or is there twice",
				name)
		}
		names = append(names, name)
	}
}

// The most servers and search domains of a pod.
const (
	maxNameservers = 3
	maxSearches    = 32
)

func (c *checker) checkDNSSettings(at place) {
	policy := text(c.spec["dnsPolicy"])
	if v := c.spec["dnsPolicy"]; !oneOf(v, "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None") {
		c.rejectField(at.field("dnsPolicy"), v, "dnsPolicy is %v, and neither ClusterFirst, ClusterFirstWithHostNet, Default nor None", v)
	}
	config := mapOf(c.spec["dnsConfig"])
	servers := listOf(config["nameservers"])
	switch {
	case policy == "None" && len(servers) == 0:
		c.rejectField(at.field("dnsConfig").field("nameservers"), nil,
			"dnsPolicy is None, and dnsConfig has no nameservers")
	case len(servers) > maxNameservers:
		c.rejectField(at.field("dnsConfig").field("nameservers"), nil, "dnsConfig has %d nameservers, and can have %d",
			len(servers), maxNameservers)
	}
	for i, e := range servers {
		if _, err := netip.ParseAddr(text(e)); err != nil {
			c.rejectField(at.field("dnsConfig").field("nameservers").element(i, e), e,
				"the nameserver %v is not an address", e)
		}
	}
	if searches := listOf(config["searches"]); len(searches) > maxSearches {
		c.rejectField(at.field("dnsConfig").field("searches"), nil, "dnsConfig has %d search domains, and can have %d",
			len(searches), maxSearches)
	}
}

// forbiddenOnWindows are the fields of a container's or pod's security context that a pod for Windows cannot have.
// Source: validateWindows in pkg/apis/core/validation/validation.go of Kubernetes 1.36.
var forbiddenOnWindows = []string{
	"allowPrivilegeEscalation", "appArmorProfile", "capabilities", "fsGroup", "fsGroupChangePolicy", "privileged",
	"procMount", "readOnlyRootFilesystem",
	"runAsGroup", "runAsUser", "seLinuxOptions", "seccompProfile", "supplementalGroups", "sysctls",
}

// checkOperatingSystemFields checks that the security contexts fit the operating system that the pod names.
func (c *checker) checkOperatingSystemFields() {
	switch text(mapOf(c.spec["os"])["name"]) {
	case "windows":
		c.forbidContextFields(forbiddenOnWindows, "%s cannot be set in a pod for Windows (spec.os.name)")
	case "linux":
		c.forbidContextFields([]string{"windowsOptions"}, "%s cannot be set in a pod for Linux (spec.os.name)")
	}
}

// forbidContextFields reports the fields of the pod's and the containers' security contexts that are set, of each
// context in one problem.
func (c *checker) forbidContextFields(fields []string, format string) {
	in := func(at place, context map[string]any) {
		var set []string
		for _, key := range fields {
			if context[key] != nil {
				set = append(set, key)
			}
		}
		if len(set) > 0 {
			c.rejectField(at.field("securityContext"), nil, format, strings.Join(set, ", "))
		}
	}
	in(podPlace, mapOf(c.spec["securityContext"]))
	for _, key := range []string{podmap.InitContainers, podmap.Containers} {
		for i, e := range listOf(c.spec[key]) {
			m := mapOf(e)
			in(placeOfContainer(key, i, m), mapOf(m["securityContext"]))
		}
	}
}
