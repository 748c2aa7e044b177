// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
)

func object(apiVersion, kind, namespace, name string) render.Object {
	return render.Object{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name,
		YAML: []byte(fmt.Sprintf("# comment\nkind: %s\napiVersion: %s\nmetadata: {name: %q}\n", kind, apiVersion, name))}
}

func TestFileNames(t *testing.T) {
	files, err := publish.Files([]render.Object{
		object("apps/v1", "Deployment", "shop", "web"), object("v1", "Namespace", "", "shop"),
		object("argoproj.io/v1alpha1", "Rollout", "shop", "web"), object("networking.k8s.io/v1", "Ingress", "shop", "web"),
		object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system:web"), object("rbac.authorization.k8s.io/v1", "ClusterRole", "", "system_web"),
		object("batch/v1", "Job", "shop", ""), object("v1", "ConfigMap", "..", "../../etc/passwd"),
	}, v1alpha1.LayoutObjects, v1alpha1.StyleCanonical)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	digits := regexp.MustCompile("-[0-9a-f]{8}")
	for i := range names {
		names[i] = digits.ReplaceAllString(names[i], "-#")
	}
	want := []string{
		"_.-#/configmap-_._.._etc_passwd-#.yaml", "clusterrole-system_web-#.yaml", "clusterrole-system_web.yaml", "namespace-shop.yaml",
		"shop/deployment-web.yaml", "shop/ingress-web.yaml", "shop/job-unnamed-#.yaml", "shop/rollout.argoproj.io-web.yaml",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
	for _, name := range names {
		if strings.Contains("/"+name+"/", "/../") || strings.Contains("/"+name+"/", "/./") {
			t.Errorf("%s leaves the directory", name)
		}
	}
	if got := string(files["shop/deployment-web.yaml"]); got != "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n" {
		t.Errorf("got %s", got)
	}
}

func TestLayoutsAndStyles(t *testing.T) {
	objects := []render.Object{object("v1", "ConfigMap", "", "a"), object("v1", "ConfigMap", "", "b")}
	files, err := publish.Files(objects, v1alpha1.LayoutSingle, v1alpha1.StylePreserve)
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if got, want := string(files[publish.SingleFile]), string(objects[0].YAML)+"---\n"+string(objects[1].YAML); got != want {
		t.Errorf("got %s", got)
	}
	if _, err := publish.Files(append(objects, objects[0]), v1alpha1.LayoutObjects, v1alpha1.StyleCanonical); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("got %v", err)
	}
	if files, err := publish.Files(nil, v1alpha1.LayoutSingle, v1alpha1.StyleCanonical); err != nil || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
}

// TestLongFileNames: a file whose name is too long for file systems would keep everybody from checking the branch out.
func TestLongFileNames(t *testing.T) {
	long := strings.Repeat("n", 253)
	files, err := publish.Files([]render.Object{
		object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", long), object("cert-manager.io/v1", "Certificate", long+long, long+"a"),
		object("cert-manager.io/v1", "Certificate", long+long, long+"b"), object("v1", "ConfigMap", "x", strings.Repeat("n", 240)),
	}, v1alpha1.LayoutObjects, v1alpha1.StyleCanonical)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 4 {
		t.Errorf("%d files, want four", len(files))
	}
	for name := range files {
		for part := range strings.SplitSeq(name, "/") {
			if len(part) > 255 {
				t.Errorf("%s has %d bytes", part, len(part))
			}
		}
	}
	if _, ok := files["x/configmap-"+strings.Repeat("n", 240)+".yaml"]; !ok {
		t.Error("a name that is not too long was changed")
	}
}
