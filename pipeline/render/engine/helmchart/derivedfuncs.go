// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"bytes"
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"text/template"
	"time"

	"github.com/prerig/prerig/pipeline/render/derive"
)

// The functions have the arguments, results and texts of sprig's (v3.3.0: strings.go, numeric.go, crypto.go), and the number of the
// call's place in front.

// Alphabets of sprig's functions (goutils v1.1.1, cryptorandomstringutils.go).
const (
	digits  = "0123456789"
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// printable are the characters from the space to the tilde.
var printable = func() string {
	var out strings.Builder
	for c := byte(' '); c <= '~'; c++ {
		out.WriteByte(c)
	}
	return out.String()
}()

func (c *derivedCalls) textFunctions() template.FuncMap {
	out := template.FuncMap{
		"randBytes": func(at string, length int) (string, error) {
			if length < 0 {
				return "", fmt.Errorf("%d is no number of bytes", length)
			}
			one, err := c.begin(at, "randBytes", length)
			if err != nil {
				return "", err
			}
			return c.note(base64.StdEncoding.EncodeToString(one.stream().Bytes(length))), nil
		},
		"randInt": func(at string, low, high int) (int, error) {
			if high <= low {
				return 0, fmt.Errorf("there is no number from %d to less than %d", low, high)
			}
			one, err := c.begin(at, "randInt", low, high)
			if err != nil {
				return 0, err
			}
			return low + int(one.stream().Below(uint64(high)-uint64(low))), nil
		},
		"shuffle": func(at, text string) (string, error) {
			one, err := c.begin(at, "shuffle", text)
			if err != nil {
				return "", err
			}
			out := []rune(text)
			one.stream().Shuffle(out)
			return c.note(string(out)), nil
		},
		"uuidv4": func(at string) (string, error) {
			one, err := c.begin(at, "uuidv4")
			if err != nil {
				return "", err
			}
			id := one.stream().Bytes(16)
			id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80 // RFC 9562, 5.4
			return c.note(fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])), nil
		},
	}
	for name, alphabet := range map[string]string{"randAlphaNum": digits + letters, "randAlpha": letters, "randNumeric": digits, "randAscii": printable} {
		out[name] = func(at string, length int) (string, error) {
			one, err := c.begin(at, name, length)
			if err != nil {
				return "", err
			}
			return c.note(one.stream().Text(alphabet, length)), nil
		}
	}
	return out
}

func (c *derivedCalls) keyFunctions() template.FuncMap {
	bcrypt := func(one call, password string) string {
		hash, err := one.stream().Bcrypt(password)
		if err != nil {
			return fmt.Sprintf("failed to encrypt string with bcrypt: %s", err)
		}
		return c.note(hash)
	}
	return template.FuncMap{
		"genPrivateKey": func(at, kind string) (string, error) {
			one, err := c.begin(at, "genPrivateKey", kind)
			if err != nil {
				return "", err
			}
			return one.privateKey(kind)
		},
		"bcrypt": func(at, password string) (string, error) {
			one, err := c.begin(at, "bcrypt", password)
			return bcrypt(one, password), err
		},
		"htpasswd": func(at, user, password string) (string, error) {
			if strings.Contains(user, ":") {
				return "invalid username: " + user, nil
			}
			one, err := c.begin(at, "htpasswd", user, password)
			return user + ":" + bcrypt(one, password), err
		},
		"encryptAES": func(at, password, text string) (string, error) {
			if text == "" {
				return "", nil
			}
			one, err := c.begin(at, "encryptAES", password, text)
			if err != nil {
				return "", err
			}
			encrypted, err := encryptAES(one.stream().Bytes(aes.BlockSize), password, text)
			return c.note(encrypted), err
		},
	}
}

// encryptAES returns what sprig's decryptAES reads: the start, and a text that is filled up to whole blocks, by AES-256 in CBC mode.
func encryptAES(start []byte, password, text string) (string, error) {
	key := make([]byte, 32)
	copy(key, password)
	block, err := aes.NewCipher(key)
	if err != nil {
		return "", err
	}
	missing := aes.BlockSize - len(text)%aes.BlockSize
	plain := append([]byte(text), bytes.Repeat([]byte{byte(missing)}, missing)...)
	cipher.NewCBCEncrypter(block, start).CryptBlocks(plain, plain)
	return base64.StdEncoding.EncodeToString(append(start, plain...)), nil
}

// Lengths of the keys that sprig makes.
const (
	bitsOfKey         = 4096
	bitsOfCertificate = 2048
)

// privateKey returns the text of a key of a kind.
func (c call) privateKey(kind string) (string, error) {
	switch kind {
	case "", "rsa":
		return c.rsaKey(bitsOfKey)
	case "dsa":
		return c.remembered("dsa", func() (crypto.PrivateKey, error) { return c.stream("dsa").DSA(), nil })
	case "ecdsa":
		return c.remembered("ecdsa", func() (crypto.PrivateKey, error) { return c.stream("ecdsa").ECDSA(), nil })
	case "ed25519":
		return c.remembered("ed25519", func() (crypto.PrivateKey, error) { return c.stream("ed25519").Ed25519(), nil })
	}
	return "Unknown type " + kind, nil
}

