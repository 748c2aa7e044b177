// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package cli is the command line of prerig: it reads flags, calls the packages that do the work, and prints their
// results. It makes no decision about a workload, and keeps no state between two calls.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/fn/version"
)

// The exit codes of all commands.
const (
	// ExitOK means that the command did what it was asked to do.
	ExitOK = 0
	// ExitFindings means that a command that checks has found something: prerig inject --check, prerig lint,
	// prerig diff, prerig verify, prerig doctor, prerig daemon status --check.
	ExitFindings = 1
	// ExitError means that the input, the policy or the command line was wrong, or that reading or writing failed.
	ExitError = 2
)

// Streams are where a command reads from and writes to, and what it may assume of them.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	// InTerminal reports whether In is a terminal with a person, who would wait for us while we wait for input.
	InTerminal bool
	// Colour reports whether Out shows colours.
	Colour bool
}

// Standard returns the streams of the process. Colours are used on a terminal, unless NO_COLOR is set (no-color.org).
func Standard() Streams {
	return Streams{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTerminal: term.IsTerminal(int(os.Stdin.Fd())),
		Colour:     term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
	}
}

// findingsError is the error of a command that has found what it was to look for.
type findingsError struct{ message string }

func (f findingsError) Error() string { return f.message }

// errDifferent is that of a command that has shown what differs.
var errDifferent = errors.New("there are differences")

// errReported is the error of a command that has already printed its errors.
var errReported = errors.New("there were errors")

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, args []string, streams Streams, version string) int {
	streams.Err = visibleWriter{streams.Err}
	root := NewRoot(streams, version)
	root.SetArgs(args)
	help := &helpWriter{to: streams.Out}
	root.SetOut(help)
	err := rejectUnknownCommand(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err == nil && help.err != nil {
		err = fmt.Errorf("writing standard output: %w", help.err)
	}
	var f findingsError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &f):
		fmt.Fprintln(streams.Err, f.message)
		return ExitFindings
	case errors.Is(err, errDifferent):
		return ExitFindings
	case errors.Is(err, errReported):
	case ctx.Err() != nil:
		fmt.Fprintln(streams.Err, "interrupted; nothing was written")
	default:
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintln(streams.Err, "error: "+line)
		}
	}
	return ExitError
}

// helpWriter writes cobra's own output, such as help, and keeps the first error, which cobra does not return.
type helpWriter struct {
	to  io.Writer
	err error
}

func (w *helpWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// injectHint is for those who pipe manifests into prerig without a command.
const injectHint = "use prerig inject for manifests on standard input, or --post-renderer-args inject as Helm's post-renderer"

// The help lists commands in the order of their groups.
func init() { cobra.EnableCommandSorting = false }

// NewRoot returns the prerig command with all its commands. A new command is one constructor in a file of its own and
// one word in its group here.
func NewRoot(streams Streams, linked string) *cobra.Command {
	root := &cobra.Command{
		Use:   "prerig",
		Short: "Inject sidecars at build time, as the mesh's webhook would",
		Long: `Prerig adds the sidecars of a service mesh to Kubernetes manifests before they reach a
cluster, just as the mesh's admission webhook would. Injecting needs no cluster and no network.`,
		Example: `  prerig init                                               # write a first policy
  prerig inject --diff k8s/                                 # show what would change
  prerig inject -i k8s/                                     # change the files
  prerig inject -f deployment.yaml | kubectl apply -f -
  prerig explain k8s/                                       # show which workloads are injected, and why
  prerig check k8s/                                         # find risks, and what a cluster would reject`,
		Version:       version.Of(linked).Line("prerig"),
		Args:          knownCommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !streams.InTerminal { // manifests are piped in, and help must not take their place
				return fmt.Errorf("no command specified; %s; see prerig --help for all commands", injectHint)
			}
			return cmd.Help()
		},
	}
	root.SuggestionsMinimumDistance = 2 // without, a slip of a letter is not forgiven
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.Err)
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if !cmd.HasParent() {
			return fmt.Errorf("%w; flags must follow a command: %s; see prerig --help", err, injectHint)
		}
		text, _, _ := strings.Cut(err.Error(), ": strconv.")
		return fmt.Errorf("%s%s; see %s --help", text, flagHint(cmd, err), cmd.CommandPath())
	})
	addGroup(root, "Commands:",
		newInit(streams, linked), newInject(streams), newExplain(streams), newCheck(streams, linked),
		newDiff(streams, linked),
		newReview(streams, linked), newVerify(streams), newImport(streams), newServe(streams, linked))
	addGroup(root, "Parts of Check:", newLint(streams, linked), newGate(streams, linked))
	addGroup(root, "Images, Charts and Pipelines:",
		newRender(streams, linked), newLock(streams, linked), newImages(streams,
			linked), newCharts(streams), newAffected(streams, linked))
	addGroup(root, "Daemon:", newDaemon(streams, linked))
	root.AddCommand(formerCommands(streams, linked)...)
	addGroup(root, "Other Commands:",
		newAdmit(streams), newCapture(streams), newAmbient(streams), newDemo(streams), newDoctor(streams, linked),
		newArgoCD(streams, linked),
		newVersion(streams, linked))
	checkVersions(root)
	root.SetHelpFunc(rootHelp(root))
	root.SetHelpCommandGroupID("Other Commands:")
	root.SetCompletionCommandGroupID("Other Commands:")
	return root
}

