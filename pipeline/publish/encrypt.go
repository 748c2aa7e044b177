// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/secret/sops"
)

// seedKey is the key of the secret that encryption.secretRef names.
const seedKey = "seed"

// Writer returns what writes the result of a pipeline for an entry of its spec.publish, with the seed read where
// Secrets are to be encrypted.
func (t *Targets) Writer(ctx context.Context, p *v1alpha1.RenderPipeline, to v1alpha1.Publish) (*Writer, error) {
	w := &Writer{}
	w.layout, w.style = to.Format()
	if to.Secrets != v1alpha1.SecretsEncrypt || to.Encryption == nil {
		return w, nil
	}
	ref := to.Encryption.SecretRef
	keys, err := secret.Read(ctx, t.secrets, p.Metadata.Namespace, &ref, secret.Purpose{})
	if err != nil {
		return nil, fmt.Errorf("encrypting Secrets: %w", err)
	}
	seed := bytes.TrimSpace(keys[seedKey])
	if len(seed) == 0 {
		return nil, fmt.Errorf("encrypting Secrets: the secret %s has no key %s; openssl rand -hex 32 makes one", ref.Name, seedKey)
	}
	if w.encrypter, err = sops.New(seed, p.Key(), to.Encryption.Age); err != nil {
		return nil, fmt.Errorf("encrypting Secrets with the secret %s: %w", ref.Name, err)
	}
	return w, nil
}

// lastAppliedAnnotation holds the whole object once more, where kubectl apply has made it.
const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// encryptSecret returns the text of a Secret with its values encrypted. Values repeated in an annotation would stay
// readable, and a partly encrypted Secret cannot be decrypted.
func (w *Writer) encryptSecret(object render.Object) ([]byte, error) {
	value, err := manifest.Decode(object.YAML)
	if err != nil {
		return nil, errors.New("it cannot be read as YAML")
	}
	root, _ := value.(map[string]any)
	if _, some := root["sops"]; some {
		return nil, errors.New("SOPS has encrypted some of them, and others can be read; encrypt all of them, or none")
	}
	metadata, _ := root["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	if text, _ := annotations[lastAppliedAnnotation].(string); text != "" {
		return nil, fmt.Errorf("the annotation %s shows them; take it out of the source", lastAppliedAnnotation)
	}
	for _, field := range []string{"data", "stringData"} {
		values, isMap := root[field].(map[string]any)
		if !isMap && root[field] != nil {
			return nil, fmt.Errorf("%s is not a mapping of keys to texts", field)
		}
		for key, one := range values {
			if _, isText := one.(string); !isText && one != nil {
				return nil, fmt.Errorf("%s.%s is not a text; quote it", field, key)
			}
		}
	}
	if w.style == v1alpha1.StylePreserve {
		if text, err := w.encrypter.Encrypt(object.ID(), object.YAML); err == nil {
			return text, nil
		}
	}
	return w.encrypter.Encrypt(object.ID(), manifest.Marshal(value)) // which has no anchors, and no keys that are not texts
}
