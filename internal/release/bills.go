// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// component is a Go module that is linked, or Go's own library.
type component struct{ path, version string }

// componentPackageURL returns the component as package URL, in which a + of a version, as of +incompatible, is written
// as %2B.
func (c component) componentPackageURL() string {
	return "pkg:golang/" + c.path + "@" + strings.ReplaceAll(c.version, "+", "%2B")
}

// contents are what one thing is made of, an archive or an image.
type contents struct {
	name, file, digest string // digest is sha256 in hex
	fileDigest         string // of an image, that of its archive
	container          bool
	components         []component
}

// billMaker makes bills of materials of one release.
type billMaker struct {
	version, date string
	url           string // where the files of the release are
}

// makeBills makes bills of materials in SPDX 2.3 and CycloneDX for each archive and each image, of what Go notes in the
// programs.
func (r *release) makeBills(context.Context) error {
	var all []contents
	for _, b := range r.builds {
		all = append(all, contents{name: b.product.name, file: b.archive, digest: r.digests[b.archive], components: componentsOf(b.binaries)})
	}
	for _, i := range r.published {
		var binaries []binary
		for _, b := range i.builds {
			binaries = append(binaries, b.binaries...)
		}
		all = append(all, contents{name: i.name, file: i.file, digest: i.digest.Hex, container: true, components: componentsOf(binaries)})
	}
	m := billMaker{version: r.Version, date: r.revision.date(), url: r.URL}
	for _, c := range all {
		c.fileDigest = r.digests[c.file]
		for ending, make := range map[string]func(contents) ([]byte, error){".spdx.json": m.encodeSPDXBill, ".cdx.json": m.encodeCycloneDXBill} {
			text, err := make(c)
			if err != nil {
				return fmt.Errorf("%s of %s: %w", ending, c.file, err)
			}
			if err := r.writeReleaseFile(c.file+ending, text); err != nil {
				return err
			}
		}
	}
	return nil
}

// componentsOf returns what programs link, each once, sorted.
func componentsOf(binaries []binary) []component {
	var found []component
	for _, b := range binaries {
		found = append(found, component{"stdlib", strings.TrimPrefix(b.info.GoVersion, "go")})
		for _, dependency := range b.info.Deps {
			if dependency.Replace != nil {
				dependency = dependency.Replace
			}
			found = append(found, component{dependency.Path, dependency.Version})
		}
	}
	slices.SortFunc(found, func(a, b component) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.version, b.version))
	})
	return slices.Compact(found)
}

// billRootURL returns what the bill is about, as package URL.
func (m billMaker) billRootURL(c contents) string {
	if c.container {
		return fmt.Sprintf("pkg:oci/%s@sha256:%s?repository_url=%s", c.name[strings.LastIndex(c.name, "/")+1:],
			c.digest, c.name)
	}
	return component{module, m.version}.componentPackageURL()
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func (m billMaker) encodeSPDXBill(c contents) ([]byte, error) {
	const unknown = "NOASSERTION"
	refer := func(id common.ElementID) common.DocElementID { return common.DocElementID{ElementRefID: id} }
	located := func(url string) []*spdx.PackageExternalReference {
		return []*spdx.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: url}}
	}
	root := &spdx.Package{
		PackageName: c.name, PackageSPDXIdentifier: "root", PackageVersion: m.version, PackageFileName: c.file,
		PackageSupplier:         &common.Supplier{SupplierType: "Organization", Supplier: "The Prerig Authors"},
		PackageDownloadLocation: m.url + "/" + c.file, PackageLicenseConcluded: unknown,
		PackageLicenseDeclared: "Apache-2.0", PackageCopyrightText: unknown,
		PackageExternalReferences: located(m.billRootURL(c)), PrimaryPackagePurpose: "ARCHIVE",
		IsFilesAnalyzedTagPresent: true,
		// The digest of an image is that of its manifest, which is in the package URL; the archive has another one.
		PackageChecksums: []common.Checksum{{Algorithm: common.SHA256, Value: c.fileDigest}},
	}
	if c.container {
		root.PrimaryPackagePurpose = "CONTAINER"
	}
	document := &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: c.file,
		DocumentNamespace: m.url + "/" + c.file + ".spdx.json#" + c.digest,
		CreationInfo: &spdx.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Organization", Creator: "The Prerig Authors"},
				{CreatorType: "Tool", Creator: "prerig-release-" + m.version}},
			Created: m.date,
		},
		Packages:      []*spdx.Package{root},
		Relationships: []*spdx.Relationship{{RefA: refer("DOCUMENT"), RefB: refer("root"), Relationship: "DESCRIBES"}},
	}
	for _, one := range c.components {
		id := common.ElementID("go-module-" + notInID.ReplaceAllString(one.path+"-"+one.version, "-"))
		document.Packages = append(document.Packages, &spdx.Package{
			PackageName: one.path, PackageSPDXIdentifier: id, PackageVersion: one.version,
			PackageDownloadLocation: unknown,
			PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown, PackageCopyrightText: unknown,
			PackageExternalReferences: located(one.componentPackageURL()), IsFilesAnalyzedTagPresent: true,
		})
		document.Relationships = append(document.Relationships,
			&spdx.Relationship{RefA: refer("root"), RefB: refer(id), Relationship: "CONTAINS"})
	}
	return json.MarshalIndent(document, "", " ")
}

func (m billMaker) encodeCycloneDXBill(c contents) ([]byte, error) {
	bill := cyclonedx.NewBOM()
	root := cyclonedx.Component{
		BOMRef: m.billRootURL(c), Type: cyclonedx.ComponentTypeApplication, Name: c.name, Version: m.version,
		PackageURL: m.billRootURL(c),
		Licenses:   &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: c.digest}},
	}
	if c.container {
		root.Type = cyclonedx.ComponentTypeContainer
	}
	bill.Metadata = &cyclonedx.Metadata{Timestamp: m.date, Component: &root}
	var components []cyclonedx.Component
	var needs []string
	for _, one := range c.components {
		components = append(components, cyclonedx.Component{
			BOMRef: one.componentPackageURL(), Type: cyclonedx.ComponentTypeLibrary, Name: one.path,
			Version: one.version, PackageURL: one.componentPackageURL(),
		})
		needs = append(needs, one.componentPackageURL())
	}
	bill.Components = &components
	bill.Dependencies = &[]cyclonedx.Dependency{{Ref: root.BOMRef, Dependencies: &needs}}
	var text bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bill)
	return text.Bytes(), err
}
