// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/server/access"
)

func newToken(streams Streams) *cobra.Command {
	cmd := newCommand("token", "Create tokens for the daemon's page, API and metrics")
	cmd.Long = `Create tokens that identify a user and grant a role. The daemon knows only their hashes, which
are in the file or directory of admin.tokens in its configuration.`
	cmd.Args = noArguments
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(newTokenCreate(streams))
	return cmd
}

func newTokenCreate(streams Streams) *cobra.Command {
	var role, file string
	var namespaces []string
	var lasts time.Duration
	cmd := newCommand("create NAME --role ROLE", "Create a token and its entry for the daemon")
	cmd.Long = `Create a token. It is printed to standard output only once, and cannot be recovered later. Its
entry, with its hash, is appended to --file, or printed to standard error.

  metrics     can read /metrics
  read        can view pipelines, their runs and their diffs
  operate     can also reconcile, suspend and resume
  administer  can also confirm removals

With --namespace, a token cannot see that other namespaces exist, and cannot read metrics. To
revoke a token, remove its entry; the daemon follows the file.`
	cmd.Example = `  prerig daemon token create shop-ci --role operate --namespace shop --file tokens.yaml
  prerig daemon token create prometheus --role metrics --file tokens.yaml > prometheus.token`
	f := cmd.Flags()
	f.StringVar(&role, "role", "", "role of the token: metrics, read, operate or administer")
	f.StringSliceVar(&namespaces, "namespace", nil,
		"namespace that the token is limited to; may be repeated (default: all)")
	f.StringVar(&file, "file", "", "token file to append the entry to")
	f.DurationVar(&lasts, "expires-in", 0, "lifetime, such as 720h (default: until its entry is removed)")
	mustRegister(cmd.MarkFlagFilename("file", "yaml", "yml"))
	completeChoice(cmd, "role", []string{"metrics", "read", "operate", "administer"})
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		return writeNewToken(streams, args, access.Grant{Role: access.Role(role), Namespaces: namespaces}, file, lasts)
	}
	return cmd
}

// writeNewToken makes a token, prints it, and appends its entry to a file or prints that too.
func writeNewToken(streams Streams, args []string, grant access.Grant, file string, lasts time.Duration) error {
	if len(args) != 1 {
		return errors.New("specify one name, which identifies the token in the log: prerig daemon token create NAME --role ROLE")
	}
	if grant.Role == "" {
		return errors.New("the flag --role is required: metrics, read, operate or administer")
	}
	if lasts < 0 {
		return fmt.Errorf("the flag --expires-in must be more than 0, found %s", lasts)
	}
	var expires time.Time
	if lasts > 0 {
		expires = time.Now().Add(lasts).UTC().Truncate(time.Second)
	}
	secret, entry, err := access.NewToken(args[0], grant, expires)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal([]access.Token{entry})
	if err != nil {
		return fmt.Errorf("writing the entry of the token: %w", err)
	}
	if file != "" {
		err = appendEntry(file, text)
	} else {
		_, err = fmt.Fprintf(streams.Err, "Add this to the token file (admin.tokens):\n\n%s\n", text)
	}
	if err == nil {
		_, err = fmt.Fprintln(streams.Out, secret)
	}
	if err != nil {
		return fmt.Errorf("writing the token: %w", err)
	}
	return nil
}

// appendEntry appends to a file of tokens, which is created readable for its owner only. The existing content is
// read first: an entry after content that is not a list of tokens would corrupt the file.
func appendEntry(file string, entry []byte) error {
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(before) > 0 && before[len(before)-1] != '\n' {
		entry = append([]byte("\n"), entry...)
	}
	if err := access.CheckTokens(filepath.Base(file), append(before, entry...)); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(entry)
	return errors.Join(err, f.Close())
}