// addGroup adds commands under a title of their own in the help.
func addGroup(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title})
	for _, c := range commands {
		c.GroupID = title
	}
	root.AddCommand(commands...)
}

// rejectUnknownCommand refuses a first word that is no command before its flags are read, which are those of another
// program then.
func rejectUnknownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") || strings.HasPrefix(args[0], "__complete") {
		return nil
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.RunE = showHelp
		case "completion":
			c.RunE, c.Args = needsShell, knownCommand
		}
	}
	for _, c := range root.Commands() {
		if c.Name() == args[0] || c.HasAlias(args[0]) {
			return nil
		}
	}
	return knownCommand(root, args)
}

// showHelp shows the help of the command that args name. A word that is no command is an error, as it is without help
// in front.
func showHelp(help *cobra.Command, args []string) error {
	found, rest, err := help.Root().Find(args)
	if err != nil {
		return err
	}
	if found.HasSubCommands() && len(rest) > 0 {
		return knownCommand(found, rest)
	}
	found.InitDefaultHelpFlag() // cobra does so for its own help command, too
	found.InitDefaultVersionFlag()
	return found.Help()
}

// needsShell is what prerig completion does without a shell: its output is for a shell to read, which help is not.
func needsShell(completion *cobra.Command, _ []string) error {
	var shells []string
	for _, c := range completion.Commands() {
		shells = append(shells, c.Name())
	}
	return fmt.Errorf("specify a shell, one of %s; see %s --help", strings.Join(shells, ", "), completion.CommandPath())
}

// elsewhere are commands of other programs, with what they are called here.
var elsewhere = map[string]string{
	"kube-inject":  "inject",
	"uninject":     "inject --remove",
	"check-inject": "explain",
	"analyze":      "check",
	"validate":     "check",
	"get":          "daemon status",
	"logs":         "daemon status",
	"template":     "render",
	"apply":        "inject FILE | kubectl apply -f -",
	"sync":         "daemon reconcile",
}

// maxTypos is in how many letters a word may differ from the command that is suggested for it.
const maxTypos = 2

// nearestCommand returns the command that a word is most similar to, those below daemon by their former names, or "".
func nearestCommand(cmd *cobra.Command, word string) string {
	names := map[string]string{}
	for _, name := range cmd.SuggestionsFor(word) {
		names[name] = name
	}
	for _, sub := range cmd.Commands() {
		switch {
		case strict.Distance(word, sub.Name()) > maxTypos:
		case sub.Hidden:
			names[sub.Name()] = "daemon " + sub.Name()
		default:
			names[sub.Name()] = sub.Name()
		}
	}
	if len(names) == 0 {
		return ""
	}
	distance := func(a, b string) int {
		return cmp.Or(strict.Distance(word, a)-strict.Distance(word, b), strings.Compare(a, b))
	}
	return names[slices.MinFunc(slices.Collect(maps.Keys(names)), distance)]
}

// knownCommand refuses a word that is no command.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := pathHint(args[0])
	if here, ok := elsewhere[args[0]]; ok {
		hint = "; use prerig " + here
	} else if near := nearestCommand(cmd, args[0]); near != "" {
		hint = "; did you mean " + near + "?"
	}
	return fmt.Errorf("unknown command %s%s; see %s --help", args[0], hint, cmd.CommandPath())
}

// noArguments is for commands that read nothing but their flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if cmd.Flags().Lookup("context") != nil {
		hint = "; a context of the kubeconfig is written --context " + args[0]
	}
	return fmt.Errorf("%s takes no arguments, and has %q%s; see %s --help", cmd.CommandPath(), strings.Join(args, " "), hint, cmd.CommandPath())
}

// newCommand returns a command with what all of them have in common.
func newCommand(use, short string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, SilenceErrors: true, SilenceUsage: true}
}
