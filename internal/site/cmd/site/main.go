// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Command site does what make site needs around Hugo: -gather DIR writes the pages of the repository for it, and -finish DIR follows the
// links of what it has made and writes the index of the search. Run it from the root of the module.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/prerig/prerig/internal/site"
)

func main() {
	gather := flag.String("gather", "", "the directory to write the pages to")
	finish := flag.String("finish", "", "the directory of the site")
	flag.Parse()
	if err := run(*gather, *finish); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(gather, finish string) error {
	if gather != "" {
		if err := site.Gather(".", gather); err != nil {
			return err
		}
	}
	if finish == "" {
		return nil
	}
	followed, err := site.Finish(finish)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d links lead to places in it\n", finish, followed)
	return nil
}
