// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

func (e *ExternalArtifactPublish) describeTarget() string {
	return "ExternalArtifact " + e.Namespace + "/" + e.Name
}

// url is empty: the files stay with the daemon, and the object is in the pipeline's own namespace.
func (e *ExternalArtifactPublish) url() string { return "" }

func (e *ExternalArtifactPublish) describeForUsers() string { return e.describeTarget() }

func (e *ExternalArtifactPublish) describeComparisonBase() string { return e.describeTarget() }

func (e *ExternalArtifactPublish) layoutAndStyle() (Layout, Style) { return e.Layout, e.Style }

func (e *ExternalArtifactPublish) publishDirectory() string { return "" }

func (e *ExternalArtifactPublish) isRemovable() bool { return true }

func (e *ExternalArtifactPublish) recordsSourceRevisions() bool { return false }

func (e *ExternalArtifactPublish) claimedPlaces() []Place {
	return []Place{{
		Key: "externalartifact/" + e.Namespace + "/" + e.Name, Path: ".", field: "externalArtifact.name",
		conflictMessage: func(who string) string {
			return e.describeTarget() + " belongs to " + who + ": each run of one would take it from the other"
		},
		duplicateField: "externalArtifact.name", duplicateMessage: "is the name of spec.publish[%d] already: an object has one content",
	}}
}

func (e *ExternalArtifactPublish) setDefaults(p *RenderPipeline) {
	setDefault(&e.Name, p.Metadata.Name)
	setDefault(&e.Namespace, p.Metadata.Namespace)
	setDefault(&e.Layout, LayoutObjects)
	setDefault(&e.Style, StyleCanonical)
}

func (e *ExternalArtifactPublish) check(v *validator, at string, p *RenderPipeline) {
	v.checkName(at+".name", e.Name)
	switch {
	case p.Metadata.Namespace == "":
		v.addError(at, "needs metadata.namespace: the object is in the pipeline's namespace")
	case e.Namespace != p.Metadata.Namespace:
		v.addError(at+".namespace", "must be %s, the pipeline's own, or left out", p.Metadata.Namespace)
	}
	v.checkFormat(at, e.Layout, e.Style)
}
