// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestCreator takes who created an object for its creator, and not who is left of those that wrote to it.
func TestCreator(t *testing.T) {
	const at = "2026-01-02T03:04:05Z"
	for name, c := range map[string]struct{ entries, by string }{
		"created":                  {`{manager: one, time: "2026-01-02T03:04:05Z"}, {manager: two, time: "2026-01-02T03:05:00Z"}`, "one"},
		"the creator wrote again":  {`{manager: one, time: "2026-01-02T03:06:00Z"}, {manager: two, time: "2026-01-02T03:05:00Z"}`, ""},
		"a status in that second":  {`{manager: kubelet, subresource: status, time: "2026-01-02T03:04:05Z"}, {manager: one, time: "2026-01-02T03:04:05Z"}`, "one"},
		"only a status":            {`{manager: kubelet, subresource: status, time: "2026-01-02T03:04:05Z"}`, ""},
		"the next second began":    {`{manager: one, time: "2026-01-02T03:04:06Z"}, {manager: two, time: "2026-01-02T03:05:00Z"}`, "one"},
		"two in the same second":   {`{manager: one, time: "2026-01-02T03:04:05Z"}, {manager: two, time: "2026-01-02T03:04:05Z"}`, ""},
		"two, one made the pod":    {`{manager: one, time: "2026-01-02T03:04:05Z"}, {manager: two, time: "2026-01-02T03:04:05Z", fieldsV1: {"f:spec": {"f:restartPolicy": {}}}}`, "two"},
		"webhooks took their time": {`{manager: one, time: "2026-01-02T03:03:45Z"}, {manager: two, time: "2026-01-02T03:05:00Z"}`, "one"},
		"from another cluster":     {`{manager: one, time: "2026-01-01T03:04:05Z"}`, ""},
		"no entries":               {``, ""},
		"an entry without a time":  {`{manager: one}`, ""},
	} {
		obj := parse(t, fmt.Sprintf(`{metadata: {creationTimestamp: %q, managedFields: [%s]}}`, at, c.entries))
		by := ""
		if first := creatingManagerEntry(managersByTime(obj), obj); first != nil {
			by = first.name
		}
		if by != c.by {
			t.Errorf("%s: by %q, want %q", name, by, c.by)
		}
	}
}

