// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package podvalidation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/quantity"
)

// volumesByName returns the volumes that the pod has.
func volumesByName(spec map[string]any) map[string]map[string]any {
	list := listOf(spec["volumes"])
	out := make(map[string]map[string]any, len(list))
	for _, e := range list {
		if m := mapOf(e); m != nil {
			out[text(m["name"])] = m
		}
	}
	return out
}

// requiredOfVolumes are the fields that a source of a volume has to have.
var requiredOfVolumes = map[string]string{
	"configMap": "name", "secret": "secretName", "hostPath": "path", "persistentVolumeClaim": "claimName",
	"csi": "driver",
}

func (c *checker) checkVolumes() {
	seen := map[string]bool{}
	for i, e := range listOf(c.spec["volumes"]) {
		m := mapOf(e)
		name := text(m["name"])
		at := podPlace.field("volumes").element(i, name)
		switch {
		case seen[name] && name != "":
			c.rejectField(at.field("name"), name, "the volume %s is there twice", name)
		case !isLabel(name):
			c.rejectField(at.field("name"), name, "the name %q of a volume is not a lower-case DNS label", name)
		}
		seen[name] = true
		c.checkVolumeSource(at, name, m)
	}
}

// checkVolumeSource checks the source of a volume. One without any is an emptyDir.
func (c *checker) checkVolumeSource(at place, name string, m map[string]any) {
	var sources []string
	for _, key := range podmap.SortedKeys(m) {
		if key == "name" || m[key] == nil || podmap.PodSchema().Field("spec").Schema.Field("volumes").Schema.Elem.Field(key) == nil {
			continue
		}
		sources = append(sources, key)
	}
	if len(sources) > 1 {
		c.rejectField(at, nil, "the volume %s has %d sources (%s), and can have one", name, len(sources),
			strings.Join(sources, " and "))
	}
	for _, key := range sources {
		source, required := mapOf(m[key]), requiredOfVolumes[key]
		if required != "" && text(source[required]) == "" {
			c.rejectField(at.field(key).field(required), nil, "%s of the volume %s has no %s", key, name, required)
		}
		if n, ok := integer(source["defaultMode"]); ok && (n < 0 || n > 0o777) {
			c.rejectField(at.field(key).field("defaultMode"), n,
				"defaultMode of the volume %s is not between 0 and 0777", name)
		}
		c.checkVolumeItems(at.field(key), name, source)
		switch key {
		case "hostPath":
			if path := text(source["path"]); slices.Contains(strings.Split(path, "/"), "..") {
				c.rejectField(at.field(key).field("path"), path, "the path of the volume %s has an element ..", name)
			}
		case "emptyDir":
			if limit, err := quantity.Parse(fmt.Sprint(source["sizeLimit"])); err == nil && limit.Sign() < 0 {
				c.rejectField(at.field(key).field("sizeLimit"), source["sizeLimit"],
					"sizeLimit of the volume %s is negative", name)
			}
		case "projected":
			c.checkProjectedSources(at.field(key), name, source)
		}
	}
}

// checkVolumeItems checks the paths of the files of a volume, which are relative to it (source:
// validateLocalNonReservedPath in pkg/apis/core/validation of Kubernetes 1.36).
func (c *checker) checkVolumeItems(at place, name string, source map[string]any) {
	for i, e := range listOf(source["items"]) {
		path := text(mapOf(e)["path"])
		here := at.field("items").element(i, i).field("path")
		switch {
		case path == "":
			c.rejectField(here, nil, "a file of the volume %s has no path", name)
		case strings.HasPrefix(path, "/"):
			c.rejectField(here, path, "the path %s of a file of the volume %s is not relative", path, name)
		case strings.HasPrefix(path, ".."), slices.Contains(strings.Split(path, "/"), ".."):
			c.rejectField(here, path, "the path %s of a file of the volume %s leads out of the volume", path, name)
		}
	}
}

func (c *checker) checkProjectedSources(at place, name string, projected map[string]any) {
	for i, e := range listOf(projected["sources"]) {
		source, n := mapOf(e), 0
		for _, v := range source {
			if v != nil {
				n++
			}
		}
		here := at.field("sources").element(i, i)
		if n != 1 {
			c.rejectField(here, nil, "an element of the sources of the volume %s has %d sources, and has to have one",
				name, n)
			continue
		}
		for _, key := range []string{"configMap", "secret", "downwardAPI"} {
			c.checkVolumeItems(here.field(key), name, mapOf(source[key]))
		}
		token := mapOf(source["serviceAccountToken"])
		if token == nil {
			continue
		}
		if text(token["path"]) == "" {
			c.rejectField(here.field("serviceAccountToken").field("path"), nil,
				"the token of the volume %s has no path", name)
		}
		if n, ok := integer(token["expirationSeconds"]); ok && (n < 600 || n > 1<<32) {
			c.rejectField(here.field("serviceAccountToken").field("expirationSeconds"), n,
				"the token of the volume %s expires after %d seconds, and has to be valid for 10 minutes at least",
				name, n)
		}
	}
}
