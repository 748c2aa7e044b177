// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"fmt"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// nonceSize is that of SOPS (aes/cipher.go), which is not the usual one of GCM.
const nonceSize = 32

// seal is the form of an encrypted value.
const (
	sealStart = "ENC[AES256_GCM,"
	sealEnd   = "]"
)

// valueCipher encrypts single values. Its vectors are derived from what is encrypted.
type valueCipher struct {
	gcm    cipher.AEAD
	vector func(parts ...string) []byte
}

func newValueCipher(key []byte, vector func(parts ...string) []byte) (*valueCipher, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCMWithNonceSize(block, nonceSize)
	return &valueCipher{gcm, vector}, err
}

// encrypt returns a value as SOPS writes it. kind is SOPS' name of its type, bound what the value is bound to: its
// path.
func (c *valueCipher) encrypt(value, kind, bound string) string {
	vector := c.vector(kind, bound, value)
	sealed := c.gcm.Seal(nil, vector, []byte(value), []byte(bound))
	at := len(sealed) - c.gcm.Overhead()
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%sdata:%s,iv:%s,tag:%s,type:%s%s", sealStart, encode(sealed[:at]), encode(vector),
		encode(sealed[at:]), kind, sealEnd)
}

// scalarBytes returns SOPS' representation of a scalar (ToBytes in sops.go): its bytes, and the name of its type.
// The bytes of null are nil.
func scalarBytes(node *yaml.Node) (content []byte, kind string, err error) {
	var value any
	if err := node.Decode(&value); err != nil {
		return nil, "", err
	}
	switch value := value.(type) {
	case nil:
		return nil, "", nil
	case string:
		return []byte(value), "str", nil
	case []byte:
		return value, "str", nil
	case int:
		return []byte(strconv.Itoa(value)), "int", nil
	case float64:
		return strconv.AppendFloat(nil, value, 'f', -1, 64), "float", nil
	case bool:
		return []byte(map[bool]string{true: "True", false: "False"}[value]), "bool", nil
	case time.Time:
		content, err = value.MarshalText()
		return content, "time", err
	}
	return nil, "", fmt.Errorf("line %d holds a number that SOPS cannot read; quote it", node.Line)
}
