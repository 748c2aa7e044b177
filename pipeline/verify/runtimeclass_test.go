// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/workload"
)

// TestRuntimeClassOfBefore compares with what the class of a pod said when the pod was made, as far as that is known.
func TestRuntimeClassOfBefore(t *testing.T) {
	const named = `runtimeClassName: kata, `
	class := func(changed string) string {
		return `{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: kata, creationTimestamp: ` + before + `, managedFields: [{time: ` + changed + `}]},
handler: kata, overhead: {podFixed: {memory: 160Mi}}, scheduling: {nodeSelector: {pool: new}, tolerations: [{key: new, operator: Exists}]}}`
	}
	const (
		earlier = `overhead: {memory: 120Mi}, nodeSelector: {pool: old}, tolerations: [{key: old, operator: Exists}], `
		today   = `overhead: {memory: 160Mi}, nodeSelector: {pool: new}, tolerations: [{key: new, operator: Exists}], `
		all     = `spec.nodeSelector.pool spec.overhead spec.tolerations[{"key":"old","operator":"Exists"}]`
	)
	other := strings.Replace(class(before), "kata, creation", "other, creation", 1)
	for name, c := range map[string]struct {
		found, owner string // beside the name of the class
		class        string
		fields       string
	}{
		"as it is":                    {today, "", class(before), ""},
		"as it was once":              {earlier, "", class(after), ""},
		"as it never was":             {earlier, "", class(before), all},
		"not read":                    {earlier, "", "", ""},
		"removed, as others are left": {earlier, "", other, all},
		"of the workload, changed":    {earlier, earlier, class(after), all},
		"of the workload, not read":   {earlier, earlier, "", all},
	} {
		in := func(spec string) string { return strings.Replace(webTemplate, webSpec, named+spec+webSpec, 1) }
		objects := []string{webPod(webOwner, "", named+c.found+webSpec), webReplicaSet(in(c.owner))}
		if c.class != "" {
			objects = append(objects, c.class)
		}
		got := verifyObjects(t, "", strings.Replace(webDeployment, webSpec, named+webSpec, 1), objects...)
		if fieldsOf(got) != c.fields {
			t.Errorf("%s: %s, %s", name, got.State, fieldsOf(got))
		}
	}
}

// TestUnreadNamesWhatPodsHangOn names RuntimeClasses and LimitRanges that were not read, where a pod's fields were believed for that.
func TestUnreadNamesWhatPodsHangOn(t *testing.T) {
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pod    string
		read   []string
		unread bool
		of     string
	}{
		"a class":              {webPod(webOwner, "", "runtimeClassName: kata, "+webSpec), nil, true, "runtimeclasses"},
		"a class that is read": {webPod(webOwner, "", "runtimeClassName: kata, "+webSpec), []string{"RuntimeClass"}, false, "runtimeclasses"},
		"no class":             {webPod(webOwner, "", webSpec), nil, false, "runtimeclasses"},
		"limits":               {webPod(webOwner, `, annotations: {"kubernetes.io/limit-ranger": x}`, webSpec), nil, true, "limitranges"},
		"limits that are read": {webPod(webOwner, `, annotations: {"kubernetes.io/limit-ranger": x}`, webSpec), []string{"LimitRange"}, false, "limitranges"},
		"no limits":            {webPod(webOwner, "", webSpec), nil, false, "limitranges"},
	} {
		s := &Snapshot{}
		for _, kind := range c.read {
			s.Read(kind)
		}
		s.Add(parse(t, c.pod))
		r, err := Verify(t.Context(), s, commits{{}}, Options{Registry: registry})
		if err != nil || slices.Contains(r.Unread, c.of) != c.unread {
			t.Errorf("%s: not read: %v, %v", name, r.Unread, err)
		}
	}
}