// TestCauseWithoutACreator says that nobody knows, where the creator's entry has a later time.
func TestCauseWithoutACreator(t *testing.T) {
	const spec = `spec: {containers: [{name: a, image: "a:2"}], ephemeralContainers: [{name: shell, image: "s:1"}]}`
	const image = `fieldsV1: {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:image": {}}}}}`
	const shell = `fieldsV1: {"f:spec": {"f:ephemeralContainers": {'k:{"name":"shell"}': {".": {}}}}}`
	causes := func(entries string) map[string]CauseKind {
		pod := verifyOne(t, `spec: {containers: [{name: a, image: "a:1"}]}`,
			fmt.Sprintf(`{metadata: {creationTimestamp: "2026-01-02T03:04:05Z", managedFields: [%s]}, %s}`, entries, spec), &Snapshot{}, Options{})
		out := map[string]CauseKind{}
		for _, d := range pod.Differences {
			out[d.Field] = d.Cause.Kind
		}
		return out
	}
	const debug = `{manager: kubectl, subresource: ephemeralcontainers, time: "2026-01-02T03:06:00Z", ` + shell + `}`
	for name, c := range map[string]struct {
		entries string
		image   CauseKind
	}{
		"by the creator":      {`{manager: one, time: "2026-01-02T03:04:05Z", ` + image + `}`, CauseAdmission},
		"later":               {`{manager: one, time: "2026-01-02T03:04:05Z", fieldsV1: {"f:spec": {"f:dnsPolicy": {}}}}, {manager: two, time: "2026-01-02T03:05:00Z", ` + image + `}`, CauseUpdate},
		"the creator is gone": {`{manager: one, time: "2026-01-02T03:05:00Z", ` + image + `}, {manager: two, time: "2026-01-02T03:04:30Z", fieldsV1: {"f:metadata": {}}}`, CauseUnknown},
	} {
		got := causes(c.entries + ", " + debug)
		if got["spec.containers[a].image"] != c.image || got["spec.ephemeralContainers[shell]"] != CauseUpdate {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestCauseOfACopy names nobody where the template is a copy of one that was not read.
func TestCauseOfACopy(t *testing.T) {
	const changed = `{metadata: {labels: {app: web}}, spec: {containers: [{name: a, image: "a:2"}]}}`
	wrote := func(by string) string {
		return `, managedFields: [{manager: ` + by + `, time: ` + before + `, fieldsV1: {"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:image": {}}}}}}}}]`
	}
	set := strings.Replace(webReplicaSet(changed), "uid: u,", "uid: u"+wrote("kube-controller-manager")+",", 1)
	deployment := strings.Replace(webDeployment, "namespace: shop}", "namespace: shop"+wrote("kubectl-edit")+"}", 1)
	pod := webPod(webOwner, "", `containers: [{name: a, image: "a:2"}]`)
	committedSet := `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-abc, namespace: shop}, spec: {template: ` + webTemplate + `}}`
	for name, c := range map[string]struct {
		committed string
		objects   []string
		want      Cause
	}{
		"the Deployment was read":     {webDeployment, []string{pod, set, deployment}, Cause{Kind: CauseWorkload, By: []string{"kubectl-edit"}, Certain: true}},
		"it was not":                  {webDeployment, []string{pod, set}, Cause{Kind: CauseWorkload}},
		"the ReplicaSet is committed": {committedSet, []string{pod, set}, Cause{Kind: CauseWorkload, By: []string{"kube-controller-manager"}, Certain: true}},
	} {
		got := verifyObjects(t, "", c.committed, c.objects...)
		if len(got.Differences) != 1 {
			t.Errorf("%s: %s %s", name, got.State, fieldsOf(got))
			continue
		}
		cause := got.Differences[0].Cause
		cause.Time = time.Time{}
		if diff := cmp.Diff(c.want, cause); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestCauseThroughStatus names who wrote labels and annotations through pods/status, which may do that.
func TestCauseThroughStatus(t *testing.T) {
	const made = `{manager: kube-controller-manager, time: "2026-01-01T00:00:00Z", fieldsV1: {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:restartPolicy": {}}}}`
	wrote := func(metadata string) string {
		return `, managedFields: [` + made + `, {manager: kubelet, subresource: status, time: ` + after + `, fieldsV1: {"f:status": {}}}, {manager: agent, subresource: status, time: ` + after +
			`, fieldsV1: {"f:metadata": ` + metadata + `}}]`
	}
	const annotation = `{"f:annotations": {"f:team": {}}}`
	for name, c := range map[string]struct {
		committed, more string
		kind            CauseKind
	}{
		"added":                  {webDeployment, `, annotations: {team: x}` + wrote(annotation), CauseUpdate},
		"missing":                {strings.Replace(webDeployment, "labels: {app: web}", "labels: {app: web, tier: x}", 1), wrote(annotation), CauseUnknown},
		"missing in the spec":    {strings.Replace(webDeployment, "containers:", "priorityClassName: high, containers:", 1), wrote(annotation), CauseAdmission},
		"missing, status itself": {strings.Replace(webDeployment, "labels: {app: web}", "labels: {app: web, tier: x}", 1), `, managedFields: [` + made + `, {manager: kubelet, subresource: status, fieldsV1: {"f:status": {}}}]`, CauseAdmission},
	} {
		got := verifyObjects(t, "", c.committed, webPod(webOwner, c.more, webSpec))
		if len(got.Differences) != 1 || got.Differences[0].Cause.Kind != c.kind {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		if cause := got.Differences[0].Cause; c.kind == CauseUpdate && (len(cause.By) != 1 || cause.By[0] != "agent" || !cause.Certain) {
			t.Errorf("%s: %+v", name, cause)
		}
	}
}
