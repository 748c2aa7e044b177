// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

var quiet = slog.New(slog.DiscardHandler)

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newEntry(t *testing.T, name string, grant Grant, expires time.Time) (secret, entry string) {
	t.Helper()
	secret, token, err := NewToken(name, grant, expires)
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal([]Token{token})
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), secret) || strings.Contains(string(text), strings.TrimPrefix(secret, tokenPrefix)) {
		t.Errorf("the token is in its entry:\n%s", text)
	}
	return secret, string(text)
}

func TestTokenOfTheAdministrator(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sub", "token")
	if _, err := OpenTokens(file, "", quiet); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(file)
	if err != nil || len(first) < 43 {
		t.Fatal(len(first), err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	tokens, err := OpenTokens(file, "", quiet)
	if err != nil {
		t.Fatal(err)
	}
	if who, ok := tokens.Find(strings.TrimSpace(string(first))); !ok || who.String() != "token:admin" || !who.MayEverywhere(Administer) {
		t.Errorf("%v, %v", who, ok)
	}
	if entries, err := os.ReadDir(filepath.Dir(file)); err != nil || len(entries) != 1 {
		t.Errorf("beside the token there is something else: %v, %v", entries, err)
	}
	for _, short := range []string{"short", ""} {
		write(t, file, short)
		if _, err := OpenTokens(file, "", quiet); err == nil || !strings.Contains(err.Error(), "remove the file to have one made") {
			t.Errorf("a token of %d characters: %v", len(short), err)
		}
	}
}

// TestReadableTokenIsTold has the administrator's token in a file that every user of the machine can read, as a version before may
// have left it: it goes on working, and the log says what to do.
func TestReadableTokenIsTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	write(t, file, "a token of some length")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	tokens, err := OpenTokens(file, "", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || !strings.Contains(log.String(), "chmod 600") {
		t.Errorf("%v, log %s", err, &log)
	}
	if _, ok := tokens.Find("a token of some length"); !ok {
		t.Error("it does not work any more")
	}
}

// until waits for the files to be read again.
func until(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !check(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}

// TestTokensFollowTheirFiles changes a directory as Kubernetes changes a mounted Secret: tokens come and go without a restart.
func TestTokensFollowTheirFiles(t *testing.T) {
	dir := t.TempDir()
	list, admin := filepath.Join(dir, "tokens"), filepath.Join(dir, "admin.token")
	first, firstEntry := newEntry(t, "first", Grant{Role: Read}, time.Time{})
	second, secondEntry := newEntry(t, "second", Grant{Role: Operate, Namespaces: []string{"shop"}}, time.Time{})
	write(t, filepath.Join(list, "..v1", "a.yaml"), firstEntry)
	write(t, filepath.Join(list, "..v2", "a.yaml"), secondEntry)
	write(t, filepath.Join(list, "..v3", "a.yaml"), "- name: wrong\n  rle: read\n")
	point := func(version string) {
		t.Helper()
		if err := os.Symlink(version, filepath.Join(list, "..next")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(list, "..next"), filepath.Join(list, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	point("..v1")
	if err := os.Symlink("..data/a.yaml", filepath.Join(list, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	tokens, err := OpenTokens(admin, list, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	known := func(secret string) bool { _, ok := tokens.Find(secret); return ok }
	if !known(first) || known(second) || known("") || known(firstEntry) {
		t.Error("the tokens of the first version")
	}
	point("..v2")
	until(t, "the new token is not known", func() bool { return known(second) })
	if who, _ := tokens.Find(second); known(first) || !who.May(Operate, "shop") || who.May(Read, "vault") || who.May(Read, "") || who.MayEverywhere(Read) {
		t.Errorf("a token that was taken out is known: %v; %v", known(first), who)
	}
	point("..v3")
	until(t, "the log does not tell of the mistake", func() bool {
		return known(second) && strings.Contains(log.String(), "line 2: [0].rle: unknown field, did you mean role?")
	})
	if strings.Count(log.String(), "its earlier content stays in effect") != 1 {
		t.Errorf("the log:\n%s", &log)
	}
	if err := os.RemoveAll(list); err != nil {
		t.Fatal(err)
	}
	until(t, "a token of a deleted file is known", func() bool { return !known(second) })
	secret, err := os.ReadFile(admin)
	if err != nil {
		t.Fatal(err)
	}
	if !known(strings.TrimSpace(string(secret))) {
		t.Error("the administrator's token is not known")
	}
	if err := os.Remove(admin); err != nil {
		t.Fatal(err)
	}
	until(t, "the administrator's token lives on without its file", func() bool { return !known(strings.TrimSpace(string(secret))) })
}

func TestTokensEnd(t *testing.T) {
	dir := t.TempDir()
	over, overEntry := newEntry(t, "over", Grant{Role: Read}, time.Now().Add(-time.Second))
	lasting, lastingEntry := newEntry(t, "lasting", Grant{Role: Read}, time.Now().Add(time.Hour))
	write(t, filepath.Join(dir, "tokens.yaml"), overEntry+lastingEntry)
	tokens, err := OpenTokens(filepath.Join(dir, "admin.token"), filepath.Join(dir, "tokens.yaml"), quiet)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := tokens.Find(over); ok {
		t.Error("a token that has ended is taken")
	}
	if _, ok := tokens.Find(lasting); !ok {
		t.Error("a token that lasts is refused")
	}
}

func TestTokenFilesThatAreRefused(t *testing.T) {
	secret, entry := newEntry(t, "fine", Grant{Role: Read, Namespaces: []string{"shop"}}, time.Time{})
	for name, tc := range map[string]struct{ text, want string }{
		"no namespace":        {strings.Replace(entry, "- shop", "", 1), "namespaces: has no value"},
		"an empty list":       {strings.Replace(entry, "\n  - shop", " []", 1), "line 1: [0]: namespaces: must name at least one; leave it out for all"},
		"another role":        {strings.Replace(entry, "role: read", "role: root", 1), "role: must be metrics, read, operate or administer"},
		"metrics of one":      {strings.Replace(entry, "role: read", "role: metrics", 1), "because metrics are about all pipelines"},
		"a pattern":           {strings.Replace(entry, "- shop", "- '*'", 1), `"*" is not the name of a namespace`},
		"the token itself":    {"- name: x\n  role: read\n  sha256: " + secret + "\n", "sha256: must be the hash that prerig daemon token create prints"},
		"without a hash":      {"- name: x\n  role: read\n", "sha256: must be the hash"},
		"no name":             {strings.Replace(entry, "name: fine", "name: ''", 1), "name: must be of up to 63"},
		"a name with a break": {strings.Replace(entry, "name: fine", `name: "a\nb"`, 1), "name: must be of up to 63"},
		"a map":               {"name: x\n", "must be a list"},
		"a key twice":         {entry + "  role: administer\n", "is given twice"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "tokens.yaml"), tc.text)
		_, err := OpenTokens(filepath.Join(dir, "admin.token"), filepath.Join(dir, "tokens.yaml"), quiet)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	dir := t.TempDir()
	list := filepath.Join(dir, "tokens.yaml")
	if _, err := OpenTokens(filepath.Join(dir, "admin.token"), list, quiet); err == nil {
		t.Error("a file that does not exist is taken")
	}
	write(t, list, entry)
	if err := os.Chmod(list, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenTokens(filepath.Join(dir, "admin.token"), list, quiet); err == nil || !strings.Contains(err.Error(), "can write to") {
		t.Errorf("a file that everybody can write to: %v", err)
	}
}

// TestTokensAreRandom has 256 bits in each, so that hashing them once is enough.
func TestTokensAreRandom(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		secret, _, err := NewToken("x", Grant{Role: Read}, time.Time{})
		if err != nil || len(secret) != len(tokenPrefix)+43 || seen[secret] {
			t.Fatal(secret, err)
		}
		seen[secret] = true
	}
}

// TestRecordInAFile appends lines of JSON to a file that only its owner can read, and goes on in a new one when it was moved away.
func TestRecordInAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.log")
	write(t, file, "what was there\n")
	var log bytes.Buffer
	a, err := OpenAudit(file, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	done := Record{Who: Principal{Kind: BySocket, Name: "uid 1000"}, Action: "suspend", Pipelines: []string{"shop/web"}, Outcome: Done, Address: "uid 1000"}
	a.Write(done)
	if err := os.Rename(file, file+".1"); err != nil {
		t.Fatal(err)
	}
	a.Write(done)
	for name, before := range map[string]string{file + ".1": "what was there\n", file: ""} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var line map[string]any
		rest, ok := strings.CutPrefix(string(text), before)
		if err := json.Unmarshal([]byte(rest), &line); err != nil || !ok || line["who"] != "socket:uid 1000" || line["outcome"] != "done" {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if strings.Count(log.String(), "msg=audit") != 2 {
		t.Errorf("the log:\n%s", &log)
	}
	if _, err := OpenAudit(filepath.Join(t.TempDir(), "no", "audit.log"), quiet); err == nil {
		t.Error("a directory that does not exist is taken")
	}
}

// TestRefusedAttemptsDoNotFillTheRecord has many attempts by somebody who may not, and one change by somebody who may.
func TestRefusedAttemptsDoNotFillTheRecord(t *testing.T) {
	var log bytes.Buffer
	a, err := OpenAudit("", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	for range 100_000 {
		a.Write(Record{Action: "remove", Outcome: Refused, Reason: "the token is missing or wrong"})
	}
	a.Write(Record{Who: Principal{Kind: ByToken, Name: "x"}, Action: "suspend", Outcome: Done})
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if last := lines[len(lines)-1]; len(lines) > 10_000 || !strings.Contains(last, "who=token:x") || !strings.Contains(last, "refusedAndLeftOut=") {
		t.Errorf("%d lines, the last %s", len(lines), lines[len(lines)-1])
	}
}
