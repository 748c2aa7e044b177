// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sops_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestFluxDecrypts has the decryptor of Flux' kustomize-controller decrypt what is published. It reads objects as kustomize does, and
// what is encrypted as JSON, in which keys have another order and comments are gone; it does not compare the MAC.
func TestFluxDecrypts(t *testing.T) {
	program, err := filepath.Abs("../../../dist/upstream/flux-decryptor")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is not built: make flux-decryptor", program)
	}
	version, err := exec.CommandContext(t.Context(), program, "-version").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("kustomize-controller %s", bytes.TrimSpace(version))
	first, second := newIdentity(t), newIdentity(t)
	decrypt := func(t *testing.T, text string, identity *age.X25519Identity) ([]byte, error) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Stdin, cmd.Env = strings.NewReader(text), append(os.Environ(), "FLUX_AGE_KEY="+identity.String())
		var out, problems bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &problems
		if err := cmd.Run(); err != nil {
			return nil, errors.New(problems.String())
		}
		return out.Bytes(), nil
	}
	for name, text := range documents {
		t.Run(name, func(t *testing.T) {
			out := encrypt(t, seed, "team/shop", "v1 Secret db", text, first, second)
			for _, identity := range []*age.X25519Identity{first, second} {
				plain, err := decrypt(t, out, identity)
				if err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				var want, got any
				if err := errors.Join(yaml.Unmarshal([]byte(text), &want), json.Unmarshal(plain, &got)); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			}
			if _, err := decrypt(t, out, newIdentity(t)); err == nil {
				t.Error("anybody can decrypt it")
			}
		})
	}
}
