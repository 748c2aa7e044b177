// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"slices"
	"time"
)

// State is how a pod compares with what was committed.
type State string

// The states of pods.
const (
	// Current is a pod that equals the newest commit.
	Current State = "Current"
	// Resized is a pod that equals the newest commit but for its resources, which were changed in place since.
	Resized State = "Resized"
	// Older is a pod that equals an older commit.
	Older State = "Older"
	// Removed is a pod that equals an older commit, whose workload the newest one has not any more.
	Removed State = "Removed"
	// Changed is a pod of a committed workload that equals no commit.
	Changed State = "Changed"
	// Foreign is a pod that no commit has a workload for.
	Foreign State = "Foreign"
	// Unreadable is a pod that cannot be compared.
	Unreadable State = "Unreadable"
)

// States lists all states, in display order.
var States = []State{Current, Resized, Older, Removed, Changed, Foreign, Unreadable}

// Report is what Verify has found. Its JSON is what prerig verify -o json writes; the schema is
// schemas/verifyreport_v1alpha1.json.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Commit is the newest one.
	Commit Commit `json:"commit"`
	// KubernetesVersion is that of the API server, where it is known.
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`
	// Counts are the pods of each state, Finished those that have ended and were not compared.
	Counts   map[State]int `json:"counts"`
	Finished int           `json:"finished,omitempty"`
	// Sidecars describe the rollout progress of the sidecars of the newest commit.
	Sidecars []Sidecar `json:"sidecars,omitempty"`
	// Pods are all that were compared, by namespace and name. In text, only those that are not current are shown.
	Pods []Pod `json:"pods"`
	// Absent are committed workloads without a pod that was compared.
	Absent []string `json:"absent,omitempty"`
	// Attested describes the signed statements about the files that the pods come from, where they were asked for.
	Attested *Attested `json:"attested,omitempty"`
	// Unread lists resources that were not read: checks that depend on them were skipped.
	Unread []string `json:"unread,omitempty"`
	// AuditUnnamed is how many creations of pods the audit log has without a name: below the level RequestResponse,
	// all of pods whose names the API server generated. They cannot be assigned to a pod.
	AuditUnnamed int `json:"auditUnnamed,omitempty"`
}

// Attested is which files of running pods a trusted statement covers.
type Attested struct {
	// Covered is how many files a trusted statement covers as they are.
	Covered int `json:"covered"`
	// Uncovered are the other files, by their paths.
	Uncovered []Uncovered `json:"uncovered,omitempty"`
}

// Uncovered is a file of running pods that no trusted statement covers.
type Uncovered struct {
	// File is its path, Commit the commit that the pods equal; "" in a directory that is in no repository.
	File   string `json:"file"`
	Commit string `json:"commit,omitempty"`
	// Pods is how many pods come from the file.
	Pods int `json:"pods"`
	// Message is the reason.
	Message string `json:"message"`
}

// Wrong returns the pods that need attention: those that are changed, foreign or cannot be compared.
func (r *Report) Wrong() []Pod {
	return slices.DeleteFunc(slices.Clone(r.Pods), func(p Pod) bool {
		return p.State != Changed && p.State != Foreign && p.State != Unreadable
	})
}

// The type of reports.
const (
	ReportAPIVersion = "prerig.dev/v1alpha1"
	ReportKind       = "VerifyReport"
)

// Pod is a pod and how it compares.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Workload is the committed workload that it is of, such as "Deployment shop/web"; for a foreign pod, what it is of.
	Workload string `json:"workload"`
	State    State  `json:"state"`
	// Commit is the one that it equals, or is compared with.
	Commit *Commit `json:"commit,omitempty"`
	// File is where the workload is committed.
	File string `json:"file,omitempty"`
	// Differences are the fields that differ from that commit.
	Differences []Difference `json:"differences,omitempty"`
	// Message is a more detailed description.
	Message string `json:"message,omitempty"`

	created time.Time
	ready   bool
}

// Difference is a field of a pod that is not as committed.
type Difference struct {
	// Field is its path, with the names of elements of lists: spec.containers[app].image.
	Field string `json:"field"`
	// Committed and Found are its values; one is missing where the field was added or removed. Credentials are ***.
	Committed any `json:"committed,omitempty"`
	Found     any `json:"found,omitempty"`
	// Order reports whether the elements are the same in another order.
	Order bool `json:"order,omitempty"`
	// Cause is who did it.
	Cause Cause `json:"cause"`

	summary string
}

// String is the field, how it differs and who did it.
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s (%s)", d.Field, d.summary, d.Cause)
}

// Sidecar is a sidecar of the fleet, by its container's name.
type Sidecar struct {
	Container string `json:"container"`
	// Pods is how many pods are to have it by the newest commit, Arrived how many of them run it in the version that the
	// newest commit has for them.
	Pods    int `json:"pods"`
	Arrived int `json:"arrived"`
	// Versions are how many of the pods run which version; "" is for pods without the sidecar.
	Versions []SidecarVersion `json:"versions"`
}

// SidecarVersion counts the pods with one version.
type SidecarVersion struct {
	// Version is the image's tag, or its digest where it has no tag.
	Version string `json:"version"`
	Pods    int    `json:"pods"`
	// Committed is how many pods are to run it.
	Committed int `json:"committed"`
}
