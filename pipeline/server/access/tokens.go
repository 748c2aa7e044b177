// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/livefile"
)

// Tokens are those that the daemon accepts: that of its administrator, and those of a file or directory. It is safe
// for concurrent use, and follows its files.
type Tokens struct {
	admin *livefile.Value[[]acceptedToken]
	// listed is nil without a file.
	listed *livefile.Value[[]acceptedToken]
}

// acceptedToken is a token as it is compared.
type acceptedToken struct {
	hash      [sha256.Size]byte
	expires   time.Time
	principal Principal
}

// OpenTokens reads the administrator's token from its file, which it creates if missing, and the hashed tokens of
// list, a file or a directory of files; "" is none. Deleting a file later revokes its tokens; a file that becomes
// invalid later keeps those that were known.
func OpenTokens(adminFile, list string, log *slog.Logger) (*Tokens, error) {
	if err := makeAdminToken(adminFile); err != nil {
		return nil, err
	}
	if info, err := os.Stat(adminFile); err == nil && info.Mode().Perm()&0o004 != 0 {
		log.Warn("every user of this machine can read the administrator's token; chmod 600 closes it", "file", adminFile)
	}
	t := &Tokens{}
	var err error
	t.admin, err = livefile.Open("the administrator's token", log, readOrNothing(adminFile), func(text []byte) ([]acceptedToken, error) {
		return adminToken(adminFile, text)
	})
	if err != nil || list == "" {
		return t, err
	}
	if _, err := os.Stat(list); err != nil {
		return nil, fmt.Errorf("reading tokens: %w", err)
	}
	t.listed, err = livefile.Open("tokens", log, func() ([]byte, error) { return readTokenFiles(list) }, parseTokenFiles)
	return t, err
}

// Find returns the owner of a token, or false if the token is unknown or expired. Every token is compared in
// constant time.
func (t *Tokens) Find(secret string) (found Principal, ok bool) { return t.FindHash(HashToken(secret)) }

// TokenHash is what is kept of a token.
type TokenHash [sha256.Size]byte

// HashToken returns the hash of a token.
func HashToken(secret string) TokenHash { return sha256.Sum256([]byte(secret)) }

// FindHash is Find for who has kept the hash of a token that was taken before.
func (t *Tokens) FindHash(hash TokenHash) (found Principal, ok bool) {
	all := t.admin.Get()
	if t.listed != nil {
		all = append(all[:len(all):len(all)], t.listed.Get()...)
	}
	now := time.Now()
	for _, token := range all {
		if subtle.ConstantTimeCompare(hash[:], token.hash[:]) == 1 && (token.expires.IsZero() || now.Before(token.expires)) {
			found, ok = token.principal, true
		}
	}
	return found, ok
}

// minAdminToken is the minimum length of a hand-written administrator's token.
const minAdminToken = 16

func adminToken(file string, text []byte) ([]acceptedToken, error) {
	if len(text) == 0 {
		return nil, nil // the file was deleted
	}
	token := strings.TrimSpace(string(text))
	if len(token) < minAdminToken {
		return nil, fmt.Errorf("reading the token: %s holds less than %d characters; write a longer one, or remove the file to have one made", file, minAdminToken)
	}
	admin := Principal{Kind: ByToken, Name: "admin", Grants: Everything()}
	return []acceptedToken{{hash: sha256.Sum256([]byte(token)), principal: admin}}, nil
}

// makeAdminToken makes the file of the administrator's token where it does not exist.
func makeAdminToken(file string) error {
	text, err := os.ReadFile(file)
	if err == nil && len(text) == 0 {
		_, err = adminToken(file, []byte("\n"))
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return fmt.Errorf("reading the token: %w", err)
		}
		return nil
	}
	secret, _, err := NewToken("admin", Grant{Role: Administer}, time.Time{})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("making a token: %w", err)
	}
	if err := writeWhole(file, []byte(secret+"\n")); err != nil {
		return fmt.Errorf("making a token: %w", err)
	}
	return nil
}

// writeWhole creates a file atomically, with all of its content or not at all, even if the process or the machine
// crashes right after.
func writeWhole(file string, content []byte) error {
	beside, err := os.CreateTemp(filepath.Dir(file), ".token-") // readable for its owner only
	if err != nil {
		return err
	}
	defer os.Remove(beside.Name()) // no longer exists on success
	_, err = beside.Write(content)
	if err := errors.Join(err, beside.Sync(), beside.Close()); err != nil {
		return err
	}
	return os.Rename(beside.Name(), file)
}

func readOrNothing(file string) func() ([]byte, error) {
	return func() ([]byte, error) {
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return []byte{}, nil
		}
		return text, err
	}
}

// tokenFile is a file of tokens as it was read.
type tokenFile struct {
	Name string
	Text []byte
}

// readTokenFiles reads a file, or those of a directory whose names do not begin with a dot: a mounted Secret keeps its versions
// in such.
func readTokenFiles(list string) ([]byte, error) {
	names := []string{list}
	entries, err := os.ReadDir(list)
	if err == nil {
		names = nil
		for _, entry := range entries {
			if !strings.HasPrefix(entry.Name(), ".") {
				names = append(names, filepath.Join(list, entry.Name()))
			}
		}
	}
	found := []tokenFile{}
	for _, name := range names {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("reading tokens: %w", err)
		case info.IsDir():
			continue
		case info.Mode().Perm()&0o002 != 0:
			return nil, fmt.Errorf("reading tokens: every user of this machine can write to %s, and so give rights to anybody; chmod o-w closes it", name)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading tokens: %w", err)
		}
		found = append(found, tokenFile{name, bytes.TrimSpace(text)})
	}
	return json.Marshal(found)
}

func parseTokenFiles(data []byte) ([]acceptedToken, error) {
	var files []tokenFile
	if err := json.Unmarshal(data, &files); err != nil {
		return nil, err
	}
	var out []acceptedToken
	var errs []error
	for _, file := range files {
		tokens, err := parseTokens(file.Name, file.Text)
		errs = append(errs, err)
		for _, token := range tokens {
			hash, _ := token.decodeHash() // it was checked
			out = append(out, acceptedToken{hash, token.Expires, Principal{Kind: ByToken, Name: token.Name, Grants: []Grant{token.toGrant()}}})
		}
	}
	return out, errors.Join(errs...)
}
