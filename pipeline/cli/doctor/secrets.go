// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/secret"
)

// othersMayRead is the bit of a file that every user of the machine can read.
const othersMayRead = 0o004

// checkSecretFiles checks the directory of secrets: does it exist, and who can read its files? The values are not
// read.
func (l *look) checkSecretFiles() {
	dir := l.config.Secrets
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		l.addPassedCheck(Secrets, dir, "the directory of secrets does not exist, which is fine as long as no pipeline references a secret")
		return
	}
	if isPrivateDirectory(dir) {
		l.addPassedCheck(Secrets, dir, "no other user of this machine can read it")
		return
	}
	open, total := 0, 0
	example := ""
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // unreadable entries are reported when they are needed
		}
		switch filepath.Base(path) {
		case "username", "known_hosts", "ca.crt", secret.KeyHosts:
			return nil // they are public
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			if total++; info.Mode().Perm()&othersMayRead != 0 {
				if open++; example == "" {
					example = path
				}
			}
		}
		return nil
	})
	if open > 0 {
		l.addWarning(Secrets, dir, fmt.Sprintf("every user of this machine can read %d of its %d files, such as %s", open, total, example), "chmod -R o-rwx "+dir)
		return
	}
	l.addPassedCheck(Secrets, dir, "no other user of this machine can read any of its %d files", total)
}

// isPrivateDirectory reports whether a directory cannot be entered by other users.
func isPrivateDirectory(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o001 == 0
}

// checkFurtherSecrets reads the secrets of a pipeline that neither sources nor targets read.
func (l *look) checkFurtherSecrets(ctx context.Context, e catalog.Entry) {
	spec := e.Pipeline.Spec
	for i, n := range spec.Notify {
		at := fmt.Sprintf("spec.notify[%d]", i)
		switch {
		case n.FluxReceiver != nil:
			l.checkSecret(ctx, e, at+".fluxReceiver", n.FluxReceiver.SecretRef,
				secret.Purpose{URL: n.FluxReceiver.URL, Signs: true}, "token")
		case n.CloudEvent != nil:
			l.checkSecret(ctx, e, at+".cloudEvent", n.CloudEvent.SecretRef,
				secret.Purpose{URL: n.CloudEvent.URL, Signs: true}, "token")
		case n.CommitStatus != nil:
			l.checkSecret(ctx, e, at+".commitStatus", &n.CommitStatus.SecretRef,
				secret.Purpose{URL: n.CommitStatus.URL}, "token", "password")
		}
	}
	for i, to := range spec.Publish {
		if to.Encryption != nil {
			l.checkSecret(ctx, e, fmt.Sprintf("spec.publish[%d].encryption", i), &to.Encryption.SecretRef,
				secret.Purpose{}, "seed")
		}
	}
	for i, base := range spec.Build.RemoteBases {
		if !strings.HasSuffix(base.URL, "*") {
			l.checkSecret(ctx, e, fmt.Sprintf("spec.build.remoteBases[%d]", i), base.SecretRef, secret.At(base.URL))
		}
	}
	for i, charts := range spec.Build.ChartRepositories {
		l.checkSecret(ctx, e, fmt.Sprintf("spec.build.chartRepositories[%d]", i), charts.SecretRef, secret.Purpose{})
	}
	if spec.Preview != nil {
		l.checkSecret(ctx, e, "spec.preview", spec.Preview.SecretRef, secret.Purpose{})
	}
}

// checkSecret reads a secret, which must have one of the keys.
func (l *look) checkSecret(ctx context.Context, e catalog.Entry, field string, ref *meta.LocalObjectReference,
	purpose secret.Purpose, oneOf ...string) {
	if ref == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.o.Timeout)
	defer cancel()
	where := e.Key + " " + field + ".secretRef"
	keys, err := secret.Read(ctx, l.in.Secrets, e.Pipeline.Metadata.Namespace, ref, purpose)
	if err != nil {
		l.addFailureUnlessHidden(Secrets, where, err, "")
		return
	}
	for _, key := range oneOf {
		if len(keys[key]) > 0 {
			oneOf = nil
			break
		}
	}
	if len(oneOf) > 0 {
		l.addFailureUnlessHidden(Secrets, where, fmt.Errorf("the secret %s has no key %s", ref.Name, strings.Join(oneOf, " or ")), "")
		return
	}
	l.addPassedCheck(Secrets, where, "the secret %s exists", ref.Name)
}
