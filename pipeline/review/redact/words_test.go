// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"math/rand/v2"
	"regexp"
	"testing"
)

var (
	kindRule    = regexp.MustCompile(`(?:^|[^0-9A-Za-z])Secret(?:$|[^0-9A-Za-z])`)
	encodedRule = regexp.MustCompile(`\\(?:[xuU]|[^ -~])|binary|!\S*%|(?m:^%TAG)|\x00`)
)

// TestWordsAreFoundAsByTheRules makes texts up of what the rules are about: each finds what its rule finds.
func TestWordsAreFoundAsByTheRules(t *testing.T) {
	parts := []string{"Secret", "Secret", "s", "S", "9", ":", " ", "\n", "\t", "\f", "\v", "\r", `\`, `\`, "x", "u", "U", "n", "~", "\x7f", "é", "\xff", "\xc3", "binary", "binar", "!", "!", "%", "%TAG", "TAG", "\x00", "日"}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	kinds, encoded, steps := 0, 0, 200_000
	for range steps {
		var text []byte
		for range r.IntN(7) {
			text = append(text, parts[r.IntN(len(parts))]...)
		}
		if got, want := hasKind(text), kindRule.Match(text); got != want {
			t.Fatalf("%q has the kind: %v, by the rule %v", text, got, want)
		} else if want {
			kinds++
		}
		if got, want := mayEncode(text), encodedRule.Match(text); got != want {
			t.Fatalf("%q may encode: %v, by the rule %v", text, got, want)
		} else if want {
			encoded++
		}
	}
	if kinds == 0 || encoded == 0 || encoded == steps {
		t.Errorf("of %d texts %d have the kind and %d may encode", steps, kinds, encoded)
	}
}

// BenchmarkMaySaySecret looks through a text as injected workloads have it.
func BenchmarkMaySaySecret(b *testing.B) {
	var text []byte
	for range 200 {
		text = append(text, "        - name: ISTIO_META_APP_CONTAINERS\n          value: \"{\\\"a\\\": b}\" # 100% of it!\n"...)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if maySaySecret(text) {
			b.Fatal("it says so")
		}
	}
}
