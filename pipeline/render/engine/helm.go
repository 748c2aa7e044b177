// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"path"
	"time"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/helmchart"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// quietLibraries keeps the packages of Helm and kustomize from using network and time zones, from the first render
// on. Their messages are written to standard error, and so become warnings of the result; they must not contain the
// time.
func quietLibraries() {
	http.DefaultTransport = noNetwork{}
	useUTC()
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: withoutTime})))
	log.SetOutput(os.Stderr) // which would go through slog now
	log.SetFlags(0)
}

// useUTC makes UTC the only time zone of the process. Goroutines of linked packages may be reading time.Local, as
// every stat of a file does: so it is loaded as UTC, or its target is replaced if it was loaded before. Sources can
// read the environment, so no trace of this remains in it.
func useUTC() {
	_ = os.Setenv("TZ", "UTC")
	zone := time.Local.String()
	_ = os.Unsetenv("TZ")
	if zone != time.UTC.String() {
		*time.Local = *time.UTC
	}
}

// renderHelm renders a release of a chart.
func (w *renderWorker) renderHelm(ctx context.Context) ([]fn.Item, error) {
	if w.request.Helm == nil {
		return nil, fmt.Errorf("the request names no release")
	}
	manifests, err := helmchart.Render(ctx, boundedAliases{w.files}, w.request.Helm, helmchart.Options{Archives: lockedCharts(w.request.Charts), Warn: w.response.AddWarning})
	if err != nil {
		return nil, err
	}
	var items []fn.Item
	for _, one := range manifests {
		file, err := manifest.Parse("", []byte(one.YAML))
		if err != nil {
			return nil, fmt.Errorf("reading what %s renders to: %w", one.Template, err)
		}
		for _, doc := range file.Docs {
			items = append(items, fn.Item{Doc: doc, Index: len(items)})
		}
	}
	return items, nil
}

// lockedCharts returns the charts that were fetched, as the renderer of charts knows them.
func lockedCharts(charts []render.Chart) []helmchart.Archive {
	var out []helmchart.Archive
	for _, chart := range charts {
		out = append(out, helmchart.Archive{Repository: chart.Repository, Name: chart.Name, Range: chart.Range, Version: chart.Version, Path: chart.Path})
	}
	return out
}

func withoutTime(groups []string, attr slog.Attr) slog.Attr {
	if len(groups) == 0 && attr.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return attr
}

// boundedAliases rejects values files whose aliases expand to too much. Templates are not YAML yet.
type boundedAliases struct{ tree.Reader }

// Read implements tree.Reader.
func (b boundedAliases) Read(name string) ([]byte, error) {
	content, err := b.Reader.Read(name)
	if err != nil {
		return nil, err
	}
	switch path.Ext(name) {
	case ".yaml", ".yml":
		if err := checkAliases(content); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return content, nil
}
