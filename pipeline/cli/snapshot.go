// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/kubernetes/mesh"
	"github.com/prerig/prerig/pipeline/server"
)

func newSnapshot(streams Streams) *cobra.Command {
	var d daemonClient
	var out destination
	cmd := newCommand("snapshot DIGEST", "Print the cluster snapshot that a result was rendered with")
	cmd.Long = `Print the complete InjectionPolicy that a policy with from: Cluster was resolved to. Its
digest is in the trailer Prerig-Cluster-Snapshot of rendered commits and in the status of
pipelines. The daemon keeps the snapshots of published results and of those in the history.

prerig render --snapshot reproduces the same result, whatever the cluster has now.`
	cmd.Example = `  prerig daemon snapshot sha256:f0e1d2… --to mesh.yaml
  prerig render team/shop --revision main@sha1:… --snapshot mesh.yaml`
	cmd.Args = cobra.ExactArgs(1)
	d.addFlags(cmd)
	out.destinationFlags(cmd, streams, "", "file to write (default: standard output)", manifestFormats)
	mustRegister(cmd.MarkFlagFilename("to", "yaml", "yml", "json"))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		text, err := d.getSnapshot(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		return out.write(cmd.Context(), streams, text)
	}
	return cmd
}

// getSnapshot asks the daemon for a snapshot, and checks that it is the one.
func (d *daemonClient) getSnapshot(ctx context.Context, digest string) ([]byte, error) {
	if !mesh.IsDigest(digest) {
		return nil, fmt.Errorf("%q is not the digest of a snapshot, such as sha256:… with 64 hexadecimal digits", digest)
	}
	var answer server.Snapshot
	if err := d.callAPI(ctx, http.MethodGet, "/api/v1/snapshot?digest="+url.QueryEscape(digest), nil, &answer); err != nil {
		return nil, err
	}
	if mesh.DigestOf([]byte(answer.Policy)) != digest {
		return nil, fmt.Errorf("the snapshot %s of the daemon does not match its digest", digest)
	}
	return []byte(answer.Policy), nil
}

// readSnapshots reads snapshots that are named by files or digests.
func (d *daemonClient) readSnapshots(ctx context.Context, names []string) (mesh.Given, error) {
	given := mesh.Given{}
	for _, name := range names {
		read := func() ([]byte, error) { return os.ReadFile(name) }
		if mesh.IsDigest(name) {
			read = func() ([]byte, error) { return d.getSnapshot(ctx, name) }
		}
		text, err := read()
		if err != nil {
			return nil, fmt.Errorf("reading the snapshot %s: %w", name, err)
		}
		if err := given.Add(text); err != nil {
			return nil, fmt.Errorf("reading the snapshot %s: %w", name, err)
		}
	}
	return given, nil
}
