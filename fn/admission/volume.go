// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package admission

// fileMode is 0644, the default mode of files in volumes.
const fileMode = int64(0o644)

// tokenSeconds is how long a projected token is valid: an hour.
const tokenSeconds = int64(3600)

func (s Server) defaultVolume(v map[string]any) {
	empty := true
	for key, source := range v {
		empty = empty && (key == "name" || source == nil)
	}
	if empty {
		v["emptyDir"] = map[string]any{}
		return
	}
	in(v, "hostPath", func(path map[string]any) { orAbsent(path, "type", "") })
	in(v, "secret", defaultMode)
	in(v, "configMap", defaultMode)
	in(v, "downwardAPI", func(api map[string]any) {
		defaultMode(api)
		defaultItems(api)
	})
	in(v, "projected", defaultProjected)
	in(v, "iscsi", func(iscsi map[string]any) { orText(iscsi, "iscsiInterface", "default") })
	in(v, "rbd", func(rbd map[string]any) {
		orText(rbd, "pool", "rbd")
		orText(rbd, "user", "admin")
		orText(rbd, "keyring", "/etc/ceph/keyring")
	})
	in(v, "azureDisk", func(disk map[string]any) {
		orAbsent(disk, "cachingMode", "ReadWrite")
		orAbsent(disk, "fsType", "ext4")
		orAbsent(disk, "readOnly", false)
		orAbsent(disk, "kind", "Shared")
	})
	in(v, "scaleIO", func(scale map[string]any) {
		orText(scale, "storageMode", "ThinProvisioned")
		orText(scale, "fsType", "xfs")
	})
	in(v, "ephemeral", func(ephemeral map[string]any) { in(ephemeral, "volumeClaimTemplate", defaultClaim) })
	if s.has(imageVolumePolicy) {
		in(v, "image", func(image map[string]any) {
			reference, _ := image["reference"].(string)
			orText(image, "pullPolicy", s.pullPolicy(reference))
		})
	}
}

func defaultMode(source map[string]any) { orAbsent(source, "defaultMode", fileMode) }

// defaultItems sets the defaults of the files of a downward API volume.
func defaultItems(source map[string]any) {
	each(source["items"], func(item map[string]any) { in(item, "fieldRef", defaultFieldRef) })
}

func defaultProjected(projected map[string]any) {
	defaultMode(projected)
	each(projected["sources"], func(source map[string]any) {
		in(source, "downwardAPI", defaultItems)
		in(source, "serviceAccountToken", func(token map[string]any) { orAbsent(token, "expirationSeconds", tokenSeconds) })
	})
}

// defaultClaim sets the defaults of a claim that is made for the pod alone.
func defaultClaim(template map[string]any) {
	in(template, "spec", func(spec map[string]any) {
		orAbsent(spec, "volumeMode", "Filesystem")
		in(spec, "resources", func(resources map[string]any) {
			canonical(resources, "limits")
			canonical(resources, "requests")
		})
	})
}
