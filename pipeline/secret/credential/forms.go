// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package credential

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// form is how credentials of a kind look.
type form struct {
	// name describes the credential, mark is a substring of every text that contains one.
	name, mark string
	// pattern finds candidates, isReal refuses those that are none, by the groups of the pattern.
	pattern func() *regexp.Regexp
	isReal  func(match []string) bool
}

// forms are those that vendors document, and that are credentials wherever they occur.
var forms = []form{
	{"a private key", "PRIVATE KEY", compileOnFirstUse(`-----BEGIN ((?:[A-Z]+ )*)PRIVATE KEY(?: BLOCK)?-----((?:\s|\\[nr]|[A-Za-z0-9+/=])*)`), isPrivateKey},
	{"an access key of AWS", "AKIA", compileOnFirstUse(`\b(AKIA[A-Z2-7]{16})\b`), isVaried},
	{"a token of GitHub", "ghp_", compileOnFirstUse(`\b(ghp_[A-Za-z0-9]{36})\b`), isVaried},
	{"a token of GitHub", "gho_", compileOnFirstUse(`\b(gho_[A-Za-z0-9]{36})\b`), isVaried},
	{"a token of GitHub", "ghs_", compileOnFirstUse(`\b(ghs_[A-Za-z0-9]{36})\b`), isVaried},
	{"a token of GitHub", "github_pat_", compileOnFirstUse(`\b(github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b`),
		isVaried},
	{"a token of GitLab", "glpat-", compileOnFirstUse(`\b(glpat-[A-Za-z0-9_-]{20,})`), isVaried},
	{"a token of Slack", "xox", compileOnFirstUse(`\b(xox[abprs]-[0-9]{8,}-[A-Za-z0-9-]{16,})`), isVaried},
	{"a webhook of Slack", "hooks.slack.com/services/",
		compileOnFirstUse(`hooks\.slack\.com/services/(T[A-Z0-9]{8,}/B[A-Z0-9]{8,}/[A-Za-z0-9]{24})`), isVaried},
	{"a key of Google's APIs", "AIza", compileOnFirstUse(`\b(AIza[A-Za-z0-9_-]{35})\b`), isVaried},
	{"a key of Stripe", "k_live_", compileOnFirstUse(`\b([sr]k_live_[A-Za-z0-9]{24,})\b`), isVaried},
	{"a token of npm", "npm_", compileOnFirstUse(`\b(npm_[A-Za-z0-9]{36})\b`), isVaried},
	{"a key of SendGrid", "SG.", compileOnFirstUse(`\b(SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43})\b`), isVaried},
	{"a token of Vault", "hvs.", compileOnFirstUse(`\b(hvs\.[A-Za-z0-9_-]{24,})`), isVaried},
	{"a private key of age", "AGE-SECRET-KEY-1", compileOnFirstUse(`\b(AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58})\b`), isVaried},
	{"a password in a URL", urlMark, compileOnFirstUse(`\b[a-z][a-z0-9+.-]*://[^\s:/@"'<>\\]*:([^\s/@"'\\]+)@[A-Za-z0-9_.\[-]`), isPassword},
	{"a registry's password", `"auth`, compileOnFirstUse(`"auth"\s*:\s*"([A-Za-z0-9+/=]+)"`), isRegistryAuth},
}

func compileOnFirstUse(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// mayHold reports whether a text can hold a credential, without much work: most do not.
func mayHold(text string) bool {
	return slices.ContainsFunc(forms, func(f form) bool {
		return strings.Contains(text, f.mark) && (f.mark != urlMark || namesUser(text))
	})
}

// urlMark is what each URL has.
const urlMark = "://"

// namesUser reports whether a URL in a text has a user.
func namesUser(text string) bool {
	for {
		_, after, found := strings.Cut(text, urlMark)
		if !found {
			return false
		}
		end := strings.IndexAny(after, " \t\r\n/@\"'<>")
		if end >= 0 && after[end] == '@' {
			return true
		}
		text = after
	}
}

// formOf returns the name of the first credential in a text, or "" if it contains none.
func formOf(text string) string {
	for _, f := range forms {
		if !strings.Contains(text, f.mark) {
			continue
		}
		if slices.ContainsFunc(f.pattern().FindAllStringSubmatch(text, -1), f.isReal) {
			return f.name
		}
	}
	return ""
}

// shortestKey is how many characters of Base64 a private key has at least: one of Ed25519 in PKCS 8.
const shortestKey = 60

// isPrivateKey leaves out keys with a passphrase, and what is cut short for a reader.
func isPrivateKey(match []string) bool {
	body := strings.NewReplacer(`\n`, "", `\r`, "").Replace(match[2])
	body = strings.Join(strings.Fields(body), "")
	return !strings.Contains(match[1], "ENCRYPTED") && len(body) >= shortestKey && isVaried([]string{"", body})
}

// fewLetters is the minimum number of different characters in a token: a made-up example often has fewer.
const fewLetters = 8

// isVaried rejects placeholders for tokens in examples.
func isVaried(match []string) bool {
	letters := map[rune]bool{}
	for _, letter := range match[1] {
		letters[letter] = true
	}
	lower := strings.ToLower(match[1])
	return len(letters) >= fewLetters && !strings.Contains(lower, "example") && !strings.Contains(lower, "xxxx") &&
		!strings.Contains(lower, "abcdef")
}

// isPassword rejects variables and placeholder words for a password.
func isPassword(match []string) bool {
	password, err := url.PathUnescape(match[1])
	if err != nil || strings.ContainsAny(password, "$<>{}%*()[],;|`") || strings.Trim(password, "xX.-_") == "" {
		return false
	}
	switch lower := strings.ToLower(password); lower {
	case "password", "passwd", "pass", "pwd", "pw", "secret", "token", "example", "changeme", "your-password",
		"yourpassword", "my-password", "mypassword", "redacted":
		return false
	default:
		return !strings.HasSuffix(lower, "_password") && !strings.HasSuffix(lower, "-password") &&
			!strings.HasPrefix(lower, "your")
	}
}

// isRegistryAuth reports whether a text is a user and a password as the configuration of Docker has them.
func isRegistryAuth(match []string) bool {
	text, err := base64.StdEncoding.DecodeString(match[1])
	user, password, ok := strings.Cut(string(text), ":")
	return err == nil && ok && user != "" && password != "" && isPassword([]string{"", password})
}
