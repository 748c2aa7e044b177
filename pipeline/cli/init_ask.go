// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/prerig/prerig/pipeline/cli/policy"
	"github.com/prerig/prerig/pipeline/cli/scaffold"
)

// canAskUser reports whether a person is present who can be asked, and allows it.
func (in *initRun) canAskUser() bool {
	return in.streams.InTerminal && !in.noAsking && isTerminal(in.streams.Err)
}

// isTerminal reports whether the output is visible to a person.
func isTerminal(w io.Writer) bool {
	_, ok := terminalOf(w)
	return ok
}

// terminalOf returns the terminal that an output is written to, also through a visibleWriter.
func terminalOf(w io.Writer) (*os.File, bool) {
	if v, ok := w.(visibleWriter); ok {
		w = v.to
	}
	file, ok := w.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// question is one that a person is asked where no flag has the answer.
type question struct {
	flag  string
	text  string
	usual string // what Enter means
	// take stores an answer, or returns the reason it is invalid.
	take func(answer string) error
}

// maxTries bounds how often a question is asked.
const maxTries = 5

// promptForMissing asks for settings without a flag, if a person is present.
func (in *initRun) promptForMissing(ctx context.Context) error {
	if !in.canAskUser() {
		return nil
	}
	lines := readLines(in.streams.In)
	said := false
	for _, next := range []func(context.Context) *question{in.clusterQuestion, in.namespacesQuestion, in.sourceQuestion, in.buildsQuestion, in.publishQuestion} {
		q := next(ctx)
		if q == nil || in.cmd.Flags().Changed(q.flag) {
			continue
		}
		if !said {
			fmt.Fprintln(in.streams.Err, "Enter accepts the answer in brackets, Ctrl-C stops; nothing is written before the last answer.")
			said = true
		}
		if err := askUntilValid(ctx, in.streams.Err, lines, *q); err != nil {
			return err
		}
	}
	return nil
}

// askUntilValid asks until the answer can be used.
func askUntilValid(ctx context.Context, out io.Writer, lines <-chan string, q question) error {
	fmt.Fprintln(out, "\n"+q.text)
	for range maxTries {
		fmt.Fprintf(out, "--%s [%s]: ", q.flag, q.usual)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case answer, ok := <-lines:
			if !ok {
				fmt.Fprintln(out)
				return errors.New("the input ended before the last answer; nothing was written. Use --yes to accept all defaults")
			}
			if answer = strings.TrimSpace(answer); answer == "" {
				answer = q.usual
			}
			err := q.take(answer)
			if err == nil {
				return nil
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fmt.Fprintln(out, "  "+strings.ReplaceAll(err.Error(), "\n", "\n  "))
		}
	}
	return fmt.Errorf("no valid answer for --%s; nothing was written", q.flag)
}

// readLines reads lines in the background, so that waiting for one can be cancelled. The reader ends with the
// process.
func readLines(from io.Reader) <-chan string {
	out := make(chan string)
	go func() {
		defer close(out)
		scanner := bufio.NewScanner(from)
		for scanner.Scan() {
			out <- scanner.Text()
		}
	}()
	return out
}

func (in *initRun) clusterQuestion(ctx context.Context) *question {
	if in.keepPolicy {
		return nil
	}
	cluster := "from your kubeconfig"
	if name := currentContext(); name != "" {
		cluster = "currently " + escapeControlCharacters(name)
	}
	return &question{flag: "from", usual: fromBuiltIn,
		text: "What should the policy be based on?\n" +
			"  built-in  Istio as shipped with Prerig, with default settings\n" +
			"  cluster   the control plane of kubectl's current context (" + cluster + ")\n" +
			"  PATH      istiod's chart (directory or .tgz), or its rendered manifests",
		take: func(answer string) error {
			in.from, in.imported = answer, nil
			if answer == fromBuiltIn || answer == scaffold.BuiltIn {
				in.from = fromBuiltIn
				return in.checkFrom()
			}
			return in.readImport(ctx)
		},
	}
}

// currentContext returns the name of kubectl's current context, or "" if none is set. It does not contact the
// cluster.
func currentContext() string {
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return ""
	}
	return config.CurrentContext
}

func (in *initRun) namespacesQuestion(context.Context) *question {
	if in.keepPolicy || in.imported != nil && (in.imported.Policy.Spec.Istio == nil || len(in.imported.Policy.Spec.Namespaces) > 0) {
		return nil // the import contains the answer
	}
	return &question{flag: "namespaces", usual: allNamespaces,
		text: "Which namespaces get sidecars? Enter names separated by spaces, or all.",
		take: func(answer string) error {
			in.namespaces = nil
			if answer == allNamespaces {
				return nil
			}
			names := strings.FieldsFunc(answer, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
			if _, err := scaffold.Policy(scaffold.PolicyOptions{Namespaces: names}); err != nil {
				return err
			}
			in.namespaces = names
			return nil
		},
	}
}

func (in *initRun) sourceQuestion(context.Context) *question {
	here := ""
	if url, err := in.repository.reachableRemoteURL(); err == nil {
		here = "  .     this repository, " + escapeControlCharacters(url) + "\n"
		if found, err := in.inspect(); err == nil && found != nil && len(found.builds) > 0 {
			here += "        with " + describeBuilds(found.builds) + "\n"
		}
	}
	return &question{flag: "source", usual: noPipeline,
		text: "A pipeline renders a source whenever it changes, and publishes the result. Which source?\n" + here +
			"  URL   a Git repository, or oci://REGISTRY/PATH\n" +
			"  none  write no pipeline; " + policy.FileName + " is enough for files, kustomize and kpt",
		take: func(answer string) error {
			in.source = answer
			switch answer {
			case noPipeline:
				in.source = ""
				return nil
			case ".":
				_, err := in.repository.reachableRemoteURL()
				return err
			}
			return scaffold.CheckSource(answer)
		},
	}
}

// buildsQuestion asks what gets a pipeline, if there is a choice. What cannot be inspected is an error later.
func (in *initRun) buildsQuestion(context.Context) *question {
	if in.source == "" || !in.repository.isSource(in.source) {
		return nil
	}
	found, err := in.inspect()
	if err != nil || len(found.builds) < 2 {
		return nil
	}
	return &question{flag: "builds", usual: usualBuilds,
		text: "What gets a pipeline? Enter directories or patterns such as overlays/*, separated by spaces, all, or usual (*).\n" +
			strings.TrimSuffix(found.listBuilds(), "\n"),
		take: func(answer string) error {
			names := strings.FieldsFunc(answer, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })
			if _, err := found.choose(names); err != nil {
				return err
			}
			in.builds = names
			return nil
		},
	}
}

func (in *initRun) publishQuestion(context.Context) *question {
	if in.source == "" {
		return nil
	}
	source := in.source
	if source == "." {
		source, _ = in.repository.reachableRemoteURL()
	}
	return &question{flag: "publish", usual: "rendered",
		text: "Where should it publish? A branch of the source's repository, URL#BRANCH of another, or oci://REGISTRY/PATH.",
		take: func(answer string) error {
			in.publish = answer
			_, _, err := scaffold.SplitPublish(source, answer)
			return err
		},
	}
}
