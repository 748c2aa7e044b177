// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command decryptor decrypts an object as Flux' kustomize-controller does before it applies it: it reads the object as YAML from standard
// input and writes it as JSON to standard output. The environment variable FLUX_AGE_KEY is the value of the key identity.agekey of the
// Secret that spec.decryption.secretRef of a Kustomization names. With -version it writes the version of kustomize-controller and ends.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/kustomize-controller/internal/decryptor"
	"github.com/fluxcd/pkg/apis/meta"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/kustomize/api/provider"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "-version" {
		fmt.Println(version())
		return
	}
	if err := decrypt(context.Background(), os.Stdin, os.Stdout, os.Getenv("FLUX_AGE_KEY")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == "github.com/fluxcd/kustomize-controller" {
			return dep.Version
		}
	}
	return "unknown"
}

func decrypt(ctx context.Context, in io.Reader, out io.Writer, key string) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	keys := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "keys", Namespace: "flux-system"}, Data: map[string][]byte{"identity.agekey": []byte(key)}}
	kustomization := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "flux-system"}}
	kustomization.Spec.Decryption = &kustomizev1.Decryption{Provider: decryptor.DecryptionProviderSOPS, SecretRef: &meta.LocalObjectReference{Name: keys.Name}}
	d, cleanup, err := decryptor.New(fake.NewClientBuilder().WithObjects(keys).Build(), kustomization)
	if err != nil {
		return err
	}
	defer cleanup()
	if err := d.ImportKeys(ctx); err != nil {
		return err
	}
	object, err := provider.NewDefaultDepProvider().GetResourceFactory().FromBytes(text)
	if err != nil {
		return err
	}
	decrypted, err := d.DecryptResource(object)
	if err != nil {
		return err
	}
	if decrypted == nil {
		return errors.New("the decryptor leaves the object as it is")
	}
	json, err := decrypted.MarshalJSON()
	if err != nil {
		return err
	}
	_, err = out.Write(json)
	return err
}
