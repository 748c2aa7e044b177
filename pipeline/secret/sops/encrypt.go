// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// MinSeed is how long a seed must be in bytes, so that it cannot be guessed.
const MinSeed = 32

// Constants of SOPS' metadata.
const (
	// encryptedKeys are the fields whose values are encrypted, at any depth.
	encryptedKeys = `^(data|stringData)$`
	// modified is always the same, as it is part of what is written.
	modified = "1970-01-01T00:00:00Z"
	// version is the release of SOPS whose format this is.
	version = "3.13.3"
	// metadataKey is where SOPS keeps it.
	metadataKey = "sops"
)

var encryptedRule = lazyregexp.New(encryptedKeys)

// Encrypter encrypts Secrets for recipients. It is safe for concurrent use.
type Encrypter struct {
	key        []byte
	recipients []Recipient
}

// New returns an Encrypter for recipients, at least one. seed is at least MinSeed secret bytes; owner is the owner
// of the Secrets, so that the same Secret of another owner looks different.
func New(seed []byte, owner string, recipients []string) (*Encrypter, error) {
	if len(seed) < MinSeed {
		return nil, fmt.Errorf("the seed has %d bytes, and must have at least %d; openssl rand -hex 32 makes one", len(seed), MinSeed)
	}
	if len(recipients) == 0 {
		return nil, errors.New("there is no recipient to encrypt for; name one that age-keygen prints")
	}
	key, err := hkdf.Key(sha256.New, seed, nil, "prerig.dev/sops/v1\x00"+owner, sha256.Size)
	if err != nil {
		return nil, err
	}
	e := &Encrypter{key: key}
	for _, text := range recipients {
		to, err := ParseRecipient(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(e.recipients, func(other Recipient) bool { return other.text == to.text }) {
			return nil, fmt.Errorf("the recipient %s is named twice", to)
		}
		e.recipients = append(e.recipients, to)
	}
	return e, nil
}

// Encrypt returns a document with all values and comments below the fields data and stringData encrypted, and with
// the metadata of SOPS at its end. Order and other comments are kept. id names the object: the same values of
// another one look different. Errors do not contain values.
func (e *Encrypter) Encrypt(id string, text []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil || len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is not one YAML mapping")
	}
	root := document.Content[0]
	if err := checkNodes(root); err != nil {
		return nil, err
	}
	own, err := e.deriveRandomSeed(id, root)
	if err != nil {
		return nil, err
	}
	derive := func(purpose string, size int) ([]byte, error) { return hkdf.Expand(sha256.New, own, purpose, size) }
	dataKey, err := derive("data key", sha256.Size)
	if err != nil {
		return nil, err
	}
	vectorKey, err := derive("vectors", sha256.Size)
	if err != nil {
		return nil, err
	}
	values, err := newValueCipher(dataKey, func(parts ...string) []byte { return keyedHash(vectorKey, parts...) })
	if err != nil {
		return nil, err
	}
	w := &walker{cipher: values, mac: sha512.New()}
	if err := w.encryptNodeValues(root, nil); err != nil {
		return nil, err
	}
	sum := strings.ToUpper(fmt.Sprintf("%x", w.mac.Sum(nil)))
	metadata, err := e.sopsMetadataNode(dataKey, values.encrypt(sum, "str", modified), derive)
	if err != nil {
		return nil, err
	}
	root.Content = append(root.Content, textNode(metadataKey), metadata)
	return writeNode(&document)
}

// deriveRandomSeed returns what everything is derived from that is random in SOPS: it depends on the seed, the
// recipients, the object and all that is to be encrypted.
func (e *Encrypter) deriveRandomSeed(id string, root *yaml.Node) ([]byte, error) {
	parts := []string{id}
	for _, to := range e.recipients {
		parts = append(parts, to.text)
	}
	w := &walker{seen: func(path []string, content []byte, kind string) {
		parts = append(parts, strings.Join(path, "\x00"), kind, string(content))
	}}
	err := w.encryptNodeValues(root, nil)
	return keyedHash(e.key, parts...), err
}

