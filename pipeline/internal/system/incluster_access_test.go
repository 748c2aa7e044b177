// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/prerig/prerig/pipeline/publish/externalartifact"
)

var (
	reviewGVR         = schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
	clusterBindingGVR = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
)

// access is something that the daemon may or may not do; without a namespace it is meant for all of them.
type access struct{ verb, group, resource, sub, namespace string }

// grant gives the daemon the roles of a component until the test's end: other tests ask what it may do without them.
func (c *inCluster) grant(component string) {
	c.t.Helper()
	c.kubectl("apply", "--server-side", "-f", filepath.Join(c.root, "deploy", "components", component, "rbac.yaml"))
	c.t.Cleanup(func() {
		if err := c.dynamic.Resource(clusterBindingGVR).Delete(context.Background(), "prerig-"+component, deleteNow); err != nil {
			c.t.Error(err)
		}
	})
}

// holdAccess asks the API server whether the daemon may do all of the first, and nothing of the others. Bindings that are made or deleted
// reach the authorizer a little later.
func (c *inCluster) holdAccess(may, mayNot []access) {
	c.t.Helper()
	hold := func(all []access, want bool) {
		for _, one := range all {
			if c.daemonMay(one) == want {
				continue
			}
			c.await(fmt.Sprintf("the daemon to be allowed (%v) %+v", want, one), func(context.Context) error {
				if got := c.daemonMay(one); got != want {
					return fmt.Errorf("allowed is %v", got)
				}
				return nil
			})
		}
	}
	hold(may, true)
	hold(mayNot, false)
}

// daemonMay asks the API server what the daemon may do.
func (c *inCluster) daemonMay(a access) bool {
	c.t.Helper()
	answer, err := c.dynamic.Resource(reviewGVR).Create(c.t.Context(), object("authorization.k8s.io/v1", "SubjectAccessReview", "", "", map[string]any{
		"spec": map[string]any{
			"user": "system:serviceaccount:prerig:prerig", "groups": []any{"system:serviceaccounts", "system:serviceaccounts:prerig", "system:authenticated"},
			"resourceAttributes": map[string]any{"verb": a.verb, "group": a.group, "resource": a.resource, "subresource": a.sub, "namespace": a.namespace},
		},
	}), metav1.CreateOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed")
	return allowed
}

// TestInClusterAccess asks the API server for all that the daemon does, and for what it must not be able to do.
func TestInClusterAccess(t *testing.T) {
	c := newInCluster(t, "access", "elsewhere")
	c.bindSecrets("access")
	c.bindArtifacts("access")
	may := []access{
		{"get", "", "secrets", "", "access"}, {"create", "", "events", "", "access"}, {"patch", "prerig.dev", "renderpipelines", "", "access"},
		{"update", "prerig.dev", "renderpipelines", "status", "access"}, {"update", "prerig.dev", "injectionpolicies", "status", "access"},
	}
	for _, verb := range []string{"get", "list", "watch"} {
		may = append(may, access{verb, "prerig.dev", "renderpipelines", "", ""}, access{verb, "prerig.dev", "injectionpolicies", "", ""})
	}
	for _, verb := range []string{"get", "create", "update", "delete"} {
		may = append(may, access{verb, externalartifact.Resource.Group, "externalartifacts", "", "access"})
	}
	may = append(may, access{"update", externalartifact.Resource.Group, "externalartifacts", "status", "access"})
	var not []access
	for _, verb := range []string{"list", "watch", "patch", "deletecollection"} {
		not = append(not, access{verb, externalartifact.Resource.Group, "externalartifacts", "", "access"})
	}
	for _, verb := range []string{"get", "create", "update", "delete"} {
		not = append(not, access{verb, externalartifact.Resource.Group, "externalartifacts", "", "elsewhere"},
			access{verb, externalartifact.Resource.Group, "gitrepositories", "", "access"}, access{verb, "kustomize.toolkit.fluxcd.io", "kustomizations", "", "access"})
	}
	for _, verb := range []string{"list", "watch", "create", "update", "patch", "delete"} {
		not = append(not, access{verb, "", "secrets", "", "access"})
	}
	for _, verb := range []string{"create", "update", "delete", "deletecollection"} {
		not = append(not, access{verb, "prerig.dev", "renderpipelines", "", "access"}, access{verb, "prerig.dev", "injectionpolicies", "", "access"})
	}
	for _, resource := range []string{"pods", "configmaps", "serviceaccounts", "namespaces", "nodes"} {
		for _, verb := range []string{"get", "list", "create", "update", "delete"} {
			not = append(not, access{verb, "", resource, "", "access"})
		}
	}
	not = append(not,
		access{"get", "", "secrets", "", "elsewhere"}, access{"get", "", "secrets", "", ""}, access{"get", "", "secrets", "", "prerig"}, access{"patch", "prerig.dev", "injectionpolicies", "", "access"},
		access{"create", "", "serviceaccounts", "token", "prerig"}, access{"impersonate", "", "users", "", ""}, access{"create", "", "pods", "exec", "prerig"},
		access{"create", "apps", "deployments", "", "access"}, access{"create", "rbac.authorization.k8s.io", "rolebindings", "", "access"},
		access{"bind", "rbac.authorization.k8s.io", "clusterroles", "", ""}, access{"escalate", "rbac.authorization.k8s.io", "clusterroles", "", ""},
		access{"update", "apiextensions.k8s.io", "customresourcedefinitions", "", ""}, access{"*", "*", "*", "", ""},
	)
	c.holdAccess(may, not)
}

// TestInClusterMeshAccess asks the API server for what the component mesh lets the daemon do, and for what it must not.
func TestInClusterMeshAccess(t *testing.T) {
	c := newInCluster(t, "istio-system")
	c.grant("mesh")
	const admission = "admissionregistration.k8s.io"
	var may, not []access
	for _, one := range []access{
		{resource: "namespaces"}, {resource: "nodes"}, {resource: "serviceaccounts"}, {resource: "limitranges"},
		{group: "networking.istio.io", resource: "proxyconfigs"}, {group: admission, resource: "mutatingwebhookconfigurations"},
		{resource: "configmaps", namespace: "istio-system"}, {group: "apps", resource: "deployments", namespace: "istio-system"},
	} {
		for _, one.verb = range []string{"list", "watch"} {
			may = append(may, one)
		}
		for _, one.verb = range []string{"get", "create", "update", "patch", "delete", "deletecollection"} {
			not = append(not, one)
		}
	}
	for _, one := range []access{
		{resource: "configmaps", namespace: "meshed"}, {resource: "configmaps"}, {group: "apps", resource: "deployments", namespace: "meshed"},
		{resource: "secrets", namespace: "istio-system"}, {resource: "pods", namespace: "istio-system"}, {group: admission, resource: "validatingwebhookconfigurations"},
	} {
		for _, one.verb = range []string{"get", "list", "watch", "update"} {
			not = append(not, one)
		}
	}
	c.holdAccess(may, not)
}
