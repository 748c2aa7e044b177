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
	visitMapField(v, "hostPath", func(path map[string]any) { setValueIfAbsent(path, "type", "") })
	visitMapField(v, "secret", defaultMode)
	visitMapField(v, "configMap", defaultMode)
	visitMapField(v, "downwardAPI", func(api map[string]any) {
		defaultMode(api)
		defaultItems(api)
	})
	visitMapField(v, "projected", defaultProjected)
	visitMapField(v, "iscsi", func(iscsi map[string]any) { setTextIfMissing(iscsi, "iscsiInterface", "default") })
	visitMapField(v, "rbd", func(rbd map[string]any) {
		setTextIfMissing(rbd, "pool", "rbd")
		setTextIfMissing(rbd, "user", "admin")
		setTextIfMissing(rbd, "keyring", "/etc/ceph/keyring")
	})
	visitMapField(v, "azureDisk", func(disk map[string]any) {
		setValueIfAbsent(disk, "cachingMode", "ReadWrite")
		setValueIfAbsent(disk, "fsType", "ext4")
		setValueIfAbsent(disk, "readOnly", false)
		setValueIfAbsent(disk, "kind", "Shared")
	})
	visitMapField(v, "scaleIO", func(scale map[string]any) {
		setTextIfMissing(scale, "storageMode", "ThinProvisioned")
		setTextIfMissing(scale, "fsType", "xfs")
	})
	visitMapField(v, "ephemeral", func(ephemeral map[string]any) { visitMapField(ephemeral, "volumeClaimTemplate", defaultClaim) })
	if s.isRuleInEffect(imageVolumePolicy) {
		visitMapField(v, "image", func(image map[string]any) {
			reference, _ := image["reference"].(string)
			setTextIfMissing(image, "pullPolicy", s.PullPolicy(reference))
		})
	}
}

func defaultMode(source map[string]any) { setValueIfAbsent(source, "defaultMode", fileMode) }

// defaultItems sets the defaults of the files of a downward API volume.
func defaultItems(source map[string]any) {
	forEachMapElement(source["items"], func(item map[string]any) { visitMapField(item, "fieldRef", defaultFieldRef) })
}

func defaultProjected(projected map[string]any) {
	defaultMode(projected)
	forEachMapElement(projected["sources"], func(source map[string]any) {
		visitMapField(source, "downwardAPI", defaultItems)
		visitMapField(source, "serviceAccountToken", func(token map[string]any) { setValueIfAbsent(token, "expirationSeconds", tokenSeconds) })
	})
}

// defaultClaim sets the defaults of a claim that is made for the pod alone.
func defaultClaim(template map[string]any) {
	visitMapField(template, "spec", func(spec map[string]any) {
		setValueIfAbsent(spec, "volumeMode", "Filesystem")
		visitMapField(spec, "resources", func(resources map[string]any) {
			canonicalizeFieldQuantities(resources, "limits")
			canonicalizeFieldQuantities(resources, "requests")
		})
	})
}
