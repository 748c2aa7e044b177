// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/podmap"
)

const (
	cloudSQLName = "cloud-sql-operator"
	// cloudSQLGroup and cloudSQLKind are those of the objects that the operator reads, and cloudSQLImage is the end of
	// its own image's name (internal/api/v1 and config/manager of cloud-sql-proxy-operator 1.8.1).
	cloudSQLGroup, cloudSQLKind = "cloudsql.cloud.google.com/", "AuthProxyWorkload"
	cloudSQLImage               = "/cloud-sql-proxy-operator"
	// cloudSQLAgent is the user agent of the proxies, before the operator's version.
	cloudSQLAgent = "cloud-sql-proxy-operator/"
)

// setCloudSQL adds the sidecar of the Cloud SQL Auth Proxy Operator with the AuthProxyWorkload objects, if any.
func (r *sidecarReader) setCloudSQL(all []*clusterObject) error {
	var workloads []any
	for _, o := range all {
		if o.kind != cloudSQLKind || !strings.HasPrefix(podmap.TextAt(o.Value, "apiVersion"), cloudSQLGroup) ||
			podmap.TextAt(o.Value, "metadata", "deletionTimestamp") != "" {
			continue
		}
		if podmap.ValueAt(o.Value, "spec", "workloadSelector") == nil {
			r.addWarning("%s has no spec.workloadSelector and is skipped: it selects no workload", o)
			continue
		}
		meta := map[string]any{"name": o.name, "namespace": o.namespace}
		if generation := podmap.ValueAt(o.Value, "metadata", "generation"); generation != nil {
			meta["generation"] = generation
		}
		workloads = append(workloads, map[string]any{"metadata": meta, "spec": o.Value["spec"]})
	}
	if len(workloads) == 0 {
		return nil
	}
	known, err := builtInSidecar(cloudSQLName)
	if err != nil {
		return err
	}
	values := map[string]any{"workloads": workloads}
	version := cloudSQLOperatorVersion(all)
	ours, _ := known.Values["userAgent"].(string)
	switch ours = strings.TrimPrefix(ours, cloudSQLAgent); version {
	case ours:
	case "":
		r.addNote("the input does not contain the version of the Cloud SQL Auth Proxy Operator: pods are those of %s on Kubernetes 1.29 or later", ours)
	default:
		values["userAgent"] = cloudSQLAgent + version
		r.addWarning("the Cloud SQL Auth Proxy Operator has version %s, and the built-in policy is for %s: set image in the values of spec.sidecars to the proxy "+
			"of the operator's version", version, ours)
	}
	r.origins = append(r.origins, countText(len(workloads), cloudSQLKind))
	r.sidecars = append(r.sidecars, v1alpha1.Sidecar{BuiltIn: cloudSQLName, Values: values})
	return nil
}

// cloudSQLOperatorVersion returns the tag of the operator's image; "" where it is not among the objects.
func cloudSQLOperatorVersion(all []*clusterObject) string {
	for _, o := range all {
		if o.kind != "Deployment" {
			continue
		}
		for _, c := range objectsOf(podmap.ValueAt(o.Value, "spec", "template", "spec", "containers")) {
			name, _, _ := strings.Cut(podmap.TextAt(c, "image"), "@")
			if repository, tag, ok := strings.Cut(name, cloudSQLImage+":"); ok && repository != "" {
				return tag
			}
		}
	}
	return ""
}