func (c call) rsaKey(bits int) (string, error) {
	return c.remembered(fmt.Sprint("rsa", bits), func() (crypto.PrivateKey, error) { return c.stream("rsa", fmt.Sprint(bits)).RSA(bits) })
}

// remembered returns the text of a key that is made once.
func (c call) remembered(kind string, create func() (crypto.PrivateKey, error)) (string, error) {
	id := digest(append(c.parts, kind)...)
	if text, ok := c.derivation.keys[id]; ok {
		return text, nil
	}
	key, err := create()
	if err != nil {
		return "", err
	}
	text, err := derive.EncodeKey(key)
	if err != nil {
		return "", err
	}
	c.derivation.keys[id] = text
	return c.derivation.note(text), nil
}

// certificateFunctions need a time. The key of a certificate does not depend on it, nor on the certificate of who signs: moving the
// time renews certificates, and keeps their keys.
func (c *derivedCalls) certificateFunctions() template.FuncMap {
	return template.FuncMap{
		"genCA": func(at, name string, days int) (certificate, error) {
			return c.certificate(at, "genCA", "", nil, derive.Certificate{CommonName: name, Days: days, Authority: true}, nil, nil)
		},
		"genCAWithKey": func(at, name string, days int, key string) (certificate, error) {
			return c.certificate(at, "genCAWithKey", key, nil, derive.Certificate{CommonName: name, Days: days, Authority: true}, nil, nil)
		},
		"genSelfSignedCert": func(at, name string, ips, names []any, days int) (certificate, error) {
			return c.certificate(at, "genSelfSignedCert", "", nil, derive.Certificate{CommonName: name, Days: days}, ips, names)
		},
		"genSelfSignedCertWithKey": func(at, name string, ips, names []any, days int, key string) (certificate, error) {
			return c.certificate(at, "genSelfSignedCertWithKey", key, nil, derive.Certificate{CommonName: name, Days: days}, ips, names)
		},
		"genSignedCert": func(at, name string, ips, names []any, days int, ca any) (certificate, error) {
			signer, err := signerOf(ca)
			if err != nil {
				return certificate{}, err
			}
			return c.certificate(at, "genSignedCert", "", signer, derive.Certificate{CommonName: name, Days: days}, ips, names)
		},
		"genSignedCertWithKey": func(at, name string, ips, names []any, days int, ca any, key string) (certificate, error) {
			signer, err := signerOf(ca)
			if err != nil {
				return certificate{}, err
			}
			return c.certificate(at, "genSignedCertWithKey", key, signer, derive.Certificate{CommonName: name, Days: days}, ips, names)
		},
	}
}

// certificate makes one; without a key, with a key of its own.
func (c *derivedCalls) certificate(at, function, key string, by *derive.Signer, what derive.Certificate, ips, names []any) (certificate, error) {
	args := []any{what.CommonName, ips, names, what.Days, key}
	if by != nil {
		args = append(args, by.Key)
	}
	one, err := c.begin(at, function, args...)
	if err != nil {
		return certificate{}, err
	}
	if what.IPs, err = addresses(ips); err != nil {
		return certificate{}, err
	}
	if what.Names, err = hostNames(names); err != nil {
		return certificate{}, err
	}
	if key == "" && !strings.HasSuffix(function, "WithKey") {
		if key, err = one.rsaKey(bitsOfCertificate); err != nil {
			return certificate{}, err
		}
	}
	signer, err := derive.DecodeKey(key)
	if err != nil {
		return certificate{}, err
	}
	what.From = *c.time
	text, err := what.Sign(one.stream("serial", c.time.Format(time.RFC3339Nano)), signer, by)
	return certificate{text, key}, err
}

// signerOf returns what a template has of an authority: sprig's value or ours.
func signerOf(ca any) (*derive.Signer, error) {
	value := reflect.ValueOf(ca)
	if value.Kind() == reflect.Struct {
		cert, key := value.FieldByName("Cert"), value.FieldByName("Key")
		if cert.Kind() == reflect.String && key.Kind() == reflect.String {
			return &derive.Signer{Certificate: cert.String(), Key: key.String()}, nil
		}
	}
	return nil, errors.New("the last argument is no certificate; genCA or buildCustomCert makes one")
}

func addresses(list []any) ([]net.IP, error) {
	var out []net.IP
	for _, one := range list {
		text, ok := one.(string)
		if !ok {
			return nil, fmt.Errorf("error parsing ip: %v is not a string", one)
		}
		ip := net.ParseIP(text)
		if ip == nil {
			return nil, fmt.Errorf("error parsing ip: %s", text)
		}
		out = append(out, ip)
	}
	return out, nil
}

func hostNames(list []any) ([]string, error) {
	var out []string
	for _, one := range list {
		text, ok := one.(string)
		if !ok {
			return nil, fmt.Errorf("error processing alternate dns name: %v is not a string", one)
		}
		out = append(out, text)
	}
	return out, nil
}
