// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command prerig-validate answers requests with the results of Kubernetes' own validation. Prerig starts it; package validation
// describes what it reads from standard input and writes to standard output. With -version it prints the version of Kubernetes.
package main

import (
	"fmt"
	"os"

	"github.com/prerig/prerig/pipeline/cmd/prerig-validate/validation"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "-version" {
		fmt.Println(validation.KubernetesVersion())
		return
	}
	if err := validation.Serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "prerig-validate:", err)
		os.Exit(1)
	}
}