// keyedHash is an HMAC over parts that cannot run into each other.
func keyedHash(key []byte, parts ...string) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		mac.Write(size[:])
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// sopsMetadataNode returns what SOPS needs to decrypt.
func (e *Encrypter) sopsMetadataNode(dataKey []byte, mac string, derive func(string, int) ([]byte, error)) (*yaml.Node, error) {
	recipients := &yaml.Node{Kind: yaml.SequenceNode}
	for _, to := range e.recipients {
		file, err := ageFile(to, dataKey, func(purpose string, size int) ([]byte, error) { return derive("age "+to.text+" "+purpose, size) })
		if err != nil {
			return nil, err
		}
		recipients.Content = append(recipients.Content,
			mappingNode("recipient", textNode(to.text), "enc", textNode(file)))
	}
	return mappingNode("age", recipients, "lastmodified", textNode(modified), "mac", textNode(mac), "encrypted_regex",
		textNode(encryptedKeys),
		"version", textNode(version)), nil
}

func textNode(text string) *yaml.Node {
	node := &yaml.Node{}
	node.SetString(text)
	return node
}

func mappingNode(pairs ...any) *yaml.Node {
	node := &yaml.Node{Kind: yaml.MappingNode}
	for _, one := range pairs {
		if key, ok := one.(string); ok {
			node.Content = append(node.Content, textNode(key))
		} else if value, ok := one.(*yaml.Node); ok {
			node.Content = append(node.Content, value)
		}
	}
	return node
}

func writeNode(document *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	err := errors.Join(encoder.Encode(document), encoder.Close())
	return out.Bytes(), err
}

// walker walks a document in SOPS' order (walkBranch in sops.go), either to encrypt or, with seen, to inspect.
type walker struct {
	cipher *valueCipher
	mac    hash.Hash
	seen   func(path []string, content []byte, kind string)
}

func (w *walker) encryptNodeValues(node *yaml.Node, path []string) error {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			w.encryptComments(key, path)
			below := append(slices.Clip(path), key.Value)
			if err := w.encryptNodeValues(value, below); err != nil {
				return err
			}
			if value.Kind == yaml.ScalarNode {
				w.encryptComments(value, path)
			} else {
				w.encryptComments(value, below)
			}
		}
	case yaml.SequenceNode:
		for _, element := range node.Content {
			if err := w.encryptNodeValues(element, path); err != nil {
				return err
			}
			w.encryptComments(element, path)
		}
	case yaml.ScalarNode:
		return w.encryptScalar(node, path)
	}
	return nil
}

func isEncrypted(path []string) bool { return slices.ContainsFunc(path, encryptedRule.MatchString) }

// additionalAuthenticatedData is what SOPS binds a value at a path to.
func additionalAuthenticatedData(path []string) string { return strings.Join(path, ":") + ":" }

func (w *walker) encryptScalar(node *yaml.Node, path []string) error {
	content, kind, err := scalarBytes(node)
	if err != nil || content == nil {
		return err
	}
	if w.mac != nil {
		w.mac.Write(content)
	}
	if !isEncrypted(path) {
		return nil
	}
	if w.seen != nil {
		w.seen(path, content, kind)
		return nil
	}
	if kind != "str" || len(content) > 0 { // SOPS leaves an empty text as it is
		node.SetString(w.cipher.encrypt(string(content), kind, additionalAuthenticatedData(path)))
		node.Style = 0
	}
	return nil
}

// encryptComments encrypts the comments of a node, which can reveal as much as its value.
func (w *walker) encryptComments(node *yaml.Node, path []string) {
	if !isEncrypted(path) {
		return
	}
	for _, comment := range []*string{&node.HeadComment, &node.LineComment, &node.FootComment} {
		lines := strings.Split(*comment, "\n")
		for i, line := range lines {
			text, ok := strings.CutPrefix(line, "#")
			switch {
			case !ok || text == "":
			case w.seen != nil:
				w.seen(path, []byte(text), "comment")
			default:
				lines[i] = "#" + w.cipher.encrypt(text, "comment", additionalAuthenticatedData(path))
			}
		}
		*comment = strings.Join(lines, "\n")
	}
}

// checkNodes refuses what SOPS reads otherwise than Kubernetes, and what it would leave readable.
func checkNodes(node *yaml.Node) error {
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		return fmt.Errorf("line %d has an anchor or an alias", node.Line)
	}
	if node.Kind == yaml.MappingNode {
		for i := 0; i < len(node.Content); i += 2 {
			if key := node.Content[i]; key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" {
				return fmt.Errorf("line %d has a key that is not a text", key.Line)
			}
		}
	}
	for _, below := range node.Content {
		if err := checkNodes(below); err != nil {
			return err
		}
	}
	return nil
}
