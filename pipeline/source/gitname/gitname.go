// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package gitname checks the names of files and branches that Prerig writes to Git repositories. A name that it accepts can be checked
// out by git on Linux, macOS and Windows; one bad name would keep every reader of a shared branch from checking it out.
//
// The rules for files are stricter than git's own: verify_path in read-cache.c, is_ntfs_dotgit in path.c, next_hfs_char in utf8.c and
// is_valid_win32_path in compat/mingw.c of git 2.39, with core.protectNTFS and core.protectHFS set.
package gitname

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/prerig/prerig/internal/lazyregexp"
)

const (
	// maxPath and maxPart bound a path and each of its parts, in bytes.
	maxPath = 1024
	maxPart = 255
	// maxRefPart leaves room for the ending of the lock file beside a reference.
	maxRefPart = maxPart - len(".lock")
)

// CheckPath reports why git on some system cannot check a file or directory with this path out; nil where every system
// can. The path is relative, separated by slashes, and clean. The error quotes the offending part in ASCII.
func CheckPath(name string) error {
	if len(name) > maxPath {
		return fmt.Errorf("must not be longer than %d bytes: it could not be checked out", maxPath)
	}
	for part := range strings.SplitSeq(name, "/") {
		if err := checkPart(part); err != nil {
			return err
		}
	}
	return nil
}

// gitFiles are names that have a meaning to git. A directory with one of these names is rejected by git itself, or
// by hosts that check pushed objects (receive.fsckObjects).
var gitFiles = []string{".git", ".gitmodules", ".gitattributes", ".gitignore", ".mailmap"}

var (
	// shortNameRule matches the names that NTFS makes up for longer ones: GIT~1 is .git.
	shortNameRule = lazyregexp.New(`~[0-9]`)
	// deviceRule matches the names of devices on Windows, with any ending (source: is_valid_win32_path in git's
	// compat/mingw.c).
	deviceRule = lazyregexp.New(`(?i)^(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³]) *(\..*)?$`)
)

// checkPart checks one part of a path.
func checkPart(part string) error {
	switch {
	case part == "" || part == "." || part == "..":
		return errors.New("must not have an empty part, '.' or '..'")
	case len(part) > maxPart:
		return fmt.Errorf("must not have a part of more than %d bytes: it could not be checked out", maxPart)
	}
	if err := CheckText(part); err != nil {
		return err
	}
	why := ""
	switch {
	case isGitFile(part):
		why = "git assigns it a special meaning"
	case strings.ContainsAny(part, `\:*?"<>|`):
		why = `Windows has no file names with \ : * ? " < > or |`
	case strings.HasSuffix(part, " ") || strings.HasSuffix(part, "."):
		why = "Windows removes dots and blanks from the end of a name"
	case shortNameRule.MatchString(part):
		why = "NTFS has such short names for other files"
	case IsDevice(part):
		why = "it is a device on Windows"
	default:
		return nil
	}
	return fmt.Errorf("git cannot check %+q out on every system: %s", part, why)
}

func isGitFile(part string) bool {
	bare := strings.TrimRight(part, " .")
	return slices.ContainsFunc(gitFiles, func(name string) bool { return strings.EqualFold(bare, name) })
}

// IsDevice reports whether Windows treats a part of a path as a device, such as aux or CON.txt.
func IsDevice(part string) bool { return deviceRule.MatchString(part) }

// CheckText reports whether a name is text whose every character is visible, in the form that all systems keep.
func CheckText(name string) error {
	if !utf8.ValidString(name) {
		return fmt.Errorf("%+q is not valid UTF-8", name)
	}
	for _, r := range name {
		if isHidden(r) {
			return fmt.Errorf("%+q has the invisible character %U", name, r)
		}
	}
	if !norm.NFC.IsNormalString(name) {
		return fmt.Errorf("%+q is not in Unicode's form NFC, and some systems would change it to %+q", name,
			norm.NFC.String(name))
	}
	return nil
}

// isHidden reports whether a character cannot be seen, or changes how others are shown.
func isHidden(r rune) bool {
	return r != ' ' && unicode.IsSpace(r) ||
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp, unicode.Variation_Selector,
			unicode.Other_Default_Ignorable_Code_Point,
			unicode.Noncharacter_Code_Point)
}

// Key returns the same value for names that some system considers equal: upper and lower case, and the forms of
// Unicode.
func Key(name string) string {
	if isPlain(name) {
		return name
	}
	return norm.NFC.String(cases.Fold().String(norm.NFD.String(name)))
}

// isPlain reports whether a name is its own key, which nearly all are.
func isPlain(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool { return r >= utf8.RuneSelf || r >= 'A' && r <= 'Z' }) < 0
}

// notInRef are the characters that no reference has (source: git-check-ref-format).
const notInRef = " ~^:?*[\\"

// CheckRef reports why a name cannot be that of a reference or of a branch, as git check-ref-format decides it.
func CheckRef(name string) error {
	bad := name == "" || name == "@" || strings.ContainsAny(name, notInRef) ||
		strings.ContainsFunc(name, unicode.IsControl) ||
		!utf8.ValidString(name) || strings.Contains(name, "..") || strings.Contains(name, "@{") ||
		strings.HasPrefix(name, "-") || strings.HasSuffix(name, ".")
	for part := range strings.SplitSeq(name, "/") {
		bad = bad || part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock")
	}
	if bad {
		return fmt.Errorf("%+q is not a valid name of a Git reference", name)
	}
	return nil
}

var (
	// ambiguousRule matches the beginnings of what git looks up elsewhere than among branches first (source:
	// gitrevisions).
	ambiguousRule = lazyregexp.New(`(?i)^(refs|heads|tags|remotes)(/|$)`)
	// specialRule matches names that git reads as a commit or as one of its own references.
	specialRule = lazyregexp.New(`^([0-9a-fA-F]{40}|[0-9a-fA-F]{64}|(?i:([a-z]+_)?head))$`)
)

// CheckBranch reports why a branch cannot be written by this name. It is the short one, without refs/heads/.
func CheckBranch(name string) error {
	if err := CheckRef(name); err != nil {
		return err
	}
	if err := CheckText(name); err != nil {
		return err
	}
	if ambiguousRule.MatchString(name) {
		return fmt.Errorf("%+q must be the short name of a branch, such as main: git takes this one for that of another reference", name)
	}
	if specialRule.MatchString(name) {
		return fmt.Errorf("%+q is a name that git uses itself", name)
	}
	for part := range strings.SplitSeq(name, "/") {
		// Many servers keep each branch in a file of its name.
		if len(part) > maxRefPart {
			return fmt.Errorf("must not have a part of more than %d bytes", maxRefPart)
		}
		if err := checkPart(part); err != nil {
			return err
		}
	}
	return nil
}
