// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"

	"github.com/prerig/prerig/pipeline/server"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// printPreviews prints which pull requests are previewed, since when and with what outcome. A daemon that is older
// than the command reports none.
func (d *daemonClient) printPreviews(ctx context.Context, w io.Writer) error {
	var all server.Previews
	if err := d.callAPI(ctx, http.MethodGet, "/api/v1/previews", nil, &all); err != nil {
		if told := (daemonError{}); errors.As(err, &told) && told.code == http.StatusNotFound {
			return nil
		}
		return err
	}
	if len(all.Previews) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "\nPREVIEW OF\tFOR\tSTATE\tSINCE\tHEAD\tMESSAGE")
	for _, p := range all.Previews {
		of := fmt.Sprintf("%d of %s", p.Number, giturl.Normal(p.Repository))
		if p.Fork {
			of += " (fork)"
		}
		columns := []string{of, cmp.Or(p.Namespace, "-"), p.State, timeSince(p.Since),
			cmp.Or(p.Head[:min(12, len(p.Head))], "-"), p.Message}
		for i := range columns {
			columns[i] = oneLine(columns[i])
		}
		fmt.Fprintln(table, strings.Join(columns, "\t"))
	}
	return table.Flush()
}
