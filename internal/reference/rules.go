// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"strings"

	pipelineapi "github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// gateRulesPage describes the rules of prerig gate.
func gateRulesPage() string {
	var b strings.Builder
	beginPage(&b, "Gate rules", "What `prerig gate`, and a pipeline with [`spec.gates`](../render-pipeline.md#specgates), find in objects as a cluster would see them:\n"+
		"why it matters, and what to do. `--rule CODE=SEVERITY`, or `rules` in a pipeline, sets a severity or switches a rule off.\n"+
		"[Gates](../gate.md) describes how they work, and what only a cluster can check.")
	for _, rule := range gate.Rules() {
		fmt.Fprintf(&b, "\n## %s\n\n**%s.** Severity: %s.\n\n%s\n\n*What to do.* %s\n",
			rule.Code, escaper.Replace(rule.Title), rule.Severity, escaper.Replace(rule.Why), escaper.Replace(rule.Change))
	}
	return b.String()
}

// reasonsPage describes the reasons of conditions.
func reasonsPage() string {
	var b strings.Builder
	beginPage(&b, "Reasons", "The reasons of the condition `Ready` of a pipeline or a policy, in `prerig daemon status -o json`, on the page, and in the status of objects of a cluster.\n"+
		"The message beside it names the object, the field or the server. A run that fails or is refused leaves what is published as it is.")
	for _, reason := range pipelineapi.Reasons() {
		fmt.Fprintf(&b, "\n## %s\n\n%s: `%s`. %s\n\n*What to do.* %s\n", reason.Name, reason.Condition, reason.Status,
			reason.Means, reason.Change)
	}
	b.WriteString(otherResults)
	return b.String()
}

// otherResults describes where the rest is documented.
const otherResults = `
## Findings with codes

- ` + "`PR101`" + ` and the like are of ` + "`prerig lint`" + `: [lint rules](../../fn/lint/RULES.md), or ` + "`prerig lint --explain PR101`" + `.
- ` + "`schema-…`, `policy-…` and `pod-security-…`" + ` are of ` + "`prerig gate`" + `: [gate rules](gate-rules.md).
- ` + "`Changed`, `Foreign` and the like" + ` are states of pods in ` + "`prerig verify`" + `: [what is compared](../verify.md#what-is-compared).

## Other errors

An error without a code names the object, the field, the file and the line in its text, and the fix. The [exit code](../cli.md) is 2.
`
