// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package demo

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/prerig/prerig/pipeline/internal/demo/host"
)

// thing is one of the things to try: a command, or a click on a page.
type thing struct {
	title   string
	command string // for a shell, "" for a click
	click   string // the URL of the page
	button  string
	// do clicks in place of a person, and shown waits for the effect and prints it.
	do    func(ctx context.Context) error
	shown func(ctx context.Context) error
}

// things returns the five things to try.
func (d *demo) things(ctx context.Context) ([]thing, error) {
	wave := waves()[0]
	number, err := d.waitForPull(ctx, wave)
	if err != nil {
		return nil, err
	}
	status := fmt.Sprintf("%s daemon status --state %s", d.Shown, d.state())
	inConfig := "git -C " + d.source.Work
	return []thing{
		{
			title:   "See which pipelines need attention: one fails, one was changed by hand, and six wait for a review.",
			command: status,
		},
		{
			title: fmt.Sprintf("Review what Istio %s changes in %s, and merge it. The pull request for %s follows when %s reports success.",
				newIstio, wave, waves()[1], wave),
			click: d.rendered.PullURL(number), button: "Merge",
			do:    func(ctx context.Context) error { return pressMerge(ctx, d.rendered, number) },
			shown: func(ctx context.Context) error { return d.showUpgrade(ctx, number) },
		},
		{
			title:   "Fix the application that does not build: revert the commit that has broken it, and push.",
			command: inConfig + " revert --no-edit " + breaking + " && " + inConfig + " push -q",
			shown: func(ctx context.Context) error {
				if err := d.waitForState(ctx, brokenPipeline, "Ready"); err != nil {
					return err
				}
				d.printf("   %s is Ready, and what it has published was never changed by the mistake.", brokenPipeline)
				return nil
			},
		},
		{
			title:   "Look at the manual change, and undo it.",
			command: fmt.Sprintf("%[1]s daemon reconcile %[2]s --force --dry-run --state %[3]s && %[1]s daemon reconcile %[2]s --force --wait --state %[3]s", d.Shown, driftedPipeline, d.state()),
			shown: func(ctx context.Context) error {
				if err := d.waitForState(ctx, driftedPipeline, "Ready"); err != nil {
					return err
				}
				return d.showNewest(ctx, "staging/checkout")
			},
		},
		{
			title:   "Release an application: push a commit, and look at the commit that Prerig makes of it for staging.",
			command: inConfig + " cherry-pick " + releasing + " && " + inConfig + " push -q",
			shown: func(ctx context.Context) error {
				err := d.wait(ctx, "the release in staging", func() bool {
					_, err := d.rendered.Git(ctx, "grep", "-q", "-F", "catalog:1.1", "refs/heads/"+stagingBranch)
					return err == nil
				})
				if err != nil {
					return err
				}
				return d.showNewest(ctx, "staging/catalog")
			},
		},
	}, nil
}

// invite prints what there is to see and to try.
func (d *demo) invite(things []thing) {
	d.printf("\n%d applications are on %d clusters. Prerig renders them from %s/shop/config to %s/shop/rendered.",
		appCount(), len(clusters), d.host.URL, d.host.URL)
	d.printf("No cluster is running: a pretended controller reports each commit as deployed.")
	d.printf("\nopen %s   Prerig's page; its buttons ask for the token %s", d.page, pageToken(d.state()))
	d.printf("open %s   the Git host, with the clusters and the pull requests", d.host.URL)
	d.printf("\nFive things to try, in another terminal:")
	for i, t := range things {
		d.printf("\n%d. %s", i+1, t.title)
		if t.command != "" {
			d.printf("   $ %s", t.command)
		} else {
			d.printf("   open %s and click %s", t.click, t.button)
		}
	}
	d.printf("\nPress Ctrl-C to stop everything and remove %s.", d.dir)
}

// pageToken returns the token of the page of the daemon with a state.
func pageToken(state string) string {
	name := filepath.Join(state, "admin.token")
	text, err := os.ReadFile(name)
	if err != nil {
		return "in " + name
	}
	return strings.TrimSpace(string(text))
}

// doAll does the things itself.
func (d *demo) doAll(ctx context.Context, things []thing) error {
	ctx, cancel := context.WithTimeout(ctx, setupTime)
	defer cancel()
	for i, t := range things {
		d.printf("\n%d. %s", i+1, t.title)
		if t.command != "" {
			d.printf("   $ %s", t.command)
			command := exec.CommandContext(ctx, "sh", "-c", t.command)
			command.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0")
			out, err := command.CombinedOutput()
			d.printIndented(string(out))
			if err != nil {
				return fmt.Errorf("running %s: %w", t.command, err)
			}
		} else {
			d.printf("   %s: %s", t.button, t.click)
			if err := t.do(ctx); err != nil {
				return err
			}
		}
		if t.shown != nil {
			if err := t.shown(ctx); err != nil {
				return err
			}
		}
	}
	d.printf("\nThe branches %q and %q are what Flux or Argo CD would apply.", stagingBranch, productionBranch)
	return nil
}

// pressMerge clicks Merge on the page of a pull request.
func pressMerge(ctx context.Context, r *host.Repository, number int64) error {
	form := url.Values{"do": {"merge"}}.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.PullURL(number), strings.NewReader(form))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("merging pull request %d: %w", number, err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("merging pull request %d: the host answers %s", number, response.Status)
	}
	return nil
}

// showUpgrade prints the change of a wave that was merged, and merges the next.
func (d *demo) showUpgrade(ctx context.Context, number int64) error {
	d.printf("   %s", d.rendered.Title(number))
	d.printIndented(changeIn(d.rendered.Body(number)))
	next, err := d.waitForPull(ctx, waves()[1])
	if err != nil {
		return err
	}
	d.printf("   %s reports success, and the next wave is open:\n   Merge: %s", waves()[0], d.rendered.PullURL(next))
	if err := pressMerge(ctx, d.rendered, next); err != nil {
		return err
	}
	if err := d.waitForWaves(ctx); err != nil {
		return err
	}
	for _, c := range clusters {
		d.printf("   %-8s %d proxies of %s", c.name, countProxies(ctx, d.rendered, c.name, newIstio), newIstio)
	}
	return nil
}

// changeIn returns the first difference in the text of a pull request.
func changeIn(body string) string {
	_, after, _ := strings.Cut(body, "```diff\n")
	change, _, _ := strings.Cut(after, "```")
	return change
}

// showNewest prints the newest commit of staging below a path, with its difference.
func (d *demo) showNewest(ctx context.Context, path string) error {
	out, err := d.rendered.Git(ctx, "log", "-1", "--patch", "--unified=0", "--format=%h %s%n%n%(trailers)",
		"refs/heads/"+stagingBranch, "--", path)
	if err != nil {
		return err
	}
	d.printf("   One commit on the branch %q:", stagingBranch)
	for line := range strings.Lines(out) {
		switch word, _, _ := strings.Cut(line, " "); word {
		case "diff", "index", "---", "+++", "@@":
		default:
			d.printIndented(line)
		}
	}
	return nil
}
