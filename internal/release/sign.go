// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"os"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protodsse "github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// signer signs with an ECDSA key as cosign does, without a certificate or a log. A signature is a function of key and
// content (RFC 6979), so that a signed release can be repeated too.
type signer struct {
	key    *ecdsa.PrivateKey
	public []byte // PEM
	hint   string // which key it is, in bundles
}

func readSigner(file, password string) (*signer, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the key RELEASE_KEY: %w", err)
	}
	private, err := cryptoutils.UnmarshalPEMToPrivateKey(text, func(bool) ([]byte, error) { return []byte(password), nil })
	if err != nil {
		return nil, fmt.Errorf("reading the key %s: %w; it can be ECDSA P-256 in PEM, or a cosign.key with its password in COSIGN_PASSWORD", file, err)
	}
	key, ok := private.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("reading the key %s: it is no ECDSA key on P-256, as cosign generate-key-pair makes it", file)
	}
	public, err := cryptoutils.MarshalPublicKeyToPEM(key.Public())
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(der)
	return &signer{key: key, public: public, hint: base64.StdEncoding.EncodeToString(sum[:])}, nil
}

func (s *signer) sign(content []byte) ([]byte, error) {
	sum := sha256.Sum256(content)
	return s.key.Sign(nil, sum[:], crypto.SHA256) // without randomness it is deterministic
}

// newBundle returns a Sigstore bundle without what is signed.
func (s *signer) newBundle() *protobundle.Bundle {
	return &protobundle.Bundle{
		MediaType: "application/vnd.dev.sigstore.bundle.v0.3+json",
		VerificationMaterial: &protobundle.VerificationMaterial{
			Content: &protobundle.VerificationMaterial_PublicKey{PublicKey: &protocommon.PublicKeyIdentifier{Hint: s.hint}},
		},
	}
}

// signBlob returns a bundle as cosign sign-blob --bundle makes it.
func (s *signer) signBlob(content []byte) ([]byte, error) {
	signature, err := s.sign(content)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	bundle := s.newBundle()
	bundle.Content = &protobundle.Bundle_MessageSignature{MessageSignature: &protocommon.MessageSignature{
		MessageDigest: &protocommon.HashOutput{Algorithm: protocommon.HashAlgorithm_SHA2_256, Digest: sum[:]},
		Signature:     signature,
	}}
	return marshalProto(bundle)
}

// signStatement returns a bundle with a DSSE envelope as cosign attest-blob --bundle makes it.
func (s *signer) signStatement(payload []byte) ([]byte, error) {
	signature, err := s.sign(dsse.PAE(statementType, payload))
	if err != nil {
		return nil, err
	}
	bundle := s.newBundle()
	bundle.Content = &protobundle.Bundle_DsseEnvelope{DsseEnvelope: &protodsse.Envelope{
		Payload: payload, PayloadType: statementType, Signatures: []*protodsse.Signature{{Sig: signature}},
	}}
	return marshalProto(bundle)
}

// marshalProto returns JSON that is always the same: protojson puts spaces in by the build of the program, so they are
// taken out.
func marshalProto(message proto.Message) ([]byte, error) {
	text, err := protojson.Marshal(message)
	if err != nil {
		return nil, err
	}
	return compactJSON(text)
}

// signImage writes the signature of an image as cosign keeps it in registries, as a layout of its own.
func (r *release) signImage(i image) error {
	payload := fmt.Appendf(nil, `{"critical":{"identity":{"docker-reference":%q},"image":{"docker-manifest-digest":%q},"type":"cosign container image signature"},"optional":null}`,
		i.name, i.digest)
	signature, err := r.signer.sign(payload)
	if err != nil {
		return err
	}
	signed, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), mutate.Addendum{
		Layer:       static.NewLayer(payload, "application/vnd.dev.cosign.simplesigning.v1+json"),
		Annotations: map[string]string{"dev.cosignproject.cosign/signature": base64.StdEncoding.EncodeToString(signature)},
	})
	if err != nil {
		return err
	}
	return r.writeLayout(signatureFile(i.file), i.name+":"+signatureTag(i.digest), signed)
}

// signatureTag is the tag under which cosign looks for the signatures of an image.
func signatureTag(digest v1.Hash) string { return digest.Algorithm + "-" + digest.Hex + ".sig" }

// signatureFile is the archive with the signature of the image in another archive.
func signatureFile(image string) string { return strings.TrimSuffix(image, ".tar") + ".sig.tar" }
