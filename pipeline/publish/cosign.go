// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/nacl/secretbox"
	"golang.org/x/crypto/scrypt"
)

// Signatures of artifacts, as cosign makes them with a key and Flux verifies them (spec.verify.provider: cosign):
// for the digest sha256:abc, the tag sha256-abc.sig of the same repository has one layer per signature, whose
// content names the digest and whose annotation is the signature of the content. No data is sent to a transparency
// log.

// Keys of a signing secret, as cosign generate-key-pair k8s:// names them.
const (
	KeyCosign         = "cosign.key"
	KeyCosignPassword = "cosign.password"
)

const (
	signatureMediaType  = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation = "dev.cosignproject.cosign/signature"
	signatureType       = "cosign container image signature"
	maxSignatures       = 100
	maxPayload          = 64 << 10
)

// ArtifactSigner signs artifacts and statements with one key.
type ArtifactSigner struct{ key *ecdsa.PrivateKey }

// NewArtifactSigner reads the key in a secret. Errors never contain parts of the key.
func NewArtifactSigner(secret map[string][]byte) (*ArtifactSigner, error) {
	block, _ := pem.Decode(secret[KeyCosign])
	if block == nil {
		return nil, fmt.Errorf("the signing secret has no %s that is a key of cosign generate-key-pair", KeyCosign)
	}
	der := block.Bytes
	switch block.Type {
	case "ENCRYPTED SIGSTORE PRIVATE KEY", "ENCRYPTED COSIGN PRIVATE KEY":
		var err error
		if der, err = openCosignKey(block.Bytes, secret[KeyCosignPassword]); err != nil {
			return nil, fmt.Errorf("opening the signing secret's %s with its %s: %w", KeyCosign, KeyCosignPassword, err)
		}
	case "PRIVATE KEY":
	default:
		return nil, fmt.Errorf("the signing secret's %s is a %q, but must be a private key of cosign generate-key-pair", KeyCosign, block.Type)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("the signing secret's %s is not an ECDSA key, as cosign generate-key-pair makes them", KeyCosign)
	}
	return &ArtifactSigner{key}, nil
}

// openCosignKey decrypts a private key: scrypt makes a key of the password, which opens a box of NaCl.
func openCosignKey(text, password []byte) ([]byte, error) {
	var sealed struct {
		KDF struct {
			Name   string `json:"name"`
			Params struct {
				N int `json:"N"`
				R int `json:"r"`
				P int `json:"p"`
			} `json:"params"`
			Salt []byte `json:"salt"`
		} `json:"kdf"`
		Cipher struct {
			Name  string `json:"name"`
			Nonce []byte `json:"nonce"`
		} `json:"cipher"`
		Ciphertext []byte `json:"ciphertext"`
	}
	if err := json.Unmarshal(text, &sealed); err != nil {
		return nil, errors.New("it is not written as cosign writes keys")
	}
	if sealed.KDF.Name != "scrypt" || sealed.Cipher.Name != "nacl/secretbox" || len(sealed.Cipher.Nonce) != 24 {
		return nil, errors.New("it is encrypted in another way than cosign does")
	}
	// cosign uses 65536, 8, 1, which needs 64 MB; a key that needs more than eight times as much was not made by
	// cosign.
	p := sealed.KDF.Params
	if p.N > 1<<19 || p.R > 8 || p.P > 4 {
		return nil, errors.New("opening it would take too much memory")
	}
	var key [32]byte
	derived, err := scrypt.Key(password, sealed.KDF.Salt, p.N, p.R, p.P, len(key))
	if err != nil {
		return nil, errors.New("it is encrypted in another way than cosign does")
	}
	copy(key[:], derived)
	opened, ok := secretbox.Open(nil, sealed.Ciphertext, (*[24]byte)(sealed.Cipher.Nonce), &key)
	if !ok {
		return nil, errors.New("the password is wrong")
	}
	return opened, nil
}

// signedPayload is what is signed: the digest, and which repository it was signed for.
type signedPayload struct {
	Critical struct {
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Type string `json:"type"`
	} `json:"critical"`
	Optional map[string]any `json:"optional"`
}

