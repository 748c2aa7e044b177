// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// KindImageLock is the kind of an ImageLock. Its apiVersion is [APIVersion].
const KindImageLock = "ImageLock"

// LocalConfig is the annotation that keeps kustomize, kpt and kubectl plugins from sending an object to a cluster.
const LocalConfig = "config.kubernetes.io/local-config"

// ImageLock records the digest of each image at the time it was resolved. It is written by prerig images pin, kept
// in Git next to the policy, and read by the function, which never contacts a registry.
type ImageLock struct {
	// APIVersion is prerig.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is ImageLock.
	Kind string `json:"kind"`
	// Metadata names the lock.
	Metadata Metadata `json:"metadata"`
	// Spec is what is locked.
	Spec ImageLockSpec `json:"spec"`
}

// ImageLockSpec is what is locked.
type ImageLockSpec struct {
	// Images are sorted by image.
	Images []LockedImage `json:"images"`
}

// LockedImage is one image and its digest.
type LockedImage struct {
	// Image as the templates name it, such as docker.io/istio/proxyv2:1.31.0.
	Image string `json:"image"`
	// Digest of the manifest that the tag named: that of the index where the image is for several platforms.
	Digest string `json:"digest"`
	// Platforms that the image is for, such as linux/amd64, sorted; empty where they were not looked at.
	Platforms []string `json:"platforms,omitempty"`
}

var digest = lazyregexp.New(`^sha(256:[a-f0-9]{64}|512:[a-f0-9]{128})$`)

// IsImageLock reports whether an object with this apiVersion and kind is an ImageLock, of any version.
func IsImageLock(apiVersion, kind string) bool {
	return kind == KindImageLock && strings.HasPrefix(apiVersion, "prerig.dev/")
}

// ParseImageLock reads a lock from YAML or JSON, strictly. The error names the keys that are wrong.
func ParseImageLock(data []byte) (*ImageLock, error) {
	doc, obj, err := readObject(data)
	if err != nil {
		return nil, fmt.Errorf("reading ImageLock: %w", err)
	}
	ps := &problems{}
	ps.List = doc.Duplicates(nil)
	return readLock(obj, ps, doc)
}

// ImageLockFromObject reads a lock from an object of maps, lists and scalars, as it comes in a ResourceList.
func ImageLockFromObject(obj map[string]any) (*ImageLock, error) {
	return readLock(obj, &problems{}, nil)
}

func readLock(obj map[string]any, ps *problems, where strict.Locator) (*ImageLock, error) {
	ps.checkType(obj, "apiVersion", APIVersion)
	ps.checkType(obj, "kind", KindImageLock)
	lock := &ImageLock{}
	if len(ps.List) == 0 {
		ps.decodeAPIObject(nil, obj, lock)
		ps.validateLock(lock)
	}
	if len(ps.List) == 0 {
		return lock, nil
	}
	if where != nil {
		ps.Locate(where)
	}
	texts := make([]string, len(ps.List))
	for i := range ps.List {
		texts[i] = ps.List[i].String()
	}
	name := ""
	if lock.Metadata.Name != "" {
		name = fmt.Sprintf(" %q", lock.Metadata.Name)
	}
	return nil, fmt.Errorf("reading ImageLock%s: %w", name, errors.New(strings.Join(texts, "; ")))
}

func (ps *problems) validateLock(lock *ImageLock) {
	seen := map[string]int{}
	for i, locked := range lock.Spec.Images {
		at := []any{"spec", "images", i}
		if locked.Image == "" || strings.ContainsAny(locked.Image, " \t\n@") {
			ps.Add(child(at, "image"), "%q is not an image with a tag", locked.Image)
		}
		if first, ok := seen[locked.Image]; ok {
			ps.Add(child(at, "image"), "%s is locked by spec.images[%d] already", locked.Image, first)
		}
		seen[locked.Image] = i
		if !digest.MatchString(locked.Digest) {
			ps.Add(child(at, "digest"), "%q is not a digest, such as sha256:… with 64 hexadecimal digits", locked.Digest)
		}
	}
}

// NewImageLock makes a lock of the images, sorted, that is not sent to a cluster.
func NewImageLock(name string, images []LockedImage) *ImageLock {
	lock := &ImageLock{
		APIVersion: APIVersion, Kind: KindImageLock,
		Metadata: Metadata{Name: name, Annotations: map[string]string{LocalConfig: "true"}},
		Spec:     ImageLockSpec{Images: append([]LockedImage{}, images...)},
	}
	sort.Slice(lock.Spec.Images, func(i, j int) bool { return lock.Spec.Images[i].Image < lock.Spec.Images[j].Image })
	return lock
}

// MarshalImageLock encodes a lock as YAML that ParseImageLock can read. The output is deterministic.
func MarshalImageLock(lock *ImageLock) ([]byte, error) {
	n, err := (&writer{}).nodeForValue(reflect.ValueOf(*lock))
	if err != nil {
		return nil, fmt.Errorf("writing ImageLock %q: %w", lock.Metadata.Name, err)
	}
	var b bytes.Buffer
	encoder := yamlv3.NewEncoder(&b)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	if err := errors.Join(encoder.Encode(n), encoder.Close()); err != nil {
		return nil, fmt.Errorf("writing ImageLock %q: %w", lock.Metadata.Name, err)
	}
	return b.Bytes(), nil
}
