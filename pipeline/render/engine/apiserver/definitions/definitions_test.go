// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package definitions

import (
	"slices"
	"strings"
	"testing"
)

// TestIndexFitsTheFiles: each kind of the list has definitions in the file of its product, which is found by the kind.
func TestIndexFitsTheFiles(t *testing.T) {
	t.Parallel()
	all, err := Products()
	if err != nil {
		t.Fatal(err)
	}
	var l Library
	kinds := 0
	for _, product := range all {
		kinds += len(product.Kinds)
		for _, kind := range product.Kinds {
			checkKind(t, &l, product, kind)
		}
	}
	if kinds < 3000 {
		t.Errorf("%d kinds are known", kinds)
	}
}

func checkKind(t *testing.T, l *Library, product Product, kind string) {
	t.Helper()
	group, name, _ := strings.Cut(kind, "/")
	found, err := l.Of(product, group, name, "")
	if err != nil || len(found) == 0 {
		t.Errorf("%s of %s: %d definitions, %v", kind, product.Name, len(found), err)
	}
	of, err := ProductsOf(group, name)
	if err != nil || !slices.ContainsFunc(of, func(p Product) bool { return p.Name == product.Name }) {
		t.Errorf("%s is not found at %s: %v", kind, product.Name, err)
	}
	for _, d := range found {
		for _, release := range d.Releases {
			if !slices.Contains(product.Releases, release) {
				t.Errorf("%s is of the release %s, which %s does not have", kind, release, product.Name)
			}
		}
	}
}

// TestAKindIsOfItsOwnProduct: copies of definitions in other products come after, and the catalogue last.
func TestAKindIsOfItsOwnProduct(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"argoproj.io/Application": "argo-cd", "monitoring.coreos.com/ServiceMonitor": "prometheus-operator", "karpenter.sh/NodePool": "karpenter",
		"longhorn.io/Volume": "longhorn", "kafka.strimzi.io/Kafka": "strimzi", "elbv2.k8s.aws/TargetGroupBinding": Catalogue,
	} {
		group, name, _ := strings.Cut(kind, "/")
		found, err := ProductsOf(group, name)
		if err != nil || len(found) == 0 || found[0].Name != want {
			t.Errorf("%s: %v, %v, want %s", kind, found, err, want)
		}
	}
}

// TestNeighbours: a release between known ones has the definitions of both.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	known := []string{"1.24.2", "1.30.8", "1.31.4", "1.32.0"}
	for release, want := range map[string]string{
		"1.31": "1.31.4", "1.31.9": "1.31.4", "v1.32.0": "1.32.0", "1.27.3": "1.24.2 1.30.8", "1.20": "1.24.2", "1.40": "1.32.0", "2.0": "1.32.0",
	} {
		if got := strings.Join(neighbours(known, release), " "); got != want {
			t.Errorf("%s: got %s, want %s", release, got, want)
		}
	}
}