// signDigest ensures that the digest has a signature of ours, beside those of others. It reports whether it made
// one.
func (a *Artifact) signDigest(ctx context.Context, digest v1.Hash) (bool, error) {
	tag := a.Registry.Repository.Tag(strings.Replace(digest.String(), ":", "-", 1) + ".sig")
	signatures, err := remote.Image(tag, a.Registry.Options(remote.WithContext(ctx))...)
	var answer *transport.Error
	switch {
	case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
		signatures = mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1),
			types.OCIConfigJSON)
	case err != nil:
		return false, fmt.Errorf("signing %s: %w", digest, err)
	default:
		if err := checkConfigSize(signatures); err != nil {
			return false, fmt.Errorf("signing %s: reading %s: %w", digest, tag, err)
		}
		ours, err := a.Signer.hasSignature(signatures, digest)
		if err != nil {
			return false, fmt.Errorf("signing %s: reading %s: %w", digest, tag, err)
		}
		if ours {
			return false, nil
		}
	}
	addition, err := a.Signer.signatureLayer(a.Registry.Repository.Name(), digest)
	if err != nil {
		return false, fmt.Errorf("signing %s: %w", digest, err)
	}
	if signatures, err = mutate.Append(signatures, addition); err != nil {
		return false, fmt.Errorf("signing %s: %w", digest, err)
	}
	if err := remote.Write(tag, signatures, a.Registry.Options(remote.WithContext(ctx))...); err != nil {
		return false, fmt.Errorf("signing %s: writing %s: %w", digest, tag, err)
	}
	return true, nil
}

// signatureLayer makes a signature. It depends only on the key and the signed content (RFC 6979), so that a retry
// after a lost response writes the same bytes.
func (s *ArtifactSigner) signatureLayer(repository string, digest v1.Hash) (mutate.Addendum, error) {
	var content signedPayload
	content.Critical.Identity.Reference, content.Critical.Image.Digest, content.Critical.Type = repository, digest.String(), signatureType
	payload, err := json.Marshal(content)
	if err != nil {
		return mutate.Addendum{}, err
	}
	sum := sha256.Sum256(payload)
	signature, err := s.key.Sign(nil, sum[:], crypto.SHA256)
	if err != nil {
		return mutate.Addendum{}, err
	}
	return mutate.Addendum{
		Layer: static.NewLayer(payload, signatureMediaType), MediaType: signatureMediaType,
		Annotations: map[string]string{signatureAnnotation: base64.StdEncoding.EncodeToString(signature)},
	}, nil
}

// hasSignature looks for a signature of this key.
func (s *ArtifactSigner) hasSignature(signatures v1.Image, digest v1.Hash) (bool, error) {
	manifest, err := signatures.Manifest()
	if err != nil {
		return false, err
	}
	if len(manifest.Layers) > maxSignatures {
		return false, fmt.Errorf("it has more than %d signatures", maxSignatures)
	}
	for _, layer := range manifest.Layers {
		signature, err := base64.StdEncoding.DecodeString(layer.Annotations[signatureAnnotation])
		if err != nil || len(signature) == 0 || layer.Size > maxPayload {
			continue
		}
		payload, err := contentOf(signatures, layer.Digest, maxPayload)
		if err != nil {
			return false, err
		}
		var content signedPayload
		sum := sha256.Sum256(payload)
		if json.Unmarshal(payload, &content) == nil && content.Critical.Image.Digest == digest.String() &&
			content.Critical.Type == signatureType &&
			ecdsa.VerifyASN1(&s.key.PublicKey, sum[:], signature) {
			return true, nil
		}
	}
	return false, nil
}

// checkConfigSize rejects an image with a configuration that is not one of signatures. The library reads it whole to
// append to the image, of whatever size the manifest declares, and to its end where that is negative.
func checkConfigSize(image v1.Image) error {
	manifest, err := image.Manifest()
	if err != nil {
		return err
	}
	if manifest.Config.Size < 0 || manifest.Config.Size > maxPayload {
		return fmt.Errorf("its configuration is not one of at most %d bytes", maxPayload)
	}
	return nil
}

// contentOf returns the first bytes of a layer, up to a limit.
func contentOf(image v1.Image, digest v1.Hash, limit int64) ([]byte, error) {
	layer, err := image.LayerByDigest(digest)
	if err != nil {
		return nil, err
	}
	r, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(io.LimitReader(r, limit))
}
